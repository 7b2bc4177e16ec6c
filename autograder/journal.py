"""What is finished, so that a run that was ended at any point can go on: results kept with a key of what was handed in.

A submission is finished when its record lies in .autograder/results/ASSIGNMENT/STUDENT.json. It is written last, after the
graded notebook and the gradebook; whatever a crash leaves before that is done again, with the same outcome. The record's
"journal" holds the key, the rules that it was graded by, and a digest of the graded notebook that belongs to it. Who is
finished stays so when the rules change: another version of the course is no reason to give other grades unasked.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.errors import CourseError

if TYPE_CHECKING:
    from autograder.room import Room

FORMAT = 2
STATUSES = ("graded", "unreadable", "timeout", "killed", "tampered")  # what may become of a submission
# With the room's fingerprint, which covers what runs an answer and what reads its evidence, all that a verdict depends on.
JUDGING = (
    "confine.py",
    "grading.py",
    "reference.py",
    "sandbox.py",
    "submission.py",
    "verdict.py",
    "warm.py",
)
# The rules that decide, and what is said where one of them has changed. Others are noted for the reader.
CHANGED = {
    "exercises": "the assignment's files",
    "fingerprint": "what runs answers and reads their evidence",
    "grader": "what judges the evidence",
    "torch": "PyTorch",
    "python": "Python",
    "secret": "the course's secret",
}


def submission_key(submitted: list[dict] | str, timestamp: str, boxed: bool) -> str:
    """A digest of what was handed in, the cells (or why they cannot be read) and the time, and of whether it was isolated."""
    return _digest(json.dumps([FORMAT, boxed, timestamp, submitted], sort_keys=True).encode())


def rules(room: Room, secret: bytes) -> dict[str, str]:
    """All that a verdict depends on beside the submission, in parts that can be named (CHANGED), with the version of the
    installation."""
    import torch

    code = [Path(__file__).with_name(name).read_bytes() for name in JUDGING]
    return {
        "amp-course": importlib.metadata.version("amp-course"),
        "exercises": _digest(*(part for name, data in files(room.path).items() for part in (name.encode(), data))),
        "fingerprint": room.fingerprint[:32],
        "grader": _digest(*code),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "secret": _digest(b"journal", secret),
    }


def files(folder: Path) -> dict[str, bytes]:
    """The files of a room that its checks are made of, by their place in it."""
    found = (path for path in folder.rglob("*") if path.suffix in (".py", ".ipynb") and path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in found if ".ipynb_checkpoints" not in path.parts}
    return {name: named[name].read_bytes() for name in sorted(named)}


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:32]


def entry(submitted: str, by: dict[str, str], notebook: bytes) -> dict:
    """What a record's "journal" says."""
    return {"submission": submitted, "rules": by, "notebook": hashlib.sha256(notebook).hexdigest()}


def read(path: Path) -> dict | None:
    """A record with its "journal"; None where there is none that can be read."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(record, dict) and isinstance(record.get("exercises"), dict)
    return record if whole and isinstance(record.get("journal", {}), dict) else None


def is_finished(record: dict | None, submitted: str, notebook: Path) -> bool:
    """Whether a record is of this submission and its graded notebook is still there as it was written, whatever the rules."""
    known = (record or {}).get("journal") or {}
    if known.get("submission") != submitted:
        return False
    try:
        return hashlib.sha256(notebook.read_bytes()).hexdigest() == known.get("notebook")
    except OSError:
        return False


def changed(record: dict, today: dict[str, str]) -> list[str]:
    """In words, by which other rules than today's a record was made; empty where they are the same."""
    then = (record.get("journal") or {}).get("rules")
    if not isinstance(then, dict):
        return ["an unknown version of the grader"]
    different = [name for name in CHANGED if then.get(name) != today[name]]
    if {"exercises", "torch"} & {*different}:
        different = [name for name in different if name != "fingerprint"]  # which is made from these, too
    return [_in_words(name, str(then.get(name)), today[name]) for name in different]


def _in_words(name: str, then: str, now: str) -> str:
    return f"{CHANGED[name]} ({then}, now {now})" if name in ("torch", "python") else CHANGED[name]


@contextmanager
def lock(path: Path, doing: str) -> Iterator[None]:
    """Hold the course alone. CourseError says who holds it.

    The kernel lets go of it when its holder ends, however that ends: what a killed run leaves in the file locks nobody out.
    """
    import fcntl  # there is none on Windows, where learners' checks import this package and nobody grades

    with _to_write(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            raise CourseError(
                f"Somebody is at work in this course: {file.read().strip() or 'another process'}. Nothing was done. Wait for "
                "it to end, or stop it; what it has finished by then is kept."
            ) from error
        now = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
        who = f"`{doing}`, process {os.getpid()} on {socket.gethostname()}, since {now}\n"
        with suppress(OSError):  # on a full disk nobody is told who it is
            file.truncate(0)
            os.write(file.fileno(), who.encode())
        try:
            yield
        finally:
            with suppress(OSError):
                file.truncate(0)


def _to_write(path: Path):
    try:
        return open(path, "a+", encoding="utf-8", errors="replace")
    except OSError as error:
        raise CourseError(
            f"Nobody can work in this course: {path} cannot be written ({error.strerror}). Nothing was done. See that the "
            "course belongs to you, and that its disk is neither full nor read-only."
        ) from error


@contextmanager
def moment(path: Path, *, writing: bool) -> Iterator[None]:
    """Keep notebook, gradebook and record of a submission together: who saves one (`writing`) and who copies all take turns.

    It is held for one save, or for one copy, and waited for.
    """
    import fcntl

    with open(path, "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX if writing else fcntl.LOCK_SH)
        yield


def clear(*folders: Path) -> None:
    """Remove what a killed run had begun to write in these folders (reference.write_atomically)."""
    for folder in folders:
        for left in folder.glob(".*.part"):
            with suppress(OSError):
                left.unlink()
