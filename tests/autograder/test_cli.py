"""The command `autograder`, right and wrong: what it prints, what it writes, and its exit status."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.cli import app

A = "03_gradscaler"
FILES = {
    "right.py": "def simulate_scale(\n"
    "    found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000\n):\n"
    "    scale, good, seen = init_scale, 0, []\n"
    "    for bad in found_inf:\n"
    "        good = 0 if bad else good + 1\n"
    "        if bad:\n"
    "            scale *= backoff_factor\n"
    "        elif good == growth_interval:\n"
    "            scale, good = (scale * growth_factor if scale * growth_factor < 2.0**128 else scale), 0\n"
    "        seen.append(scale)\n"
    "    return seen\n",
    "wrong.py": "import torch\n\ndef clipped_step(scaler, optimizer, loss, parameters, max_norm):\n"
    "    scaler.scale(loss).backward()\n    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)\n"
    "    scaler.step(optimizer)\n    scaler.update()\n    return norm.item()\n",
    "two.py": "def choose_init_scale(grads):\n    return 65536.0\n\ndef underflow_report(grads, scale):\n    return nothing\n",
    "syntax.py": "def simulate_scale(:\n    pass\n",
    "other.py": "x = 1\n",
    "binary.py": "\udcff",
}


def invoke(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def tried(tmp_path_factory, boxed):
    """What `try --json` writes for all FILES in one call, by file name."""
    folder = tmp_path_factory.mktemp("answers")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    out = folder / "out.json"
    done = invoke("try", A, *(folder / name for name in FILES), "--json", out)
    assert done.exit_code == 0, done.output
    records = json.loads(out.read_text())
    assert [Path(record["answers"]).name for record in records] == list(FILES)
    return {Path(record["answers"]).name: record for record in records}, done.output


def test_try_writes_one_record_a_file_with_every_exercise_in_it(tried):
    for record in tried[0].values():
        assert set(record) == {"answers", "assignment", "score", "max_score", "status", "message", "exercises"}
        assert record["assignment"] == A and record["max_score"] == 19.0 and len(record["exercises"]) == 7
        for exercise in record["exercises"].values():
            assert {"score", "max_score", "passed", "diagnosis", "message"} <= set(exercise)
            assert exercise["passed"] == (exercise["score"] == exercise["max_score"])
            assert (exercise["diagnosis"] is None) == exercise["passed"]


@pytest.mark.parametrize(
    "name, score, exercise, diagnosis",
    [
        ("right.py", 2.0, "simulate_scale", None),
        ("wrong.py", 0.0, "clipped_step", "clip_before_unscale"),
        ("two.py", 0.0, "choose_init_scale", "constant"),
        ("two.py", 0.0, "underflow_report", "raises"),
        ("syntax.py", 0.0, "simulate_scale", "raises"),
        ("other.py", 0.0, "LossScaler", "not_attempted"),
    ],
)
def test_try_grades_what_a_file_defines_and_nothing_else(tried, name, score, exercise, diagnosis):
    record = tried[0][name]
    assert record["status"] == "graded" and record["score"] == score
    assert record["exercises"][exercise]["diagnosis"] == diagnosis
    untouched = set(record["exercises"]) - {"simulate_scale", "clipped_step", "choose_init_scale", "underflow_report"}
    assert {record["exercises"][name]["diagnosis"] for name in untouched} == {"not_attempted"}


def test_try_says_of_a_file_that_it_cannot_read_or_use_why(tried):
    assert tried[0]["binary.py"]["status"] == "unreadable"
    assert "defines none of" in tried[0]["other.py"]["message"]


def test_the_message_of_an_error_names_the_students_own_line(tried):
    assert (
        "NameError: name 'nothing' is not defined (line 5 of your cell)"
        in tried[0]["two.py"]["exercises"]["underflow_report"]["message"]
    )


def test_try_prints_a_line_a_file_and_one_a_mistake(tried):
    assert "right.py  2 of 19" in tried[1] and "clipped_step  0 of 3  clip_before_unscale: " in tried[1]


@pytest.mark.parametrize(
    "arguments, status, said",
    [
        (["try", "03_gradscalar", "x.py"], 1, "There is no assignment '03_gradscalar'"),
        (["try", A, "nowhere.py"], 1, "There is no file nowhere.py"),
        (["try", A], 2, "Missing argument"),
        (["grade", A, "--course", "."], 1, "not a course that `autograder init` made"),
        (["release", "--course", "."], 1, "not a course"),
        (["feedback", A, "--course", "."], 1, "not a course"),
        (["init", ".", "--course-id", "a b"], 1, "is not a course id"),
        (["grade", A, "--jobs", "0"], 2, "--jobs"),
        (["grade", A, "--json", "."], 2, "is a directory"),
        (["try", A, "x.py", "--json", ""], 2, "is a directory"),
        (["mark"], 2, "No such command"),
    ],
)
def test_wrong_use_is_answered_in_words(arguments, status, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke(*arguments)
    assert done.exit_code == status and said in done.output
    assert "Traceback" not in done.output and list(tmp_path.iterdir()) == []


@pytest.fixture
def graded(tiny_course, handed_in, grade_here, tmp_path):
    """A course in which a right answer is graded."""
    import shutil

    root = tmp_path / "course"
    shutil.copytree(tiny_course, root)
    handed_in(root, "x\x1b[2J\ny", {"double": "def double(x):\n    return 2 * x"})
    grade_here(root)
    return root


def test_results_that_cannot_be_written_are_said_with_the_grades(graded):
    done = invoke("grade", "tiny", "--course", graded, "--json", graded / "nbgrader_config.py" / "x.json")
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit)
    assert "3 of 4" in done.output and "Give --json another file" in done.output


def test_results_go_into_a_pipe_and_through_a_link_and_replace_neither(graded, tmp_path):
    import os
    import threading

    pipe, link, read = tmp_path / "pipe", tmp_path / "link.json", []
    os.mkfifo(pipe)
    link.symlink_to("target.json")
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    assert invoke("grade", "tiny", "--course", graded, "--json", pipe).exit_code == 0
    reader.join()
    assert invoke("grade", "tiny", "--course", graded, "--json", link).exit_code == 0
    assert pipe.is_fifo() and link.is_symlink()
    assert json.loads(read[0]) == json.loads((tmp_path / "target.json").read_text()) and '"score": 3.0' in read[0]


def test_what_a_name_would_do_to_a_terminal_is_shown_instead(graded):
    done = invoke("grade", "tiny", "--course", graded)
    assert done.output.startswith(r"x\x1b[2J\ny  3 of 4") and "\x1b" not in done.output


def test_a_disk_that_cannot_be_written_is_a_message(graded):
    (graded / "report").write_text("in the way")
    (graded / "feedback").write_text("in the way")
    for command in ("report", "feedback"):
        done = invoke(command, "tiny", "--course", graded)
        assert done.exit_code == 1 and isinstance(done.exception, SystemExit), done.output
        assert "run the same command again" in done.output and str(graded / command) in done.output


def test_help_is_quick_since_nothing_heavy_is_imported_for_it():
    code = "import sys, autograder.cli; sys.exit(any(m in sys.modules for m in ('torch', 'nbgrader', 'IPython', 'nbformat')))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_without_a_sandbox_nothing_is_graded_unless_one_says_so(tmp_path, monkeypatch):
    from autograder import sandbox
    from autograder.errors import SandboxError

    def none():
        raise SandboxError("This machine cannot isolate an answer")

    monkeypatch.setattr(sandbox, "require", none)
    file = tmp_path / "right.py"
    file.write_text(FILES["right.py"])
    done = invoke("try", A, file)
    assert done.exit_code == 1 and "cannot isolate" in done.output
    done = invoke("try", A, file, "--unsandboxed", "--json", tmp_path / "out.json")
    record = json.loads((tmp_path / "out.json").read_text())[0]
    assert done.exit_code == 0 and record["score"] == 2.0 and record["sandboxed"] is False
