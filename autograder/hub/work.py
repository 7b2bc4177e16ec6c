"""One piece of formgrader's work, in a process of its own: what formgrader.py has asked for on standard input.

    python -m autograder.hub.work        (eight bytes of length, a pickled Order; the answer comes as JSON on standard output)

It ends when its standard input is closed, so that it does not outlive the server that started it.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

WORK = (
    "generate_assignment",
    "release_assignment",
    "unrelease",
    "collect",
    "autograde",
    "generate_feedback",
    "release_feedback",
)
ON_GRADES = ("generate_assignment", "autograde", "generate_feedback")


@dataclass(frozen=True)
class Order:
    """What is to be done, in nbgrader's words, with the configuration that formgrader has at the time."""

    what: str
    assignment: str
    student: str | None
    config: dict
    root: str

    def __post_init__(self) -> None:
        if self.what not in WORK:
            raise ValueError(f"formgrader has no work called {self.what!r}")


def do(order: Order) -> dict:
    """Do it. {"success", "log", "error"}, as nbgrader answers; an error that we raise on purpose is a sentence in the log."""
    from autograder.errors import AutograderError

    try:
        return (_on_grades if order.what in ON_GRADES else _by_nbgrader)(order)
    except AutograderError as error:
        return {"success": False, "log": str(error)}


def _on_grades(order: Order) -> dict:
    """What takes the course itself, and PyTorch with it."""
    if order.what == "autograde":
        # The process that runs answers imports PyTorch on one core while this one imports nbgrader on another.
        threading.Thread(target=_warm_up, daemon=True).start()
    from autograder.course import Course, prepare_nbgrader

    prepare_nbgrader()
    course = Course(Path(order.root), order.config.get("CourseDirectory", {}).get("db_url") or None)
    if order.what == "generate_feedback":
        return _feedback(course, order)
    doing = " ".join(filter(None, ["formgrader:", order.what.replace("_", " "), order.assignment, order.student]))
    with course.alone(doing):
        if order.what == "autograde":
            _require_sandboxed(order)
        return _by_nbgrader(order)


def _warm_up() -> None:
    from autograder import sandbox
    from autograder.errors import SandboxError

    with suppress(SandboxError, OSError):  # the exporter will say what is missing
        sandbox.warm()


def _by_nbgrader(order: Order) -> dict:
    from nbgrader.apps.api import NbGraderAPI
    from nbgrader.apps.baseapp import NbGrader
    from nbgrader.auth import Authenticator
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.exchange import ExchangeError
    from traitlets.config import Config

    app = NbGrader(config=Config(order.config))
    app.log.setLevel("INFO")
    coursedir = CourseDirectory(parent=app, root=order.root)
    api = NbGraderAPI(coursedir, Authenticator(parent=app), parent=app)
    arguments = [order.assignment, *([order.student] if order.student else [])]
    answer = getattr(api, order.what)(*arguments)
    if f"{ExchangeError.__module__}.{ExchangeError.__name__}: " in answer.get("error", ""):
        # What the exchange refuses is said in the log; where in its code it did is nothing that an instructor needs.
        del answer["error"]
    return answer


def _feedback(course, order: Order) -> dict:
    """`autograder feedback`: pages that load nothing and run nothing, unlike nbgrader's own."""
    from autograder import feedback

    written = feedback.write(course, order.assignment)
    pages = "1 page" if len(written) == 1 else f"{len(written)} pages"
    return {"success": True, "log": f"Wrote {pages}, as `autograder feedback {order.assignment}` does."}


def _require_sandboxed(order: Order) -> None:
    from traitlets import import_item

    from autograder.errors import SandboxError
    from autograder.nbgrader_seam import GradedNotebook

    exporter = order.config.get("Autograde", {}).get("exporter_class", "")
    exporter = import_item(exporter) if isinstance(exporter, str) and exporter else exporter
    if not (isinstance(exporter, type) and issubclass(exporter, GradedNotebook)):
        raise SandboxError(
            "Nothing was graded: c.Autograde.exporter_class is not autograder.nbgrader_seam.GradedNotebook, so that answers "
            "would run in a kernel beside the gradebook. Put back the lines that `autograder init` wrote into "
            "nbgrader_config.py."
        )


def _end_with_the_server() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def _exactly(size: int) -> bytes:
    """So many bytes from standard input, and none of what comes after, which a buffer would take."""
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            sys.exit("autograder.hub.work is started by formgrader's server, which tells it what to do.")
        data += more
    return data


def main() -> None:
    # Where this package is there, jsonschema compiles a grammar for two seconds, of a format that no notebook has.
    sys.modules.setdefault("rfc3987_syntax", None)
    # Whatever prints goes to the server's log; only the answer goes where the server reads it.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    length = int.from_bytes(_exactly(8))
    order = _exactly(length)
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    json.dump(do(pickle.loads(order)), answers)
    answers.close()


if __name__ == "__main__":
    main()
