"""What a learner's checks need beside the notebook, in one file: ASSIGNMENT.checks.zip.

    checks.py       how answers are probed
    evidence.json   what the solution shows on the public seeds, and what each known mistake shows, with its words

No solution and no mistake's code is in it, and nothing about the seeds that grades are made on.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import RoomError
from autograder.probes import Exercise, load_checks
from autograder.reference import Reference
from autograder.verdict import Explanation, read_records

FORMAT = 1


@dataclass
class Bundle:
    """The public side of an assignment's checks."""

    assignment: str
    exercises: dict[str, Exercise]
    expected: dict[str, list[dict]]
    mistakes: dict[str, list[Explanation]]


def file_name(assignment: str) -> str:
    return f"{assignment}.checks.zip"


def pack(reference: Reference) -> bytes:
    """The bytes of the bundle for a reference on the public seeds. The same input gives the same bytes."""
    room = reference.room
    evidence = {
        name: {
            "expected": reference.raw[name]["solution"]["records"],
            "mistakes": [
                {
                    "slug": mistake.slug,
                    "message": mistake.message,
                    "records": reference.raw[name][mistake.name]["records"],
                }
                for mistake in room.mistakes[name]
                if reference.raw[name][mistake.name]["outcome"] == "evidence"
            ],
        }
        for name in room.exercises
    }
    files = {
        "checks.py": room.checks,
        "evidence.json": json.dumps(
            {"format": FORMAT, "assignment": room.name, "exercises": evidence}, allow_nan=False
        ),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text.encode(), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def unpack(path: Path) -> Bundle:
    """Read a bundle. RoomError where it is damaged or of another version."""
    try:
        with zipfile.ZipFile(path) as archive:
            checks = archive.read("checks.py").decode()
            data = json.loads(archive.read("evidence.json"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise RoomError(
            f"{path} is damaged ({error}). Get the assignment's files again; your notebook is not touched."
        ) from error
    if data["format"] != FORMAT:
        raise RoomError(
            f"{path} was made by another version of the course (format {data['format']}, this one reads {FORMAT}). "
            "Update the course, or get the assignment's files again."
        )
    exercises = load_checks(checks, data["assignment"])
    expected, mistakes = {}, {}
    for name, exercise in exercises.items():
        entry = data["exercises"][name]
        expected[name] = read_records(entry["expected"], exercise)
        mistakes[name] = [
            Explanation.of(
                exercise, known["slug"], known["message"], expected[name], read_records(known["records"], exercise)
            )
            for known in entry["mistakes"]
        ]
    return Bundle(data["assignment"], exercises, expected, mistakes)
