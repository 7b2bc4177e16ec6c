"""A class of assignment 3 from init to feedback, graded by `autograder grade` and by a stock nbgrader that knows nothing of us.

What takes a course but not this assignment is tested on a tiny one (test_session.py, test_nbgrader.py)."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from autograder import course as courses
from autograder.cli import app
from autograder.course import Course, init, prepare_nbgrader
from autograder.errors import CourseError
from autograder.feedback import write

A = "03_gradscaler"
pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
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
    rooms = tmp_path_factory.mktemp("rooms")
    shutil.copytree(courses.ROOMS / A, rooms / A)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(courses, "ROOMS", rooms)  # the other assignments take as long again
        warnings.simplefilter("ignore")  # of nbgrader's
        prepare_nbgrader()
        course = init(root, "amp")
        archive = root / "source" / A / f"{A}.checks.zip"
        kept = archive.read_bytes()
        course.release(A)
        assert archive.read_bytes() == kept, "the checkout's own, and the one that the release made"
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
def test_feedback_opens_without_scripts_and_says_what_happened(graded, made):
    assert "5 pages" in run("autograder", "feedback", A, cwd=made)
    page = (made / "feedback" / "bob" / A / f"{A}.html").read_text()
    assert "16 of 19 points" in page and "clip before unscale" in page and "Given scale 2**" in page
    for student in SCORES:
        page = (made / "feedback" / student / A / f"{A}.html").read_text()
        assert "<script" not in page and "http:" not in page and "https:" not in page


@pytest.mark.slow
@pytest.mark.parametrize("with_bundle", [True, False], ids=["bundle", "notebook only"])
def test_stock_nbgrader_gives_full_marks_to_the_solution_and_fewer_to_a_mistake(made, tmp_path, with_bundle):
    """A kernel for each of them takes its time: without the archive, whose checks are made elsewhere, one student is enough."""
    students = ("ada", "bob") if with_bundle else ("bob",)
    places = [made / "submitted" / student / A for student in students]
    for place in (*places, made / "release" / A):
        target = tmp_path / ("source" if place.parent.name == "release" else f"submitted/{place.parent.name}") / "ps"
        shutil.copytree(place, target)
        (target / f"{A}.ipynb").rename(target / "ps.ipynb")
        if not with_bundle:
            (target / f"{A}.checks.zip").unlink()
    run("nbgrader", "generate_assignment", "ps", cwd=tmp_path)
    run("nbgrader", "autograde", "ps", cwd=tmp_path)
    assert gradebook(tmp_path, "ps") == {student: SCORES[student] for student in students}


def test_the_secret_is_for_the_instructor_only(made):
    assert stat.S_IMODE((made / ".autograder").stat().st_mode) == 0o700
    assert stat.S_IMODE((made / ".autograder" / "secret").stat().st_mode) == 0o600
    assert len(Course(made).secret) == 32


def test_the_release_folder_holds_what_learners_get_and_no_more(made):
    assert sorted(path.name for path in (made / "release" / A).iterdir()) == [f"{A}.checks.zip", f"{A}.ipynb"]


@pytest.mark.slow
def test_an_instructors_comment_and_manual_grade_reach_the_feedback(graded, made):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Gradebook(f"sqlite:///{made / 'gradebook.db'}", "amp") as book:
            book.find_comment("clipped_step", A, A, "bob").manual_comment = "See <b>me</b>."
            book.find_grade("clipped_step-norm", A, A, "bob").manual_score = 1.0
            book.db.commit()
        write(Course(made), A)
    page = (made / "feedback" / "bob" / A / f"{A}.html").read_text()
    assert "17 of 19 points" in page and "See &lt;b&gt;me&lt;/b&gt;." in page


def _in_notebook(old: str, new: str):
    def edit(room: Path) -> None:
        path = room / "tiny.ipynb"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return edit


def _harmless(room: Path) -> None:
    (room / "mistakes" / "double" / "harmless.py").write_text('"""Not wrong."""\ndef double(x):\n    return x + x\n')


@pytest.mark.parametrize(
    "edit, said",
    [
        (_harmless, "double: mistake harmless earns full marks"),
        (lambda room: shutil.rmtree(room / "mistakes" / "halve"), r"halve: there is no mistake in .*mistakes.halve"),
        (
            _in_notebook("return 2 * x", "return 2 * y"),
            "the solution of double, or its probe numbers, raised NameError",
        ),
        (_in_notebook("    ### END SOLUTION", "    # no end"), r"cell 1 \(double\): .*without its"),
        (_in_notebook('"grade_id": "halve"', '"grade_id": "double"'), "the grade_id 'double' is used twice"),
    ],
    ids=["harmless mistake", "no mistake", "solution raises", "unclosed marker", "id twice"],
)
def test_release_stops_at_an_error_of_the_instructors_own_with_the_place_and_the_reason(
    tiny_course, tmp_path, edit, said
):
    root = tmp_path / "course"
    shutil.copytree(tiny_course, root)
    written = [root / place / "tiny" / "tiny.ipynb" for place in ("release", "source")]
    before = [path.read_bytes() for path in written]
    edit(root / "exercises" / "tiny")
    done = CliRunner().invoke(app, ["release", "tiny", "--course", str(root)])
    assert done.exit_code == 1 and re.search(said, done.output), done.output
    assert [path.read_bytes() for path in written] == before


def test_a_folder_that_is_no_course_is_not_touched(tmp_path):
    with pytest.raises(CourseError, match="autograder init"):
        Course(tmp_path)
    (tmp_path / "mine").write_text("x")
    done = CliRunner().invoke(app, ["init", str(tmp_path)])
    assert done.exit_code == 1 and "not empty" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
