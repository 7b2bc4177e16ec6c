"""A course folder: nbgrader's own layout, our configuration, the secret, the gradebook.

DIR/nbgrader_config.py        nbgrader with our exporter in place of a kernel
    exercises/ASSIGNMENT/     the assignment's room: edit here, then `autograder release`
    source/  release/  submitted/  autograded/  feedback/  gradebook.db      as nbgrader knows them
    .autograder/secret        what the grading seeds are made from; for the instructor's eyes only
    .autograder/results/      one JSON file a finished submission (journal.py)
    .autograder/evidence/     what solutions and mistakes show on the grading seeds
    .autograder/rooms.json    the exercises as init or upgrade wrote them (upgrade.py)
    .autograder/lock          who is grading
    .autograder/moment        held while one grade is saved, and while all are copied (backup.py)
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import shutil
import sys
import warnings
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from autograder import journal
from autograder.atomic import write_atomically
from autograder.errors import CourseError
from autograder.gradebook import Book, gradebook
from autograder.room import ROOMS, Room, find_room, is_of_checkout

if TYPE_CHECKING:  # what needs PyTorch is imported where it is used: most commands do without its two seconds
    from autograder.reference import Reference

CONFIG = '''\
"""nbgrader's configuration of this course. What `nbgrader autograde` and formgrader's button run is set here."""

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = {course_id!r}

# Submissions are not run in a kernel beside the gradebook: the exporter rebuilds each notebook from the released one, runs
# the answers in a sandbox and writes the verdicts below the check cells. nbgrader scores what it then reads.
c.Autograde.exporter_class = "autograder.nbgrader_seam.GradedNotebook"
c.Autograde.sanitize_preprocessors = []
c.Autograde.autograde_preprocessors = [
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
]

# Students' markdown and outputs are shown in the instructor's browser.
c.HTMLExporter.sanitize_html = True
'''


@dataclass
class Course:
    """An existing course. CourseError where DIR is none."""

    root: Path
    db: str | None = None

    def __post_init__(self) -> None:
        self.root = Path(self.root).resolve()
        if not (self.root / "nbgrader_config.py").is_file() or not (self.root / ".autograder").is_dir():
            raise CourseError(
                f"{self.root} is not a course that `autograder init` made (no nbgrader_config.py with a folder "
                ".autograder beside it). Make one with `autograder init DIR`, or name it with --course DIR."
            )

    @cached_property
    def secret(self) -> bytes:
        path = self.root / ".autograder" / "secret"
        try:
            secret = bytes.fromhex(path.read_text().strip())
        except (OSError, ValueError) as error:
            raise CourseError(
                f"The course's secret cannot be read ({path}: {error}). Grades cannot be made without it; restore "
                "it from a backup, so that regrading uses the seeds that it used before."
            ) from error
        if len(secret) < 16:
            raise CourseError(f"The course's secret in {path} is too short to be one; restore it from a backup.")
        return secret

    @cached_property
    def directory(self):
        """nbgrader's CourseDirectory under this course's configuration."""
        from nbgrader.coursedir import CourseDirectory
        from traitlets.config import PyFileConfigLoader

        try:
            config = PyFileConfigLoader("nbgrader_config.py", path=str(self.root)).load_config()
        except Exception as error:
            raise CourseError(
                f"{self.root / 'nbgrader_config.py'} does not run: {type(error).__name__}: {error}"
            ) from error
        config.CourseDirectory.root = str(self.root)
        if self.db:
            config.CourseDirectory.db_url = self.db
        return CourseDirectory(config=config)

    def path(self, step: str, student: str, assignment: str) -> Path:
        """A folder of nbgrader's layout, e.g. path("submitted", "ada", "03_gradscaler")."""
        directory = getattr(self.directory, f"{step}_directory")
        return Path(self.directory.format_path(directory, student, assignment))

    def room(self, assignment: str) -> Room:
        return find_room(assignment, self.root / "exercises")

    def assignments(self) -> list[str]:
        return sorted(
            path.parent.name for path in (self.root / "exercises").glob("*/*.ipynb") if path.stem == path.parent.name
        )

    def students(self, assignment: str) -> list[str]:
        """Everybody with a folder for the assignment among the submissions, whatever is in it."""
        pattern = self.path("submitted", "*", assignment)
        depth = pattern.parts.index("*")
        everybody, rest = Path(*pattern.parts[:depth]), Path(*pattern.parts[depth + 1 :])
        names = os.listdir(everybody) if everybody.is_dir() else []
        return sorted(name for name in names if not name.startswith(".") and _is_there(everybody / name / rest))

    def reference(self, assignment: str) -> Reference:
        """Expected evidence on this course's secret seeds; that of an exercise's mistakes when an answer to it fails."""
        from autograder.reference import compute

        return compute(self.room(assignment), self.secret, self.evidence, lazily=True)

    @property
    def evidence(self) -> Path:
        return self.root / ".autograder" / "evidence"

    def result_path(self, assignment: str, student: str) -> Path:
        return self.root / ".autograder" / "results" / assignment / f"{student}.json"

    def results(self, assignment: str) -> list[dict]:
        """The records of all graded submissions of an assignment, by student. CourseError where one is damaged."""
        records = []
        for path in sorted((self.root / ".autograder" / "results" / assignment).glob("*.json")):
            record = journal.read(path)
            if record is None:
                raise CourseError(
                    f"What is kept of a grade cannot be read: {path} is damaged. Grade {path.stem} again (`autograder grade "
                    f"{assignment}` finds out by itself), or delete the file if nothing was submitted."
                )
            record.pop("journal", None)
            records.append(record)
        return records

    def save_record(self, student: str, record: dict) -> None:
        """Keep a record (Grade.to_json) of a student's submission in .autograder/results."""
        write_atomically(self.result_path(record["assignment"], student), json.dumps(record, indent=1).encode() + b"\n")

    def book(self, assignment: str, say: Callable[[str], None] = lambda words: None) -> Book:
        """The gradebook, open for grading an assignment."""
        return Book(self.directory.db_url, self.directory.course_id, assignment, self.directory.config, say)

    def alone(self, doing: str):
        """A context in which no other `grade` or `release` works in this course. CourseError says who does."""
        return journal.lock(self.root / ".autograder" / "lock", doing)

    def moment(self, *, writing: bool):
        """A context in which nobody saves a grade or a release (or, writing, copies them) at the same time."""
        return journal.moment(self.root / ".autograder" / "moment", writing=writing)

    def build_source(self, room: Room, checks: bytes) -> None:
        """Write source/ASSIGNMENT from the room: the notebook with its solutions, and the archive of the learner's checks."""
        from autograder.bundle import file_name

        folder = self.path("source", ".", room.name)
        notebook = (room.path / f"{room.name}.ipynb").read_bytes()
        write_atomically(folder / f"{room.name}.ipynb", notebook, 0o644)
        write_atomically(folder / file_name(room.name), checks, 0o644)

    def release(self, assignment: str) -> int:
        """Prove the assignment fit, then write source/ and release/. The number of answers that the proof graded."""
        from autograder import release
        from autograder.bundle import pack
        from autograder.probes import PUBLIC_SECRET
        from autograder.reference import compute

        room = self.room(assignment)
        create_gradebook(self)  # where there is none to be had, nbgrader says no more than that it did not succeed
        reference = compute(room, PUBLIC_SECRET, self.evidence)
        proofs = release.verify(reference)
        with self.moment(writing=True):
            self.build_source(room, pack(reference))
            _generate(self, assignment)
        # A notebook that is graded without the archive beside it finds its checks here, instead of making them while
        # a stock nbgrader's 30 s for a cell run out.
        with suppress(OSError):
            if is_of_checkout(room):
                release.shelve(reference)
        return len(proofs)


def _is_there(path: Path) -> bool:
    """Whether there is something of this name, be it a link that leads nowhere or what nobody may look at."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _generate(course: Course, assignment: str) -> None:
    from nbgrader.apps.api import NbGraderAPI

    api = NbGraderAPI(course.directory)
    said = api.generate_assignment(assignment, force=True)
    if not said["success"]:
        lines = [line for line in (said.get("error") or said.get("log") or "").strip().splitlines() if line.strip()]
        raise CourseError(f"nbgrader did not release {assignment}: {lines[-1] if lines else 'no message'}")


def init(root: Path, course_id: str, *, source: Collection[str] | None = None) -> Course:
    """Make a course in an empty or new folder, with every assignment of this installation.

    `source` names those whose source/ is written now, by default all; for the others their release does it.
    """
    root = Path(root).resolve()
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", course_id):
        raise CourseError(f"{course_id!r} is not a course id: use letters, digits, '_', '-' and '.'")
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise CourseError(
            f"{root} exists and is not empty; nothing was changed. A course wants a folder of its own: name another."
        )
    rooms = sorted(path.parent for path in ROOMS.glob("*/*.ipynb") if path.stem == path.parent.name)
    if not rooms:
        raise CourseError(
            f"There are no exercises in {ROOMS}. A course is made from a checkout of this project: install it "
            "with `pip install -e .` in a clone."
        )
    for room in rooms:
        Room(room)
    try:
        return _make(root, course_id, rooms, source)
    except BaseException:
        # The folder was empty or not there: half a course helps nobody and would stand in the way of the next try.
        shutil.rmtree(root, ignore_errors=True)
        raise


def _make(root: Path, course_id: str, rooms: list[Path], source: Collection[str] | None) -> Course:
    from autograder import upgrade

    (root / ".autograder").mkdir(parents=True)
    os.chmod(root / ".autograder", 0o700)
    write_atomically(root / ".autograder" / "secret", (secrets.token_hex(32) + "\n").encode(), 0o600)
    (root / "nbgrader_config.py").write_text(CONFIG.format(course_id=course_id), encoding="utf-8")
    for room in rooms:
        shutil.copytree(
            room,
            root / "exercises" / room.name,
            ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.pyc"),
        )
    course = Course(root)
    for folder in ("source", "submitted"):
        course.path(folder, ".", ".").mkdir(parents=True, exist_ok=True)
    for assignment in course.assignments() if source is None else source:
        room = course.room(assignment)
        course.build_source(room, _checks(course, room))
    upgrade.note(course, [room.name for room in rooms])
    create_gradebook(course)
    return course


def _checks(course: Course, room: Room) -> bytes:
    """The archive of the learner's checks: of one of this checkout's rooms the one kept there, since making it takes long."""
    from autograder.bundle import file_name, pack
    from autograder.probes import PUBLIC_SECRET
    from autograder.reference import compute
    from autograder.release import student_files

    with suppress(OSError):  # the checkout is somebody else's, or its disk is full
        if is_of_checkout(room):
            return (student_files(room) / file_name(room.name)).read_bytes()
    return pack(compute(room, PUBLIC_SECRET, course.evidence))


def create_gradebook(course: Course) -> None:
    with gradebook(course.directory.db_url, course.directory.course_id):
        pass


def prepare_nbgrader() -> None:
    """Let nbgrader find the `alembic` that stands beside this Python, and keep its log for errors."""
    from sqlalchemy.exc import SAWarning

    # nbgrader 0.9 adds objects in an order that SQLAlchemy 2.1 remarks on; what is saved is right.
    warnings.filterwarnings("ignore", category=SAWarning)
    beside = str(Path(sys.executable).parent)
    if beside not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = beside + os.pathsep + os.environ.get("PATH", "")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("traitlets").setLevel(logging.ERROR)
