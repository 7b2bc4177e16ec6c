"""What the grader's tests share: the room of assignment 3, its reference on fixed seeds, whether a sandbox is to be had."""

import shutil
import warnings
from pathlib import Path

import nbformat
import pytest

from autograder import sandbox
from autograder.errors import SandboxError
from autograder.reference import Reference, compute
from autograder.room import Room, find_room

SECRET = b"a secret of the tests"


@pytest.fixture(scope="session")
def room() -> Room:
    return find_room("03_gradscaler")


@pytest.fixture(scope="session")
def reference(room, tmp_path_factory) -> Reference:
    return compute(room, SECRET, tmp_path_factory.mktemp("evidence"))


@pytest.fixture(scope="session")
def boxed() -> bool:
    """Skips where answers cannot be isolated."""
    try:
        sandbox.bwrap()
    except SandboxError as error:
        pytest.skip(f"requires a sandbox: {error}")
    return True


TINY = "tiny"
CHECKS = """
from autograder.probes import Exercise

double = Exercise("double", parts={"value": 2, "zero": 1})
halve = Exercise("halve", parts={"value": 1})

@double.probe(draws=2)
def numbers(answer, p):
    x = p.random.randrange(3, 10**6)
    p.given(f"x = {x}")
    p.see("returned", answer(x))

@double.probe("zero")
def nothing(answer, p):
    p.see("returned", answer(0))

@halve.probe()
def even(answer, p):
    p.see("returned", answer(2 * p.random.randrange(3, 10**6)))
"""
MISTAKES = {
    "double": {
        "squares": '"""You square x."""\ndef double(x):\n    return x * x\n',
        "adds_two": '"""You add 2."""\ndef double(x):\n    return x + 2\n',
        "misses_zero": '"""Zero is a number, too."""\ndef double(x):\n    return 2 * x or None\n',
    },
    "halve": {"doubles": '"""You double x."""\ndef halve(x):\n    return 2 * x\n'},
}
SOLUTIONS = {"double": "def double(x):\n    return 2 * x", "halve": "def halve(x):\n    return x // 2"}


def _cell(kind: str, grade_id: str, source: str, **nbgrader) -> dict:
    new = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    flags = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3, **nbgrader}
    return new(source, id=grade_id.replace("_", "-"), metadata={"nbgrader": {"grade_id": grade_id, **flags}})


@pytest.fixture(scope="session")
def tiny_rooms(tmp_path_factory) -> Path:
    """A folder with one assignment that is graded in a moment: two exercises, and one cell for the instructor to grade."""
    folder = tmp_path_factory.mktemp("rooms")
    room = folder / TINY
    cells = [_cell("code", "setup", f'from autograder import Checks\n\ncheck = Checks("{TINY}")', locked=True)]
    for name, parts in (("double", {"value": 2, "zero": 1}), ("halve", {"value": 1})):
        head, body = SOLUTIONS[name].split("\n")
        answer = f"{head}\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"
        cells.append(_cell("code", name, answer, solution=True))
        for part, points in parts.items():
            check = f'check("{name}", "{part}")'
            cells.append(_cell("code", f"{name}-{part}", check, grade=True, locked=True, points=points))
    cells.append(_cell("markdown", "reflect", "What did you learn?", grade=True, solution=True, points=5))
    room.mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=cells), room / f"{TINY}.ipynb")
    (room / "checks.py").write_text(CHECKS)
    for exercise, mistakes in MISTAKES.items():
        for slug, source in mistakes.items():
            path = room / "mistakes" / exercise / f"{slug}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
    return folder


@pytest.fixture(scope="session")
def tiny_course(tiny_rooms, tmp_path_factory) -> Path:
    """A course with the tiny assignment released. Copy it (the fixture `small_class` does)."""
    from autograder import course, release

    root = tmp_path_factory.mktemp("tiny") / "course"
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nbgrader's own commands
        patch.setattr(course, "ROOMS", tiny_rooms)
        patch.setattr(release, "ROOT", tmp_path_factory.mktemp("build"))
        course.prepare_nbgrader()
        made = course.init(root, "amp")
        made.release(TINY)
    return root


def submit(root: Path, student: str, answers: dict[str, str], *, at: str = "", without: str = "") -> Path:
    """Hand in the released notebook of the tiny assignment with these answers in it; what was there is replaced."""
    notebook = nbformat.read(root / "release" / TINY / f"{TINY}.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = answers.get(cell.metadata.nbgrader.grade_id, cell.source)
    notebook.cells = [cell for cell in notebook.cells if cell.metadata.nbgrader.grade_id != without]
    path = root / "submitted" / student / TINY / f"{TINY}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    if at:
        (path.parent / "timestamp.txt").write_text(at)
    return path


@pytest.fixture(scope="session")
def handed_in():
    """The function `submit`, for tests that hand in notebooks of their own."""
    return submit


@pytest.fixture
def small_class(tiny_course, tmp_path) -> Path:
    """A course in which seven students have submitted: right, two mistakes, an error, nothing, no JSON, a cell deleted."""
    root = tmp_path / "course"
    shutil.copytree(tiny_course, root)
    submit(root, "ada", SOLUTIONS, at="2026-01-10 10:00:00 UTC")
    submit(root, "bob", {**SOLUTIONS, "double": MISTAKES["double"]["squares"]})
    submit(root, "cy", {**SOLUTIONS, "double": MISTAKES["double"]["misses_zero"]}, at="2026-01-12 10:00:00 UTC")
    submit(root, "dan", {**SOLUTIONS, "halve": "def halve(x):\n    raise ValueError('mine')"})
    submit(root, "eve", {})
    submit(root, "flo", SOLUTIONS).write_text("{")
    submit(root, "gus", {**SOLUTIONS, "reflect": "Much."}, without="double-value")
    return root


SMALL_SCORES = {"ada": 4.0, "bob": 1.0, "cy": 3.0, "dan": 3.0, "eve": 0.0, "flo": 0.0, "gus": 4.0}


@pytest.fixture(scope="session")
def small_scores() -> dict[str, float]:
    """What the students of `small_class` get."""
    return dict(SMALL_SCORES)


def database(root: Path, db: str | None = None) -> dict[str, list[tuple]]:
    """What the gradebook holds, without its random ids: rows in a fixed order, by table."""
    from nbgrader.api import Gradebook

    db = db or f"sqlite:///{root / 'gradebook.db'}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Gradebook(db, "amp") as book:
            submissions = [
                (s.student_id, str(s.timestamp), s.score, s.needs_manual_grade)
                for assignment in book.assignments
                for s in assignment.submissions
            ]
            notebooks = [n for a in book.assignments for s in a.submissions for n in s.notebooks]
            grades = [
                (n.student.id, g.cell.name, g.auto_score, g.manual_score, g.extra_credit, g.needs_manual_grade)
                for n in notebooks
                for g in n.grades
            ]
            comments = [
                (n.student.id, c.cell.name, c.auto_comment, c.manual_comment) for n in notebooks for c in n.comments
            ]
            late = [(n.student.id, n.late_submission_penalty) for n in notebooks]
            students = [(student.id,) for student in book.students]
    return {
        "students": sorted(students),
        "submissions": sorted(submissions),
        "grades": sorted(grades, key=str),
        "comments": sorted(comments, key=str),
        "late": sorted(late, key=str),
    }


@pytest.fixture(scope="session")
def in_gradebook():
    """The function `database`."""
    return database


@pytest.fixture(scope="session")
def grade_here(boxed):
    """Grade a course's tiny assignment in this process: grade_here(root, students=None, db=None, pool=None, **Session)."""
    from autograder import executors
    from autograder.course import Course, prepare_nbgrader
    from autograder.session import Session

    prepare_nbgrader()

    def run(root: Path, students=None, *, db=None, jobs: int = 2, pool=None, **options):
        course = Course(root, db)
        with course.alone("a test"), course.book(TINY) as book, executors.local(jobs) as here:
            session = Session(course, course.reference(TINY), book, **options)
            return session.run(students or course.students(TINY), pool or here)

    return run
