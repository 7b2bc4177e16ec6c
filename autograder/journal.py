"""What is finished, so that a run that was ended at any point can go on: results kept with a key of all that made them.

A submission is finished when its record lies in .autograder/results/ASSIGNMENT/STUDENT.json. It is written last, after the
graded notebook and the gradebook; whatever a crash leaves before that is done again, with the same outcome. The record's
"journal" holds the key, and a digest of the graded notebook that belongs to it.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autograder.errors import CourseError
from autograder.reference import Reference

FORMAT = 1
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


def key(reference: Reference, submitted: list[dict] | str, timestamp: str, boxed: bool) -> str:
    """A digest that changes with anything that a grade depends on: the submission's cells (or why they cannot be read) and its
    time, the room with its checks, the secret, the versions of PyTorch, Python and this grader."""
    code = hashlib.sha256()
    for name in JUDGING:
        code.update(Path(__file__).with_name(name).read_bytes())
    parts = [
        *(FORMAT, reference.room.name, reference.room.fingerprint, code.hexdigest(), platform.python_version()),
        *(hashlib.sha256(b"journal" + reference.secret).hexdigest(), boxed, timestamp, submitted),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def entry(made_with: str, notebook: bytes) -> dict:
    """What a record's "journal" says."""
    return {"key": made_with, "notebook": hashlib.sha256(notebook).hexdigest()}


def read(path: Path) -> dict | None:
    """A record with its "journal"; None where there is none that can be read."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and "exercises" in record else None


def is_finished(record: dict | None, made_with: str, notebook: Path) -> bool:
    """Whether a record was made with this key and its graded notebook is still there as it was written."""
    known = (record or {}).get("journal") or {}
    if known.get("key") != made_with:
        return False
    try:
        return hashlib.sha256(notebook.read_bytes()).hexdigest() == known.get("notebook")
    except OSError:
        return False


@contextmanager
def lock(path: Path, doing: str) -> Iterator[None]:
    """Hold the course alone. CourseError says who holds it.

    The kernel lets go of it when its holder ends, however that ends: what a killed run leaves in the file locks nobody out.
    """
    import fcntl  # there is none on Windows, where learners' checks import this package and nobody grades

    with open(path, "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            raise CourseError(
                f"Somebody is at work in this course: {file.read().strip() or 'another process'}. Nothing was done. Wait for "
                "it to end, or stop it; what it has finished by then is kept."
            ) from error
        file.truncate(0)
        now = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
        file.write(f"`{doing}`, process {os.getpid()} on {socket.gethostname()}, since {now}\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def clear(*folders: Path) -> None:
    """Remove what a killed run had begun to write in these folders (reference.write_atomically)."""
    for folder in folders:
        for left in folder.glob(".*.part"):
            with suppress(OSError):
                left.unlink()
