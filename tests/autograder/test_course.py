"""A class from init to feedback, graded three ways: by `autograder grade`, by nbgrader's own command under the course's
configuration, and by a stock nbgrader that knows nothing of us."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course import Course
from autograder.errors import CourseError

A = "03_gradscaler"
BIN = Path(sys.executable).parent
CLIP_FIRST = """
import torch

def clipped_step(scaler, optimizer, loss, parameters, max_norm):
    scaler.scale(loss).backward()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return norm.item()
"""
SCORES = {"ada": 19.0, "bob": 16.0, "cy": 0.0, "dan": 0.0, "eve": 19.0}
STATUS = {"ada": "graded", "bob": "graded", "cy": "graded", "dan": "unreadable", "eve": "graded"}


def run(*command: object, cwd: Path, status: int = 0, **environment: str) -> str:
    done = subprocess.run(
        [str(BIN / str(command[0])), *map(str, command[1:])],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", **environment},
        timeout=600,
    )
    assert done.returncode == status, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory, boxed):
    """A released course in which five students have submitted: right, wrong, untouched, broken JSON, a check cell deleted."""
    root = tmp_path_factory.mktemp("class") / "course"
    run("autograder", "init", root, cwd=root.parent)
    run("autograder", "release", "--course", root, cwd=root.parent)
    course = Course(root)
    room = course.room(A)
    released = nbformat.read(root / "release" / A / f"{A}.ipynb", as_version=4)

    def submit(student: str, answers: dict[str, str], without: str = "") -> Path:
        notebook = nbformat.from_dict(json.loads(json.dumps(released)))
        for cell in notebook.cells:
            cell.source = answers.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
        notebook.cells = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") != without]
        shutil.copytree(root / "release" / A, root / "submitted" / student / A)
        path = root / "submitted" / student / A / f"{A}.ipynb"
        nbformat.write(notebook, path)
        return path

    submit("ada", room.solutions)
    submit("bob", {**room.solutions, "clipped_step": CLIP_FIRST})
    submit("cy", {})
    path = submit("dan", room.solutions)
    path.write_text(path.read_text()[:700])
    submit("eve", room.solutions, without="clipped_step-update")
    return root


def gradebook(root: Path, assignment: str = A) -> dict[str, float]:
    code = (
        "import sys, json; from nbgrader.api import Gradebook\n"
        "with Gradebook(sys.argv[1], sys.argv[2]) as g:\n"
        "    print(json.dumps({s.student.id: s.score for s in g.assignment_submissions(sys.argv[3])}))"
    )
    said = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            code,
            f"sqlite:///{root / 'gradebook.db'}",
            "amp" if assignment == A else "",
            assignment,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(said.stdout)


@pytest.fixture(scope="module")
def graded(made):
    """The records of `autograder grade --json`."""
    run("autograder", "grade", A, "--json", made.parent / "grades.json", cwd=made)
    return {record["student"]: record for record in json.loads((made.parent / "grades.json").read_text())}


@pytest.mark.slow
def test_each_student_has_a_score_and_a_status(graded, made):
    assert {student: record["score"] for student, record in graded.items()} == SCORES
    assert {student: record["status"] for student, record in graded.items()} == STATUS
    assert all(record["max_score"] == 19.0 and len(record["exercises"]) == 7 for record in graded.values())
    assert graded["bob"]["exercises"]["clipped_step"]["diagnosis"] == "clip_before_unscale"
    assert {e["diagnosis"] for e in graded["cy"]["exercises"].values()} == {"not_attempted"}
    assert "not valid JSON" in graded["dan"]["message"]
    assert graded["eve"]["message"] == "cell clipped_step-update was missing and was put back"
    assert gradebook(made) == SCORES


@pytest.mark.slow
def test_grading_again_changes_nothing(graded, made):
    run("autograder", "grade", A, "--json", made.parent / "again.json", cwd=made)
    assert (made.parent / "again.json").read_bytes() == (made.parent / "grades.json").read_bytes()
    assert gradebook(made) == SCORES


@pytest.mark.slow
def test_feedback_opens_without_scripts_and_says_what_happened(graded, made):
    assert "5 pages" in run("autograder", "feedback", A, cwd=made)
    page = (made / "feedback" / "bob" / A / f"{A}.html").read_text()
    assert "16 of 19 points" in page and "clip before unscale" in page and "Given scale 2**" in page
    for student in SCORES:
        page = (made / "feedback" / student / A / f"{A}.html").read_text()
        assert "<script" not in page and "http:" not in page and "https:" not in page


@pytest.mark.slow
def test_nbgraders_own_commands_give_the_same_scores(graded, made, tmp_path):
    root = tmp_path / "course"
    shutil.copytree(made, root)
    for folder in ("autograded", "feedback", ".autograder/results"):
        shutil.rmtree(root / folder, ignore_errors=True)
    (root / "gradebook.db").unlink()
    run("nbgrader", "generate_assignment", A, "--force", cwd=root)
    run("nbgrader", "autograde", A, cwd=root)
    assert gradebook(root) == SCORES
    records = {record["student"]: record for record in Course(root).results(A)}
    assert records == graded
    run("nbgrader", "generate_feedback", A, cwd=root)
    page = (root / "feedback" / "bob" / A / f"{A}.html").read_text()
    assert "clip_before_unscale" in page


@pytest.mark.slow
def test_formgraders_button_gives_the_same_score(graded, made, tmp_path):
    root = tmp_path / "course"
    shutil.copytree(made, root)
    shutil.rmtree(root / "autograded")
    code = (
        "import json, sys, warnings; warnings.simplefilter('ignore')\n"
        "from nbgrader.apps import NbGraderAPI; from nbgrader.coursedir import CourseDirectory\n"
        "from traitlets.config import PyFileConfigLoader\n"
        "config = PyFileConfigLoader('nbgrader_config.py', path='.').load_config()\n"
        "api = NbGraderAPI(CourseDirectory(config=config), config=config)\n"
        "print(json.dumps(api.autograde(sys.argv[1], sys.argv[2])['success']))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, A, "bob"],
        cwd=root,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
    )
    assert said.stdout.strip().endswith("true"), said.stdout + said.stderr
    assert gradebook(root)["bob"] == SCORES["bob"]


@pytest.mark.slow
@pytest.mark.parametrize("with_bundle", [True, False], ids=["bundle", "notebook only"])
def test_stock_nbgrader_gives_full_marks_to_the_solution_and_fewer_to_a_mistake(made, tmp_path, with_bundle):
    for student in ("ada", "bob", "cy"):
        shutil.copytree(made / "submitted" / student / A, tmp_path / "submitted" / student / "ps")
        (tmp_path / "submitted" / student / "ps" / f"{A}.ipynb").rename(
            tmp_path / "submitted" / student / "ps" / "ps.ipynb"
        )
        if not with_bundle:
            (tmp_path / "submitted" / student / "ps" / f"{A}.checks.zip").unlink()
    shutil.copytree(made / "release" / A, tmp_path / "source" / "ps")
    (tmp_path / "source" / "ps" / f"{A}.ipynb").rename(tmp_path / "source" / "ps" / "ps.ipynb")
    if not with_bundle:
        (tmp_path / "source" / "ps" / f"{A}.checks.zip").unlink()
    run("nbgrader", "generate_assignment", "ps", cwd=tmp_path)
    run("nbgrader", "autograde", "ps", cwd=tmp_path)
    assert gradebook(tmp_path, "ps") == {student: SCORES[student] for student in ("ada", "bob", "cy")}


def test_the_secret_is_for_the_instructor_only(made):
    assert stat.S_IMODE((made / ".autograder").stat().st_mode) == 0o700
    assert stat.S_IMODE((made / ".autograder" / "secret").stat().st_mode) == 0o600
    assert len(Course(made).secret) == 32


def test_the_release_folder_holds_what_learners_get_and_no_more(made):
    assert sorted(path.name for path in (made / "release" / A).iterdir()) == [f"{A}.checks.zip", f"{A}.ipynb"]


def test_an_instructors_comment_and_manual_grade_reach_the_feedback(made):
    code = (
        "import sys; from nbgrader.api import Gradebook\n"
        "with Gradebook(sys.argv[1], 'amp') as g:\n"
        "    c = g.find_comment('clipped_step', sys.argv[2], sys.argv[2], 'bob'); c.manual_comment = 'See <b>me</b>.'\n"
        "    g.find_grade('clipped_step-norm', sys.argv[2], sys.argv[2], 'bob').manual_score = 1.0\n"
        "    g.db.commit()"
    )
    run("autograder", "grade", A, "--student", "bob", cwd=made)
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, f"sqlite:///{made / 'gradebook.db'}", A], check=True)
    run("autograder", "feedback", A, cwd=made)
    page = (made / "feedback" / "bob" / A / f"{A}.html").read_text()
    assert "17 of 19 points" in page and "See &lt;b&gt;me&lt;/b&gt;." in page
    run("autograder", "grade", A, "--student", "bob", cwd=made)
    assert gradebook(made)["bob"] == 17.0, "a manual grade survives grading again"


def test_a_grade_that_cannot_be_saved_is_said_and_costs_nobody_else_theirs(made, tmp_path, monkeypatch):
    root = tmp_path / "course"
    shutil.copytree(made, root)
    save = Course.save

    def full(course, student, grade):
        if student == "bob":
            raise OSError(28, "No space left on device")
        save(course, student, grade)

    monkeypatch.setattr(Course, "save", full)
    arguments = ["grade", A, "--course", str(root), "--student", "bob", "--student", "eve"]
    done = CliRunner().invoke(app, [*arguments, "--json", str(tmp_path / "out.json")])
    assert done.exit_code == 1 and "1 of 2 grades could not be saved" in done.output
    assert "bob: OSError: [Errno 28] No space left on device" in done.output
    assert gradebook(root)["eve"] == SCORES["eve"]
    assert {record["student"] for record in json.loads((tmp_path / "out.json").read_text())} == {"bob", "eve"}


def test_release_stops_at_a_check_that_catches_nothing(made, tmp_path):
    root = tmp_path / "course"
    shutil.copytree(made, root)
    before = (root / "release" / A / f"{A}.ipynb").read_bytes()
    room = root / "exercises" / A
    right = Course(root).room(A).solutions["two_optimizers_step"]
    (room / "mistakes" / "two_optimizers_step" / "skips_both.py").write_text(
        f'"""Not wrong at all, in fact."""\n{right}'
    )
    said = run("autograder", "release", A, cwd=root, status=1)
    assert "mistake skips_both earns full marks" in said and "nothing was written" in said
    assert (root / "release" / A / f"{A}.ipynb").read_bytes() == before


def test_a_folder_that_is_no_course_is_not_touched(tmp_path, made):
    with pytest.raises(CourseError, match="autograder init"):
        Course(tmp_path)
    (tmp_path / "mine").write_text("x")
    assert "not empty" in run("autograder", "init", tmp_path, cwd=tmp_path, status=1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
