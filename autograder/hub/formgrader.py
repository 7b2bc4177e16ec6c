"""nbgrader's formgrader for the grader service of a hub: whatever takes time is done in a process of its own.

A Jupyter server extension in the place of nbgrader's, with the same pages and addresses:

    {"ServerApp": {"jpserver_extensions": {"nbgrader.server_extensions.formgrader": false,
                                           "autograder.hub.formgrader": true}}}

nbgrader's own autogrades, collects and releases in the server's only thread: while it does, nobody is answered. Here one
piece of work is done after the other, in the order in which they were asked for, however many buttons are pressed; a piece
that is asked for again before it is done is done once, and everybody who asked gets its answer.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import pickle
import re
import signal
import sys
import threading
import time
from pathlib import Path
from zoneinfo import ZoneInfo

from jinja2 import ChoiceLoader, DictLoader, FileSystemLoader, PrefixLoader
from jupyter_server.utils import url_path_join
from nbconvert.exporters import HTMLExporter
from nbgrader.api import MissingEntry
from nbgrader.server_extensions.formgrader import apihandlers, handlers
from nbgrader.server_extensions.formgrader.base import BaseApiHandler, BaseHandler, check_notebook_dir, check_xsrf
from nbgrader.server_extensions.formgrader.formgrader import FormgradeExtension
from nbgrader.utils import to_numeric_tz
from tornado import web
from traitlets import Unicode, default

from autograder.hub import exchange
from autograder.hub.work import Order

STUDENTS_PAGE = """\
{%- extends 'nbgrader/manage_students.tpl' -%}
{%- block table_footer -%}
<tr><td colspan="5">{{ roster_words }}</td></tr>
{%- endblock -%}
"""
# nbgrader's names its own command, which is one submission after the other in a kernel, where ours grades the class.
SUBMISSIONS_PAGE = """\
{%- extends 'nbgrader/manage_submissions.tpl' -%}
{%- block messages -%}
<div class="panel panel-default"><div class="panel-body">
  <p>The icons below grade one student's submission. All of them at once, several at a time: open a
  <a target="_blank" href="{{ base_url }}/terminals/1">terminal</a> and type</p>
  <pre>autograder grade {{ assignment_id }}</pre>
  <p>and load this page again when it is done.</p>
</div></div>
{%- endblock -%}
"""
# What is not asked for from elsewhere, nor run: nbconvert's pages load MathJax from a server on the Internet, and nbgrader's
# link to a "live notebook" opens what a student handed in beside a kernel that runs as the grader.
# formgrade.js waits for MathJax's word that it has ended before it goes to the first cell to grade: it gets that at once.
NO_MATHJAX = """\
{%- macro mathjax(url='') -%}
<script>
var MathJax = {Hub: {Startup: {signal: {Interest: function (heard) { setTimeout(heard, 0, "End"); }}}}};
</script>
{%- endmacro -%}
"""
MACROS = "formgrade_macros.html.j2"
LIVE = re.compile(
    r'data-toggle="tooltip" data-placement="bottom" title="Open live notebook"\s+data-link="\{\{ resources.notebook_path \}\}"'
)
# What nbgrader's link to a folder is, and what it has to be below a hub, where the server is not at the root.
LINK, HUB_LINK = '.attr("href", prefix + path)', '.attr("href", base_url + "/lab/tree/" + path)'


class Desk:
    """Where formgrader's work is done: one piece at a time, each in a process of its own."""

    def __init__(self, formgrader: HubFormgrader) -> None:
        self.formgrader = formgrader
        self.lane = asyncio.Lock()
        self.asked: dict[tuple, asyncio.Task] = {}

    async def do(self, what: str, assignment: str, student: str | None = None) -> dict:
        """nbgrader's answer to a piece of work, {"success", "log", "error"}: one for all who ask before it is there."""
        key = (what, assignment, student)
        if key not in self.asked:
            self.asked[key] = asyncio.create_task(self._in_turn(key))
            self.asked[key].add_done_callback(lambda task: self.asked.pop(key))
        # Whoever closes the page ends neither the work nor the others' waiting.
        return await asyncio.shield(self.asked[key])

    async def _in_turn(self, key: tuple) -> dict:
        async with self.lane:
            self.formgrader.load_config_file()
            try:
                order = pickle.dumps(Order(*key, dict(self.formgrader.config), self.formgrader.coursedir.root))
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                return _failed(
                    f"the configuration holds something that cannot be given to another process ({error}). In "
                    "nbgrader_config.py, name classes and functions by strings"
                )
            return await self._apart(order)

    async def _apart(self, order: bytes) -> dict:
        process = await asyncio.create_subprocess_exec(
            # -P: a file in the course's folder is no module of Python's.
            *(sys.executable, "-P", "-m", "autograder.hub.work"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            process.stdin.write(len(order).to_bytes(8) + order)
            await process.stdin.drain()
        except ConnectionError:
            pass  # it has ended already; its status says more
        try:
            said = await process.stdout.read()
            status = await process.wait()
        finally:
            process.stdin.close()  # which ends it, where this server is being shut down
        try:
            return json.loads(said)
        except ValueError:
            how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            return _failed(
                f"the process that worked on it ended without an answer ({how}), perhaps for want of memory; the server's log "
                "may say more. What was finished before is kept"
            )


def _failed(reason: str) -> dict:
    return {"success": False, "log": f"This was not done: {reason}. Press the button again."}


class WorkHandler(BaseApiHandler):
    """A button of formgrader: the work of that name, done elsewhere, answered when it is done."""

    def initialize(self, what: str) -> None:
        self.what = what

    @web.authenticated
    @check_xsrf
    @check_notebook_dir
    async def post(self, assignment: str, student: str | None = None) -> None:
        if any("/" in name or name.startswith(".") for name in (assignment, student or "")):
            raise web.HTTPError(404)
        self.write(json.dumps(await self.settings["autograder_desk"].do(self.what, assignment, student)))


class AssignmentHandler(apihandlers.AssignmentHandler):
    """nbgrader's, whose due dates are meant in the course's time zone and made known to students' servers."""

    def put(self, assignment: str) -> None:
        # nbgrader offers the offset of today for a day that may lie on the other side of a change to or from summer time.
        body = self.get_json_body() or {}
        due, zone = body.get("duedate_notimezone"), self.api.timezone
        if due and body.get("duedate_timezone") == to_numeric_tz(zone):
            there = datetime.datetime.fromisoformat(due).replace(tzinfo=ZoneInfo(zone))
            self.request.body = json.dumps({**body, "duedate_timezone": f"{there:%z}"}).encode()
        super().put(assignment)
        course = Path(self.api.exchange_root) / self.coursedir.course_id
        if (course / "outbound").is_dir():
            exchange.publish_due_dates(self.coursedir, course)


class StudentHandler(apihandlers.StudentHandler):
    """nbgrader's, except that it makes nobody: being in the gradebook lets nobody take the course."""

    @web.authenticated
    @check_xsrf
    @check_notebook_dir
    def put(self, student: str) -> None:
        try:
            self.gradebook.find_student(student.strip())
        except MissingEntry:
            self.set_status(403)
            self.write(json.dumps({"message": self.settings["nbgrader_formgrader"].roster_words}))
            return
        super().put(student)


class StudentsPage(handlers.ManageStudentsHandler):
    def render(self, name: str, **more) -> str:
        return super().render(name, roster_words=self.settings["nbgrader_formgrader"].roster_words, **more)


class FormgraderHandler(handlers.FormgraderHandler):
    """nbgrader's first page, for this course only.

    nbgrader's takes another course's folder from the address and runs the nbgrader_config.py in it. Any folder would do, so
    that a link could make an instructor's click run what a student has handed in.
    """

    @web.authenticated
    @check_xsrf
    @check_notebook_dir
    def get(self) -> None:
        if self.get_argument("path", ""):
            raise web.HTTPError(403, "This is the formgrader of one course; it opens no other folder.")
        self.redirect(f"{self.base_url}/formgrader/manage_assignments")


class SubmissionFiles(handlers.SubmissionFilesHandler):
    """What lies beside a submission, a figure or a page that an answer links to: shown, and never run.

    nbgrader's serves a student's HTML as a page of the grader, whose script may do what the instructor may who clicks on it.
    """

    def set_extra_headers(self, path: str) -> None:
        self.set_header("Content-Security-Policy", "sandbox; frame-ancestors 'none'")
        self.set_header("X-Content-Type-Options", "nosniff")


class ScriptHandler(BaseHandler):
    """nbgrader's utils.js, with links to folders that work below a hub."""

    @web.authenticated
    def get(self) -> None:
        script = Path(handlers.static_path, "js", "utils.js").read_text(encoding="utf-8")
        if script.count(LINK) != 1:
            self.log.warning(
                "nbgrader's utils.js is not as it was in 0.9.6: formgrader's links to folders may not work."
            )
        self.set_header("Content-Type", "application/javascript; charset=UTF-8")
        self.write(script.replace(LINK, HUB_LINK))


BUTTONS = [
    (r"/formgrader/api/assignment/([^/]+)/assign", "generate_assignment"),
    (r"/formgrader/api/assignment/([^/]+)/unrelease", "unrelease"),
    (r"/formgrader/api/assignment/([^/]+)/release", "release_assignment"),
    (r"/formgrader/api/assignment/([^/]+)/collect", "collect"),
    (r"/formgrader/api/assignment/([^/]+)/generate_feedback", "generate_feedback"),
    (r"/formgrader/api/assignment/([^/]+)/release_feedback", "release_feedback"),
    (r"/formgrader/api/assignment/([^/]+)/([^/]+)/generate_feedback", "generate_feedback"),
    (r"/formgrader/api/assignment/([^/]+)/([^/]+)/release_feedback", "release_feedback"),
    (r"/formgrader/api/submission/([^/]+)/([^/]+)/autograde", "autograde"),
]
OURS = [
    *((pattern, WorkHandler, {"what": what}) for pattern, what in BUTTONS),
    (r"/formgrader/api/assignment/([^/]+)", AssignmentHandler),
    (r"/formgrader/api/student/([^/]+)", StudentHandler),
    (r"/formgrader/manage_students/?", StudentsPage),
    (r"/formgrader/?", FormgraderHandler),
    (r"/formgrader/static/js/utils.js", ScriptHandler),
    (r"/formgrader/submissions/(?!components/)([^/]+/(?!(?:next|prev)(?:_incorrect)?/?$).+)", SubmissionFiles),
]


class HubFormgrader(FormgradeExtension):
    """nbgrader's formgrader with our handlers before its own."""

    roster = Unicode(
        "the roster that course.yaml names",
        help="Where the people who take the course are listed, in words for instructors.",
    ).tag(config=True)

    @default("debug")
    def _debug_default(self) -> bool:
        return (
            False  # else the page shows the whole configuration, and with it the password of a gradebook on PostgreSQL
        )

    @property
    def roster_words(self) -> str:
        return (
            f"Who takes the course is decided by {self.roster}: whoever was only added here could not log in to the course. "
            "Add the student there; the hub takes the roster over when it starts."
        )

    def init_tornado_settings(self, webapp) -> None:
        super().init_tornado_settings(webapp)
        theirs = FileSystemLoader([handlers.template_path])
        ours = DictLoader({"manage_students.tpl": STUDENTS_PAGE, "manage_submissions.tpl": SUBMISSIONS_PAGE})
        webapp.settings["nbgrader_jinja2_env"].loader = ChoiceLoader([ours, theirs, PrefixLoader({"nbgrader": theirs})])
        macros, links = LIVE.subn("", Path(handlers.template_path, "formgrade", MACROS).read_text(encoding="utf-8"))
        if not links:
            self.log.warning("nbgrader's grading view is not as it was in 0.9.6: it may link to students' notebooks.")
        changed = DictLoader({"mathjax.html.j2": NO_MATHJAX, MACROS: macros})
        webapp.settings["nbgrader_exporter"] = HTMLExporter(config=self.config, extra_loaders=[changed])
        webapp.settings["autograder_desk"] = Desk(self)

    def init_handlers(self, webapp) -> None:
        base = webapp.settings["base_url"]
        webapp.add_handlers(".*$", [(url_path_join(base, pattern), *rest) for pattern, *rest in OURS])
        super().init_handlers(webapp)


def _jupyter_server_extension_points() -> list[dict]:
    return [{"module": __name__}]


def _end_with(parent: int) -> None:
    """End this server when the process that started it has ended: a hub that was killed, which another one will replace.

    The kernel's own signal for that does not come where the grader has another user id than what started it.
    """
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _load_jupyter_server_extension(app) -> None:
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    formgrader = HubFormgrader(parent=app)
    formgrader.root_dir = app.root_dir
    formgrader.log = app.log
    formgrader.initialize([])
    formgrader.init_tornado_settings(app.web_app)
    formgrader.init_handlers(app.web_app)
