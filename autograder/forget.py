"""A student's data, found and deleted everywhere that a course, and its hub, keep it.

What is deleted: submitted, autograded and feedback files, results with their journal, rows of the gradebook (grades, comments,
penalties, the student), nbgrader's log where it names the student, reports that do (written anew from the others), on a hub
also what lies in the exchange, the home, the hub's user with its tokens and groups, and the password. SQLite files are
rewritten, so that deleted rows do not stay behind in free pages.

What no program finds is said: backups, files that were sent or exported elsewhere, other machines' caches and logs.
"""

from __future__ import annotations

import csv
import difflib
import io
import os
import re
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autograder import journal
from autograder.atomic import write_atomically
from autograder.course import Course
from autograder.errors import CourseError
from autograder.gradebook import gradebook

if TYPE_CHECKING:
    from autograder.hub.config import HubConfig

STEPS = ("submitted", "autograded", "feedback")
LOG = ".nbgrader.log"
MOST = 20  # files named in one message
READ = 64 << 20  # bytes of a file at a time, when looking for what still names a student


@dataclass
class Find:
    """One thing of a student's: of which kind, where or how much, and what deletes it."""

    kind: str
    what: str
    delete: Callable[[], None]


def find(course: Course, student: str, hub: HubConfig | None = None, *, roster: bool = False) -> list[Find]:
    """All that there is of a student. CourseError for what is no student's id."""
    _check(student)
    # Databases come first: while anything else is left, a run that was stopped in them is found to be unfinished.
    rows = [*_rows(course, student), *(_accounts(hub, student) if hub else ())]
    found = [*rows, *_files(course, student), *_results(course, student)]
    if hub is not None:
        found += [*_exchange(hub, student), *_on_the_hub(hub, student)]
        if roster:
            found += _roster(hub, student)
    if found and not rows and course.directory.db_url.startswith("sqlite"):
        found.insert(0, Find("gradebook", "what deleted rows left in the file", lambda: _rewrite_all(course, hub)))
    if found:
        found += [*_logs(course, student), *_reports(course, student)]
    return found


def _check(student: str) -> None:
    if not student or student in (".", "..") or "/" in student or "\0" in student or "*" in student:
        raise CourseError(
            f"{student!r} is no student's id: it would name other places than a student's. Nothing was deleted."
        )


def alike(course: Course, student: str) -> list[str]:
    """Students of the course whose ids are like this one."""
    with gradebook(course.directory.db_url, course.directory.course_id) as book:
        known = {one.id for one in book.students}
    known |= {one for assignment in course.assignments() for one in course.students(assignment)}
    return difflib.get_close_matches(student, sorted(known), 3, 0.6)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _files(course: Course, student: str) -> Iterator[Find]:
    """The student's folders in nbgrader's layout, whatever order its configuration gives student and assignment."""
    for step in STEPS:
        pattern = course.path(step, student, "*")
        parts = pattern.parts
        star = parts.index("*")
        if student in parts[len(course.root.parts) : star]:  # submitted/STUDENT/*: all that is below is the student's
            places = [Path(*parts[:star])]
        else:
            places = sorted(Path(*parts[:star]).glob(str(Path(*parts[star:]).as_posix()).replace("[", "[[]")))
        for place in places:
            if place.exists() or place.is_symlink():
                files = sum(len(names) for _, _, names in os.walk(place))
                yield Find(f"{step} files", f"{place} ({files} files)", lambda place=place: _remove(place))


def _results(course: Course, student: str) -> Iterator[Find]:
    for folder in sorted((course.root / ".autograder" / "results").glob("*")):
        for path in (folder / f"{student}.json", *_begun(folder, f"{student}.json")):
            if path.is_file():
                yield Find("results", str(path), lambda path=path: _remove(path))


def _begun(folder: Path, name: str) -> list[Path]:
    """What killed runs had begun to write of a file."""
    return [path for path in folder.glob(".*.part") if path.name.startswith(f".{name[:80]}.")]


def _rows(course: Course, student: str) -> list[Find]:
    from nbgrader.api import MissingEntry
    from sqlalchemy.exc import OperationalError

    with gradebook(course.directory.db_url, course.directory.course_id) as book:
        try:
            one = book.find_student(student)
        except MissingEntry:
            return []
        notebooks = [notebook for submission in one.submissions for notebook in submission.notebooks]
        grades = sum(len(notebook.grades) for notebook in notebooks)
        comments = sum(len(notebook.comments) for notebook in notebooks)
        what = f"{len(one.submissions)} submissions, {grades} grades, {comments} comments, the student"

    def delete() -> None:
        url, course_id = course.directory.db_url, course.directory.course_id
        with gradebook(url, course_id) as book:
            try:
                book.remove_student(student)
            except OperationalError as error:
                book.db.rollback()
                raise CourseError(
                    f"The gradebook does not take it ({str(error.orig).splitlines()[0]}): something else has it open. Nothing "
                    "of it was deleted. End formgrader and run the same command again."
                ) from error
        if url.startswith("sqlite"):
            _rewrite_all(course)

    return [Find("gradebook", what, delete)]


def _rewrite_all(course: Course, hub: HubConfig | None = None) -> None:
    rewrite(Path(course.directory.db_url.partition(":///")[2]))
    if hub and hub.database.is_file():
        rewrite(hub.database)


def rewrite(path: Path) -> None:
    """Write a SQLite file anew from the rows that it has: deleted ones stay in free space until that is done."""
    with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as db:
        try:
            db.execute("PRAGMA secure_delete = ON")
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as error:
            raise CourseError(
                f"The rows are deleted, but {path} could not be written anew ({error}), so that their bytes may still be in "
                "it. End what has it open (formgrader, the hub) and run the same command again."
            ) from error


def _logs(course: Course, student: str) -> Iterator[Find]:
    """nbgrader's log in the course. Whose its lines are cannot be told from each of them, so all of it goes."""
    path = course.root / LOG
    if path.is_file() and names(path, student):
        yield Find("logs", f"{path} (whole)", lambda: _remove(path))


def _reports(course: Course, student: str) -> Iterator[Find]:
    """Reports that name the student. They are written anew when everything else is deleted."""
    from autograder import report

    for page in sorted((course.root / "report").glob("*.html")):
        table = page.with_suffix(".csv")
        if not any(path.is_file() and names(path, student) for path in (page, table)):
            continue

        def anew(assignment: str = page.stem, files: tuple[Path, ...] = (page, table)) -> None:
            try:
                report.write(course, assignment)
            except CourseError:  # nobody is left to report on
                for path in files:
                    _remove(path)

        yield Find("reports", f"{page} and {table.name} (written anew)", anew)


def _exchange(hub: HubConfig, student: str) -> Iterator[Find]:
    from autograder.hub.kubernetes import folder

    root = hub.exchange / hub.course_id
    for place in ("inbound", "feedback"):
        for path in (root / place / folder(student), *sorted((root / place).glob(f"{_literal(student)}+*"))):
            if path.exists() or path.is_symlink():
                yield Find(f"exchange, {place}", str(path), lambda path=path: _remove(path))


def _literal(text: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", text)


def _accounts(hub: HubConfig, student: str) -> Iterator[Find]:
    if student in hub.instructors or student == hub.grader:
        raise CourseError(f"{student} is an instructor of this hub or its grader, not a student. Nothing was deleted.")
    if hub.database.is_file():
        rows = _hub_rows(hub.database, student)
        if rows:
            yield Find("hub", f"the user with {', '.join(rows)}", lambda: _forget_user(hub.database, student))


def _on_the_hub(hub: HubConfig, student: str) -> Iterator[Find]:
    home = hub.homes / student
    if home.exists() or home.is_symlink():
        yield Find("home", str(home), lambda: _remove(home))
    passwords = hub.folder / "passwords.csv"
    if passwords.is_file() and len(_lines_without(passwords, student)) < len(_lines(passwords)):
        yield Find("password", str(passwords), lambda: _drop_line(passwords, student))


def _hub_rows(database: Path, student: str) -> list[str]:
    """In words what JupyterHub's database has of a user; empty where it has nothing."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        found = []
        if "users" in tables:
            found += ["name"] * db.execute("SELECT count(*) FROM users WHERE name = ?", (student,)).fetchone()[0]
        if found and {"user_group_map", "users"} <= tables:
            query = "SELECT count(*) FROM user_group_map m JOIN users u ON m.user_id = u.id WHERE u.name = ?"
            found.append(f"{db.execute(query, (student,)).fetchone()[0]} groups")
        if "users_info" in tables and db.execute("SELECT 1 FROM users_info WHERE username = ?", (student,)).fetchone():
            found.append("sign-up")
    return found


def _forget_user(database: Path, student: str) -> None:
    """Delete a user from the database of a hub that does not run: a running one would write it back."""
    with closing(sqlite3.connect(database, timeout=10, isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys = ON")  # what belongs to the user goes with it
        db.execute("BEGIN IMMEDIATE")
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "spawners" in tables:
            servers = "SELECT server_id FROM spawners WHERE user_id = (SELECT id FROM users WHERE name = ?)"
            ids = [row for row in db.execute(servers, (student,)) if row[0] is not None]
            db.execute("DELETE FROM spawners WHERE user_id = (SELECT id FROM users WHERE name = ?)", (student,))
            db.executemany("DELETE FROM servers WHERE id = ?", ids)
        for table in sorted(
            tables & {"user_group_map", "user_role_map", "api_tokens", "oauth_codes", "shares", "share_codes"}
        ):
            columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
            for column in sorted(columns & {"user_id", "owner_user_id"}):
                db.execute(f"DELETE FROM {table} WHERE {column} = (SELECT id FROM users WHERE name = ?)", (student,))
        if "users_info" in tables:
            db.execute("DELETE FROM users_info WHERE username = ?", (student,))
        db.execute("DELETE FROM users WHERE name = ?", (student,))
        db.execute("COMMIT")
    rewrite(database)


def _roster(hub: HubConfig, student: str) -> list[Find]:
    if hub.roster is None or len(_lines_without(hub.roster, student)) == len(_lines(hub.roster)):
        return []
    return [Find("roster", f"the line in {hub.roster}", lambda: _drop_line(hub.roster, student))]


def in_roster(hub: HubConfig | None, student: str) -> bool:
    return bool(hub and hub.roster and len(_lines_without(hub.roster, student)) < len(_lines(hub.roster)))


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8-sig").splitlines(keepends=True)


def _lines_without(path: Path, student: str) -> list[str]:
    """A table's lines except those whose first cell is the student."""
    return [line for line in _lines(path) if next(csv.reader(io.StringIO(line.strip())), [""])[:1] != [student]]


def _drop_line(path: Path, student: str) -> None:
    write_atomically(path, "".join(_lines_without(path, student)).encode(), path.stat().st_mode & 0o777)


def delete(course: Course, found: list[Find]) -> None:
    """Delete what was found. Stopped at any point, it can be run again."""
    for one in found:
        one.delete()
    journal.clear(*(course.root / ".autograder" / "results").glob("*"))


def names(path: Path, student: str) -> bool:
    """Whether a file has the student's id in it, as a word of its own."""
    word = re.compile(rb"(?<![A-Za-z0-9_])" + re.escape(os.fsencode(student)) + rb"(?![A-Za-z0-9_])")
    with open(path, "rb") as file:
        before = b""
        while piece := file.read(READ):
            if word.search(before + piece):
                return True
            before = piece[-len(student) * 4 - 2 :]
    return False


def is_running(hub: HubConfig) -> bool:
    """Whether something answers where the hub listens."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(hub.address, hub.address)
    try:
        socket.create_connection((host, hub.port), timeout=2).close()
    except OSError:
        return False
    return True


def remarks(course: Course, student: str, hub: HubConfig | None) -> Iterator[str]:
    """What still names a student after `delete`, and what no program can reach."""
    still = left(course, student, hub)
    if still:
        more = f"\n  and {len(still) - MOST} more" if len(still) > MOST else ""
        yield (
            f"{student!r} still stands in these, which are not the grader's to change (or it is a word of theirs). Look there:"
            + "".join(f"\n  {path}" for path in still[:MOST])
            + more
        )
    if in_roster(hub, student):
        yield (
            f"The roster {hub.roster} has a line of {student} still, so the hub's next start makes the user again. --roster "
            "removes it."
        )
    if hub is None:
        yield (
            "Not looked at, since no hub was named (--config): nbgrader's exchange, where submissions lie in inbound/ under "
            "the student's id and feedback under names that are not, and the student's account and home."
        )
    if course.directory.db_url.startswith("postgresql"):
        yield "PostgreSQL overwrites deleted rows in its own time; its log and your dumps of it may have them longer."
    yield (
        "Out of reach: backups made before (delete them when newer ones are made), reports and CSV files that were exported or "
        "sent elsewhere, logs of the system, of the web server and of the mail, and snapshots of the disk."
    )


def left(course: Course, student: str, hub: HubConfig | None = None) -> list[Path]:
    """Files and folders of the course (and the hub's state) that have the student's id in their names or in them still."""
    word = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(student)}(?![A-Za-z0-9_])")
    found = []
    for root in dict.fromkeys([course.root, *([hub.folder, hub.exchange] if hub else [])]):
        for folder, folders, files in os.walk(root):
            if hub and Path(folder) == hub.homes:
                folders.clear()  # other people's own
            found += [Path(folder, name) for name in folders if word.search(name)]
            for name in files:
                path = Path(folder, name)
                with suppress(OSError):
                    if word.search(name) or (path.is_file() and not path.is_symlink() and names(path, student)):
                        found.append(path)
    return sorted(set(found))
