"""Running answers: in a fork of the warm process, exercises of one notebook, of which evidence is handed out and nothing else.

The process knows no expected value, no mistake, no other submission and no secret but the seeds of its own probes. Who
started it holds the clock and the scales, and decides what runs in which fork (watch.py, which says what a job is).

In a fork the notebook's cells run in order up to an exercise's first check cell, then its probes. So what a cell does to
PyTorch or to Python it does to the exercises behind it, as in the notebook, and to nothing else: what it does to its process,
its /tmp and what it starts ends with the fork. In a box each fork is shut in by itself (confine.py) and sees nobody else.

It reports on a pipe, in lines of JSON: {"cell": number} as a cell begins, {"cell": null} as the probes of an exercise do, and
then the outcome of that exercise. Before all that {"failed": why}, where it could not begin.

Where a system cannot fork a process with PyTorch in it (Windows, macOS) everything runs in this one process instead
(in_this_process): the course's own code, for the learner's checks, which are made there too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from autograder.errors import EvidenceError
from autograder.evidence import bounded
from autograder.watch import Steps

if TYPE_CHECKING:
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
        # What `%matplotlib inline` asks of a shell: one without a kernel raises, and the answer below the magic is not reached.
        self.shell.enable_gui = lambda gui=None: None
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


def report(job: dict, pipe: int, tools: Tools) -> None:
    """Do a job of one fork in this process: run what it says and write the reports to the file descriptor `pipe`."""
    _new_thread_pool()
    exercises = tools.load(job["checks"], job["assignment"])
    steps = Steps(list(job["exercises"]), job["cells"], set(job["left_out"]))
    try:
        for message in Run(tools.notebook, exercises, job["exercises"], steps).reports():
            try:
                _send(pipe, message)
            except EvidenceError as error:
                _send(pipe, _raises(error))
    except BaseException:  # of an answer's making: that its process ends is all there is to say of it
        return


def main() -> None:
    """One job without forks in this process, from stdin to stdout, its results in lines of JSON."""
    job = json.loads(sys.stdin.buffer.read())
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    in_this_process(job, out, warm_up())


def in_this_process(job: dict, out: int, tools: Tools) -> None:
    """Do a whole job here, exercise by exercise or together as it says, and write each result to `out`."""
    exercises = tools.load(job["checks"], job["assignment"])
    for variant in job["variants"]:
        names = list(variant["exercises"])
        for some in [names] if job.get("together") else [[name] for name in names]:
            tools.notebook.shell.reset(new_session=False)
            steps = Steps(some, variant["cells"], set())
            outcomes = (
                one for one in Run(tools.notebook, exercises, variant["exercises"], steps).reports() if "outcome" in one
            )
            for name, outcome in zip(steps.names, outcomes, strict=True):
                _send(out, {**outcome, "variant": variant["name"], "exercise": name})


@dataclass
class Run:
    """Some exercises in one process: the notebook's cells in order, and at an exercise's first check its probes."""

    notebook: Notebook
    exercises: dict[str, Exercise]
    seeds: dict[str, dict[str, list[int]]]
    steps: Steps

    def reports(self) -> Iterator[dict]:
        """Run the cells and the probes: which step begins, and after the probes of an exercise its outcome."""
        from autograder.trace import recording_torch

        errors = {}
        # Before the cells, so that `from torch.nn.utils import clip_grad_norm_` is recorded too.
        with recording_torch():
            for name, i in self.steps:
                yield {"cell": i}
                if i is not None:
                    cell = self.steps.cells[i]
                    raised = self.notebook.run(cell)
                    if raised is not None:
                        errors[cell.get("exercise")] = raised
                    continue
                try:
                    outcome = self.probe(self.exercises[name], self.seeds[name], errors.get(name))
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


def _send(pipe: int, message: dict) -> None:
    line = bounded(json.dumps(message, allow_nan=False).encode()) + b"\n"
    while line:
        line = line[os.write(pipe, line) :]


if __name__ == "__main__":
    main()
