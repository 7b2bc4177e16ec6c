"""Grading one submission: rebuild it, run it in a box, judge the evidence. No gradebook and no course folder in here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograder import sandbox, submission
from autograder.errors import EvidenceError, SandboxError, SubmissionError
from autograder.reference import Reference, job
from autograder.verdict import Result, without_evidence

# What a whole submission may take: its exercises' own limits add up to less than this in ordinary trouble.
SUBMISSION_SECONDS = 180.0
STATUSES = ("graded", "unreadable", "timeout", "killed", "tampered")


@dataclass
class Grade:
    """What a submission earned. `notebook` is the rebuilt notebook with a verdict below each check cell."""

    assignment: str
    status: str
    message: str
    results: dict[str, Result] = field(default_factory=dict)
    sandboxed: bool = True
    notebook: nbformat.NotebookNode | None = field(default=None, repr=False)

    @property
    def score(self) -> float:
        return float(sum(result.score for result in self.results.values()))

    @property
    def max_score(self) -> float:
        return float(sum(result.max_score for result in self.results.values()))

    def to_json(self, who: dict) -> dict:
        """The record of DESIGN.md's --json; `who` names the student or the answers file."""
        record = {
            **who,
            "assignment": self.assignment,
            "score": self.score,
            "max_score": self.max_score,
            "status": self.status,
            "message": self.message,
            "exercises": {name: result.to_json() for name, result in self.results.items()},
        }
        return record if self.sandboxed else {**record, "sandboxed": False}


def grade_file(reference: Reference, path: Path, *, boxed: bool = True) -> Grade:
    """Grade the notebook at `path`. Never raises for anything that a submission may be."""
    try:
        cells = submission.read(path)
    except SubmissionError as error:
        return unreadable(reference, str(error), boxed)
    return grade_cells(reference, cells, boxed=boxed)


def unreadable(reference: Reference, reason: str, boxed: bool = True) -> Grade:
    rebuilt = submission.rebuild(reference.room, [])
    results = {name: without_evidence(exercise, "not_attempted") for name, exercise in reference.room.exercises.items()}
    return _finish(reference, rebuilt, results, "unreadable", reason, boxed)


def grade_cells(reference: Reference, cells: list[dict], *, boxed: bool = True) -> Grade:
    """Grade a submission's cells (submission.read)."""
    room = reference.room
    rebuilt = submission.rebuild(room, cells)
    answers = {cell["exercise"]: cell["source"] for cell in rebuilt.cells if cell["exercise"]}
    own = any(not cell["exercise"] and not cell["check"] and cell["id"].startswith("extra-") for cell in rebuilt.cells)
    # An untouched answer cell needs no run, unless cells of the student's own could stand in for it.
    attempted = [name for name in room.exercises if own or _squeezed(answers[name]) != _squeezed(room.stubs[name])]
    status, message = "graded", "; ".join(rebuilt.notes)
    outcomes: dict[str, dict] = {}
    try:
        outcomes = _run(reference, rebuilt.cells, attempted, boxed)
        if attempted and all(outcomes.get(name, {}).get("where") == "box" for name in attempted):
            status, message = "killed", "each of its answers ended the box that it ran in"
        elif any(name not in outcomes for name in attempted):
            status = "timeout"
            message = f"it took more than {SUBMISSION_SECONDS:.0f} s; what it had answered by then is graded"
    except EvidenceError as error:
        status, message = "tampered", str(error)
    except SandboxError as error:
        # Boxes work here, or nothing would have been graded (sandbox.require): this one was ended from within.
        status, message = "killed", str(error)
    results = {name: _result(reference, name, name in attempted, outcomes.get(name)) for name in room.exercises}
    return _finish(reference, rebuilt, results, status, message, boxed)


def _run(reference: Reference, cells: list[dict], attempted: list[str], boxed: bool) -> dict[str, dict]:
    """The runner's outcome for each exercise, as far as there was time.

    An answer that ends its whole box (by killing all that it can see) takes the later exercises with it; those are run
    again in a new box, without its cell.
    """
    outcomes: dict[str, dict] = {}
    deadline = time.monotonic() + SUBMISSION_SECONDS
    while left := [name for name in attempted if name not in outcomes]:
        wanted = job(reference.room, reference.secret, [("answer", cells, left)])
        for outcome in sandbox.run(wanted, boxed=boxed, seconds=max(0.0, deadline - time.monotonic())):
            outcomes[str(outcome.get("exercise"))] = outcome
        if time.monotonic() >= deadline:
            break
        for name in left:
            if name not in outcomes:
                outcomes[name] = {"outcome": "died", "where": "box"}
                cells = [{**cell, "source": ""} if cell["exercise"] == name else cell for cell in cells]
                break
    return outcomes


def _result(reference: Reference, name: str, attempted: bool, outcome: dict | None) -> Result:
    exercise = reference.room.exercises[name]
    if not attempted:
        return without_evidence(exercise, "not_attempted")
    if outcome is None:
        return without_evidence(exercise, "timeout")
    try:
        return reference.result(name, outcome)
    except EvidenceError as error:
        return without_evidence(exercise, "wrong_result", f"{error}.")


def _squeezed(source: str) -> str:
    return "\n".join(line.strip() for line in source.split("\n") if line.strip())


def _finish(
    reference: Reference,
    rebuilt: submission.Rebuilt,
    results: dict[str, Result],
    status: str,
    message: str,
    boxed: bool,
) -> Grade:
    """Write each verdict into the output of its check cell, as nbgrader scores it: an error, or a line of text."""
    by_cell = {f"{name}-{part}": (result, part) for name, result in results.items() for part in result.parts}
    for cell in rebuilt.notebook.cells:
        result, part = by_cell.get(cell.metadata.get("nbgrader", {}).get("grade_id"), (None, None))
        if result is not None:
            cell.outputs = [output(result, part)]
    if status == "unreadable":
        rebuilt.notebook.cells.insert(
            0, nbformat.v4.new_markdown_cell(f"**This submission could not be read:** {message}.", id="unreadable")
        )
    return Grade(reference.room.name, status, message, results, boxed, rebuilt.notebook)


def output(result: Result, part: str) -> nbformat.NotebookNode:
    from autograder.student import failed_in_words, passed_in_words

    if result.earned[part] == result.parts[part]:
        return nbformat.v4.new_output("stream", name="stdout", text=passed_in_words(result, [part]) + "\n")
    words = failed_in_words(result, [part])
    return nbformat.v4.new_output(
        "error", ename="CheckFailed", evalue=words.split("\n")[0], traceback=words.split("\n")
    )


def grade_many(
    reference: Reference, paths: dict[str, Path], *, jobs: int, boxed: bool = True, done: Callable[[str, Grade], None]
) -> None:
    """Grade several notebooks, `jobs` at a time; `done(name, grade)` is called in this thread as each is finished."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = {pool.submit(grade_file, reference, path, boxed=boxed): name for name, path in paths.items()}
        try:
            for future in as_completed(futures):
                done(futures[future], future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
