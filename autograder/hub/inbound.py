"""What students have handed in, read from folders that they can write to: nothing is followed, nothing is believed.

A student's folder in the exchange belongs to the student. Whatever it holds, at any moment of the reading, only regular
files that lie in it are read, no more of them than the limits allow, and only as they stood still.
"""

from __future__ import annotations

import datetime
import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from zoneinfo import ZoneInfo

from autograder.errors import SubmissionError

# nbgrader's name of a submission: who + assignment + when, and since 0.7 + something that cannot be guessed.
NAME = re.compile(
    r"(?P<who>.+)\+(?P<assignment>[^+]+)"
    r"\+(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?) (?P<zone>[A-Z]{1,5})(\+[\w=-]+)?",
    re.ASCII,
)
STAMP = "%Y-%m-%d %H:%M:%S.%f UTC"
MAX_ENTRIES = 10_000  # of a student's folder; more is not looked at
CHANGED = "it changed while it was read: it was being handed in, or something still writes to it. Collect again"
KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True)
class Limits:
    """What a submission may hold: bytes in all, files and folders, folders in folders."""

    max_bytes: int = 20_000_000
    max_files: int = 200
    max_depth: int = 8


@dataclass(frozen=True)
class Submission:
    """A submission as its folder's name says: by whom, of what, at what time (UTC, aware)."""

    name: str
    who: str
    assignment: str
    at: datetime.datetime


@dataclass(frozen=True)
class Taken:
    """A submission's files, by their path in it, and when the newest of them was last touched, by the exchange's own clock."""

    files: dict[str, bytes]
    touched: datetime.datetime


def parse(name: str, zone: str = "UTC") -> Submission:
    """Read the name of a submission. SubmissionError where nbgrader's submit makes no such name.

    Times in UTC are what our own submit writes. Those in `zone`, the course's, are what a stock one may have written; any
    other abbreviation stands for several offsets.

    >>> parse("ada+03_gradscaler+2026-11-30 07:05:00.25 UTC+Zm9vYmFy").at.isoformat()
    '2026-11-30T07:05:00.250000+00:00'
    """
    match = NAME.fullmatch(name)
    if not match:
        raise SubmissionError(
            f"the name {name!r} is not one that submitting makes (student+assignment+time+random string)"
        )
    text = match["when"]
    try:
        naive = datetime.datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f" if "." in text else "%Y-%m-%d %H:%M:%S")
    except ValueError as error:
        raise SubmissionError(f"the name {name!r} holds no time ({error})") from error
    if match["zone"] == "UTC":
        return Submission(name, match["who"], match["assignment"], naive.replace(tzinfo=datetime.UTC))
    for fold in (0, 1):
        local = naive.replace(tzinfo=ZoneInfo(zone), fold=fold)
        if local.tzname() == match["zone"]:
            return Submission(name, match["who"], match["assignment"], local.astimezone(datetime.UTC))
    raise SubmissionError(
        f"the name {name!r} gives its time in {match['zone']}, which is not how {zone} is called at that time. Let students' "
        "servers submit with autograder.hub.exchange.Submit, which writes UTC"
    )


@contextmanager
def opened(name: str | os.PathLike, dir_fd: int | None = None) -> Iterator[int]:
    """A folder, open; OSError where it is none, or a link to one."""
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        yield fd
    finally:
        os.close(fd)


def look(folder: int, zone: str = "UTC") -> tuple[list[Submission], list[str]]:
    """The submissions in a student's folder (open), newest first, and why each other thing in it is none.

    Names that begin with a dot are submissions on their way (exchange.Submit renames them when they are whole).
    """
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in islice(entries, MAX_ENTRIES + 1))
    found, reasons = [], []
    if len(names) > MAX_ENTRIES:
        reasons.append(f"there are more than {MAX_ENTRIES} things in the folder; only so many were looked at")
    for name in names[:MAX_ENTRIES]:
        if name.startswith("."):
            continue
        try:
            found.append(parse(name, zone))
        except SubmissionError as error:
            reasons.append(str(error))
    return sorted(found, key=lambda one: (one.at, one.name), reverse=True), reasons


def take(folder: int, name: str, limits: Limits) -> Taken:
    """Read a submission in a student's folder (open). SubmissionError says why it is refused."""
    try:
        with opened(name, folder) as fd:
            before = survey(fd, limits)
            files = {path: _read(fd, path, state) for path, state in before.items() if stat.S_ISREG(state.st_mode)}
            if _marks(survey(fd, limits)) != _marks(before):
                raise SubmissionError(CHANGED)
            newest = max(state.st_ctime for state in before.values())
    except OSError as error:
        raise SubmissionError(_why(error)) from error
    for needed in ("timestamp.txt", "submission_secret.txt"):
        if needed not in files:
            raise SubmissionError(f"it is not whole: there is no {needed}, which submitting writes last")
    return Taken(files, datetime.datetime.fromtimestamp(newest, datetime.UTC))


def survey(fd: int, limits: Limits) -> dict[str, os.stat_result]:
    """An open folder ("") and everything below it, by path. SubmissionError where something has no business in it."""
    seen = {"": os.fstat(fd)}
    _survey(fd, "", 1, limits, seen)
    size = sum(state.st_size for state in seen.values() if stat.S_ISREG(state.st_mode))
    if size > limits.max_bytes:
        raise SubmissionError(f"it is too large: {megabytes(size)}, where {megabytes(limits.max_bytes)} are allowed")
    return seen


def _survey(fd: int, at: str, depth: int, limits: Limits, seen: dict[str, os.stat_result]) -> None:
    with os.scandir(fd) as entries:
        for entry in entries:
            path = at + entry.name
            if not path.isprintable() or "\\" in path:
                raise SubmissionError(f"a file's name in it has characters that cannot be shown: {path!a}")
            state = os.stat(entry.name, dir_fd=fd, follow_symlinks=False)
            seen[path] = state
            if len(seen) > limits.max_files + 1:
                raise SubmissionError(f"it holds more than {limits.max_files} files and folders")
            kind = stat.S_IFMT(state.st_mode)
            if kind == stat.S_IFDIR:
                if depth > limits.max_depth:
                    raise SubmissionError(f"its folders are more than {limits.max_depth} deep")
                with opened(entry.name, fd) as inner:
                    _survey(inner, path + "/", depth + 1, limits, seen)
            elif kind == stat.S_IFLNK:
                raise SubmissionError(f"{path} is a symbolic link; links are not followed")
            elif kind != stat.S_IFREG:
                raise SubmissionError(f"{path} is {KINDS.get(kind, 'no file')}")
            elif state.st_nlink > 1:
                raise SubmissionError(f"{path} is a hard link: the same file lies somewhere else, too")


def _marks(seen: dict[str, os.stat_result]) -> dict[str, tuple]:
    """What of each entry differs once somebody has changed it."""
    return {path: _mark(state) for path, state in seen.items()}


def _mark(state: os.stat_result) -> tuple:
    return state.st_mode, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _read(fd: int, path: str, expected: os.stat_result) -> bytes:
    *parents, last = path.split("/")
    with ExitStack() as stack:
        # One name at a time: O_NOFOLLOW looks at the last one only, and a folder may have become a link by now.
        for name in parents:
            fd = stack.enter_context(opened(name, fd))
        # O_NONBLOCK: what was a file may have become a named pipe that nobody writes to.
        handle = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=fd)
        with open(handle, "rb") as file:
            if _mark(os.fstat(handle)) != _mark(expected):
                raise SubmissionError(CHANGED)
            data = file.read(expected.st_size + 1)
            if len(data) != expected.st_size:
                raise SubmissionError(CHANGED)
            return data


def _why(error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.ESTALE):
        return CHANGED
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        return "it is not a folder, or became a link while it was read"
    return f"it cannot be read ({error.strerror or error}): its modes, or the disk"


def megabytes(size: float) -> str:
    """A number of bytes in words.

    >>> megabytes(20_000_000), megabytes(1234), megabytes(10)
    ('20 MB', '1.2 kB', '10 B')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f}".removesuffix(".0") + " " + unit
    return f"{size:.0f} B"
