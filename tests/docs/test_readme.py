"""README.md: every command in it is run here, in the order in which it stands there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import nbformat
import pytest
from commands import inline, options_exist, read

README = "README.md"
slow = pytest.mark.slow


def under(heading: str):
    return pytest.mark.commands(README, heading)


@pytest.fixture(scope="session")
def boxed() -> None:
    from autograder import sandbox
    from autograder.errors import SandboxError

    try:
        sandbox.bwrap()
    except SandboxError as error:
        pytest.skip(f"requires a sandbox: {error}")


# Installing. .ci/run types these lines on a clean machine; a test that installed PyTorch again would take minutes.


def line_under(root: Path, heading: str) -> str:
    (command,) = [command for command in read(root / README) if command.heading == heading]
    return command.text


@under("Run the tests")
def test_ci_runs_the_readmes_test_line(root, shell):
    line = shell.next("python3 -m venv .venv && ")
    script = (root / ".ci" / "run").read_text(encoding="utf-8")
    pattern = re.search(r"line=\$\((grep .*) README\.md\)", script)
    assert pattern and 'eval "$line"' in script
    taken = subprocess.run(f"{pattern[1]} README.md", shell=True, cwd=root, capture_output=True, text=True).stdout
    assert taken == line + "\n"
    assert line not in script, "the line would be a copy"
    assert os.access(root / ".ci" / "run", os.X_OK)


@under("Open the course")
def test_the_line_that_opens_the_course_installs_in_the_same_way(root, shell):
    line = shell.next("python3 -m venv .venv && ")
    install, _, last = line.rpartition(" && ")
    test_install, _, test_last = line_under(root, "Run the tests").rpartition(" && ")
    assert test_install.replace("'.[test]'", ".") == install
    assert (last, test_last) == (".venv/bin/ampkit lab", ".venv/bin/python -m pytest -n 2 --dist loadfile")


@under("On Windows")
def test_windows_gets_the_same_commands_in_its_own_spelling(root, shell):
    line = line_under(root, "Open the course")
    spelled = [part.replace("python3", "py").replace("/bin/", "\\Scripts\\") for part in line.split(" && ")]
    assert [shell.next("").replace("/", "\\") for _ in spelled] == spelled


@slow
@under("With conda")
def test_conda_makes_the_environment(root, shell):
    create, activate, lab = shell.next("conda env create"), shell.next("conda activate"), shell.next("ampkit lab")
    assert (root / create.split(" -f ")[1]).is_file() and lab == "ampkit lab"
    if shutil.which("conda") is None or "CI_CONDA" not in os.environ:
        pytest.skip("requires conda, and CI_CONDA=1 to say that gigabytes may be downloaded")
    name = activate.split()[-1]
    command = f"{create} --yes && conda run -n {name} {lab} --help"
    subprocess.run(command, shell=True, cwd=root, check=True, timeout=3000)


@under("Later")
def test_the_environment_is_activated(shell):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", shell.folder / ".venv"], check=True)
    activate = shell.next(". .venv/bin/activate")
    where = subprocess.run(
        f"{activate} && python -c 'import sys; print(sys.prefix)'",
        shell=True,
        cwd=shell.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).samefile(shell.folder / ".venv")


# The learner


@slow
@under("Your working copy")
def test_the_course_opens_on_the_port_asked_for_and_is_updated_without_opening(shell):
    from lab_server import free_port

    command, port = shell.next("ampkit lab --dir my-copy --port 8889 --no-browser"), free_port()
    with shell.serving(command.replace("8889", str(port))) as (address, token):
        assert address.endswith(f":{port}")
        question = urllib.request.Request(
            f"{address}/api/contents/exercises/03_gradscaler", headers={"Authorization": f"token {token}"}
        )
        with urllib.request.urlopen(question, timeout=30) as answer:
            names = {entry["name"] for entry in json.load(answer)["content"]}
    assert names == {"03_gradscaler.ipynb", "03_gradscaler.checks.zip"}
    mine = shell.folder / "my-copy" / "lessons" / "03_gradscaler.ipynb"
    notebook = nbformat.read(mine, as_version=4)
    notebook.cells[1].source = "mine = True"
    nbformat.write(notebook, mine)
    said = shell.run("ampkit lab --dir my-copy --prepare-only")
    assert "my-copy" in said and "Preparing" not in said
    assert nbformat.read(mine, as_version=4).cells[1].source == "mine = True"


@slow
@under("An exercise")
def test_a_check_of_a_released_exercise_is_right_silent_about_the_rest_and_wrong_in_words(root, shell, tmp_path):
    check = shell.next('check("clipped_step", "update")')
    from autograder.release import student_files
    from autograder.room import find_room

    room = find_room("03_gradscaler")
    assert check in [cell.source for cell in room.released.cells]
    shutil.copytree(student_files(room), tmp_path, dirs_exist_ok=True)
    wrong = (room.path / "mistakes" / "clipped_step" / "clip_before_unscale.py").read_text(encoding="utf-8")
    setup = next(cell.source for cell in room.released.cells if cell.get("id") == "setup")
    said = {}
    for name, answer in (("right", room.solutions["clipped_step"]), ("wrong", wrong)):
        code = "\n".join([setup, answer, check])
        said[name] = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=tmp_path,
            env=shell.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert said["right"].returncode == 0, said["right"].stderr
    assert said["right"].stdout == "✓ clipped_step, update: right (2 points)\n" and not said["right"].stderr
    assert said["wrong"].returncode != 0
    for words in ("0 of 2 points — clip_before_unscale", "expected", "max_norm"):
        assert words in said["wrong"].stderr


# The instructor. These run in one course, in the README's order.

ASSIGNMENT = "03_gradscaler"


def submit(course: Path, student: str, answers: dict[str, str]) -> None:
    from autograder.room import answer_cells

    notebook = nbformat.read(course / "release" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)
    for name, cell in answer_cells(notebook).items():
        cell.source = answers.get(name, cell.source)
    path = course / "submitted" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


@pytest.fixture
def course(shell) -> Path:
    path = shell.folder / "my-course"
    if not (path / "release").is_dir():
        pytest.skip("requires the course that the test of 'Make a course and release an assignment' makes")
    shell.folder = path
    return path


def scores(course: Path) -> dict[str, float]:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", "amp") as gradebook:
        return {student.id: student.score for student in gradebook.students}


@slow
@under("Can this machine grade")
def test_the_doctor_finds_nothing_missing_where_a_sandbox_is_to_be_had(boxed, shell):
    # In the home of whoever runs the tests: a Python or an environment that stands in it is there in the box as well.
    shell.environment["HOME"] = os.environ.get("HOME", shell.environment["HOME"])
    assert "an answer in it has no network and sees nothing of your home folder" in shell.run("autograder doctor")


@slow
@under("Make a course and release an assignment")
def test_a_course_is_made_and_an_assignment_released(root, shell):
    shell.run("autograder init my-course")
    shell.run("cd my-course")
    assert "Released 03_gradscaler" in shell.run("autograder release 03_gradscaler", seconds=600)
    released = {path.name for path in (shell.folder / "release" / ASSIGNMENT).iterdir()}
    assert released == {f"{ASSIGNMENT}.ipynb", f"{ASSIGNMENT}.checks.zip"}
    assert (shell.folder / ".autograder" / "secret").stat().st_mode & 0o077 == 0


@slow
@under("Grade and give feedback")
def test_a_class_is_graded_and_given_feedback(root, boxed, shell, course):
    from autograder.room import find_room

    room = find_room(ASSIGNMENT)
    wrong = room.path / "mistakes" / "clipped_step" / "clip_before_unscale.py"
    submit(course, "ada", {"clipped_step": room.solutions["clipped_step"]})
    submit(course, "ben", {"clipped_step": wrong.read_text(encoding="utf-8")})
    submit(course, "cleo", {})
    (course / "submitted" / "dan" / ASSIGNMENT).mkdir(parents=True)
    (course / "submitted" / "dan" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").write_text('{"cells": [', encoding="utf-8")

    said = shell.run(f"autograder grade {ASSIGNMENT} --json grades.json")
    assert "clip_before_unscale" in said
    grades = {record["student"]: record for record in json.loads((course / "grades.json").read_text())}
    assert {name: record["score"] for name, record in grades.items()} == {"ada": 3, "ben": 0, "cleo": 0, "dan": 0}
    assert {name: record["status"] for name, record in grades.items()} == {
        "ada": "graded",
        "ben": "graded",
        "cleo": "graded",
        "dan": "unreadable",
    }
    shell.run(f"autograder feedback {ASSIGNMENT}")
    page = (course / "feedback" / "ben" / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text(encoding="utf-8")
    assert "clip before unscale" in page and "<script" not in page
    said = shell.run(f"autograder report {ASSIGNMENT}")
    assert "clip_before_unscale in clipped_step (1 student)" in said
    page = (course / "report" / f"{ASSIGNMENT}.html").read_text(encoding="utf-8")
    assert "clip_before_unscale" in page and f"../feedback/ben/{ASSIGNMENT}/{ASSIGNMENT}.html" in page
    assert re.search(r"^ben,graded,0,19,0,", (course / "report" / f"{ASSIGNMENT}.csv").read_text(), re.MULTILINE)
    shell.run("nbgrader export")
    assert re.search(r"^03_gradscaler,.*\bada\b.*,3\.0,19\.0$", (course / "grades.csv").read_text(), re.MULTILINE)


@slow
@under("With nbgrader's own tools")
def test_nbgraders_own_command_and_formgraders_button_give_the_same_scores(boxed, shell, course):
    from lab_server import free_port

    before = scores(course)
    assert before.get("ada") == 3
    shell.run(f"nbgrader autograde {ASSIGNMENT} --force")
    assert scores(course) == before
    command = f"{shell.next('jupyter lab')} --no-browser --ServerApp.port={free_port()}"
    command += " --allow-root" if os.geteuid() == 0 else ""
    with shell.serving(command) as (address, token):
        button = urllib.request.Request(
            f"{address}/formgrader/api/submission/{ASSIGNMENT}/ben/autograde",
            data=b"",
            headers={"Authorization": f"token {token}"},
        )
        with urllib.request.urlopen(button, timeout=300) as answer:
            assert json.load(answer)["success"]
    assert scores(course) == before


@slow
@under("Try answers without a course")
def test_a_file_of_answers_is_tried(root, boxed, shell):
    right = root / "exercises" / ASSIGNMENT / "also_right" / "clipped_step" / "by_hand.py"
    shutil.copy(right, shell.folder / "clipped.py")
    shell.run(f"autograder try {ASSIGNMENT} clipped.py --json tried.json")
    (record,) = json.loads((shell.folder / "tried.json").read_text())
    assert record["answers"] == "clipped.py" and record["exercises"]["clipped_step"]["passed"]


@under("A hub for a class")
def test_the_hubs_commands_are_those_of_its_own_page_where_they_are_run(root, shell):
    there = [command.text for command in read(root / "hub" / "README.md")]
    for start in ("npm install --global --prefix .venv", "autograder hub --demo"):
        assert shell.next(start) in there


# The practitioner


@slow
@under("The loops")
def test_the_loops_train_resume_and_differ(shell):
    assert shell.run("ampkit train fp16 --").startswith("fp16: loss 2.3")
    broken = re.search(r"-> ([\d.]+) in 100 steps", shell.run("ampkit train fp16_no_scaler"))
    assert float(broken[1]) > 2.2, "the loop that is broken on purpose has learned"
    assert "complete: loss" in shell.run("ampkit train complete")
    assert (shell.folder / "run.pt").is_file()
    assert "bf16: loss" in shell.run("python -m ampkit.loops.bf16")
    assert "ddp: loss" in shell.run("torchrun")
    said = shell.run("from ampkit.loops import diff")
    assert "+    scaler = torch.amp.GradScaler(device, init_scale=init_scale)" in said


@under("One value for the precision")
def test_a_precision_makes_its_context_and_its_scaler(root, shell):
    from ampkit.precision import PRECISIONS

    shell.run("import torch")
    text = (root / README).read_text(encoding="utf-8")
    assert [name for name in PRECISIONS if f"`{name}`" not in text] == []


@slow
@under("What does each op run in")
def test_the_ops_of_a_model_are_shown_with_their_dtypes(shell):
    said = shell.run("ampkit ops bert_tiny")
    assert re.search(r"norm\s+LayerNorm\s+1\s+fp32", said) and "casts write" in said
    said = shell.run("ampkit ops cnn --by op --device both")
    assert "batch_norm" in said and "CPU" in said


@slow
@under("Will it fit")
def test_a_plan_says_what_fits_and_what_to_change_first(shell):
    said = shell.run("ampkit plan cnn")
    assert "saved activations" in said and "Largest batch that fits" in said and "not yet been measured" in said


@slow
@under("Where does it go wrong")
def test_the_doctor_looks_at_the_machine_a_log_and_a_model(shell):
    shell.next(
        "ampkit doctor"
    )  # what it finds depends on the machine: test_doctor_machine.py has machines of all kinds
    if not (shell.folder / "fp16.jsonl").is_file():
        subprocess.run(
            "ampkit train fp16 --steps 100 --log fp16.jsonl",
            shell=True,
            cwd=shell.folder,
            env=shell.environment,
            check=True,
            capture_output=True,
        )
    assert "fp16.jsonl" in shell.run("ampkit doctor fp16.jsonl")
    assert "cnn" in shell.run("ampkit doctor cnn")


@slow
@under("What does it buy")
def test_a_bench_writes_its_table_its_json_and_its_plot(shell):
    assert "AMP BF16, larger batch" in shell.run("ampkit bench --model mlp")
    assert len(json.loads((shell.folder / "bench.json").read_text())["rows"]) == 4
    assert (shell.folder / "bench.png").read_bytes().startswith(b"\x89PNG")


@under("On a machine with a GPU")
def test_the_gpu_suite_is_there_and_says_what_it_requires(root, shell):
    import torch

    shell.folder = root
    collected = shell.run(
        "python -m pytest -m gpu", add="--collect-only -q -p no:cacheprovider tests/ampkit/test_loops.py"
    )
    assert "tests/ampkit/test_loops.py::" in collected
    headline = shell.next("ampkit bench --suite headline --json lessons/measured/headline.json")
    if not torch.cuda.is_available():
        done = subprocess.run(
            headline, shell=True, cwd=shell.folder, env=shell.environment, capture_output=True, text=True
        )
        assert done.returncode == 1 and "PyTorch sees no CUDA GPU here" in done.stderr
        assert not (root / "lessons" / "measured" / "headline.json").exists()


# The whole


def test_no_command_of_the_readme_is_run_by_nobody(root, request):
    """The fixture `shell` fails a test that leaves out a command under its heading, so headings are what is left."""
    marked = set()
    for item in vars(sys.modules[__name__]).values():
        for mark in getattr(item, "pytestmark", []):
            if mark.name == "commands":
                marked.add(mark.args[1])
    headings = {command.heading for command in read(root / README)}
    assert headings - marked == set()
    assert len(headings) > 10


def test_a_command_within_a_sentence_exists_with_its_options(root):
    assert options_exist(inline(root / README)) > 3


def test_every_file_and_picture_that_is_linked_is_there_and_pictures_are_small(root):
    text = (root / README).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert len(links) >= 5 and [link for link in links if not (root / link).is_file()] == []
    pictures = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", text)
    assert pictures and all(len(alt) > 30 and (root / path).stat().st_size < 250_000 for alt, path in pictures)


def test_the_lessons_exercises_and_loops_that_the_readme_counts_are_there(root):
    from ampkit.loops import LADDER
    from autograder.room import find_room

    text = (root / README).read_text(encoding="utf-8")
    numbers = (
        "no",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
    )
    rooms = sorted(path.parent.name for path in root.glob("exercises/*/*.ipynb"))
    lessons = sorted(path.stem for path in root.glob("lessons/*.ipynb"))
    assert rooms == lessons and [int(name[:2]) for name in lessons] == list(range(1, len(lessons) + 1))
    exercises = sum(len(find_room(name).exercises) for name in rooms)
    assert f"lessons 1 to {len(lessons)} " in text
    assert (
        f"{numbers[len(rooms)]} assignments with\n{exercises} exercises, {numbers[len(LADDER)]} training loops" in text
    )
    assert [loop.name for loop in LADDER if f"`{loop.name}.py`" not in text] == []
    attacks = list(root.glob("tests/autograder/attacks/*/*.py"))
    assert f"`tests/autograder/attacks` holds {len(attacks)} attempts" in text
