"""What is expected on given seeds: the evidence of the solution, and that of every known mistake.

Solutions and mistakes are the course's own code; they run through the same runner as answers do, in one process.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from autograder import sandbox
from autograder.errors import RoomError
from autograder.probes import seeds
from autograder.room import Room
from autograder.verdict import Explanation, Result, error_in_words, judge, read_error, read_records, without_evidence

CELL_SECONDS = 20.0


@dataclass
class Reference:
    """Expected evidence and explanations for each exercise, on the seeds of one secret."""

    room: Room
    secret: bytes = field(repr=False)
    expected: dict[str, list[dict]] = field(repr=False)
    mistakes: dict[str, list[Explanation]] = field(repr=False)
    raw: dict[str, dict[str, dict]] = field(repr=False)

    def result(self, name: str, outcome: dict) -> Result:
        """The verdict on what the runner said of an answer to exercise `name`."""
        exercise = self.room.exercises[name]
        if outcome.get("outcome") == "evidence":
            got = read_records(outcome.get("records"), exercise)
            return judge(exercise, self.expected[name], got, self.mistakes[name])
        if outcome.get("outcome") == "raises":
            return without_evidence(
                exercise, "raises", f"Your cell raised {error_in_words(read_error(outcome.get('error') or {}))}."
            )
        if outcome.get("outcome") == "timeout":
            return without_evidence(exercise, "timeout")
        return without_evidence(
            exercise,
            "raises",
            "The Python process ended while your code ran: it called exit, or took "
            "more memory or time than an answer may.",
        )


def job(room: Room, secret: bytes, variants: list[tuple[str, list[dict], list[str]]]) -> dict:
    """The runner's job for (name, cells, exercises) variants on the seeds of `secret`."""
    drawn = {name: seeds(exercise, room.name, secret) for name, exercise in room.exercises.items()}
    return {
        "assignment": room.name,
        "checks": room.checks,
        "cell_seconds": CELL_SECONDS,
        "variants": [
            {"name": name, "cells": cells, "exercises": {exercise: drawn[exercise] for exercise in exercises}}
            for name, cells, exercises in variants
        ],
    }


def compute(room: Room, secret: bytes, cache: Path | None = None, only: set[str] | None = None) -> Reference:
    """Run the solution and all mistakes on the seeds of `secret`; keep the evidence in the folder `cache` if given.

    `only` names the exercises that are wanted; without it all of them.
    """
    wanted = [name for name in room.exercises if only is None or name in only]
    key = hashlib.sha256(room.fingerprint.encode() + hashlib.sha256(b"cache" + secret).digest()).hexdigest()[:32]
    path = cache / f"{room.name}-{key}.json" if cache else None
    if path and path.is_file():
        return load(room, secret, json.loads(path.read_text(encoding="utf-8")))
    variants = [("solution", room.cells(room.solutions), wanted)]
    variants += [
        (f"{name}/{mistake.name}", room.cells({name: mistake.source}), [name])
        for name in wanted
        for mistake in room.mistakes[name]
    ]
    raw: dict[str, dict[str, dict]] = {name: {} for name in wanted}
    for outcome in _run(room, secret, variants):
        raw[outcome["exercise"]][outcome["variant"].rpartition("/")[2]] = outcome
    reference = load(room, secret, raw)
    if path:
        write_atomically(path, json.dumps(raw, allow_nan=False).encode())
    return reference


def _run(room: Room, secret: bytes, variants: list[tuple[str, list[dict], list[str]]]) -> list[dict]:
    """The outcomes of all variants, run on every core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = [share for share in (variants[core::cores] for core in range(cores)) if share]
    with ThreadPoolExecutor(max_workers=len(shares)) as pool:
        done = pool.map(lambda share: sandbox.run(job(room, secret, share), boxed=False, seconds=600), shares)
        return [outcome for outcomes in done for outcome in outcomes]


def load(room: Room, secret: bytes, raw: dict[str, dict[str, dict]]) -> Reference:
    """A reference from the runner's outcomes. RoomError where the solution gave none."""
    expected, mistakes = {}, {}
    for name in raw:
        exercise, outcome = room.exercises[name], raw[name].get("solution")
        if outcome is None or outcome["outcome"] != "evidence":
            said = (
                "no result"
                if outcome is None
                else error_in_words(outcome["error"])
                if "error" in outcome
                else outcome["outcome"]
            )
            raise RoomError(f"{room.name}: the solution of {name} could not be probed: {said}")
        expected[name] = read_records(outcome["records"], exercise)
        for record in expected[name]:
            if record["error"]:
                raise RoomError(
                    f"{room.name}: the solution of {name}, or its probe {record['probe']}, raised "
                    f"{error_in_words(record['error'])}"
                )
        mistakes[name] = [
            Explanation.of(
                exercise, mistake.slug, mistake.message, expected[name], read_records(outcome["records"], exercise)
            )
            for mistake in room.mistakes[name]
            if (outcome := raw[name].get(mistake.name, {})).get("outcome") == "evidence"
        ]
    return Reference(room, secret, expected, mistakes, raw)


def write_atomically(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file so that a reader, or a crash, sees the old one or the new one and nothing between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
