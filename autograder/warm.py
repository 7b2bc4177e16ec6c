"""The warm process: has imported PyTorch and IPython, has never run an answer, and forks one child a job.

Asked to, it forks a child that enters a box (namespaces that a bubblewrap of the caller's has made, confine.py) and does there
what it does itself: for answers, jobs are done by the children of that one. Neither knows a secret, an expected value or a
submission: a job reaches the child that does it through a pipe of its own.

The caller (sandbox.py) sends requests on a socket, each with one or two file descriptors: {"do": "job"}, where the child reads
its job and where it writes its results; {"do": "enter", "box": pid}, the socket on which the child in that box takes requests;
{"do": "load"}, where a checks.py is read, the course's own code, for all the jobs that want it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from autograder.confine import Cage, libc, untraceable

if TYPE_CHECKING:
    from autograder.runner import Tools

MADV_COLLAPSE, HUGE_PAGE = 25, 2 << 20


def main() -> None:
    requests = socket.socket(fileno=os.dup(0))
    _only_standard_streams(keep=requests.fileno())
    from autograder import runner

    tools = runner.warm_up()
    compact()
    requests.sendall(b"ready\n")
    serve(requests, tools)


def serve(requests: socket.socket, tools: Tools, cage: Cage | None = None) -> None:
    """Fork a child for each request until the caller closes its end. `cage` is the box that this process has entered."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by nobody's waiting
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 4096, 2)
        if not message:
            return
        # A fork of a process with more than one thread may hang: then nothing at all is better than a few bad grades.
        if len(os.listdir("/proc/self/task")) != 1:
            raise RuntimeError("the warm process has more than one thread")
        request = json.loads(message)
        if request["do"] == "load":
            _load(os.dup(descriptors[0]), tools)
        elif os.fork() == 0:
            try:
                requests.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                if request["do"] == "enter":
                    _serve_in(request["box"], socket.socket(fileno=descriptors[0]), tools)
                else:
                    _do_job(*descriptors, tools, cage)
            finally:
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)


def compact() -> None:
    """Make forks cheaper: of 60 ms that one takes with its first collection and its page faults, a third.

    What is there now is never garbage, so that no child has to copy it only to look; and it lies in pages of 2 MiB, of which
    a fork copies one entry for 512, where the kernel can do that (Linux 6.1).
    """
    gc.collect()
    gc.freeze()
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with open("/proc/self/maps") as file:
        regions = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ \S+ *(?:\[heap\])?$", file.read(), re.MULTILINE)
    for start, end in regions:
        first, last = -(-int(start, 16) // HUGE_PAGE) * HUGE_PAGE, int(end, 16) // HUGE_PAGE * HUGE_PAGE
        if first < last:
            libc.madvise(first, last - first, MADV_COLLAPSE)


def _only_standard_streams(keep: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != keep:
            try:
                os.close(int(name))
            except OSError:
                continue


def _load(source: int, tools: Tools) -> None:
    with os.fdopen(source, "rb") as file, suppress(Exception):  # a job that wants it says what is wrong with it
        tools.load(**json.loads(file.read()))
    gc.freeze()


def _serve_in(box: int, requests: socket.socket, tools: Tools) -> None:
    try:
        cage = Cage.enter(box)
        sys.path.insert(0, "/course")
        untraceable()
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), 2)
    except Exception as error:
        requests.sendall(f"{type(error).__name__}: {error}"[:500].encode())
        return
    requests.sendall(b"ready\n")
    serve(requests, tools, cage)


def _do_job(read: int, write: int, tools: Tools, cage: Cage | None) -> None:
    from autograder import runner

    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), 2)
        with os.fdopen(read, "rb") as file:
            job = json.loads(file.read())
        runner.work(job, write, tools, cage)
    except BaseException as error:
        # Before the first answer ran this is our own trouble, which the caller has to hear of; later it is harmless.
        os.write(write, json.dumps({"failed": f"{type(error).__name__}: {error}"[:500]}).encode() + b"\n")


if __name__ == "__main__":
    main()
