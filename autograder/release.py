"""Releasing an assignment: prove that its checks tell right from wrong, then write what learners get."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograder import bundle, sandbox
from autograder.atomic import write_atomically
from autograder.errors import RoomError
from autograder.margins import SAFE, margins
from autograder.probes import PUBLIC_SECRET
from autograder.reference import Reference, compute, job
from autograder.room import ROOT, Room
from autograder.verdict import Result


@dataclass(frozen=True)
class Proof:
    """One answer of a room and what it got. `kind` is "solution", "released", "mistake" or "also_right"; `outcome` is what
    the runner said of it."""

    kind: str
    exercise: str
    name: str
    result: Result
    outcome: dict = field(repr=False)

    @property
    def failure(self) -> str | None:
        """Why this must stop a release, or None."""
        result, where = self.result, f"{self.exercise}: {self.kind} {self.name}".rstrip()
        if self.kind in ("solution", "also_right") and not result.passed:
            return (
                f"{where} earns {result.score:g} of {result.max_score:g} points: {result.diagnosis}: {result.message}"
            )
        if self.kind == "released" and result.score:
            return f"{where}: the cell as released earns {result.score:g} points"
        if self.kind == "mistake" and result.passed:
            return f"{where} earns full marks: its check does not catch it"
        if self.kind == "mistake" and result.diagnosis != self.name.partition("__")[0]:
            return f"{where} is diagnosed as {result.diagnosis}"
        return None


def prove(reference: Reference) -> list[Proof]:
    """Grade everything that the room knows to be right, wrong or empty, on the seeds of the reference."""
    room, proofs = reference.room, []

    def prove_one(kind: str, name: str, file: str, outcome: dict) -> None:
        proofs.append(Proof(kind, name, file, reference.result(name, outcome), outcome))

    for name in room.exercises:
        prove_one("solution", name, "", reference.raw[name]["solution"])
        for mistake in room.mistakes[name]:
            prove_one("mistake", name, mistake.name, reference.raw[name].get(mistake.name, {"outcome": "died"}))
    variants = [("released", room.cells(room.stubs), list(room.exercises))]
    variants += [
        (f"{name}/{file}", room.cells({name: source}), [name])
        for name, files in room.also_right.items()
        for file, source in files.items()
    ]
    for outcome in sandbox.run(job(room, reference.secret, variants), boxed=False, seconds=600):
        kind, _, file = outcome["variant"].rpartition("/")
        prove_one("also_right" if kind else "released", outcome["exercise"], file if kind else "", outcome)
    return proofs


def verify(reference: Reference) -> list[Proof]:
    """`prove`, and RoomError with every place and reason where a proof fails."""
    room, proofs = reference.room, prove(reference)
    failures = [proof.failure for proof in proofs if proof.failure]
    failures += [
        f"{name}: checks.py has a symptom {slug!r} and no mistake of that name says what to tell the student"
        for name, exercise in room.exercises.items()
        for slug, _ in exercise.symptoms
        if slug not in {mistake.slug for mistake in room.mistakes[name]}
    ]
    failures += [
        f"{name}: there is no mistake in {room.path / 'mistakes' / name}, so nothing shows that its check catches "
        "anything"
        for name, mistakes in room.mistakes.items()
        if not mistakes
    ]
    failures += [
        f"{margin.exercise}: mistake {margin.mistake} is only {margin.mistake_at:.3g} times the tolerance away from right, and "
        f"must be {SAFE:g} times: on another machine it could pass. Make the exercise's ulps smaller, or its probes larger."
        for margin in margins(reference, proofs)
        if not margin.is_safe
    ]
    if failures:
        raise RoomError(f"{room.name} is not fit for release, so nothing was written:\n  " + "\n  ".join(failures))
    return proofs


def write_student_files(reference: Reference, folder: Path) -> None:
    """Write what a learner gets of an assignment, made from a reference on the public seeds: its notebook and its checks."""
    room = reference.room
    notebook = nbformat.writes(room.released)
    write_atomically(folder / f"{room.name}.ipynb", notebook.encode() + b"\n", 0o644)
    write_atomically(folder / bundle.file_name(room.name), bundle.pack(reference), 0o644)


def student_files(room: Room, say: Callable[[str], None] = lambda words: None) -> Path:
    """The folder with the learner's files of a room in this checkout; built anew when what they depend on has changed.

    `say` is told when building begins, because that takes some seconds.
    """
    folder = _shelf(room)
    if not folder.is_dir():
        say(f"Preparing the exercises of {room.name}; this takes a while, once.")
        shelve(compute(room, PUBLIC_SECRET))
    return folder


def shelve(reference: Reference) -> None:
    """Keep the learner's files made from a reference on the public seeds where `student_files` looks for them."""
    folder = _shelf(reference.room)
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent.parent, prefix=f".{reference.room.name}-") as temporary:
        made = Path(temporary) / "made"
        write_student_files(reference, made)
        try:
            made.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster, with the same files
                raise
    for old in folder.parent.iterdir():
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)


def _shelf(room: Room) -> Path:
    return ROOT / "build" / "released" / room.name / room.fingerprint[:16]
