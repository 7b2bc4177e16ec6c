"""A grading run that is killed: for each line on standard input a fork of this process grades the course, and dies.

    python killed.py ROOT RECORDING
    after 0.125         SIGKILL 0.125 s after it began
    at 117              SIGKILL at the 117th thing that it asks of the system (Python's audit events) or of the database
    never               not at all: the answer says how many of those there were, and how long it took

What answers show was recorded before, so that a run is over in a moment; gradebook and files are real. Each line is answered by
one line of JSON: the students for whom a box was asked, and how the run ended.
"""

import hashlib
import json
import os
import select
import signal
import sys
import time
import warnings
from concurrent.futures import Future
from pathlib import Path

from autograder import executors
from autograder.course import Course, prepare_nbgrader
from autograder.session import Session


def digest(job: dict) -> str:
    return hashlib.sha256(json.dumps(job).encode()).hexdigest()


class Recorded:
    """An executor that gives back what a box gave for the same job, and says for whom on `pipe`."""

    def __init__(self, recording: dict, pipe: int) -> None:
        self.recording, self.pipe = recording, pipe

    def submit(self, fn, job, *_) -> Future:
        student, results = self.recording[digest(job)]
        os.write(self.pipe, student.encode() + b"\n")
        future: Future = Future()
        future.set_result((results, 0.01))
        return future


def grade(root: Path, recording: dict, pipe: int, kill_at: int | None) -> None:
    course = Course(root)
    seen = 0

    def event(*_) -> None:
        nonlocal seen
        seen += 1
        if seen == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    with course.alone("a run that may be killed"), course.book("tiny") as book:
        from sqlalchemy import event as database

        for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
            database.listen(book.book.engine, name, event)
        sys.addaudithook(lambda name, _: event() if name.startswith(("open", "os.", "tempfile.", "shutil.")) else None)
        session = Session(course, course.reference("tiny"), book)
        session.run(course.students("tiny"), executors.Pool(Recorded(recording, pipe), 2))
    os.write(pipe, b"! %d\n" % seen)


def main() -> None:
    root, recording = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    warnings.simplefilter("ignore")
    prepare_nbgrader()
    # Everything is imported and nothing has run: a fork is as good as a new process, and is there at once.
    from nbgrader import api, utils  # noqa: F401
    from nbgrader.preprocessors import AssignLatePenalties  # noqa: F401

    print("ready", flush=True)
    for line in sys.stdin:
        how, _, number = line.strip().partition(" ")
        read, write = os.pipe()
        start = time.monotonic()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                grade(root, recording, write, int(number) if how == "at" else None)
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        said, until = b"", start + float(number) if how == "after" else None
        while True:
            ready, _, _ = select.select([read], [], [], None if until is None else max(0.0, until - time.monotonic()))
            if not ready:
                os.kill(pid, signal.SIGKILL)
                until = None
                continue
            chunk = os.read(read, 1 << 16)
            if not chunk:
                break
            said += chunk
        os.close(read)
        _, status = os.waitpid(pid, 0)
        lines = said.decode().split()
        answer = {
            "students": [line for line in lines if line != "!" and not line.isdigit()],
            "events": int(lines[-1]) if "!" in lines else None,
            "killed": os.WIFSIGNALED(status),
            "status": None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status),
            "seconds": time.monotonic() - start,
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
