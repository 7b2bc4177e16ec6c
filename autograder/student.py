"""The checks that a learner runs in the notebook: `check = Checks("03_gradscaler")`, then `check("clipped_step", "update")`.

They run in the notebook's own process, on public seeds, and write nothing to stderr and no value: stock nbgrader takes a
silent cell for a right one, an exception for a wrong one, and stderr for a wrong one too.
"""

from __future__ import annotations

import random
import sys
import textwrap
from pathlib import Path

import torch

from autograder.bundle import Bundle, file_name, unpack
from autograder.errors import RoomError
from autograder.evidence import encode
from autograder.probes import PUBLIC_SECRET, leave_no_state, run_probes, seeds
from autograder.verdict import Result, judge, read_records

WIDTH = 80


class CheckFailed(AssertionError):
    """An answer is not right yet. The message says what was seen."""

    def _render_traceback_(self) -> list[str]:
        # IPython shows these lines instead of a traceback through code that is not the learner's.
        return str(self).split("\n")


class Checks:
    """The public checks of an assignment, to be called with an exercise's name and one of its parts."""

    def __init__(self, assignment: str) -> None:
        self.bundle: Bundle = unpack(find_bundle(assignment))

    def __call__(self, exercise: str, part: str | None = None) -> None:
        """Check the answer of that name in the caller's namespace; all parts if none is named.

        Prints a line where it is right and raises CheckFailed where it is not.
        """
        names = sys._getframe(1).f_globals
        known = self.bundle.exercises
        if exercise not in known:
            raise CheckFailed(f"There is no exercise {exercise!r} in this assignment, only {', '.join(known)}.")
        if part is not None and part not in known[exercise].parts:
            raise CheckFailed(f"{exercise} has no part {part!r}, only {', '.join(known[exercise].parts)}.")
        missing = [name for name in known[exercise].defines if name not in names]
        if missing:
            raise CheckFailed(f"{missing[0]} is not defined yet. Run its cell first; if that cell raises, look there.")
        result = self.result(exercise, known[exercise].answer(names), names)
        parts = [part] if part else list(result.parts)
        if all(result.earned[name] == result.parts[name] for name in parts):
            print(passed_in_words(result, parts))
        else:
            raise CheckFailed(failed_in_words(result, parts))

    def result(self, name: str, answer: object, names: dict) -> Result:
        """Probe `answer` in this process and judge it; the state of PyTorch and of the random generators is put back."""
        exercise = self.bundle.exercises[name]
        states = torch.get_rng_state(), random.getstate()
        try:
            records = run_probes(
                exercise,
                answer,
                seeds(exercise, self.bundle.assignment, PUBLIC_SECRET),
                lambda error: own_line(error, names),
            )
        finally:
            torch.set_rng_state(states[0])
            random.setstate(states[1])
            leave_no_state()
        for record in records:
            record["seen"] = {key: encode(value) for key, value in record["seen"].items()}
        return judge(exercise, self.bundle.expected[name], read_records(records, exercise), self.bundle.mistakes[name])


def passed_in_words(result: Result, parts: list[str]) -> str:
    points = sum(result.parts[part] for part in parts)
    return f"✓ {result.exercise}, {' and '.join(parts)}: right ({points_in_words(points)})"


def failed_in_words(result: Result, parts: list[str]) -> str:
    """What a check says of an answer that is not right: the points, the diagnosis, what was given and what came of it."""
    earned, of = sum(result.earned[part] for part in parts), sum(result.parts[part] for part in parts)
    head = f"✗ {result.exercise}, {' and '.join(parts)}: {earned} of {points_in_words(of)}"
    core = next(iter(result.parts))
    if core not in parts and result.earned[core] != result.parts[core]:
        head += f" (part {core} has to be right first)"
    if result.diagnosis not in (None, "wrong_result", "raises", "not_attempted"):
        head += f" — {result.diagnosis}"
    return "\n\n".join([head, *(textwrap.fill(text, WIDTH) for text in result.message.split("\n\n"))])


def points_in_words(points: int) -> str:
    return f"{points} point" + ("" if points == 1 else "s")


def own_line(error: BaseException, names: dict) -> int | None:
    """The line, within its cell, of the innermost frame of `error` that runs in the learner's namespace."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals is names:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def find_bundle(assignment: str) -> Path:
    """Where the checks of an assignment are: beside the notebook, else built from a checkout of the course."""
    beside = Path.cwd() / file_name(assignment)
    if beside.is_file():
        return beside
    try:
        from autograder.release import student_files
        from autograder.room import find_room

        return student_files(find_room(assignment)) / file_name(assignment)
    except RoomError as error:
        raise RoomError(
            f"The checks of {assignment} are missing: there is no {beside.name} beside the notebook ({beside.parent}), and no "
            f"checkout of the course to make it from ({error}). Get the assignment's files again, or copy {beside.name} "
            "here."
        ) from error
