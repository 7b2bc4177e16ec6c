"""How far right answers and mistakes stand from the tolerance, so that another CPU or BLAS does not flip a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autograder.evidence import difference
from autograder.probes import Exercise
from autograder.reference import Reference
from autograder.verdict import read_records

if TYPE_CHECKING:
    from autograder.release import Proof

SAFE = 4.0  # times the tolerance: a mistake that is nearer than this could be taken for right on another machine
_POWERS = [2.0**k for k in range(-12, 25)]


@dataclass(frozen=True)
class Margin:
    """For one exercise, in multiples of its tolerance: the right answer that is farthest from the solution's evidence, and the
    mistake that is nearest to it. inf where no tolerance would do: another count, another dtype, an error."""

    exercise: str
    right: str
    right_at: float
    mistake: str
    mistake_at: float

    @property
    def is_safe(self) -> bool:
        return self.mistake_at >= SAFE

    def __str__(self) -> str:
        return (
            f"{self.exercise}: right answers within {self.right_at:.2g} of the tolerance ({self.right}), "
            f"nearest mistake at {self.mistake_at:.3g} ({self.mistake})"
        )


def distance(exercise: Exercise, expected: list[dict], got: list[dict]) -> float:
    """The smallest multiple of the exercise's tolerance at which `got` would count as right, up to the next power of two.

    0 where the evidence is the same bits; inf where no tolerance makes it right.
    """
    farthest = 0.0
    for wanted, record in zip(expected, got, strict=True):
        for key, value in wanted["seen"].items():
            if key not in record["seen"]:
                return math.inf
            if difference(value, record["seen"][key], exercise.ulps * farthest) is not None:
                farthest = _first_power(value, record["seen"][key], exercise.ulps)
                if farthest == math.inf:
                    return farthest
    return farthest


def _first_power(expected: object, got: object, ulps: float) -> float:
    for power in _POWERS:
        if difference(expected, got, ulps * power) is None:
            return power
    return math.inf


def margins(reference: Reference, proofs: list[Proof]) -> list[Margin]:
    """The margins of every exercise that `proofs` (release.prove) is about, on the seeds of `reference`."""
    found = []
    for name, exercise in reference.room.exercises.items():
        reached: dict[str, list[tuple[float, str]]] = {"also_right": [(0.0, "the solution")], "mistake": []}
        for proof in proofs:
            if proof.exercise == name and proof.kind in reached:
                got = proof.outcome.get("records")
                at = (
                    math.inf
                    if got is None
                    else distance(exercise, reference.expected[name], read_records(got, exercise))
                )
                reached[proof.kind].append((at, proof.name))
        right_at, right = max(reached["also_right"])
        mistake_at, mistake = min(reached["mistake"], default=(math.inf, "none"))
        found.append(Margin(name, right, right_at, mistake, mistake_at))
    return found
