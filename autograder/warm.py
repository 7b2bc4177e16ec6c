"""The warm process: has imported PyTorch and IPython, has never run an answer, and forks one child a job.

Asked to, it forks a child that enters a box (namespaces that a bubblewrap of the caller's has made, confine.py) and does there
what it does itself: answers are run by the children of that one. Neither knows a secret, an expected value or a submission:
a job (runner.report) lies in a file of its own that only the child reads which does it.

The caller (sandbox.py) sends requests on a socket, some with file descriptors, and gets a line of JSON for each:

    {"do": "load"}, a file with a checks.py, the course's own code, for all jobs that want it: {"seconds": {exercise: number}}
    {"do": "job"}, a file with a job and the pipe to report on: {"pid": number}, as the caller sees it in the box's /proc
    {"do": "end", "pid": number, "patience_s": seconds}, for a child of the request before: {"end": how it ended, in a word}
    {"do": "enter", "box": pid}, the socket on which a child in that box takes requests: {}; and there {}, with its /proc

or {"failed": why}.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import shutil
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from autograder.confine import Cage, end_with_parent, libc, untraceable

if TYPE_CHECKING:
    from autograder.runner import Tools

MADV_COLLAPSE, HUGE_PAGE = 25, 2 << 20


def main(folder: str) -> None:
    """`folder` is the caller's temporary one, this process's too: who is killed leaves it to this process to remove."""
    requests = socket.socket(fileno=os.dup(0))
    _only_standard_streams(keep=requests.fileno())
    gc.disable()  # until there is an answer: what is imported stays, and looking for garbage in it takes a fifth of the start
    me = os.getpid()
    try:
        from autograder import runner

        tools = runner.warm_up()
        compact()
        requests.send(b"{}")
        serve(requests, tools)
    finally:
        if os.getpid() == me:
            shutil.rmtree(folder, ignore_errors=True)


def serve(requests: socket.socket, tools: Tools, cage: Cage | None = None) -> None:
    """Do what is asked for until the caller closes its end. `cage` is the box that this process has entered."""
    entered: set[int] = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 4096, 2)
        if not message:
            return
        # A fork of a process with more than one thread may hang: then nothing at all is better than a few bad grades.
        if len(os.listdir("/proc/self/task")) != 1:
            raise RuntimeError("the warm process has more than one thread")
        entered = {pid for pid in entered if os.waitpid(pid, os.WNOHANG)[0] == 0}
        match json.loads(message):
            case {"do": "load"}:
                said = _load(os.dup(descriptors[0]), tools)
            case {"do": "end", "pid": pid, "patience_s": patience_s}:
                said = {"end": _end(pid, patience_s)}
            case {"do": "job"}:
                said = _fork(requests, descriptors, tools, cage)
            case {"do": "enter", "box": box}:
                pid = os.fork()
                if pid == 0:
                    requests.close()
                    _serve_in(box, socket.socket(fileno=descriptors[0]), tools)
                entered.add(pid)
                said = {}
        for descriptor in descriptors:
            os.close(descriptor)
        requests.send(json.dumps(said).encode())


def compact() -> None:
    """Make forks cheaper: a job that does nothing takes 19 ms of CPU instead of 33, one of seven exercises 138 instead of 154.

    What is there now is never garbage, so that no child has to copy it only to look; and it lies in pages of 2 MiB, of which
    a fork copies one entry for 512, where the kernel can do that (Linux 6.1).
    """
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


def _fork(requests: socket.socket, descriptors: list[int], tools: Tools, cage: Cage | None) -> dict:
    try:
        pid = cage.fork() if cage else os.fork()
    except OSError as error:
        return _failed(error)
    if pid == 0:
        requests.close()
        _do_job(*descriptors, tools, cage)
    return {"pid": pid}


def _load(source: int, tools: Tools) -> dict:
    with os.fdopen(source, "rb") as file:
        try:
            exercises = tools.load(**json.loads(file.read()))
        except Exception as error:
            return _failed(error)
    gc.freeze()
    return {"seconds": {name: exercise.seconds for name, exercise in exercises.items()}}


def _end(pid: int, patience_s: float) -> str:
    """End a child. How it ended by itself, if it did so in time: "exit" or its signal's name; else "silence"."""
    said, give_up = "silence", time.monotonic() + patience_s
    while True:
        if end := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            said = "exit" if end.si_code == os.CLD_EXITED else signal.Signals(end.si_status).name
        if end or time.monotonic() >= give_up:
            break
        time.sleep(0.01)
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return said


def _failed(error: Exception) -> dict:
    return {"failed": f"{type(error).__name__}: {error}"[:500]}


def _serve_in(box: int, requests: socket.socket, tools: Tools) -> NoReturn:
    try:
        try:
            cage = Cage.enter(box)
            sys.path.insert(0, "/course")
            untraceable()
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), 2)
            proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
        except Exception as error:
            requests.send(json.dumps(_failed(error)).encode())
            return
        socket.send_fds(requests, [b"{}"], [proc])
        os.close(proc)
        serve(requests, tools, cage)
    finally:
        os._exit(0)


def _do_job(source: int, pipe: int, tools: Tools, cage: Cage | None) -> NoReturn:
    """What the forked child does: shut itself in, and run an answer."""
    from autograder import runner

    try:
        try:
            if cage:
                cage.shut()
            else:
                os.setsid()
                end_with_parent()
                os.dup2(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), 2)
            with os.fdopen(source, "rb") as file:
                job = json.loads(file.read())
            # The answer keeps no way to write but this pipe, and what it starts not even that.
            os.set_inheritable(pipe, False)
            os.closerange(3, pipe)
            os.closerange(pipe + 1, 1 << 16)
            gc.enable()
            runner.report(job, pipe, tools)
        except Exception as error:
            # Before the first answer ran this is our own trouble, which the caller has to hear of; later it is harmless.
            os.write(pipe, json.dumps(_failed(error)).encode() + b"\n")
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
