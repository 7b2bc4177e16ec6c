"""nbgrader's gradebook, open for one grading run: one connection, one transaction a student.

It writes what nbgrader's own SaveAutoGrades and AssignLatePenalties write (a test compares the databases), which open the
gradebook nine times and commit twenty-five times a notebook. What an instructor has entered by hand is not touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import nbformat

from autograder.errors import CourseError

LOCKED_SECONDS = 120.0  # how long to wait for a gradebook that somebody else holds
PAUSE_SECONDS = 0.5
SQLITE_WAITS_SECONDS = 5.0  # before it says that a gradebook is locked


class Book:
    """The gradebook's part on one assignment. CourseError where it cannot be opened or does not know the assignment.

    `config` is the course's nbgrader configuration, which may name a plugin for late penalties. `say` is told when the
    gradebook is locked by another process and has to be waited for.
    """

    def __init__(
        self, db_url: str, course_id: str, assignment: str, config, say: Callable[[str], None] = lambda words: None
    ) -> None:
        self.assignment, self.db_url, self.course_id, self.config, self.say = assignment, db_url, course_id, config, say
        self._open()

    def _open(self) -> None:
        from nbgrader import api

        self.book = self._patiently(lambda: open_gradebook(self.db_url, self.course_id))
        self.db = self.book.db
        try:
            self._patiently(self._look_up)
        except api.MissingEntry as error:
            self.close()
            raise CourseError(
                f"{self.assignment} is not in the gradebook {_hidden(self.db_url)}: it was never released into it, so nobody "
                f"can have submitted it. Release it with `autograder release {self.assignment}` (and --db URL, where the "
                "gradebook is not the course's own)."
            ) from error

    def _look_up(self) -> None:
        notebook = self.book.find_notebook(self.assignment, self.assignment)
        self.assignment_id, self.notebook_id = notebook.assignment_id, notebook.id
        self.grade_cells = {cell.name: cell.id for cell in [*notebook.grade_cells, *notebook.task_cells]}
        self.comment_cells = {cell.name: cell.id for cell in [*notebook.solution_cells, *notebook.task_cells]}
        self.db.rollback()  # a reader that stays open keeps SQLite's writers out

    def close(self) -> None:
        self.book.close()

    def __enter__(self) -> Book:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def scores(self) -> dict[str, dict[str, float | None]]:
        """What the automatic grading gave, by student and check cell: one question for the class."""
        from nbgrader.api import BaseCell, Grade, SubmittedAssignment, SubmittedNotebook

        def ask() -> dict:
            rows = (
                self.db.query(SubmittedAssignment.student_id, BaseCell.name, Grade.auto_score)
                .select_from(Grade)
                .join(BaseCell, Grade.cell_id == BaseCell.id)
                .join(SubmittedNotebook, Grade.notebook_id == SubmittedNotebook.id)
                .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
                .filter(SubmittedNotebook.notebook_id == self.notebook_id)
                .all()
            )
            found: dict[str, dict[str, float | None]] = {}
            for student, cell, score in rows:
                found.setdefault(student, {})[cell] = score
            self.db.rollback()
            return found

        return self._patiently(ask)

    def save(self, student: str, notebook: nbformat.NotebookNode, submitted_at: datetime | None) -> None:
        """Enter what the outputs of `notebook` (Grade.notebook) say for a student, in one transaction."""
        self._patiently(lambda: self._save(student, notebook, submitted_at))

    def _save(self, student: str, notebook: nbformat.NotebookNode, submitted_at: datetime | None) -> None:
        from nbgrader import utils
        from nbgrader.api import Comment, Grade

        submission, submitted = self._submission(student)
        submission.timestamp = submitted_at  # None as well: an earlier submission's time is not this one's
        grades = {grade.cell_id: grade for grade in self.db.query(Grade).filter_by(notebook_id=submitted.id)}
        comments = {comment.cell_id: comment for comment in self.db.query(Comment).filter_by(notebook_id=submitted.id)}
        for wanted, there, kind in (
            (self.grade_cells, grades, Grade),
            (self.comment_cells, comments, Comment),
        ):
            for cell_id in wanted.values():
                if cell_id not in there:
                    there[cell_id] = kind(cell_id=cell_id, notebook_id=submitted.id)
                    self.db.add(there[cell_id])
        for cell in notebook.cells:
            if utils.is_grade(cell):
                grade = grades[self.grade_cells[cell.metadata.nbgrader.grade_id]]
                grade.auto_score, _ = utils.determine_grade(cell)
                grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
            if utils.is_solution(cell) or utils.is_task(cell):
                comment = comments[self.comment_cells[cell.metadata.nbgrader.grade_id]]
                untouched = cell.metadata.nbgrader.get("checksum") == utils.compute_checksum(cell)
                comment.auto_comment = "No response." if untouched and not utils.is_task(cell) else None
        self._penalise(student, submission, submitted)
        self.db.commit()

    def _submission(self, student: str):
        """The student's submission and its notebook, which are made where they are not there."""
        from nbgrader.api import Student, SubmittedAssignment, SubmittedNotebook

        if self.db.get(Student, student) is None:
            self.db.add(Student(id=student))
        submission = (
            self.db.query(SubmittedAssignment)
            .filter_by(assignment_id=self.assignment_id, student_id=student)
            .one_or_none()
        )
        if submission is None:
            submission = SubmittedAssignment(assignment_id=self.assignment_id, student_id=student)
            self.db.add(submission)
            self.db.flush()
        submitted = (
            self.db.query(SubmittedNotebook)
            .filter_by(assignment_id=submission.id, notebook_id=self.notebook_id)
            .one_or_none()
        )
        if submitted is None:
            submitted = SubmittedNotebook(assignment_id=submission.id, notebook_id=self.notebook_id)
            self.db.add(submitted)
            self.db.flush()
        return submission, submitted

    def _penalise(self, student: str, submission, submitted) -> None:
        """The late penalty, by the plugin that the course's configuration names."""
        from nbgrader.preprocessors import AssignLatePenalties

        late = submission.total_seconds_late
        penalty = None
        if late > 0:
            assign = AssignLatePenalties(config=self.config)
            assign.init_plugin()
            self.db.flush()
            self.db.refresh(submitted, ["score"])
            penalty = assign.plugin_inst.late_submission_penalty(student, submitted.score, late)
            if penalty is not None:
                penalty = assign._check_late_penalty(submitted, penalty)
        submitted.late_submission_penalty = penalty

    def settle(self, students: list[str]) -> None:
        """Work out the late penalties of finished submissions anew: a due date or an extension may have changed."""
        from nbgrader.api import SubmittedAssignment, SubmittedNotebook

        def work() -> None:
            wanted = set(students)
            rows = (
                self.db.query(SubmittedAssignment, SubmittedNotebook)
                .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
                .filter(SubmittedNotebook.notebook_id == self.notebook_id)
                .all()
            )
            for submission, submitted in rows:
                if submission.student_id in wanted:
                    self._penalise(submission.student_id, submission, submitted)
            self.db.commit()

        if students:
            self._patiently(work)

    def _patiently(self, work: Callable):
        """Do `work`; where another process holds the gradebook, wait for it. CourseError after LOCKED_SECONDS."""
        from sqlalchemy.exc import DatabaseError, IntegrityError

        give_up, told, raced = time.monotonic() + LOCKED_SECONDS, False, 0
        while True:
            try:
                return work()
            except IntegrityError:
                # Another grader entered the same student first; what is there now is found the next time.
                self._rollback()
                raced += 1
                if raced > 3:
                    raise
            except DatabaseError as error:
                self._rollback()
                if not _is_locked(error):
                    if not _is_of_the_gradebook(error):
                        raise
                    raise _out_of_order(error) from error
                if time.monotonic() > give_up:
                    raise _locked(LOCKED_SECONDS) from error
                if not told:
                    self.say(
                        f"The gradebook is locked by another process; waiting up to {LOCKED_SECONDS:.0f} s for it."
                    )
                    told = True
                time.sleep(PAUSE_SECONDS)
            except BaseException:
                self._rollback()
                raise
            finally:
                if hasattr(self, "db"):
                    self.db.expunge_all()  # a class of thousands is not kept in memory

    def _rollback(self) -> None:
        if hasattr(self, "db"):
            self.db.rollback()


def _is_locked(error: Exception) -> bool:
    return "locked" in str(error.orig) or "busy" in str(error.orig)


def _is_of_the_gradebook(error: Exception) -> bool:
    """Whether nobody's grade can be saved: other errors of a database are about the student that is written."""
    from sqlalchemy.exc import DatabaseError, OperationalError

    return isinstance(error, OperationalError) or type(error) is DatabaseError  # the latter: it is no database at all


def _out_of_order(error: Exception) -> CourseError:
    return CourseError(
        f"The gradebook does not answer ({_first_line(error)}). What was saved before is kept; put the gradebook in order (a "
        "backup has one, see `autograder restore`) and run the same command again: it goes on with the others."
    )


def _locked(seconds: float) -> CourseError:
    return CourseError(
        f"The gradebook has been locked by another process for {seconds:.0f} s: formgrader, another nbgrader command or a "
        "program that has gradebook.db open. End it and run the same command again."
    )


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]


def open_gradebook(db_url: str, course_id: str):
    """nbgrader's Gradebook at `db_url`. CourseError where its driver is missing or no gradebook answers there."""
    from nbgrader.api import Gradebook
    from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError

    try:
        return Gradebook(db_url, course_id)
    except ModuleNotFoundError as error:
        raise CourseError(
            f"The gradebook {_hidden(db_url)} takes the Python package {error.name}, which is not installed. For PostgreSQL: "
            "pip install 'amp-course[postgres]' (in a checkout: pip install -e '.[postgres]'), and a URL that begins "
            "with postgresql+psycopg://"
        ) from error
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise CourseError(
            f"{_hidden(db_url)} is not the URL of a gradebook ({_first_line(error)}). Such URLs look like "
            "sqlite:////srv/course/gradebook.db or postgresql+psycopg://user:password@host/database"
        ) from error
    except DatabaseError as error:
        if _is_locked(error):
            raise
        raise CourseError(
            f"The gradebook {_hidden(db_url)} cannot be opened ({_first_line(error)}). Nothing was changed. See that this is "
            "the gradebook, and that you may read and write it; where it is damaged, a backup has one (`autograder restore`)."
        ) from error


def _hidden(db_url: str) -> str:
    """A URL without its password."""
    import re

    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", db_url)


@contextmanager
def gradebook(db_url: str, course_id: str) -> Iterator:
    """nbgrader's Gradebook, closed again. CourseError where it does not answer, or another process holds it all the time that
    SQLite waits by itself."""
    from sqlalchemy.exc import DatabaseError

    try:
        book = open_gradebook(db_url, course_id)
        try:
            yield book
        finally:
            book.close()
    except DatabaseError as error:
        if _is_locked(error):
            raise _locked(SQLITE_WAITS_SECONDS) from error
        if _is_of_the_gradebook(error):
            raise _out_of_order(error) from error
        raise
