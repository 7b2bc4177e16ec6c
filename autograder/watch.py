"""Watching answers: which exercises run in which fork, what is believed of what a fork reports, and what it may use.

This is the trusted side: it never runs an answer. A job:

    {"assignment": "03_gradscaler", "checks": text of checks.py, "cell_seconds": 20,
     "variants": [{"name": "…", "exercises": {"clipped_step": {"probe": [seed, …], …}, …},
                   "cells": [{"id": "…", "source": "…", "exercise": name or null}, …]}]}

A result: {"variant", "exercise", "outcome"} with outcome `evidence` (and "records"), `raises` (the name is not there; "error"),
`timeout` or `died` (and "where": "cell" or "probes", and "why": the limit that was passed, how the process ended, or `forged`,
where the process reported what the runner would not have).

Each exercise has a fork of its own (runner.py). A cell that hangs or ends the process is left out for the others' sake, and its
own exercise gets the blame.

With "together": true all exercises of a variant run in one fork, and their cells once: for an answer that is right in every
exercise that takes half the time. What is not right then, or did not come, is asked for again by itself: nobody loses by it
what another exercise did.
"""

from __future__ import annotations

import os
import re
import select
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from autograder.errors import EvidenceError, SandboxError

POLL_S = 0.05
SHARES_S = 5.0  # for a look at who shares which memory, which takes some milliseconds for each process
# A busy machine makes nobody late: an answer's clock stands still while it waits for a CPU, for so long at most.
PATIENCE = 4
MEMORY_BYTES = 2 << 30  # of all processes of an exercise together, beyond what the warm process holds
PROCESSES = 64


class Steps:
    """What a fork does in turn: the cells that an exercise needs more than those before it, then its probes.

    Of these exercises, in the order of their first checks; iterating gives (exercise, number of the cell or None).
    """

    def __init__(self, names: list[str], cells: list[dict], left_out: set[int]) -> None:
        self.cells, self.left_out = cells, left_out
        checks = {cell["check"]: i for i, cell in reversed(list(enumerate(cells))) if cell.get("check")}
        # An exercise, and the cell that its own cells end before.
        self.stops = sorted(((name, checks.get(name, len(cells))) for name in names), key=lambda stop: stop[1])

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.stops]

    def __iter__(self) -> Iterator[tuple[str, int | None]]:
        done = 0
        for name, end in self.stops:
            for i in range(done, end):
                if not self.cells[i].get("check") and i not in self.left_out:
                    yield name, i
            done = end
            yield name, None


class Fork(Protocol):
    """A process that does a job of runner.report: its pid for who sees it, and the pipe that it reports on."""

    pid: int
    pipe: int

    def end(self, patience_s: float = 0.0) -> str:
        """End it. How it had ended by itself, if it did so within `patience_s`: "exit", a signal's name or "silence"."""


class Place(Protocol):
    """Where forks run. `proc` is the /proc of a box, whose processes are watched; None for the course's own code.

    `held_bytes` is what a fork there has in common with the process that it is a fork of.
    """

    proc: int | None
    held_bytes: int

    def load(self, checks: str, assignment: str) -> dict[str, float]:
        """Load a checks.py there. What the probes of each of its exercises may take, in seconds."""

    def fork(self, job: dict) -> AbstractContextManager[Fork]: ...


Outcomes = Generator[tuple[str, dict], None, tuple[dict | None, int | None]]


class Late(Exception):
    """The time for the whole job is up."""


def run(job: dict, place: Place, seconds: float) -> Iterator[dict]:
    """Do a job there; the results, as far as they come before `seconds` have passed."""
    # It imports PyTorch, which is not to take an answer's time; and not sooner, when the warm process does so too.
    import autograder.evidence  # noqa: F401

    probe_seconds = place.load(job["checks"], job["assignment"])
    deadline = time.monotonic() + seconds
    for variant in job["variants"]:
        watch = Watch(job, variant, probe_seconds, place, deadline)
        outcomes = watch.attempt(list(variant["exercises"])) if job.get("together") else watch.one_by_one()
        try:
            for name, outcome in outcomes:
                yield {**outcome, "variant": variant["name"], "exercise": name}
        except Late:
            return


class Watch:
    """A variant's exercises, in as many forks as it takes. `left_out`: cells known to end a process."""

    def __init__(
        self, job: dict, variant: dict, probe_seconds: dict[str, float], place: Place, deadline: float
    ) -> None:
        self.cells, self.seeds, self.probe_seconds = variant["cells"], variant["exercises"], probe_seconds
        self.common = {"checks": job["checks"], "assignment": job["assignment"], "cells": self.cells}
        self.cell_seconds, self.place, self.deadline = job["cell_seconds"], place, deadline
        self.left_out: set[int] = set()

    def one_by_one(self) -> Iterator[tuple[str, dict]]:
        for name in self.seeds:
            yield from self.isolated(name)

    def isolated(self, name: str) -> Iterator[tuple[str, dict]]:
        """The outcome of one exercise in a fork of its own."""
        while True:
            trouble, cell = yield from self.attempt([name])
            if trouble is None:
                return
            if cell is not None:
                self.left_out.add(cell)
                if self.cells[cell].get("exercise") != name:
                    continue
            yield name, trouble
            return

    def attempt(self, names: list[str]) -> Outcomes:
        """Have a fork run these exercises, watch the clock, and yield outcomes as they come.

        Returns the trouble that the fork ended with, None if it came to the end, and the cell that was running where one
        never came back.
        """
        before = pids(self.place.proc)
        seeds = {name: self.seeds[name] for name in names}
        steps = Steps(names, self.cells, self.left_out)
        with self.place.fork({**self.common, "exercises": seeds, "left_out": sorted(self.left_out)}) as fork:
            limits = Limits(self.place.proc, fork.pid, before, self.cell_seconds, self.place.held_bytes)
            return (yield from self.follow(fork, list(steps), limits))

    def follow(self, fork: Fork, steps: list[tuple[str, int | None]], limits: Limits) -> Outcomes:
        """Yield what the fork reports. What attempt() returns.

        What comes out of the pipe is written by a process that runs an answer. It is believed only as far as it says what
        the runner would say now: anything else counts as the fork's end, in the step that it has come to.
        """
        from autograder.evidence import MAX_LINE

        n = -1  # the step that it is in: one read may bring several reports
        owed = False  # whether its outcome is what comes next
        held, poll = bytearray(), select.poll()
        poll.register(fork.pipe, select.POLLIN)

        def ended(outcome: str, why: str) -> tuple[dict, int | None]:
            cell = steps[n][1] if n >= 0 else None
            where = "probes" if n >= 0 and cell is None else "cell"
            return {"outcome": outcome, "why": why, "where": where}, cell

        while True:
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise Late
            if passed := limits.passed():
                return ended("timeout" if passed == "time" else "died", passed)
            if not poll.poll(1e3 * min(left, limits.look_again_s())):
                continue
            try:
                chunk = os.read(fork.pipe, 1 << 20)
            except BlockingIOError:  # an answer of the same user may open its pipe for reading, and was faster
                continue
            held += chunk
            if not chunk:
                return ended("died", fork.end(patience_s=0.2))
            if b"\n" not in chunk:
                if len(held) > MAX_LINE:
                    return ended("died", "forged")
                continue
            *lines, rest = bytes(held).split(b"\n")
            held = bytearray(rest)
            for line in lines:
                message = _report(line)
                if n < 0 and "failed" in message:  # no answer has run yet: it is we who could not shut it in
                    raise not_shut_in(str(message["failed"]))
                if owed and message.get("outcome") in ("evidence", "raises"):
                    content = "records" if message["outcome"] == "evidence" else "error"
                    yield steps[n][0], {"outcome": message["outcome"], content: message.get(content)}
                    if n + 1 == len(steps):
                        return None, None
                    owed = False
                    continue
                if owed or list(message) != ["cell"] or message["cell"] != steps[n + 1][1]:
                    return ended("died", "forged")
                n += 1
                name, cell = steps[n]
                owed = cell is None
                limits.begin(self.probe_seconds[name] if cell is None else self.cell_seconds)


def not_shut_in(said: str) -> SandboxError:
    from autograder.evidence import clean

    return SandboxError(
        f"An answer could not be shut into its box ({clean(said, 300)}). Nothing was graded; `autograder doctor` says what "
        "this machine lacks."
    )


def _report(line: bytes) -> dict:
    from autograder.evidence import parse

    try:
        message = parse(line)
    except EvidenceError:
        return {}
    return message if isinstance(message, dict) else {}


@dataclass
class Usage:
    """What the processes of one fork use. `resident_bytes` by process: of what several share, it counts for each.
    `waited_s`: how long its first thread stood in line for a CPU."""

    resident_bytes: dict[int, int] = field(default_factory=dict)
    cpu_s: float = 0.0
    waited_s: float = 0.0


class Limits:
    """What a fork may use: time for what it is doing now, memory and processes all the while.

    `before` are the processes of the box that were there before `pid`. A `proc` of None: time only.
    """

    def __init__(self, proc: int | None, pid: int, before: set[int], seconds: float, held_bytes: int = 0) -> None:
        self.proc, self.pid, self.before, self.held_bytes = proc, pid, before, held_bytes
        self.usage, self.looked = Usage(), time.monotonic()
        self.shares: Shares | None = None
        self.begin(seconds)

    def begin(self, seconds: float) -> None:
        """Something new is begun, which may take `seconds`."""
        self.seconds, self.begun, self.since = seconds, time.monotonic(), self.usage

    def look_again_s(self) -> float:
        left = self.begun + self.seconds - time.monotonic()
        return max(0.0, left) if self.proc is None else POLL_S

    def passed(self) -> str | None:
        """The limit that has been passed: "time", "memory", "processes"."""
        now = time.monotonic()
        took = now - self.begun
        if self.proc is None:
            return "time" if took >= self.seconds else None
        if now - self.looked < POLL_S / 2:
            return None
        self.looked, self.usage = now, usage(self.proc, self.pid, self.before)
        if len(self.usage.resident_bytes) > PROCESSES:
            return "processes"
        if self._too_large():
            return "memory"
        # Two cores' worth: threads and processes of its own are no way to take the machine from the others.
        busy = (self.usage.cpu_s - self.since.cpu_s) / 2
        waited = min(self.usage.waited_s - self.since.waited_s, PATIENCE * self.seconds)
        return "time" if max(busy, took - waited) >= self.seconds else None

    def _too_large(self) -> bool:
        """Whether they have more than MEMORY_BYTES beyond what was there before them."""
        sizes = self.usage.resident_bytes
        if max(sizes.values(), default=0) - self.held_bytes > MEMORY_BYTES:
            return True
        if len(sizes) == 1 or sum(sizes.values()) <= MEMORY_BYTES:
            self.shares = None
            return False
        # Each is small enough; all together may be too large, or share what they have. To see that takes longer.
        if self.shares is None:
            self.shares = Shares(self.proc, sizes)
        if self.shares.total_bytes is None:
            return time.monotonic() - self.shares.begun > SHARES_S
        total, self.shares = self.shares.total_bytes, None
        return total > MEMORY_BYTES


class Shares:
    """A look at the memory of processes together in which what they share counts once; `total_bytes` is None until it is done.

    To add that up the kernel waits for whoever changes a process's mappings, which an answer can do all the time: a thread
    of its own does the waiting.
    """

    def __init__(self, proc: int, resident_bytes: dict[int, int]) -> None:
        self.proc, self.resident_bytes = os.dup(proc), resident_bytes
        self.total_bytes: int | None = None
        self.begun = time.monotonic()
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        try:
            self.total_bytes = sum(_share(self.proc, pid, most) for pid, most in self.resident_bytes.items())
        finally:
            os.close(self.proc)


def pids(proc: int | None) -> set[int]:
    """The processes that are to be seen in a /proc, given as a descriptor of it; none in None."""
    return set() if proc is None else {int(name) for name in os.listdir(proc) if name.isdigit()}


def usage(proc: int, first: int, before: set[int]) -> Usage:
    """What all processes use that have come into the box since `before`, `first` the first of them."""
    found = Usage()
    for pid in pids(proc) - before:
        try:
            status = _sizes(_read(proc, f"{_with_memory(proc, pid)}/status"))
            times = _read(proc, f"{pid}/stat").rpartition(b")")[2].split()[11:15]
            if pid == first:
                found.waited_s = _waited_s(proc, pid)
        except OSError:  # it has just ended
            continue
        # A process that has ended and was not waited for has no memory, but its times.
        found.resident_bytes[pid] = sum(status.get(name, 0) for name in (b"RssAnon", b"RssShmem", b"VmSwap"))
        # utime, stime, and those of the children that it has waited for.
        found.cpu_s += sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
    return found


def _read(proc: int, path: str) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc), "rb", buffering=0) as file:
        return file.read()


def _with_memory(proc: int, pid: int) -> str:
    """Where the memory of a process is to be seen: with its first thread, or if that has ended with another one."""
    if b"\nState:\tZ" in _read(proc, f"{pid}/status"):
        task = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=proc)
        try:
            for thread in os.listdir(task):
                if int(thread) != pid:
                    return f"{pid}/task/{thread}"
        finally:
            os.close(task)
    return str(pid)


def _sizes(text: bytes) -> dict[bytes, int]:
    """The sizes in a file of /proc that has lines as "RssAnon:  1234 kB", in bytes. What stands in "Name:" a process chose."""
    return {name: int(size) << 10 for name, size in re.findall(rb"^(\w+):[ \t]+(\d+) kB$", text, re.MULTILINE)}


def _share(proc: int, pid: int, most: int) -> int:
    try:
        sizes = _sizes(_read(proc, f"{_with_memory(proc, pid)}/smaps_rollup"))
    except PermissionError:
        return most
    except OSError:  # it has just ended
        return 0
    return sum(sizes.get(name, 0) for name in (b"Pss_Anon", b"Pss_Shmem", b"SwapPss"))


def _waited_s(proc: int, pid: int) -> float:
    try:
        return int(_read(proc, f"{pid}/schedstat").split()[1]) / 1e9
    except FileNotFoundError:  # a kernel without SCHED_INFO
        return 0.0
