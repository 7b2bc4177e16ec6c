"""Where the boxes of a grading run are opened: on this machine's cores, or on the workers of a Dask cluster.

Both are a `concurrent.futures.Executor` to which `answer` is submitted: a job goes out as bytes, evidence comes back as
bytes. What is expected, the mistakes, the secret, the gradebook and the verdicts stay in the process that grades; a job
holds the seeds of its own probes, as a box must.
"""

from __future__ import annotations

import hashlib
import os
import platform
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from autograder import sandbox
from autograder.errors import CourseError, SandboxError, WorkerError
from autograder.threads import Threads

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
CONNECT_SECONDS = 20
# Evidence is made by these files: a worker that has others could say something else of the same answer.
PROBING = ("confine.py", "evidence.py", "probes.py", "runner.py", "sandbox.py", "trace.py", "warm.py", "watch.py")


@dataclass
class Pool:
    """An executor for `answer`, and how many of them it can do at the same time."""

    executor: Executor
    width: int


def answer(job: dict, boxed: bool, seconds: float) -> tuple[list[dict], float]:
    """Do a job (watch.py) here; its results, and the seconds that it took.

    WorkerError where this machine can open no box, SandboxError where it can, and twice could not do this job.
    """
    start = time.monotonic()
    try:
        results = sandbox.run(job, boxed=boxed, seconds=seconds)
    except SandboxError:
        try:
            sandbox.require()
        except SandboxError as error:
            raise WorkerError(f"{socket.gethostname()} can no longer isolate an answer: {error}") from error
        results = sandbox.run(job, boxed=boxed, seconds=seconds)
    return results, time.monotonic() - start


@contextmanager
def local(jobs: int) -> Iterator[Pool]:
    """`jobs` boxes at a time on this machine."""
    executor = Threads(jobs)
    try:
        yield Pool(executor, jobs)
    finally:
        executor.shutdown(wait=False)


@contextmanager
def cluster(address: str, *, boxed: bool, resources: dict[str, float] | None = None) -> Iterator[Pool]:
    """The workers of the Dask scheduler at `address`. A job goes only to workers that have `resources` ({"GPU": 1}).

    CourseError where there is no such scheduler or it has no worker that fits; WorkerError where one cannot isolate an
    answer or has another version of what makes evidence. A job whose worker dies is done by another one.
    """
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError as error:
        raise CourseError(
            "Grading on a cluster takes dask, which is not installed: pip install 'amp-course[cluster]' (in a checkout: "
            "pip install -e '.[cluster]'). Without it, --jobs grades on this machine's cores."
        ) from error
    try:
        get_address_host_port(address)  # of a Client for what is no address 40 s and a traceback are left at the end
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise CourseError(
            f"There is no Dask scheduler at {address} ({type(error).__name__}: {error}). Nothing was graded. Start one with "
            "`dask scheduler` and workers with `dask worker ADDRESS`, or grade here with --jobs."
        ) from error
    try:
        width = _fitting(client, address, boxed, resources or {})
        yield Pool(client.get_executor(resources=resources or None, pure=False), width)
    finally:
        client.close(timeout=5)


def _fitting(client, address: str, boxed: bool, resources: dict[str, float]) -> int:
    """The number of threads of the workers that may be given jobs, after each has said that it can do them."""
    threads = client.nthreads()
    if not threads:
        raise CourseError(
            f"The Dask scheduler at {address} has no workers, so nothing was graded. Start one with: dask worker {address}"
        )
    able = sorted(threads)
    if resources:
        has = client.run(_resources)
        able = [name for name in able if all(has[name].get(what, 0) >= number for what, number in resources.items())]
    if not able:
        wanted = " ".join(f"{what}={number:g}" for what, number in resources.items())
        raise CourseError(
            f"The assignment asks for workers with {wanted}, and none of the {len(threads)} workers at {address} has that; "
            f'nothing was graded. Start one with: dask worker {address} --resources "{wanted}"'
        )
    here = abilities(False)
    for name, said in sorted(client.run(abilities, boxed, workers=able).items()):
        if said["trouble"]:
            raise WorkerError(f"The worker {name} ({said['host']}) cannot isolate an answer: {said['trouble']}")
        if said["makes"] != here["makes"]:
            raise WorkerError(
                f"The worker {name} ({said['host']}) has {said['makes']}, this machine has {here['makes']}: it could say "
                "something else of the same answer, so nothing was graded. Install the same versions on both."
            )
    return sum(threads[name] for name in able)


def _resources(dask_worker) -> dict[str, float]:
    """What a worker was started with (Dask hands itself to this name of an argument)."""
    return dict(dask_worker.state.total_resources)


def abilities(boxed: bool) -> dict[str, str]:
    """What this machine makes evidence with, and what keeps it from opening a box ("" if nothing)."""
    import torch

    digest = hashlib.sha256()
    for name in PROBING:
        digest.update(Path(__file__).with_name(name).read_bytes())
    trouble = ""
    if boxed:
        try:
            sandbox.require()
        except SandboxError as error:
            trouble = str(error)
    python = ".".join(platform.python_version_tuple()[:2])
    makes = f"Python {python}, PyTorch {torch.__version__}, autograder {digest.hexdigest()[:12]}"
    return {"host": socket.gethostname(), "makes": makes, "trouble": trouble}
