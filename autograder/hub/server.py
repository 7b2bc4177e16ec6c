"""What the hub starts instead of a server, which it then becomes: another user, within limits, tied to the hub, with lessons.

    python -c CODE [--uid N] [--home DIR] [--lessons DIR] [--memory-gb N] [--cores N] [--tied PID] -- COMMAND…

In a student's box it brings the lessons into the home as the student: written from outside by root, a link that the student
has put there would lead anywhere.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 4096  # for a user id of a student's own: PyTorch starts a thread for each core, in each of its workers


def command(*options: str, then: list[str]) -> list[str]:
    """The command line that does what this module says and becomes `then`. -I: the caller's environment imports nothing."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from autograder.hub.server import main; main()"
    return [sys.executable, "-I", "-B", "-c", code, *options, "--", *then]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--uid", type=int)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--lessons", type=Path)
    parser.add_argument("--memory-gb", type=float)
    parser.add_argument("--cores", type=int)
    parser.add_argument("--tied", type=int, metavar="PID")
    parser.add_argument("then", nargs="+")
    given = parser.parse_args()
    if given.tied:
        tie(given.tied)  # from now on, and again below: the kernel forgets it when the user changes
    os.umask(0o022)  # the hub's own keeps its database from others; what a grader releases is for others
    if given.uid is not None:
        become(given.uid)
    limit(given.memory_gb, given.cores, own_uid=given.uid is not None)
    if given.tied:
        tie(given.tied)
    if given.home:
        os.chdir(given.home)
        if given.lessons:
            deliver(given.lessons, given.home)
    os.execvp(given.then[0], given.then)


def become(uid: int) -> None:
    """Another user for good: with the ids go root's capabilities, and bubblewrap has seen to it that none comes back."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def limit(memory_gb: float | None, cores: int | None, own_uid: bool) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_gb:  # RLIMIT_DATA, not RLIMIT_AS: CUDA reserves address space by the terabyte and uses little of it
        size = int(memory_gb * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    if own_uid:  # else it would count whatever else runs as this user
        resource.setrlimit(resource.RLIMIT_NPROC, (PROCESSES, PROCESSES))
    if cores:
        mine = sorted(os.sched_getaffinity(0))
        start = os.getuid() * cores % len(mine)
        os.sched_setaffinity(0, (mine + mine)[start : start + cores])


def tied() -> str:
    """The option of `command` by which what is started ends with this process."""
    return f"--tied={os.getpid()}"


def tie(parent: int) -> None:
    """End (SIGTERM) when the process that started this one ends; at once where `parent` is gone."""
    import ctypes
    import signal

    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if not Path(f"/proc/{parent}").exists():  # it had ended before the kernel was asked
        sys.exit(1)


def lessons(folder: Path) -> dict[str, Path]:
    """The files of the lessons, by where they lie in a home: the notebooks, and what they have measured."""
    files = {f"lessons/{path.name}": path for path in sorted(folder.glob("*.ipynb"))}
    for path in sorted((folder / "measured").rglob("*")):
        if path.is_file():
            files[f"lessons/{path.relative_to(folder).as_posix()}"] = path
    return files


def deliver(folder: Path, home: Path) -> None:
    """Bring the lessons into a home as `ampkit lab` does. Where that fails, the home says so, and the server starts."""
    from ampkit.lab import sync

    note = home / "LESSONS-NOT-UPDATED.txt"
    try:
        for line in sync(lessons(folder), home):
            print(line, file=sys.stderr)
        note.unlink(missing_ok=True)
    except OSError as error:
        print(f"lessons were not brought: {error}", file=sys.stderr)
        with suppress(OSError):  # a full disk; the server's log has it
            note.write_text(
                f"The lessons could not be brought into your home: {error}\nNothing of yours was changed. If the disk is full, "
                "delete what you do not need, stop your server (File > Hub Control Panel) and start it again.\n",
                encoding="utf-8",
            )


if __name__ == "__main__":
    main()
