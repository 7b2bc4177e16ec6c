"""hub/README.md: an instructor's commands, typed in the page's order beside a hub that runs; what the page names exists."""

from __future__ import annotations

import ast
import csv
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
import requests
import websocket
from commands import Shell, inline, options_exist, read
from lab_server import free_port
from people import Hub, Person, end, end_all, processes, started, until

PAGE = "hub/README.md"
ASSIGNMENT = "01_fp16_range"
slow = pytest.mark.slow


def under(heading: str):
    return pytest.mark.commands(PAGE, heading)


def blocks(root: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (root / PAGE).read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture(scope="module")
def hub_can_run():
    if not sys.platform.startswith("linux"):
        pytest.skip("requires Linux")
    for module in ("jupyterhub", "jupyterhub_idle_culler"):
        pytest.importorskip(module, reason=f"requires {module}")
    from autograder import sandbox
    from autograder.errors import HubError, SandboxError
    from autograder.hub import start

    try:
        start.proxy_command(tied=False)
    except HubError:
        pytest.skip("requires configurable-http-proxy and node")
    try:
        sandbox.bwrap()
    except SandboxError:
        pytest.skip("requires bubblewrap with user namespaces")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where this page's commands are typed, and nobody else's. What is left of its hubs ends with it."""
    path = tmp_path_factory.mktemp("instructor")
    yield path
    end_all(str(path))


def typed(shell: Shell, command: str, add: str = "") -> Hub:
    """A hub, from what somebody types; it answers."""
    return started(shlex.split(f"{command} {add}"), shell.folder, cwd=shell.folder, env=shell.environment)


class Terminal:
    """A terminal of the course's grader, in the page of an instructor."""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error) -> None:
        self.connection.close()

    def __init__(self, person: Person) -> None:
        service = f"/services/{person.hub.course}"
        assert person.open(f"{service}/").ok
        answer = person.ask("POST", f"{service}/api/terminals")
        assert answer.ok, (answer.status_code, answer.text)
        path = f"{service}/terminals/websocket/{answer.json()['name']}"
        asked = requests.Request("GET", person.hub.url + path, cookies=person.session.cookies)
        cookie = person.session.prepare_request(asked).headers["Cookie"]
        self.connection = websocket.create_connection(
            person.hub.url.replace("http", "ws", 1) + path, cookie=cookie, origin=person.hub.url, timeout=120
        )

    def run(self, command: str, status: int = 0, seconds: float = 240) -> str:
        """Type a command; what the terminal shows until it has ended."""
        mark = uuid.uuid4().hex[:8]
        self.connection.send(json.dumps(["stdin", f"{command}; echo ended=$?={mark}\r"]))
        shown, deadline = "", time.monotonic() + seconds
        while not (ended := re.search(rf"ended=(\d+)={mark}", shown)):
            assert time.monotonic() < deadline, shown
            kind, *what = json.loads(self.connection.recv())
            shown += what[0] if kind == "stdout" else ""
        assert int(ended[1]) == status and "Traceback" not in shown, f"$ {command}\n{shown}"
        return shown


# The page's order


@under("Install")
def test_it_is_installed_as_the_readme_and_ci_install_it(root, shell):
    from autograder.hub import start

    (line,) = [one.text for one in read(root / "README.md") if one.heading == "Open the course"]
    assert shell.next("python3 -m venv .venv && ") == line.rpartition(" && ")[0].replace("-e .", "-e '.[hub]'")
    assert shell.next(". .venv/bin/activate") in [one.text for one in read(root / "README.md")]
    assert shell.next("npm install") == start.NPM.format(prefix=".venv")
    ci = (root / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r"npm install .*--global --prefix \S+ configurable-http-proxy", ci), "CI gets it in another way"
    said = subprocess.run(
        shell.next("autograder doctor --hub"), shell=True, env=shell.environment, capture_output=True, text=True
    )
    lines = said.stdout.splitlines()
    assert len(lines) >= 4 and all(line.startswith(("ok  ", "FAIL")) for line in lines), said.stdout + said.stderr
    assert said.returncode == any(line.startswith("FAIL") for line in lines)


@slow
@under("Look at a whole hub")
def test_the_demo_shows_people_and_passwords_and_is_gone_with_ctrl_c(hub_can_run, shell):
    hub = typed(shell, shell.next("autograder hub --demo"), "--one")
    made = Path(re.search(r"Everything is in (.*?):", hub.words)[1])
    try:
        assert sorted(hub.passwords) == ["ada", "alan", "emmy", "grace"] and made.is_dir()
        with Person(hub, "ada", hub.passwords["ada"]) as ada:
            assert ada.log_in().ok
    finally:
        end(hub.process)
    assert hub.process.returncode == 0 and not made.exists() and processes(str(made)) == []


@pytest.fixture(scope="module")
def own() -> dict:
    """The hub of one's own while it runs, and what a later test needs of an earlier one."""
    kept: dict = {}
    yield kept
    if "hub" in kept and kept["hub"].process.poll() is None:
        end(kept["hub"].process)


@slow
@under("A hub of your own")
def test_two_files_make_a_hub(hub_can_run, root, shell, own):
    shell.run("mkdir my-hub")
    files = shell.folder / "my-hub"
    yaml, _ = blocks(root, "yaml")
    (files / "course.yaml").write_text(f"{yaml}port: {free_port()}\n", encoding="utf-8")
    (files / "roster.csv").write_text(*blocks(root, "csv"), encoding="utf-8")
    hub = own["hub"] = typed(shell, shell.next("autograder hub --config my-hub/course.yaml"))
    with open(files / "state" / "passwords.csv", encoding="utf-8") as file:
        own["passwords"] = {row[0]: row[1] for row in csv.reader(file)}
    assert {"grace", "ada", "emmy"} <= set(own["passwords"])
    assert hub.url.startswith("http://127.0.0.1:")
    said = shell.run("autograder doctor --hub --config my-hub/course.yaml")
    assert "backups: none yet" in said
    said = shell.run("autograder hub --config my-hub/course.yaml --roster-only")
    assert "2 students" in said


@pytest.fixture
def hub(own):
    if "hub" not in own or own["hub"].process.poll() is not None:
        pytest.skip("requires the hub that the test of 'A hub of your own' starts")
    return own["hub"]


@slow
@under("Release, collect, grade")
def test_an_assignment_goes_all_the_way_in_the_graders_terminal(hub, own, shell):
    from autograder.room import find_room

    course = shell.folder / "my-hub" / "state" / "course"
    with Person(hub, "grace", own["passwords"]["grace"]) as grace, Person(hub, "ada", own["passwords"]["ada"]) as ada:
        assert grace.log_in().ok and ada.log_in().ok
        with Terminal(grace) as terminal:
            assert str(course) in terminal.run("pwd")
            terminal.run(shell.next("autograder release"))
            terminal.run(shell.next("nbgrader release_assignment"))

            until(ada.is_ready, "the server that logging in has started", 180, 0.2)
            assert ada.open(f"{ada.base}/lab").ok
            assert [one["assignment_id"] for one in ada.listed("released")] == [ASSIGNMENT]
            assert ada.press("fetch", ASSIGNMENT)["success"]
            path = f"amp/{ASSIGNMENT}/{ASSIGNMENT}.ipynb"
            notebook, room = ada.read(path)["content"], find_room(ASSIGNMENT)
            for cell in notebook["cells"]:
                name = cell["metadata"].get("nbgrader", {}).get("grade_id")
                cell["source"] = room.solutions.get(name, cell["source"])
            ada.write(path, notebook)
            assert ada.press("submit", ASSIGNMENT)["success"]

            terminal.run(shell.next("nbgrader collect"))
            said = terminal.run(shell.next("autograder grade"))
            score, most = map(float, re.search(r"ada  ([\d.]+) of ([\d.]+)", said).groups())
            assert score == most > 0
            terminal.run(shell.next("autograder feedback"))
            terminal.run(shell.next("nbgrader release_feedback"))
            assert ada.press("fetch_feedback", ASSIGNMENT)["success"]
            (submitted,) = ada.listed("submitted")
            (handed_in,) = submitted["submissions"]
            page = ada.read(f"{handed_in['local_feedback_path']}/{ASSIGNMENT}.html")["content"]
            assert f"{score:g} of {most:g} points" in page

            terminal.run(shell.next("autograder report"))
            assert {path.suffix for path in (course / "report").iterdir()} >= {".html", ".csv"}
            terminal.run(shell.next("nbgrader export"))
            with open(course / "grades.csv", encoding="utf-8") as file:
                (row,) = [row for row in csv.DictReader(file) if row["student_id"] == "ada"]
            assert float(row["score"]) == score


@slow
@under("Back up, upgrade, forget")
def test_a_course_is_kept_upgraded_and_a_student_forgotten(hub, own, shell):
    shell.run("autograder backup my-hub/amp-monday.tar.gz --config my-hub/course.yaml")
    shell.run("autograder restore my-hub/amp-monday.tar.gz restored")
    assert list((shell.folder / "restored").rglob("gradebook.db"))
    assert shell.next("git pull") == "git pull"
    assert shell.next("pip install -e") == "pip install -e '.[hub]'"  # that of "Install"
    shell.run("autograder doctor --course my-hub/state/course")
    assert "Nothing is newer" in shell.run("autograder upgrade --course my-hub/state/course --dry-run")

    roster = shell.folder / "my-hub" / "roster.csv"
    assert "Nothing was deleted" in shell.run("autograder forget emmy --config my-hub/course.yaml --roster --dry-run")
    hub.process.send_signal(signal.SIGINT)
    assert hub.process.wait(60) == 0
    assert "emmy" in roster.read_text(encoding="utf-8")
    shell.run("autograder forget emmy --config my-hub/course.yaml --roster", add="--yes")
    assert "emmy" not in roster.read_text(encoding="utf-8") and "ada" in roster.read_text(encoding="utf-8")
    assert not (shell.folder / "my-hub" / "state" / "homes" / "emmy").exists()


# What is no command


def test_the_unit_is_one_that_systemd_takes(root, tmp_path):
    (text,) = blocks(root, "ini")
    (command,) = re.findall(r"^ExecStart=(.*)$", text, re.M)
    assert command.split("/bin/")[1] == "autograder hub --config /srv/amp/my-hub/course.yaml"
    assert "KillMode=process\n" in text, "students' servers would end with the hub"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("requires systemd-analyze, for the rest")
    unit = tmp_path / "amp-hub.service"
    # The program has to be there.
    unit.write_text(text.replace(command.split()[0], sys.executable), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "amp-hub" not in done.stderr, done.stderr


def test_the_keys_for_the_network_are_taken_and_the_web_server_passes_on_what_a_kernel_needs(root, tmp_path):
    from autograder.hub import config

    first, network = blocks(root, "yaml")
    (tmp_path / "roster.csv").write_text(*blocks(root, "csv"), encoding="utf-8")
    (tmp_path / "course.yaml").write_text(first + network, encoding="utf-8")
    read_back = config.read(tmp_path / "course.yaml")
    assert read_back.tls == "elsewhere"
    (block,) = blocks(root, "nginx")
    directives = dict(re.findall(r"^    (\w+(?: Upgrade| Connection| Host)?) (.*);$", block, re.M))
    assert directives["proxy_pass"] == f"http://{read_back.address}:{read_back.port}"
    assert directives["proxy_set_header Upgrade"] == "$http_upgrade"
    assert directives["proxy_set_header Connection"] == "$connection_upgrade"
    assert directives["proxy_set_header Host"] == "$http_host", "the hub compares it with where a page comes from"
    assert int(directives["client_max_body_size"].removesuffix("m")) > 1.4 * read_back.limits.submission_mb


def test_each_test_that_shows_something_exists(root):
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (root / PAGE).read_text(encoding="utf-8"))
    there = {
        (path, node.name)
        for path in {path for path, _ in named}
        for node in ast.walk(ast.parse((root / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    assert len(named) >= 15 and [one for one in named if one not in there] == []


def test_files_options_and_headings_that_it_names_exist(root):
    text = (root / PAGE).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert len(links) >= 6
    for link in links:
        path, _, anchor = link.partition("#")
        target = (root / "hub" / path) if path else root / PAGE
        assert target.is_file(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
            assert anchor in {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}, link
    assert options_exist(inline(root / PAGE)) >= 4


def test_no_command_is_run_by_nobody(root):
    marked = {
        mark.args[1]
        for item in vars(sys.modules[__name__]).values()
        for mark in getattr(item, "pytestmark", [])
        if mark.name == "commands"
    }
    assert {command.heading for command in read(root / PAGE)} == marked
