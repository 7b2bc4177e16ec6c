"""The roster: a CSV file says who takes the course; the hub's groups and the gradebook follow it, never the other way round.

nbgrader's own pages can add a student to the gradebook, but not to the hub, and the hub knows nothing of the gradebook. So
the file is the one source. Taking it over again changes nothing; a student who is gone from it loses access and group, and
keeps files and grades until `autograder forget`.
"""

from __future__ import annotations

import csv
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from autograder.errors import HubError
from autograder.hub.config import HubConfig, is_username, why_no_username

HEADER = ("username", "first_name", "last_name", "email")


@dataclass(frozen=True)
class Student:
    username: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""


@dataclass
class Imported:
    """What taking a roster over into the gradebook changed; `unlisted` are in the gradebook and not on the roster."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        words = [f"{len(self.added)} new", f"{len(self.changed)} changed"]
        if self.unlisted:
            words.append(f"{len(self.unlisted)} in the gradebook and no longer on it ({', '.join(self.unlisted)})")
        return ", ".join(words)


def read(path: Path, instructors: tuple[str, ...] = ()) -> list[Student]:
    """The students of a roster, in its order. HubError with every line that cannot be used, and why.

    The first line names the columns: username and, if you like, first_name, last_name and email; others are left alone.
    Commas, semicolons or tabs part them.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise HubError(
            f"The roster {path} is not UTF-8 (byte {error.start}). Save it as 'CSV UTF-8'; names would be garbled."
        ) from error
    except OSError as error:
        raise HubError(f"The roster {path} cannot be read: {error.strerror or error}.") from error
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.DictReader(text.splitlines(), delimiter=delimiter, restkey="", restval="")
    try:
        rows = [(reader.line_num, row) for row in reader if any(_text(value) for value in row.values())]
    except csv.Error as error:
        raise HubError(f"The roster {path} is not CSV at line {reader.line_num}: {error}.") from error
    columns = [(name or "").strip().lower() for name in reader.fieldnames or []]
    if "username" not in columns:
        raise HubError(
            f"The roster {path} has no column `username`: its first line is {first.strip()[:80]!r}. That line names the "
            f"columns: {','.join(HEADER)}"
        )
    rows = [(line, dict(zip(columns, map(_text, row.values()), strict=False))) for line, row in rows]
    counts = Counter(row["username"] for _, row in rows)
    wrong = []
    for line, row in rows:
        name = row["username"]
        if not is_username(name):
            wrong.append(f"line {line}: {name!r}: {why_no_username(name)}")
        elif counts[name] > 1:
            wrong.append(f"line {line}: {name!r}: it stands there {counts[name]} times")
        elif name in instructors:
            wrong.append(f"line {line}: {name!r}: an instructor cannot be a student of the same course")
        elif not all(value.isprintable() for value in row.values()):
            wrong.append(f"line {line}: {name!r}: the line holds characters that cannot be shown")
    if wrong:
        raise HubError(f"The roster {path} cannot be used; nothing was changed.\n  " + "\n  ".join(wrong))
    return [Student(**{key: row.get(key, "") for key in HEADER}) for _, row in rows]


def _text(value: str | list | None) -> str:
    return " ".join(value) if isinstance(value, list) else (value or "").strip()


def students(config: HubConfig) -> list[Student]:
    """The students of a hub; none where its authenticator keeps the list."""
    return read(config.roster, config.instructors) if config.roster else []


def into_gradebook(config: HubConfig, wanted: list[Student]) -> Imported:
    """Enter the students, with their names and addresses, in one transaction. Nobody is taken out of a gradebook."""
    from nbgrader import api

    from autograder.course import Course
    from autograder.gradebook import gradebook

    course = Course(config.course, config.gradebook)
    done = Imported()
    with gradebook(course.directory.db_url, course.directory.course_id) as book:
        there = {student.id: student for student in book.db.query(api.Student)}
        for student in wanted:
            values = {key: getattr(student, key) or None for key in HEADER[1:]}
            known = there.pop(student.username, None)
            if known is None:
                book.db.add(api.Student(id=student.username, **values))
                done.added.append(student.username)
            elif any(getattr(known, key) != value for key, value in values.items()):
                for key, value in values.items():
                    setattr(known, key, value)
                done.changed.append(student.username)
        done.unlisted = sorted(there)
        book.db.commit()
    return done


def prune(config: HubConfig, wanted: list[Student]) -> list[str]:
    """Take out of the hub's two groups whoever does not belong there, and name the hub's users who belong nowhere.

    JupyterHub's `load_groups` only ever adds. To be called while the hub is not running; it holds the groups in memory. The
    tables are asked in plain SQL, which an older hub's database, not yet upgraded, has as well.
    """
    if not config.database.exists():
        return []
    members = {
        config.students_group: {student.username for student in wanted},
        config.graders_group: {*config.instructors, config.grader},
    }
    connection = sqlite3.connect(config.database)
    try:
        with connection:
            users = {name: number for number, name in connection.execute("SELECT id, name FROM users")}
            for group, belong in members.items():
                found = connection.execute(
                    "SELECT user_id, group_id FROM user_group_map JOIN groups ON groups.id = group_id WHERE groups.name = ?",
                    (group,),
                ).fetchall()
                kept = {users[name] for name in belong if name in users}
                for user, group_id in found:
                    if user not in kept:
                        connection.execute(
                            "DELETE FROM user_group_map WHERE user_id = ? AND group_id = ?", (user, group_id)
                        )
    except sqlite3.DatabaseError as error:
        raise HubError(
            f"The hub's database {config.database} cannot be read ({error}); nothing was started. Restore it from a backup, or "
            "move it away: the hub then makes a new one, and everybody logs in again."
        ) from error
    finally:
        connection.close()
    return sorted(set(users) - set().union(*members.values()))
