"""Grading one submission: rebuild it, run it in a box, judge the evidence. No gradebook and no course folder in here."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograder import submission
from autograder.errors import AutograderError, EvidenceError, SandboxError, SubmissionError, WorkerError
from autograder.executors import Pool, answer
from autograder.reference import Reference
from autograder.verdict import Result, without_evidence

# What a whole submission may take: its exercises' own limits add up to less than this in ordinary trouble.
SUBMISSION_SECONDS = 180.0
TOGETHER_SECONDS = 10.0  # of its first run, in one process


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
    steps = grading(reference, cells, boxed)
    try:
        job, seconds = next(steps)
        while True:
            try:
                done = answer(job, boxed, seconds)
            except SandboxError as error:
                job, seconds = steps.throw(error)
            else:
                job, seconds = steps.send(done)
    except StopIteration as end:
        return end.value


# What `grading` yields: a job and the seconds that it may take. What it is sent: the results and the seconds taken.
Steps = Generator[tuple[dict, float], tuple[list[dict], float], Grade]


def grading(reference: Reference, cells: list[dict], boxed: bool = True) -> Steps:
    """How a submission's cells are graded, whoever runs its jobs (executors.answer). Returns the Grade."""
    room = reference.room
    rebuilt = submission.rebuild(room, cells)
    answers = {cell["exercise"]: cell["source"] for cell in rebuilt.cells if cell["exercise"]}
    own = any(not cell["exercise"] and not cell["check"] and cell["id"].startswith("extra-") for cell in rebuilt.cells)
    # An untouched answer cell needs no run, unless cells of the student's own could stand in for it.
    attempted = [name for name in room.exercises if own or _squeezed(answers[name]) != _squeezed(room.stubs[name])]
    status, message = "graded", "; ".join(rebuilt.notes)
    outcomes: dict[str, dict] = {}
    try:
        yield from _outcomes(reference, rebuilt.cells, attempted, outcomes)
        if any(name not in outcomes for name in attempted):
            status = "timeout"
            message = f"it took more than {SUBMISSION_SECONDS:.0f} s; what it had answered by then is graded"
        elif forged := [name for name in attempted if outcomes[name].get("why") == "forged"]:
            status = "tampered"
            message = "; ".join(
                [
                    *rebuilt.notes,
                    f"{', '.join(forged)}: the process that ran the answer reported what the grader's own code would not "
                    "have; that earns nothing, the other exercises count",
                ]
            )
    except SandboxError as error:
        # Boxes work there, or it would be a WorkerError: there is something about this submission.
        status, message = "killed", str(error)
    results = {name: _result(reference, name, name in attempted, outcomes.get(name)) for name in room.exercises}
    return _finish(reference, rebuilt, results, status, message, boxed)


def _outcomes(
    reference: Reference, cells: list[dict], attempted: list[str], outcomes: dict[str, dict]
) -> Generator[tuple[dict, float], tuple[list[dict], float], None]:
    """Put the runner's outcome for each exercise into `outcomes`, as far as there is time.

    First all of them in one process, as in the notebook. That settles those that are right; what is not, each exercise by
    itself decides.
    """
    if len(attempted) > 1:
        with suppress(SandboxError):
            results, _ = yield reference.job(cells, attempted, together=True), TOGETHER_SECONDS
            for outcome in results:
                name = str(outcome.get("exercise"))
                if name in attempted and _result(reference, name, True, outcome).right:
                    outcomes[name] = outcome
    left = [name for name in attempted if name not in outcomes]
    if left:
        results, _ = yield reference.job(cells, left), SUBMISSION_SECONDS
        outcomes.update((outcome["exercise"], outcome) for outcome in results)


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

    # What nbformat's new_output makes, which looks at each through its JSON schema.
    if result.earned[part] == result.parts[part]:
        words = passed_in_words(result, [part]) + "\n"
        return nbformat.NotebookNode(output_type="stream", name="stdout", text=words)
    lines = failed_in_words(result, [part]).split("\n")
    return nbformat.NotebookNode(output_type="error", ename="CheckFailed", evalue=lines[0], traceback=lines)


def grade_many(
    reference: Reference,
    submissions: Iterable[tuple[str, list[dict]]],
    pool: Pool,
    *,
    boxed: bool = True,
    done: Callable[[str, Grade], None],
    lost: Callable[[str, AutograderError], None],
) -> None:
    """Grade submissions (a name and its cells) in the boxes of `pool`, and hand each Grade to `done`, in this thread.

    At most twice as many are under way as the pool does at a time, so that a class of any size fits into memory. One that no
    machine could run (a WorkerError) goes to `lost`: it is not the submission's fault, and it has no grade.
    """
    under_way: dict[Future, tuple[str, Steps]] = {}
    waiting = iter(submissions)

    def go_on(name: str, steps: Steps, step: Callable[[], tuple[dict, float]]) -> None:
        try:
            wanted, seconds = step()
        except StopIteration as end:
            done(name, end.value)
        else:
            under_way[pool.executor.submit(answer, wanted, boxed, seconds)] = name, steps

    try:
        while True:
            for name, cells in itertools.islice(waiting, max(0, 2 * pool.width - len(under_way))):
                steps = grading(reference, cells, boxed)
                go_on(name, steps, functools.partial(next, steps))
            if not under_way:
                return
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                name, steps = under_way.pop(future)
                error = future.exception()
                if error is None:
                    go_on(name, steps, functools.partial(steps.send, future.result()))
                elif isinstance(error, SandboxError):
                    go_on(name, steps, functools.partial(steps.throw, error))
                elif isinstance(error, WorkerError):
                    lost(name, error)
                else:
                    lost(name, WorkerError(f"the worker was lost: {type(error).__name__}: {error}"))
    finally:
        for future in under_way:
            future.cancel()
