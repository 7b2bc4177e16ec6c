"""One `autograder grade`: who is finished is left alone, everybody else is graded and saved at once, whatever happens then.

A grade is saved in this order: the graded notebook, the gradebook (one transaction), the record with its journal entry.
Each is there or not, never in part; only with the last one a submission is finished (journal.py).
"""

from __future__ import annotations

import os
import stat
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path

from nbformat import v4

from autograder import journal, submission
from autograder.atomic import write_atomically
from autograder.course import Course
from autograder.errors import AutograderError, SubmissionError, WorkerError
from autograder.executors import Pool
from autograder.gradebook import Book
from autograder.grading import Grade, grade_many, unreadable
from autograder.reference import Reference

READINGS = 5  # of a submission that changes meanwhile
PAUSE_SECONDS = 0.2
MAX_TIMESTAMP = 200  # bytes
MAX_ID = 128  # characters of a student's id in nbgrader's database


@dataclass
class Submitted:
    """What a student handed in: the notebook's cells, or in words why they cannot be read, and when."""

    cells: list[dict] | str
    timestamp: str = ""
    at: datetime | None = None


@dataclass
class Outcome:
    """A run: the records by student, who was finished before, who of them by which other rules, and whom it could not grade
    or save, with the reason."""

    records: dict[str, dict] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    otherwise: dict[str, list[str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def collect(folder: Path, assignment: str) -> Submitted:
    """Read a submission as one moment has it. WorkerError where it changes again and again while it is read."""
    notebook, timestamp = folder / f"{assignment}.ipynb", folder / "timestamp.txt"
    for _ in range(READINGS):
        before = _state(notebook), _state(timestamp)
        try:
            cells: list[dict] | str = submission.read(notebook)
        except SubmissionError as error:
            cells = str(error)
        text = _text(timestamp)
        if (_state(notebook), _state(timestamp)) == before:
            return Submitted(cells, text, _time(text))
        time.sleep(PAUSE_SECONDS)
    raise WorkerError(
        f"{notebook} changed each time it was read: something is writing it. Grade it again when that ends."
    )


def _state(path: Path) -> tuple | None:
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _text(path: Path) -> str:
    """The beginning of a small file of a student's; "" where it is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        return os.read(handle, MAX_TIMESTAMP).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(handle)


def _time(text: str) -> datetime | None:
    """The time that a text names, whatever day it is read on; None where it is no text of the kind."""
    from dateutil.parser import parse
    from nbgrader.utils import parse_utc

    words = text.split(" ")
    date = " ".join(words[:2]) if len(words) == 3 else text  # nbgrader takes the third of three for a time zone
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a time zone that nobody knows
            # What a text leaves out of a date is taken from today's, unless one says from which: "12" is a day of this month.
            one, other = (parse(date, default=default) for default in (datetime(2000, 1, 1), datetime(2001, 2, 2)))
            return parse_utc(text) if one == other else None
    except Exception:  # a student wrote it: whatever is in it, it is no time, and that is all
        return None


def _no_id(folder: str) -> str | None:
    """Why the name of a student's folder cannot be a student's id; None where it can."""
    if len(folder) > MAX_ID:
        return f"nbgrader takes ids of at most {MAX_ID} characters, and this has {len(folder)}. Rename the folder."
    try:
        folder.encode()
    except UnicodeEncodeError:
        return "the name of the folder is not UTF-8, which no gradebook takes. Rename it."
    return None


@dataclass
class Session:
    """A run over `students` of one assignment. `tell(student, status)` is called as each is done."""

    course: Course
    reference: Reference
    book: Book
    boxed: bool = True
    force: bool = False
    tell: Callable[[str, str], None] = lambda student, status: None
    outcome: Outcome = field(default_factory=Outcome)

    @property
    def assignment(self) -> str:
        return self.reference.room.name

    @cached_property
    def rules(self) -> dict[str, str]:
        return journal.rules(self.reference.room, self.reference.secret)

    def run(self, students: list[str], pool: Pool) -> Outcome:
        """Grade and save. CourseError where the gradebook cannot be written at all; what is saved by then is kept."""
        under_way: dict[str, tuple[str, Submitted]] = {}

        def done(student: str, grade: Grade) -> None:
            made_with, submitted = under_way.pop(student)
            self._save(student, grade, submitted, made_with)

        def lost(student: str, error: AutograderError) -> None:
            under_way.pop(student)
            self._fail(student, str(error))

        journal.clear(self.course.result_path(self.assignment, "any").parent)
        grade_many(
            self.reference, self._unfinished(students, under_way, done), pool, boxed=self.boxed, done=done, lost=lost
        )
        self.book.settle(self.outcome.kept)
        return self.outcome

    def _unfinished(self, students: list[str], under_way: dict, done: Callable) -> Iterator[tuple[str, list[dict]]]:
        """The submissions that take a box, read when their turn comes."""
        scores = {} if self.force else self.book.scores()
        for student in students:
            if why := _no_id(student):
                self._fail(student, why)
                continue
            try:
                submitted = collect(self.course.path("submitted", student, self.assignment), self.assignment)
            except WorkerError as error:
                self._fail(student, str(error))
                continue
            made_with = journal.submission_key(submitted.cells, submitted.timestamp, self.boxed)
            record = journal.read(self.course.result_path(self.assignment, student))
            if (
                not self.force
                and journal.is_finished(record, made_with, self._graded(student))
                and _is_booked(record, scores.get(student, {}))
            ):
                if different := journal.changed(record, self.rules):
                    self.outcome.otherwise[student] = different
                del record["journal"]
                self.outcome.records[student] = record
                self.outcome.kept.append(student)
                self.tell(student, "finished before")
                continue
            under_way[student] = made_with, submitted
            if isinstance(submitted.cells, str):
                done(student, unreadable(self.reference, submitted.cells, self.boxed))
            else:
                yield student, submitted.cells

    def _graded(self, student: str) -> Path:
        return self.course.path("autograded", student, self.assignment) / f"{self.assignment}.ipynb"

    def _save(self, student: str, grade: Grade, submitted: Submitted, made_with: str) -> None:
        record = grade.to_json({"student": student})
        try:
            with self.course.moment(writing=True):
                self._write(student, grade, record, submitted, made_with)
        except AutograderError:  # of the gradebook: then nobody's grade can be saved, and the run ends
            raise
        except Exception as error:  # a full disk, a student id that no database takes: the others are not to suffer
            self._fail(student, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        else:
            self.outcome.records[student] = record
            self.tell(student, grade.status)

    def _write(self, student: str, grade: Grade, record: dict, submitted: Submitted, made_with: str) -> None:
        path = self._graded(student)
        # The notebook was built here from the released one: it needs no validation, which takes longer than all the rest.
        notebook = v4.writes(grade.notebook).encode() + b"\n"
        journal.clear(path.parent)
        if submitted.at is not None:
            write_atomically(path.with_name("timestamp.txt"), submitted.timestamp.encode(), 0o644)
        else:
            with suppress(FileNotFoundError):  # an earlier submission's time is not this one's
                path.with_name("timestamp.txt").unlink()
        write_atomically(path, notebook, 0o644)
        self.book.save(student, grade.notebook, submitted.at)
        finished = {**record, "journal": journal.entry(made_with, self.rules, notebook)}
        self.course.save_record(student, finished)

    def _fail(self, student: str, why: str) -> None:
        self.outcome.failed[student] = why
        self.tell(student, "not graded")


def _is_booked(record: dict, scores: dict[str, float | None]) -> bool:
    """Whether the gradebook has what the record says: it may have been restored, or another one may be named now."""
    return all(
        scores.get(f"{name}-{part}") == points
        for name, exercise in record["exercises"].items()
        for part, points in exercise["parts"].items()
    )
