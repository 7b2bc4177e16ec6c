"""Running answers: takes a job, runs each exercise in a fork of its process, hands out evidence and nothing else.

The process knows no expected value, no mistake, no other submission and no secret but the seeds of its own probes. It never
runs an answer itself: it holds the clock and the scales. A job:

    {"assignment": "03_gradscaler", "checks": text of checks.py, "cell_seconds": 20,
     "variants": [{"name": "…", "exercises": {"clipped_step": {"probe": [seed, …], …}, …},
                   "cells": [{"id": "…", "source": "…", "exercise": name or null}, …]}]}

Each line that comes out is a result: {"variant", "exercise", "outcome"} with outcome `evidence` (and "records"), `raises` (the
name is not there; "error"), `timeout` or `died` (and "where": "cell" or "probes", and "why": the limit that was passed, or how
the process ended).

For an exercise the notebook's cells run in order up to the exercise's first check cell, then its probes, all in one fork in
which no probe of another exercise has run. So what a cell does to PyTorch or to Python it does to the exercises behind it,
as in the notebook, and to nothing else: what it does to its process, its /tmp and what it starts ends with its exercise. A
cell that hangs or ends the process is left out for the others' sake, and its own exercise gets the blame. In a box each fork
is shut in by itself (confine.py): it cannot see the process that watches it.

With "together": true all exercises of a variant run in one fork, and their cells once: for an answer that is right in every
exercise that takes half the time. What is not right then, or did not come, is asked for again by itself: nobody loses by it
what another exercise did.

With "forks": false everything runs in this one process instead. That is for the course's own code on systems that cannot
fork a process with PyTorch in it (Windows, macOS), where a learner's checks are made too.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from autograder.errors import EvidenceError
from autograder.evidence import MAX_LINE, parse

if TYPE_CHECKING:  # it is Linux's; this module runs everywhere
    from autograder.confine import Cage
    from autograder.probes import Exercise


class Notebook:
    """IPython's shell without a kernel: runs cells, knows which line of which cell an error comes from."""

    def __init__(self) -> None:
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config

        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "nocolor"
        # The instance: `from IPython import get_ipython` is to find it.
        self.shell = InteractiveShell.instance(config=config)
        self.shell.compile.get_code_name = lambda *_: self.running
        self.running = "<cell>"
        self.cells: set[str] = set()

    def run(self, cell: dict) -> BaseException | None:
        """Run one cell; the exception that ended it, if one did."""
        self.running = f"<cell {cell['id']}>"
        self.cells.add(self.running)
        result = self.shell.run_cell(cell["source"], silent=True)
        return result.error_before_exec or result.error_in_exec

    def line(self, error: BaseException) -> int | None:
        """The line, within its cell, of the innermost frame of `error` that is the notebook's own code."""
        if isinstance(error, SyntaxError) and error.filename in self.cells:
            return error.lineno
        found, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename in self.cells:
                found = trace.tb_lineno
            trace = trace.tb_next
        return found


@dataclass
class Tools:
    """What takes long to make and holds nothing of any answer."""

    notebook: Notebook
    exercises: dict[str, Exercise] = field(default_factory=dict)
    loaded: tuple[str, str] | None = None

    def load(self, checks: str, assignment: str) -> dict[str, Exercise]:
        """The exercises of a checks.py, which is the course's own; the last one's are kept."""
        from autograder.probes import load_checks

        if self.loaded != (checks, assignment):
            self.exercises, self.loaded = load_checks(checks, assignment), (checks, assignment)
        return self.exercises


def warm_up() -> Tools:
    """Import all that a job needs. The process has one thread afterwards, so that it can be forked."""
    import torch

    # The first optimizer that is made imports it, which takes longer than everything else that a fork does.
    import torch._dynamo

    # One thread: a fork of a process whose OpenMP pool exists hangs, and a worker is one core.
    torch.set_num_threads(1)
    import autograder
    from autograder import evidence, probes, trace  # noqa: F401

    # A notebook's own checks have nothing to do here: the probes are what counts.
    autograder.Checks = lambda assignment: lambda exercise, part=None: None
    return Tools(Notebook())


def work(job: dict, out: int, tools: Tools, cage: Cage | None = None) -> None:
    """Do a job and write its results to the file descriptor `out`. `cage` is the box that this process has entered."""
    from autograder.trace import recording_torch

    exercises = tools.load(job["checks"], job["assignment"])
    with recording_torch():  # before the cells, so that `from torch.nn.utils import clip_grad_norm_` is recorded too
        for variant in job["variants"]:

            def emit(exercise: str, outcome: dict, name: str = variant["name"]) -> None:
                line = json.dumps({**outcome, "variant": name, "exercise": exercise}, allow_nan=False)
                _write(out, line.encode() + b"\n")

            left_out: set[int] = set()
            wanted = [(exercises[name], seeds) for name, seeds in variant["exercises"].items()]
            for some in [wanted] if job.get("together") else [[one] for one in wanted]:
                run = Run(tools.notebook, some, variant["cells"], job["cell_seconds"], cage)
                if not job["forks"]:
                    run.in_this_process(emit)
                elif job.get("together"):
                    run.attempt(emit, left_out)
                else:
                    run.isolated(emit, left_out)


def main() -> None:
    """One job in this process, from stdin to stdout."""
    job = json.loads(sys.stdin.buffer.read())
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    work(job, out, warm_up())


class Run:
    """Exercises of one variant in one fork: the notebook's cells in order, and at an exercise's first check its probes."""

    def __init__(self, notebook, wanted: list[tuple[Exercise, dict]], cells, cell_seconds, cage) -> None:
        self.notebook, self.cells, self.cell_seconds = notebook, cells, cell_seconds
        self.cage: Cage | None = cage
        checks = {cell["check"]: i for i, cell in reversed(list(enumerate(cells))) if cell.get("check")}
        # An exercise, its seeds, and the cell that its own cells end before.
        self.stops = sorted(
            ((exercise, seeds, checks.get(exercise.name, len(cells))) for exercise, seeds in wanted),
            key=lambda stop: stop[2],
        )

    def isolated(self, emit: Callable[[str, dict], None], left_out: set[int]) -> None:
        """Emit the outcome of the one exercise. `left_out`: cells known to end a process, to which this one may add."""
        ((exercise, _, _),) = self.stops
        while True:
            trouble, cell = self.attempt(emit, left_out)
            if trouble is None:
                return
            if cell is None:
                return emit(exercise.name, trouble)
            left_out.add(cell)
            if self.cells[cell].get("exercise") == exercise.name:
                return emit(exercise.name, {**trouble, "where": "cell"})

    def attempt(self, emit: Callable[[str, dict], None], left_out: set[int]) -> tuple[dict | None, int | None]:
        """Fork, run, watch the clock, and emit outcomes as they come.

        The trouble that the fork ended with, None if it came to the end, and the cell that was running where one never
        came back.
        """
        from autograder.confine import pids

        before = pids() if self.cage else set()
        read, write = os.pipe()
        pid = self.cage.fork() if self.cage else os.fork()
        if pid == 0:
            self.in_child(write, left_out)
        os.close(write)
        try:
            return self.watch(emit, read, pid, before, left_out)
        finally:
            os.close(read)
            _kill(pid)

    def in_child(self, pipe: int, left_out: set[int]) -> NoReturn:
        try:
            try:
                if self.cage:
                    self.cage.shut()
                else:
                    os.setpgid(0, 0)
            except Exception as error:
                _send(pipe, {"failed": f"{type(error).__name__}: {error}"})
                os._exit(0)
            _new_thread_pool()
            # The answer keeps no way to write but this pipe, on which the parent takes one outcome of each exercise.
            os.closerange(3, pipe)
            os.closerange(pipe + 1, 1 << 16)
            for message in self.run(left_out):
                try:
                    _send(pipe, message)
                except EvidenceError as error:
                    _send(pipe, _raises(error))
        finally:
            os._exit(0)

    def in_this_process(self, emit: Callable[[str, dict], None]) -> None:
        self.notebook.shell.reset(new_session=False)
        names = iter([exercise.name for exercise, _, _ in self.stops])
        for message in self.run(set()):
            if "outcome" in message:
                emit(next(names), message)

    def steps(self, left_out: set[int]) -> Iterator[tuple[Exercise, dict, int | None]]:
        """What is done in turn: the cells that an exercise needs more than those before it, then None: its probes."""
        done = 0
        for exercise, seeds, end in self.stops:
            for i in range(done, end):
                if not self.cells[i].get("check") and i not in left_out:
                    yield exercise, seeds, i
            done = end
            yield exercise, seeds, None

    def run(self, left_out: set[int]) -> Iterator[dict]:
        """Run the cells and the probes: which step begins, and after the probes of an exercise its outcome."""
        errors = {}
        for exercise, seeds, i in self.steps(left_out):
            yield {"cell": i}
            if i is not None:
                cell = self.cells[i]
                raised = self.notebook.run(cell)
                if raised is not None:
                    errors[cell.get("exercise")] = raised
                continue
            try:
                outcome = self.probe(exercise, seeds, errors.get(exercise.name))
            except EvidenceError as error:
                outcome = _raises(error)
            yield outcome

    def probe(self, exercise: Exercise, seeds: dict, error: BaseException | None) -> dict:
        """The outcome of an exercise whose cells have run; `error` is what one of its own cells raised."""
        from autograder.evidence import encode
        from autograder.probes import describe, run_probes

        try:
            answer = exercise.answer(self.notebook.shell.user_ns)
        except NameError as missing:
            return {"outcome": "raises", "error": describe(error or missing, self.notebook.line)}
        records = run_probes(exercise, answer, seeds, self.notebook.line)
        for record in records:
            record["seen"] = {key: encode(value) for key, value in record["seen"].items()}
        return {"outcome": "evidence", "records": records}

    def watch(
        self, emit: Callable[[str, dict], None], pipe: int, pid: int, before: set[int], left_out: set[int]
    ) -> tuple[dict | None, int | None]:
        """Emit the outcomes that the child reports. What attempt() returns.

        What comes out of the pipe is written by a process that runs an answer. It is believed only as far as it says what
        run() would say now: anything else counts as the child's end, in the step that it has come to.
        """
        from autograder.confine import Limits

        steps = [(exercise, cell) for exercise, _, cell in self.steps(left_out)]
        n = -1  # the step that it is in: one read may bring several reports
        owed = False  # whether its outcome is what comes next

        def ended(outcome: str, **why: str) -> tuple[dict, int | None]:
            cell = steps[n][1] if n >= 0 else None
            return {"outcome": outcome, **why, "where": "probes" if n >= 0 and cell is None else "cell"}, cell

        limits, held = Limits(self.cage, pid, before, self.cell_seconds), bytearray()
        while True:
            passed = limits.passed()
            if passed:
                return ended("timeout" if passed == "time" else "died", why=passed)
            ready, _, _ = select.select([pipe], [], [], limits.look_again_s())
            if not ready:
                continue
            chunk = os.read(pipe, 1 << 20)
            held += chunk
            if not chunk:
                return ended("died", why=_end(pid))
            if len(held) > MAX_LINE:
                return ended("died")
            if b"\n" not in chunk:
                continue
            *lines, rest = bytes(held).split(b"\n")
            held = bytearray(rest)
            for line in lines:
                message = _report(line)
                if n < 0 and "failed" in message:  # no answer has run yet: it is we who could not shut it in
                    raise RuntimeError(message["failed"])
                if owed and message.get("outcome") in ("evidence", "raises"):
                    content = "records" if message["outcome"] == "evidence" else "error"
                    emit(steps[n][0].name, {"outcome": message["outcome"], content: message.get(content)})
                    if n + 1 == len(steps):
                        return None, None
                    owed = False
                    continue
                if owed or list(message) != ["cell"] or message["cell"] != steps[n + 1][1]:
                    return ended("died")
                n += 1
                exercise, cell = steps[n]
                owed = cell is None
                limits.begin(exercise.seconds if cell is None else self.cell_seconds)


def _raises(error: EvidenceError) -> dict:
    return {"outcome": "raises", "error": {"type": "EvidenceError", "message": str(error)}}


def _new_thread_pool() -> None:
    """Have PyTorch make its thread pool anew, as it does on the first use after a fork, while there is one thread.

    It does not lock what it does then, and autograd starts a thread for each device that PyTorch takes to be there: eight
    where fake tensors (ampkit.ops) stand for CUDA's. Two of them at once end the process: "Invalid thread pool!"
    (pytorch issue 178535), which happened to one right answer in about twenty.
    """
    import torch

    torch.set_num_threads(1)


def _report(line: bytes) -> dict:
    try:
        message = parse(line)
    except EvidenceError:
        return {}
    return message if isinstance(message, dict) else {}


def _send(pipe: int, message: dict) -> None:
    line = json.dumps(message, allow_nan=False).encode() + b"\n"
    if len(line) > MAX_LINE:
        raise EvidenceError(f"what the answer showed is larger than {MAX_LINE >> 20} MiB, too large to be looked at")
    _write(pipe, line)


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _end(pid: int) -> str:
    """How a child that closed its pipe has ended, in a word. It does so a moment later, or lives on and says nothing."""
    for _ in range(20):
        if end := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return "exit" if end.si_code == os.CLD_EXITED else signal.Signals(end.si_status).name
        time.sleep(0.01)
    return "silence"


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
