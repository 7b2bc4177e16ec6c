"""What is expected on given seeds: the evidence of the solution, and that of every known mistake.

Solutions and mistakes are the course's own code; they run through the same runner as answers do, in one process.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from autograder import executors, sandbox
from autograder.atomic import write_atomically
from autograder.errors import RoomError
from autograder.probes import seeds
from autograder.room import Room
from autograder.verdict import (
    Explanation,
    Result,
    error_in_words,
    judge,
    read_error,
    read_records,
    without_evidence,
)

CELL_SECONDS = 20.0
MAX_RESULTS = 1_000  # that are kept, each with the evidence that it is about
LARGE_RESULT = 1 << 17  # bytes of evidence that are not worth keeping


class _WhenAsked(Sequence):
    """A sequence that is made when somebody looks into it: the verdict on a right answer does not."""

    def __init__(self, make: Callable[[], Sequence]) -> None:
        self._make = make

    def __getitem__(self, index):
        return self._make()[index]

    def __len__(self) -> int:
        return len(self._make())


@dataclass
class Reference:
    """Expected evidence for each exercise on the seeds of one secret, and what explains an answer that lacks it.

    What the mistakes of an exercise show is made when it is first asked for: most grading runs fail few exercises.
    """

    room: Room
    secret: bytes = field(repr=False)
    expected: dict[str, list[dict]] = field(repr=False)
    raw: dict[str, dict[str, dict]] = field(repr=False)
    cache: Path | None = None
    _explanations: dict[str, list[Explanation]] = field(default_factory=dict, repr=False)
    _results: dict[tuple[str, bytes], Result] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @cached_property
    def seeds(self) -> dict[str, dict[str, list[int]]]:
        return _seeds(self.room, self.secret)

    def job(self, cells: list[dict], exercises: list[str], *, together: bool = False) -> dict:
        """The runner's job for these exercises of a notebook (submission.Rebuilt.cells)."""
        return {**_job(self.room, self.seeds, [("answer", cells, exercises)]), "together": together}

    def explanations(self, name: str) -> list[Explanation]:
        """The known mistakes of exercise `name` with their evidence, as far as they have any."""
        with self._lock:
            if name not in self._explanations:
                self.complete([name])
                self._explanations[name] = [
                    Explanation.of(
                        self.room.exercises[name],
                        mistake.slug,
                        mistake.message,
                        self.expected[name],
                        read_records(outcome["records"], self.room.exercises[name]),
                    )
                    for mistake in self.room.mistakes[name]
                    if (outcome := self.raw[name].get(mistake.name, {})).get("outcome") == "evidence"
                ]
            return self._explanations[name]

    def complete(self, names: Iterable[str]) -> None:
        """Have the evidence of all mistakes of these exercises in `raw`: from the cache, or by running them."""
        absent = [name for name in names if set(self.raw[name]) == {"solution"}]
        for name in absent:
            self.raw[name].update(_kept(self._path(name)) or {})
        absent = [name for name in absent if set(self.raw[name]) == {"solution"} and self.room.mistakes[name]]
        variants = [
            (f"{name}/{mistake.name}", self.room.cells({name: mistake.source}), [name])
            for name in absent
            for mistake in self.room.mistakes[name]
        ]
        for outcome in _run(self.room, self.secret, variants):
            self.raw[outcome["exercise"]][outcome["variant"].rpartition("/")[2]] = outcome
        for name in absent:
            shown = {mistake: outcome for mistake, outcome in self.raw[name].items() if mistake != "solution"}
            if len(shown) == len(self.room.mistakes[name]):  # else they were not all run in time
                _keep(self._path(name), shown)

    def _path(self, name: str) -> Path | None:
        return self.cache / f"{name}.json" if self.cache else None

    def result(self, name: str, outcome: dict) -> Result:
        """The verdict on what the runner said of an answer to exercise `name`.

        It follows from that and from nothing else, and in a class most answers show what others did: each is judged once.
        """
        text = json.dumps(outcome).encode()
        if len(text) > LARGE_RESULT:
            return self._result(name, outcome)
        said = name, hashlib.sha256(text).digest()
        if said not in self._results:
            if len(self._results) >= MAX_RESULTS:
                self._results.clear()
            self._results[said] = self._result(name, outcome)
        return self._results[said]

    def _result(self, name: str, outcome: dict) -> Result:
        exercise = self.room.exercises[name]
        if outcome.get("outcome") == "evidence":
            got = read_records(outcome.get("records"), exercise)
            return judge(exercise, self.expected[name], got, _WhenAsked(lambda: self.explanations(name)))
        if outcome.get("outcome") == "raises":
            return without_evidence(
                exercise, "raises", f"Your cell raised {error_in_words(read_error(outcome.get('error') or {}))}."
            )
        if outcome.get("outcome") == "timeout":
            return without_evidence(exercise, "timeout")
        return without_evidence(exercise, "raises", f"{_end_in_words(outcome)}.")


def _end_in_words(outcome: dict) -> str:
    """Why there is no evidence of an answer whose process is gone."""
    why = outcome.get("why")
    if why in ("memory", "processes"):
        return f"The Python process was ended while your code ran: it took more {why} than an answer may"
    if why == "forged":
        return "While your code ran, something else than the grader's own reports came out of its process"
    how = {"exit": " by itself, as after a call of exit", "silence": ""}.get(why, f" with {why}" if why else "")
    return f"The Python process ended{how} while your code ran"


def job(room: Room, secret: bytes, variants: list[tuple[str, list[dict], list[str]]]) -> dict:
    """The runner's job for (name, cells, exercises) variants on the seeds of `secret`."""
    return _job(room, _seeds(room, secret), variants)


def _seeds(room: Room, secret: bytes) -> dict[str, dict[str, list[int]]]:
    return {name: seeds(exercise, room.name, secret) for name, exercise in room.exercises.items()}


def _job(room: Room, drawn: dict[str, dict], variants: list[tuple[str, list[dict], list[str]]]) -> dict:
    return {
        "assignment": room.name,
        "checks": room.checks,
        "cell_seconds": CELL_SECONDS,
        "variants": [
            {"name": name, "cells": cells, "exercises": {exercise: drawn[exercise] for exercise in exercises}}
            for name, cells, exercises in variants
        ],
    }


def compute(
    room: Room, secret: bytes, cache: Path | None = None, only: set[str] | None = None, *, lazily: bool = False
) -> Reference:
    """Run the solution and all mistakes on the seeds of `secret`; keep the evidence in the folder `cache` if given.

    `only` names the exercises that are wanted; without it all of them. `lazily` leaves the mistakes of each exercise until
    an answer to it fails. RoomError where a solution gives no evidence, or raises.
    """
    wanted = [name for name in room.exercises if only is None or name in only]
    key = hashlib.sha256(room.fingerprint.encode() + hashlib.sha256(b"cache" + secret).digest()).hexdigest()[:32]
    folder = cache / f"{room.name}-{key}" if cache else None
    path = folder / "solutions.json" if folder else None
    solutions = kept = _kept(path) or {}
    if not set(wanted) <= set(kept):
        done = _run(room, secret, [("solution", room.cells(room.solutions), [name]) for name in wanted])
        solutions = {outcome["exercise"]: outcome for outcome in done}
    raw = {name: {"solution": solutions[name]} if name in solutions else {} for name in wanted}
    reference = Reference(room, secret, {name: _expected(room, name, raw[name]) for name in wanted}, raw, folder)
    if solutions is not kept:  # only now, since a solution that raises must not be found again
        _keep(path, solutions)
    if not lazily:
        reference.complete(wanted)
    return reference


def _run(room: Room, secret: bytes, variants: list[tuple[str, list[dict], list[str]]]) -> list[dict]:
    """The outcomes of all variants, run on every core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = [share for share in (variants[core::cores] for core in range(cores)) if share]
    if not shares:
        return []
    with executors.local(len(shares)) as pool:  # which Ctrl-C does not have to wait for
        done = [
            pool.executor.submit(sandbox.run, job(room, secret, share), boxed=False, seconds=600) for share in shares
        ]
        return [outcome for future in done for outcome in future.result()]


def _kept(path: Path | None) -> dict | None:
    """What `_keep` wrote; None where there is nothing, or a file that something else has cut short."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path else None
    except (OSError, ValueError):
        return None


def _keep(path: Path | None, outcomes: dict) -> None:
    # Without it the same evidence is made again next time: a full disk is a reason to say so about grades, not about this.
    if path:
        with suppress(OSError):
            write_atomically(path, json.dumps(outcomes, allow_nan=False).encode())


def _expected(room: Room, name: str, raw: dict[str, dict]) -> list[dict]:
    """The solution's evidence for an exercise. RoomError where it gave none."""
    exercise, outcome = room.exercises[name], raw.get("solution")
    if outcome is None or outcome["outcome"] != "evidence":
        raise RoomError(f"{room.name}: the solution of {name} could not be probed: {_why_not(outcome)}")
    expected = read_records(outcome["records"], exercise)
    for record in expected:
        if record["error"]:
            raise RoomError(
                f"{room.name}: the solution of {name}, or its probe {record['probe']}, raised "
                f"{error_in_words(record['error'])}"
            )
    return expected


def _why_not(outcome: dict | None) -> str:
    if outcome is None:
        return "no result"
    if "error" in outcome:
        return error_in_words(outcome["error"])
    return "timeout" if outcome["outcome"] == "timeout" else _end_in_words(outcome)
