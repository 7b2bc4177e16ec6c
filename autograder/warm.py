"""The warm process: has imported PyTorch and IPython, has never run an answer, and forks one child a job.

A child that is to run an answer first enters a box: namespaces that a bubblewrap of the caller's has made and set up
(confine.py). The warm process knows no secret, no expected value and no submission; the job reaches the child through a pipe
of its own.

The caller (sandbox.py) sends a request on the socket that is standard input, {"box": pid or null}, and with it two file
descriptors: where the child reads its job, where it writes its results.
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
from typing import NoReturn

from autograder.confine import Cage, libc, untraceable

MADV_COLLAPSE, HUGE_PAGE = 25, 2 << 20


def serve() -> None:
    """Fork a child for each request until the caller closes its end."""
    requests = socket.socket(fileno=os.dup(0))
    _only_standard_streams(keep=requests.fileno())
    from autograder import runner

    tools = runner.warm_up()
    compact()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by nobody's waiting
    requests.sendall(b"ready\n")
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 4096, 2)
        if not message:
            return
        # A fork of a process with more than one thread may hang: then nothing at all is better than a few bad grades.
        if len(os.listdir("/proc/self/task")) != 1:
            raise RuntimeError("the warm process has more than one thread")
        if os.fork() == 0:
            requests.close()
            _child(json.loads(message), *descriptors, tools)
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


def _child(request: dict, read: int, write: int, tools) -> NoReturn:
    from autograder import runner

    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        cage = None
        if request["box"] is not None:
            cage = Cage.enter(request["box"])
            sys.path.insert(0, "/course")
            untraceable()
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), 2)
        with os.fdopen(read, "rb") as file:
            job = json.loads(file.read())
        runner.work(job, write, tools, cage)
    except BaseException as error:
        # Before the first answer ran this is our own trouble, which the caller has to hear of; later it is harmless.
        os.write(write, json.dumps({"failed": f"{type(error).__name__}: {error}"[:500]}).encode() + b"\n")
    finally:
        os._exit(0)


if __name__ == "__main__":
    serve()
