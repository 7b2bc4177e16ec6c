"""A hub that runs, and people who use it over HTTP as their browsers do: cookies, XSRF tokens, redirects, websockets."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import psutil
import requests
import websocket

T = TypeVar("T")

NAVIGATE = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}  # what a browser says when a page is opened


class Hub:
    """The command `autograder hub …`, running: its address, its course's id and, from what it prints, its passwords."""

    def __init__(self, said: Path, process: subprocess.Popen, course: str = "amp") -> None:
        self.said, self.process, self.course = said, process, course

    @property
    def words(self) -> str:
        return self.said.read_text(encoding="utf-8")

    @property
    def url(self) -> str:
        return re.search(r"is at\s+(http://127\.0\.0\.1:\d+)", self.words)[1]

    @property
    def passwords(self) -> dict[str, str]:
        """Those that the demo prints, or that a real hub has written to a file."""
        if written := re.search(r"passwords: (\S+\.csv)", self.words):
            with open(written[1], newline="", encoding="utf-8") as file:
                return {row["username"]: row["password"] for row in csv.DictReader(file)}
        return dict(re.findall(r"^\s+(\w+)\s+(\S+)\s+(?:student|instructor)$", self.words, re.M))


def started(command: list[str], said_in: Path, **options) -> Hub:
    """A hub, once it answers, from the command that starts it (`options` are Popen's). A file in `said_in` takes its words."""
    said = said_in / f"said-{uuid.uuid4().hex[:8]}.txt"
    with open(said, "wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, **options
        )
    hub = Hub(said, process)
    try:
        until(lambda: process.poll() is not None or re.search(r"is at\s+http", hub.words), "the hub", 300, 0.2)
        assert process.poll() is None, hub.words
    except BaseException:
        end(process)
        raise
    return hub


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[Hub]:
    """`autograder hub ARGUMENTS`, once it answers; `folder` takes what it prints. It is stopped as by Ctrl-C."""
    hub = started([sys.executable, "-m", "autograder.cli", "hub", *arguments], folder)
    try:
        yield hub
    finally:
        end(hub.process)


@contextmanager
def class_of(folder: Path, students: list[str], course: Path, assignment: str, **keys) -> Iterator[Hub]:
    """A real hub for these students and for grace, with a copy of a course that has the assignment generated: released to them.

    `keys` are course.yaml's. Students' servers, which survive their hub, are ended with it.
    """
    from autograder.hub import config, ports, start

    (folder / "roster.csv").write_text("\n".join(["username", *students]) + "\n", encoding="utf-8")
    (keys["port"],) = ports.free()
    keys |= {"course": {"id": "amp"}, "instructors": ["grace"], "roster": "roster.csv"}
    (folder / "course.yaml").write_text(json.dumps(keys), encoding="utf-8")  # which is YAML as well
    hub = config.read(folder / "course.yaml")
    shutil.copytree(course, hub.course)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nbgrader's own code
        start.prepare(hub, lambda words: None)
        start.into_exchange(hub, assignment)
    try:
        with running(folder, "--config", str(hub.path)) as started:
            yield started
    finally:
        end_all(str(folder))


def end(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def until(true: Callable, what: str, seconds: float = 120, every: float = 0.05):
    """What `true()` gives once it is true."""
    deadline = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(every)
    return value


class Person:
    """Somebody's browser: logs in, starts the own server, asks servers for what their pages ask for."""

    def __init__(self, hub: Hub, name: str, password: str) -> None:
        self.hub, self.name, self.password, self.session = hub, name, password, requests.Session()
        self.session.trust_env = False

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *error) -> None:
        self.session.close()

    def token(self, path: str) -> str:
        """The XSRF token that the pages at `path` send along: the cookie of the longest path that holds for it."""
        found = [cookie for cookie in self.session.cookies if cookie.name == "_xsrf" and path.startswith(cookie.path)]
        return max(found, key=lambda cookie: len(cookie.path)).value if found else ""

    def ask(self, method: str, path: str, xsrf: bool = True, **more) -> requests.Response:
        headers = {"Referer": self.hub.url + path, "Sec-Fetch-Mode": "cors", **more.pop("headers", {})}
        if xsrf:
            headers["X-XSRFToken"] = self.token(path)
        return self.session.request(method, self.hub.url + path, headers=headers, timeout=120, **more)

    def open(self, path: str) -> requests.Response:
        """Open a page, wherever that leads."""
        return self.session.get(self.hub.url + path, headers=NAVIGATE, timeout=120)

    def log_in(self) -> requests.Response:
        self.open("/hub/login")
        form = {"username": self.name, "password": self.password, "_xsrf": self.token("/hub/login")}
        return self.session.post(self.hub.url + "/hub/login", data=form, headers=NAVIGATE, timeout=120)

    # The own server

    @property
    def base(self) -> str:
        return f"/user/{self.name}"

    def start_server(self) -> None:
        """Start the own server, wait for it and enter it, as the hub's page does."""
        if "/hub/home" not in (at := self.open("/hub/home").url):
            raise AssertionError(f"{self.name} is not logged in, but at {at}")
        answer = self.ask("POST", f"/hub/api/users/{self.name}/server")
        # The page that follows the login starts it, too, and it may be there by now.
        assert answer.status_code in (201, 202) or self.is_ready(), (answer.status_code, answer.text)
        until(self.is_ready, f"{self.name}'s server", 180, 0.2)
        page = self.open(f"{self.base}/lab")
        assert page.ok and urlsplit(page.url).path.startswith(self.base), (page.status_code, page.url, page.text[:500])

    def is_ready(self) -> bool:
        answer = self.ask("GET", f"/hub/api/users/{self.name}")
        assert answer.ok, (answer.status_code, answer.text)
        return answer.json()["servers"].get("", {}).get("ready", False)

    def own(self, method: str, path: str, **more) -> requests.Response:
        return self.ask(method, f"{self.base}/{path}", **more)

    def read(self, path: str) -> dict:
        """A file of the own home, as JupyterLab opens it."""
        answer = self.own("GET", f"api/contents/{path}")
        assert answer.ok, (answer.status_code, answer.text)
        return answer.json()

    def write(self, path: str, content, kind: str = "notebook", form: str = "json") -> None:
        body = {"type": kind, "format": form, "content": content}
        answer = self.own("PUT", f"api/contents/{path}", json=body)
        assert answer.ok, (answer.status_code, answer.text)

    # What the Assignments panel asks for

    def press(self, action: str, assignment: str) -> dict:
        """Its buttons: "fetch", "submit" and "fetch_feedback". What the panel is answered."""
        body = {"course_id": self.hub.course, "assignment_id": assignment}
        return self._said(self.own("POST", f"assignments/{action}", json=body))

    def listed(self, status: str) -> list[dict]:
        """The lines of one of the panel's three lists: "released", "fetched" or "submitted"."""
        answer = self._said(self.own("GET", f"assignments?course_id={self.hub.course}"))
        assert answer["success"], answer
        return [one for one in answer["value"] if one["status"] == status]

    @staticmethod
    def _said(answer: requests.Response) -> dict:
        assert answer.ok, (answer.status_code, answer.text[-2000:])
        return answer.json()

    # A kernel

    @contextmanager
    def kernel(self) -> Iterator[Kernel]:
        answer = self.own("POST", "api/kernels", json={"name": "python3"})
        assert answer.status_code == 201, (answer.status_code, answer.text)
        with self.attached(answer.json()["id"]) as kernel:
            yield kernel

    @contextmanager
    def attached(self, kernel_id: str) -> Iterator[Kernel]:
        """A connection to a kernel that runs, such as a page that is loaded anew makes."""
        path = f"{self.base}/api/kernels/{kernel_id}/channels"
        cookies = requests.Request("GET", self.hub.url + path, cookies=self.session.cookies)
        header = self.session.prepare_request(cookies).headers.get("Cookie", "")
        connection = websocket.create_connection(
            self.hub.url.replace("http", "ws", 1) + path + f"?session_id={uuid.uuid4().hex}",
            cookie=header,
            origin=self.hub.url,
            timeout=120,
        )
        try:
            yield Kernel(kernel_id, connection)
        finally:
            connection.close()


class Kernel:
    """An open connection to a kernel."""

    def __init__(self, kernel_id: str, connection: websocket.WebSocket) -> None:
        self.id, self.connection = kernel_id, connection

    def run(self, code: str) -> str:
        """What the code prints. AssertionError with the traceback where it raises."""
        number = uuid.uuid4().hex
        header = {"msg_id": number, "msg_type": "execute_request", "username": "", "session": number, "version": "5.3"}
        content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        self.connection.send(json.dumps({**message, "buffers": []}))
        printed, replied = [], False
        while True:
            said = json.loads(self.connection.recv())
            if said["parent_header"].get("msg_id") != number:
                continue
            content = said["content"]
            if said["msg_type"] == "stream":
                printed.append(content["text"])
            elif said["msg_type"] == "execute_reply":
                assert content["status"] == "ok", "\n".join(content.get("traceback", []))
                replied = True
            elif said["msg_type"] == "status" and content["execution_state"] == "idle":
                assert replied or content, said
                return "".join(printed)


def processes(of: str, which: Callable[[psutil.Process], bool] = lambda one: True) -> list[psutil.Process]:
    """Every process whose command line or environment names `of`, such as a hub's folder, and that is `which`."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid():
                continue
            words = [*process.cmdline(), *process.environ().values()]
            if any(of in word for word in words) and which(process):
                found.append(process)
        except psutil.Error:
            continue
    return found


def told(processes: Iterable[psutil.Process], question: Callable[[psutil.Process], T]) -> list[T]:
    """What each process answers; one that has just ended answers nothing."""
    answers = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            answers.append(question(process))
    return answers


def end_all(of: str) -> None:
    """End every process that names `of`."""
    told(processes(of), psutil.Process.kill)
