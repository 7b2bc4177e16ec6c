"""A course and a newer installation: what differs between them, and taking the installation's assignments over.

A course has copies of its own of the assignments (exercises/), so that nothing changes in mid-term unless it is asked for.
.autograder/rooms.json says what `autograder init` or `autograder upgrade` wrote there: a file that is not as it was written
is the instructor's own, and is never overwritten.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from autograder import course as courses
from autograder import journal
from autograder.atomic import write_atomically
from autograder.course import Course
from autograder.errors import CourseError, RoomError
from autograder.room import Room

LEFT_OUT = ("__pycache__", ".ipynb_checkpoints")
NAMED = 3  # files of an assignment in one line


@dataclass
class Difference:
    """An assignment of the installation beside the course's. Files by their place in the room: what the installation has
    newer, what the instructor has edited, and where both are so."""

    assignment: str
    new: bool = False
    newer: list[str] = field(default_factory=list)
    mine: list[str] = field(default_factory=list)
    both: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.new or bool(self.newer or self.both)

    def __str__(self) -> str:
        if self.new:
            return f"{self.assignment} (the course has none of this name)"
        return f"{self.assignment} ({_names(self.newer + self.both)})"


def _names(files: list[str]) -> str:
    more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
    return ", ".join(files[:NAMED]) + more


def installed() -> list[str]:
    """The assignments of this installation."""
    return sorted(path.parent.name for path in courses.ROOMS.glob("*/*.ipynb") if path.stem == path.parent.name)


def differences(course: Course) -> list[Difference]:
    """Every assignment of the installation beside the course's."""
    return [_difference(course, assignment) for assignment in installed()]


def _difference(course: Course, assignment: str) -> Difference:
    place = course.root / "exercises" / assignment
    if not place.is_dir():
        return Difference(assignment, new=True)
    mine, theirs, written = _digests(place), _digests(courses.ROOMS / assignment), _written(course).get(assignment, {})
    found = Difference(assignment)
    for name in sorted({*mine, *theirs, *written}):
        if mine.get(name) == theirs.get(name):
            continue
        if mine.get(name) == written.get(name):
            found.newer.append(name)
        elif theirs.get(name) == written.get(name):
            found.mine.append(name)
        else:
            found.both.append(name)
    return found


def _digests(room: Path) -> dict[str, str]:
    return {
        path.relative_to(room).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in room.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and not {*path.relative_to(room).parts} & {*LEFT_OUT}
    }


def _written(course: Course) -> dict[str, dict[str, str]]:
    try:
        found = json.loads((course.root / ".autograder" / "rooms.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # a course of an earlier version: then every file that differs may be the instructor's
    return found if isinstance(found, dict) else {}


def note(course: Course, assignments: list[str]) -> None:
    """Remember that these assignments stand in the course as they do in the installation."""
    known = _written(course) | {assignment: _digests(courses.ROOMS / assignment) for assignment in assignments}
    write_atomically(course.root / ".autograder" / "rooms.json", json.dumps(known, indent=1).encode() + b"\n")


def take(course: Course, found: Difference) -> Path | None:
    """Put the installation's newer files of an assignment into the course; files of the instructor's own are left.

    The folder in which the room as it was before is kept; None for an assignment that is new. Nothing changes for students
    before the next `release`, and for grades before the next `grade --force`. CourseError where both have changed a file,
    RoomError where the outcome is no room; then nothing was changed.
    """
    place, theirs = course.root / "exercises" / found.assignment, courses.ROOMS / found.assignment
    if found.both:
        raise CourseError(
            f"{found.assignment}: this installation has newer files of which yours are your own: {', '.join(found.both)}. "
            f"Nothing was changed. Bring the two together by hand: {place} has yours, {theirs} has the newer ones; a file that "
            "is the same in both is no longer in the way."
        )
    course.root.joinpath("exercises").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=course.root / ".autograder", prefix="upgrade-") as temporary:
        made = Path(temporary) / found.assignment
        shutil.copytree(theirs if found.new else place, made, ignore=shutil.ignore_patterns(*LEFT_OUT, "*.pyc"))
        for name in found.newer:
            if (theirs / name).is_file():
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(theirs / name, made / name)
            else:
                (made / name).unlink()
        room = Room(made)
        _ = room.mistakes, room.also_right
        kept = None
        if not found.new:
            kept = course.root / ".autograder" / "replaced" / f"{found.assignment}-{time.strftime('%Y%m%d-%H%M%S')}"
            kept.parent.mkdir(exist_ok=True)
            place.rename(kept)
        made.rename(place)
    note(course, [found.assignment])
    return kept


def findings(course: Course) -> Iterator[tuple[bool, str]]:
    """What `autograder doctor` says of a course whose installation may have become newer: is it fine, and the words."""
    yield True, _rooms(course)
    for assignment in course.assignments():
        if words := _edited_since_release(course, assignment):
            yield True, words
        if words := _other_rules(course, assignment):
            yield True, words
    if (schema := _schema(course)) is not None:
        yield schema


def _rooms(course: Course) -> str:
    found = [difference for difference in differences(course) if difference]
    if not found:
        return "exercises: the course has those of this installation"
    return (
        f"exercises: this installation has other files than the course in {'; '.join(map(str, found))}. The course goes on "
        "with its own; `autograder upgrade` shows and takes over what is newer"
    )


def _edited_since_release(course: Course, assignment: str) -> str | None:
    """What is graded by is the room; what students have is what was released of it."""
    from autograder.bundle import file_name

    room, source = course.root / "exercises" / assignment, course.path("source", ".", assignment)
    if not course.path("release", ".", assignment).is_dir():
        return None
    edited = []
    notebook = f"{assignment}.ipynb"
    try:
        if (room / notebook).read_bytes() != (source / notebook).read_bytes():
            edited.append(notebook)
        with zipfile.ZipFile(source / file_name(assignment)) as archive:
            if archive.read("checks.py") != (room / "checks.py").read_bytes():
                edited.append("checks.py")
    except (OSError, KeyError, zipfile.BadZipFile):
        return f"exercises: source/{assignment} is not as a release leaves it; `autograder release {assignment}` writes it anew"
    if not edited:
        return None
    return (
        f"exercises: {' and '.join(edited)} of {assignment} changed since its release: answers are graded by what is in "
        f"exercises/, and students see and check by what was released; `autograder release {assignment}` makes them one"
    )


def _other_rules(course: Course, assignment: str) -> str | None:
    records = [journal.read(path) for path in sorted(course.result_path(assignment, "any").parent.glob("*.json"))]
    records = [record for record in records if record and record.get("journal")]
    if not records:
        return None
    try:
        today = journal.rules(course.room(assignment), course.secret)
    except (CourseError, RoomError):
        return None  # said in other lines
    changes = [journal.changed(record, today) for record in records]
    if not any(changes):
        return None
    said = Counter(words for different in changes for words in different)
    made_by = sorted({str((record["journal"].get("rules") or {}).get("amp-course", "?")) for record in records})
    return (
        f"grades: {sum(map(bool, changes))} of {len(records)} in {assignment} were made by other rules than today's (by "
        f"amp-course {', '.join(made_by)}; changed since: {', '.join(said)}). They stay as they are until "
        f"`autograder grade {assignment} --force`"
    )


def _schema(course: Course) -> tuple[bool, str] | None:
    """Whether the gradebook's tables are those of the installed nbgrader."""
    from alembic.script import ScriptDirectory
    from nbgrader.dbutil import ALEMBIC_DIR
    from sqlalchemy import create_engine, inspect, text

    try:
        engine = create_engine(course.directory.db_url)
        try:
            with engine.connect() as connection:
                tables = inspect(connection).get_table_names()
                if not tables:
                    return None
                found = None
                if "alembic_version" in tables:
                    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        finally:
            engine.dispose()
        wanted = ScriptDirectory(ALEMBIC_DIR).get_current_head()
    except Exception:
        return None  # doctor's line on the gradebook says why it cannot be read
    if found == wanted:
        return True, f"gradebook: its tables are those of the installed nbgrader (schema {wanted})"
    return (
        False,
        f"gradebook: its tables are of schema {found or 'unknown'}, the installed nbgrader's are {wanted}: another version of "
        "nbgrader made it. Make a copy with `autograder backup FILE`, then run `nbgrader db upgrade` in the course's folder; "
        "or install the nbgrader that made it",
    )
