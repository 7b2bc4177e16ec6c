"""The warm process: has imported PyTorch and IPython, has never run an answer, and forks one child a job.

A child that is to run an answer first enters a box: namespaces that a bubblewrap of the caller's has made and set up. It
joins them one by one, drops every capability and sets its limits, before it reads what it is to run. The warm process
knows no secret, no expected value and no submission; the job reaches the child through a pipe of its own.

The caller (sandbox.py) sends a request on the socket that is standard input, {"box": pid or null, "memory", "cpu", "file",
"processes": limits}, and with it two file descriptors: where the child reads its job, where it writes its results.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import json
import os
import re
import resource
import signal
import socket
import sys
from typing import NoReturn

NAMESPACES = ("mnt", "pid", "net", "ipc", "uts")
NS_GET_PARENT = 0xB702
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 4, 24, 38
MADV_COLLAPSE, HUGE_PAGE = 25, 2 << 20
CAPABILITY_VERSION_3 = 0x20080522
libc = ctypes.CDLL(None, use_errno=True)


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
        null = os.open(os.devnull, os.O_RDWR)
        if request["box"] is not None:
            enter(request["box"])
            # A pid namespace takes in who is born in it: this process stays outside, holds nothing and waits.
            inside = os.fork()
            if inside:
                os.close(read)
                os.close(write)
                os.waitpid(inside, 0)
                os._exit(0)
            sys.path.insert(0, "/course")
            os.chdir("/tmp")
        os.setsid()
        os.dup2(null, 2)
        limit(request)
        if request["box"] is not None:
            drop_capabilities()
            # No answer, which is a fork of this process, may trace it or write into its memory.
            libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        with os.fdopen(read, "rb") as file:
            job = json.loads(file.read())
        runner.work(job, write, tools)
    except BaseException as error:
        # Before the job was read this is our own trouble, which the caller has to hear of; later it is harmless.
        os.write(write, json.dumps({"failed": f"{type(error).__name__}: {error}"[:500]}).encode() + b"\n")
    finally:
        os._exit(0)


def enter(pid: int) -> None:
    """Join the namespaces of process `pid`, which bubblewrap made: its user namespaces, outer first, hold the others."""
    inner = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
    others = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in NAMESPACES]
    mine = os.stat("/proc/self/ns/user").st_ino
    chain = [inner]
    # Mapping another uid takes a second user namespace inside the first; the mounts belong to the first.
    while os.fstat(parent := fcntl.ioctl(chain[0], NS_GET_PARENT)).st_ino != mine:
        chain.insert(0, parent)
    for namespace in (chain[0], *others, *chain[1:]):
        if libc.setns(namespace, 0):
            code = ctypes.get_errno()
            raise OSError(code, f"setns: {os.strerror(code)}")
    for descriptor in (*chain, *others, parent):
        os.close(descriptor)


def drop_capabilities() -> None:
    """Give up every capability, and the way to gain one."""
    capability = 0
    while libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if libc.capset(header, nothing):
        raise OSError(ctypes.get_errno(), "capset")


def limit(request: dict) -> None:
    """Hard limits of this process and all that it starts."""
    for name, value in (
        (resource.RLIMIT_AS, request["memory"]),
        (resource.RLIMIT_CPU, request["cpu"]),
        (resource.RLIMIT_FSIZE, request["file"]),
        (resource.RLIMIT_NPROC, request["processes"]),
        (resource.RLIMIT_CORE, 0),
    ):
        if value is not None:
            _, hard = resource.getrlimit(name)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(name, (value, value))


if __name__ == "__main__":
    serve()
