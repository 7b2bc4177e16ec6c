"""nbgrader's assignment list for students, with sentences where nbgrader's own shows a traceback or nothing.

A Jupyter server extension in the place of nbgrader's, with the same addresses, for a student's server:

    {"ServerApp": {"jpserver_extensions": {"nbgrader.server_extensions.assignment_list": false,
                                           "autograder.hub.assignment_list": true}}}

JupyterLab's panel shows a failed submission's "value" in a dialog, and any other failure's in the place of the lists. It has
no place for a word about what went well, except the line of each submission, where nbgrader puts the time: there it says
that a submission was late, and which of several counts.
"""

from __future__ import annotations

import datetime
import json
import os
import traceback
from collections.abc import Callable

from jupyter_server.utils import url_path_join
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError, ExchangeFactory
from nbgrader.server_extensions.assignment_list import handlers
from tornado import web

from autograder.hub import inbound
from autograder.hub.exchange import lateness


class Assignments(handlers.AssignmentList):
    """What a student can do with assignments: list, fetch, submit, fetch feedback. Each answers {"success", "value"}."""

    def list_released_assignments(self, course_id: str | None = None) -> dict:
        return self._answer("list", lambda: self._list(course_id, cached=False))

    def list_submitted_assignments(self, course_id: str | None = None) -> dict:
        return self._answer("list", lambda: self._list(course_id, cached=True))

    def fetch_assignment(self, course_id: str, assignment_id: str) -> dict:
        return self._answer("fetch", lambda: self._app("FetchAssignment", course_id, assignment_id).start())

    def fetch_feedback(self, course_id: str, assignment_id: str) -> dict:
        return self._answer("fetch the feedback", lambda: self._app("FetchFeedback", course_id, assignment_id).start())

    def submit_assignment(self, course_id: str, assignment_id: str) -> dict:
        return self._answer("submit", lambda: self._app("Submit", course_id, assignment_id).start())

    def _answer(self, doing: str, work: Callable[[], list | None]) -> dict:
        # nbgrader's classes go by the working directory, and its own `chdir` does not come back after an error.
        before = os.getcwd()
        try:
            os.chdir(self.root_dir)
            value = work()
        except ExchangeError as error:
            return {"success": False, "value": str(error)}
        except Exception as error:
            self.log.error(traceback.format_exc())
            return {
                "success": False,
                "value": f"Could not {doing}: {type(error).__name__}: {error}. Nothing of yours was changed. Press the button "
                "again; if it stays, show this to your instructor. Your server's log has more.",
            }
        finally:
            os.chdir(before)
        return {"success": True} if value is None else {"success": True, "value": value}

    def _app(self, what: str, course_id: str | None, assignment_id: str = "", **traits):
        """One of the exchange's classes, in the folder that students' assignments lie in."""
        config = self.load_config()
        config.CourseDirectory.assignment_id = assignment_id
        if course_id:
            config.CourseDirectory.course_id = course_id
        factory = ExchangeFactory(config=config)
        app = getattr(factory, what)(
            coursedir=CourseDirectory(config=config), authenticator=Authenticator(config=config), config=config
        )
        for name, value in traits.items():
            setattr(app, name, value)
        os.chdir(app.assignment_dir)
        return app

    def _list(self, course_id: str | None, cached: bool) -> list[dict]:
        app = self._app("List", course_id, cached=cached)
        assignments = app.start()
        due = app.due() if cached else {}
        for assignment in assignments:
            if cached:
                for submission in assignment["submissions"]:
                    if submission["local_feedback_path"]:
                        submission["local_feedback_path"] = os.path.relpath(
                            submission["local_feedback_path"], self.root_dir
                        )
                _describe(assignment, due.get(assignment["assignment_id"]), app.local)
            elif assignment["status"] == "fetched":
                assignment["path"] = os.path.relpath(assignment["path"], self.root_dir)
                for notebook in assignment["notebooks"]:
                    notebook["path"] = os.path.relpath(notebook["path"], self.root_dir)
        return sorted(assignments, key=lambda one: (one["course_id"], one["assignment_id"]))


def _describe(assignment: dict, due: datetime.datetime | None, local: Callable[[datetime.datetime], str]) -> None:
    """Say in each submission's "timestamp", which is what the panel shows, when it was made and what became of it."""
    submissions = sorted(assignment["submissions"], key=lambda one: one["timestamp"])
    for number, submission in enumerate(submissions, 1):
        at = inbound.parse(os.path.basename(submission["path"])).at
        words = [local(at)]
        if due and lateness(at, due):
            words.append(lateness(at, due))
        if number < len(submissions):
            words.append("replaced by a newer one")
        elif number > 1:
            words.append(f"counts, as the newest of {number}")
        submission["timestamp"] = ", ".join(words)
    assignment["submissions"] = submissions


class ActionHandler(handlers.AssignmentActionHandler):
    """Fetch, submit, fetch feedback: the lists as they are then, or what went wrong."""

    @web.authenticated
    def post(self, action: str) -> None:
        try:
            course_id, assignment_id = self.get_argument("course_id"), self.get_argument("assignment_id")
        except web.MissingArgumentError:
            body = self.get_json_body() or {}
            course_id, assignment_id = body.get("course_id"), body.get("assignment_id")
        if not isinstance(course_id, str) or not isinstance(assignment_id, str):
            raise web.HTTPError(400, "course_id and assignment_id are needed")
        work = {
            "fetch": self.manager.fetch_assignment,
            "submit": self.manager.submit_assignment,
            "fetch_feedback": self.manager.fetch_feedback,
        }[action]
        answer = work(course_id, assignment_id)
        self.finish(json.dumps(self.manager.list_assignments(course_id=course_id) if answer["success"] else answer))


def _jupyter_server_extension_points() -> list[dict]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(app) -> None:
    manager = Assignments(parent=app)
    manager.root_dir = app.root_dir
    app.web_app.settings["assignment_list_manager"] = manager
    ours = {handlers.AssignmentActionHandler: ActionHandler}
    app.web_app.add_handlers(
        ".*$",
        [
            (url_path_join(app.web_app.settings["base_url"], pattern), ours.get(handler, handler))
            for pattern, handler in handlers.default_handlers
        ],
    )
