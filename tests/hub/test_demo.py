"""`autograder hub`, really started: the demo, what people see of it, what is refused, and a hub that restarts beneath them."""

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest
import requests
from people import Hub, Person, end, end_all, processes, running, told, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hub_can_run")]

SERVER_SCOPES = {
    *(
        "users:activity!user=ada",
        "read:users:activity!user=ada",
        "access:servers!server=ada/",
        "read:users:name!user=ada",
        "read:users:groups!user=ada",
    ),
}
GRADER_SCOPES = {
    *("read:users:name!user=grader-amp", "read:users:groups!user=grader-amp"),
    *("list:groups!group=nbgrader-amp", "read:groups:name!group=nbgrader-amp"),
}
LOOK = """
import os, json, pathlib
home = pathlib.Path.home()
def there(path):
    return os.path.lexists(path)
def reads(path):
    try:
        return os.listdir(path) if os.path.isdir(path) else bool(open(path, 'rb').read(1))
    except OSError as error:
        return type(error).__name__
print(json.dumps(EXPRESSION))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hub") / "demo"


@pytest.fixture(scope="module")
def demo(folder):
    with running(folder.parent, "--demo", "--one", "--dir", str(folder)) as hub:
        yield hub


@pytest.fixture(scope="module")
def people(demo):
    """Who has logged in, by name: they stay logged in."""
    with ExitStack() as stack:
        found = {}
        for name, password in demo.passwords.items():
            found[name] = stack.enter_context(Person(demo, name, password))
            found[name].log_in()
        yield found


@pytest.fixture(scope="module")
def ada(people):
    """A student whose server runs."""
    people["ada"].start_server()
    return people["ada"]


@pytest.fixture(scope="module")
def kernel(ada):
    with ada.kernel() as running_kernel:
        yield running_kernel


@pytest.fixture
def looks(kernel):
    """What an expression says in the student's own kernel."""
    return lambda expression: json.loads(kernel.run(LOOK.replace("EXPRESSION", expression)))


def test_the_banner_says_where_who_what_and_how_it_ends(demo, folder):
    said = demo.words
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", demo.url)
    assert set(demo.passwords) == {"grace", "ada", "alan", "emmy"} and len(set(demo.passwords.values())) == 4
    assert said.count("instructor\n") == 1 and said.count("student\n") == 3
    for words in ("03_gradscaler", f"{demo.url}/services/amp/", str(folder), "Ctrl-C stops", "box"):
        assert words in said
    assert ("user id of its own" in said) == (os.geteuid() == 0)
    assert max(map(len, said.splitlines())) <= 128


def test_it_listens_on_this_machine_only(demo, folder):
    mine = processes(str(folder)) + demo_processes(demo)
    listening = {
        connection.laddr.ip
        for connections in told({one.pid: one for one in mine}.values(), lambda one: one.net_connections("inet"))
        for connection in connections
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_passwords_are_kept_as_hashes_and_by_their_owner_alone(demo, folder):
    path = folder / "passwords.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    secrets = [password.encode() for password in demo.passwords.values()]
    held = [one for one in folder.rglob("*") if one.is_file() and any(word in one.read_bytes() for word in secrets)]
    assert held == []
    environments = told(processes(str(folder)), lambda one: str(one.environ()))
    assert environments and not any(password in words for words in environments for password in demo.passwords.values())


@pytest.mark.parametrize(
    ("name", "password"), [("ada", "wrong"), ("mallory", "wrong"), ("grader-amp", ""), ("grace", "")]
)
def test_a_wrong_password_and_an_unknown_user_are_refused_alike(demo, name, password):
    with Person(demo, name, password) as somebody:
        answer = somebody.log_in()
        assert answer.status_code == 403 and "Invalid username or password" in answer.text


def test_who_has_not_logged_in_gets_nothing(demo):
    for path in ("/hub/api/users", "/hub/api/groups", "/hub/api/services", "/hub/api/users/ada"):
        assert requests.get(demo.url + path, timeout=30).status_code == 403, path
    page = requests.get(f"{demo.url}/services/amp/formgrader/", timeout=30)
    assert "/hub/login" in page.url


def test_a_student_finds_the_lessons_and_the_released_assignment(ada, root):
    found = {one["name"] for one in ada.read("lessons")["content"]}
    notebooks = {path.name for path in (root / "lessons").glob("*.ipynb")}
    assert len(notebooks) >= 4 and notebooks <= found
    assert [one["assignment_id"] for one in ada.listed("released")] == ["03_gradscaler"]


@pytest.mark.parametrize("path", ["formgrader", "formgrader/api/assignments", "formgraders", "course_list"])
def test_a_student_has_the_assignment_list_and_validation_and_nothing_else_of_nbgrader(ada, path):
    assert ada.own("GET", path).status_code == 404
    assert ada.own("GET", "courses").ok and ada.own("GET", "nbgrader_version?version=0.9.6").ok
    page = ada.open("/user/ada/lab").text
    disabled = json.loads(re.search(r"<script id=\"jupyter-config-data\"[^>]*>(.*?)</script>", page, re.S)[1])
    off = set(disabled["disabledExtensions"])
    assert {
        "@jupyter/nbgrader:formgrader",
        "@jupyter/nbgrader:course-list",
        "@jupyter/nbgrader:create-assignment",
    } <= off
    assert not {"@jupyter/nbgrader:assignment-list", "@jupyter/nbgrader:validate-assignment"} & off


def test_solutions_secrets_and_others_are_not_in_a_students_box(ada, looks, folder, root):
    hidden = [
        root / "exercises",
        root / "tests",
        root / "hub",
        root / ".git",
        folder,
        folder / "course" / "gradebook.db",
    ]
    assert all(path.exists() for path in hidden[:3])
    assert looks(f"[there(path) for path in {list(map(str, hidden))}]") == [False] * len(hidden)
    assert looks("reads(home.parent)") == ["ada"]
    assert looks("sorted(p for p in reads('/proc') if p.isdigit())")[0] == "1"
    others = looks("[p for p in reads('/proc') if p.isdigit() and not os.access(f'/proc/{p}/environ', os.R_OK)]")
    assert set(others) <= {"1"}  # bubblewrap's own, which is root's where the hub is
    prefix = Path(sys.prefix)
    python = (
        {prefix.relative_to(root).parts[0]} if prefix.is_relative_to(root) else set()
    )  # an environment in the checkout
    assert set(looks(f"reads({str(root)!r})")) == {"ampkit", "autograder"} | python


def test_a_student_sees_of_the_exchange_what_is_everybodys_and_their_own(ada, looks):
    assert looks("reads('/srv/exchange/amp/outbound')") == ["03_gradscaler"]
    assert looks("reads('/srv/exchange/amp/inbound')") == []
    refused = "[os.access('/srv/exchange/amp/' + place, os.W_OK) for place in ('', 'outbound', 'feedback')]"
    assert looks(refused) == [False] * 3
    assert looks("os.access('/srv/exchange/amp/inbound', os.W_OK)") is True


def test_nothing_in_a_box_can_be_written_but_the_home_the_inbound_folder_and_what_goes_with_it(looks):
    places = ["/", "/etc", "/usr/bin", "/opt", "/opt/course/lessons", "/opt/course/jupyter", "/home", sys.prefix]
    assert looks(f"[os.access(path, os.W_OK) for path in {places}]") == [False] * len(places)
    assert looks("[os.access(path, os.W_OK) for path in (str(home), '/tmp', '/dev/shm')]") == [True] * 3


def test_a_student_has_no_capability_and_gets_none(looks):
    status = looks(
        "[line for line in open('/proc/self/status').read().splitlines() if line[:4] in ('CapE', 'CapP', 'NoNe')]"
    )
    assert [line.split()[1].lstrip("0") for line in status] == ["", "", "1"]
    assert looks("os.getuid()") == (looks("os.getgid()"))
    assert (looks("os.getuid()") >= 200_000) == (os.geteuid() == 0)


def test_kernels_talk_through_sockets_in_the_box_and_not_on_ports_that_others_reach(ada, looks):
    (connection,) = {
        json.dumps(one)
        for one in looks("[json.load(open(p)) for p in pathlib.Path('/tmp/jupyter').glob('kernel-*.json')]")
    }
    assert json.loads(connection)["transport"] == "ipc"


def test_idle_kernels_are_culled_also_where_a_tab_is_open(looks):
    cull = looks("json.load(open('/opt/course/jupyter/jupyter_server_config.json'))['MappingKernelManager']")
    assert cull == {"cull_connected": True, "cull_busy": False, "cull_idle_timeout": 1200, "cull_interval": 240}


def hub_api(hub, token: str, path: str, method: str = "GET", **how) -> requests.Response:
    return requests.request(
        method, f"{hub.url}/hub/api{path}", headers={"Authorization": f"token {token}"}, timeout=30, **how
    )


def test_a_students_server_may_ask_the_hub_who_its_owner_is_and_nothing_else(demo, ada, looks):
    token = looks("os.environ['JUPYTERHUB_API_TOKEN']")
    me = hub_api(demo, token, "/user").json()
    assert {scope for scope in me["scopes"] if not scope.startswith("read:services")} == {*SERVER_SCOPES}
    assert me["groups"] == ["nbgrader-amp"]
    for path in ("/users", "/users/emmy", "/groups", "/groups/nbgrader-amp", "/proxy", "/info", "/users/ada/tokens"):
        assert hub_api(demo, token, path).status_code in (403, 404), path
    assert hub_api(demo, token, "/users/ada/server", "DELETE").status_code in (403, 404)
    assert hub_api(demo, token, "/groups/formgrade-amp/users", "POST", json={"users": ["ada"]}).status_code in (
        403,
        404,
    )


def demo_processes(demo: Hub) -> list[psutil.Process]:
    return [psutil.Process(demo.process.pid), *psutil.Process(demo.process.pid).children(recursive=True)]


def token_of(demo: Hub, word: str) -> str:
    """The token of a service: in the environment of its process, which whoever runs the hub can read."""
    for process in demo_processes(demo):
        with suppress(psutil.Error):  # it may end at any moment
            environment = process.environ()
            mine = word == "jupyterhub_idle_culler" or environment.get("JUPYTERHUB_USER") == "grader-amp"
            if mine and word in process.cmdline() and "JUPYTERHUB_API_TOKEN" in environment:
                return environment["JUPYTERHUB_API_TOKEN"]
    raise AssertionError(f"there is no process of {word}")


def test_the_grader_may_ask_about_its_course_and_nothing_else(demo):
    token = token_of(demo, "jupyterhub.singleuser")
    me = hub_api(demo, token, "/user").json()
    assert (me["kind"], me["name"]) == ("service", "amp")
    assert set(me["scopes"]) >= GRADER_SCOPES
    about = re.compile(
        r"(read:users:(name|groups)!user=grader-amp|(list:groups|read:groups(:\w+)?|groups)!group=nbgrader-amp)"
    )
    assert [scope for scope in me["scopes"] if not about.fullmatch(scope)] == []
    assert hub_api(demo, token, "/groups/nbgrader-amp").status_code == 200
    for path in ("/groups/formgrade-amp", "/users/ada", "/users", "/proxy", "/services"):
        assert hub_api(demo, token, path).status_code in (403, 404), path


def test_the_idle_culler_may_see_who_is_idle_and_end_servers(demo):
    token = token_of(demo, "jupyterhub_idle_culler")
    scopes = {scope.partition("!")[0] for scope in hub_api(demo, token, "/user").json()["scopes"]}
    assert {"list:users", "read:users:activity", "read:servers", "delete:servers"} <= scopes
    assert scopes <= {"list:users", "read:users:activity", "read:servers", "delete:servers", "read:users:name"}
    assert hub_api(demo, token, "/proxy").status_code == 403


def test_a_student_is_kept_out_of_the_grader_and_of_anothers_server(people, ada):
    assert ada.open("/services/amp/").status_code == 403
    assert ada.open("/services/amp/formgrader/api/assignments").status_code == 403
    assert people["emmy"].open("/user/ada/lab").status_code == 403
    assert people["grace"].open("/user/ada/lab").status_code == 403  # nor may an instructor
    assert ada.ask("DELETE", "/hub/api/users/emmy/server").status_code in (403, 404)
    assert ada.ask("POST", "/hub/api/groups/formgrade-amp/users", json={"users": ["ada"]}).status_code in (403, 404)
    assert ada.ask("GET", "/hub/api/users").status_code == 403


@pytest.mark.parametrize("action", ["fetch", "submit"])
def test_a_request_without_its_xsrf_token_is_refused(ada, action):
    body = {"course_id": "amp", "assignment_id": "03_gradscaler"}
    answer = ada.own("POST", f"assignments/{action}", xsrf=False, json=body)
    assert answer.status_code == 403 and "xsrf" in answer.text.lower()
    assert ada.listed("submitted") == []


def test_of_a_server_that_ends_as_it_starts_the_page_says_so_and_why(people, folder):
    emmy = people["emmy"]
    emmy.start_server()
    assert emmy.ask("DELETE", "/hub/api/users/emmy/server").status_code in (202, 204)
    until(lambda: not emmy.ask("GET", "/hub/api/users/emmy").json()["servers"], "the end of emmy's server")
    in_the_way = folder / "homes" / "emmy" / ".jupyter"
    shutil.rmtree(in_the_way, ignore_errors=True)
    in_the_way.write_text("no folder", encoding="utf-8")
    try:
        assert "/hub/spawn-pending/emmy" in emmy.open("/hub/spawn").url
        with emmy.ask("GET", "/hub/api/users/emmy/server/progress", stream=True) as stream:
            events = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith(b"data: "))
            failed = next(event for event in events if event.get("failed"))
    finally:
        in_the_way.unlink()
    assert "/.jupyter' exists but is not a directory" in failed["message"]
    assert "logs/servers/emmy.log" in failed["message"] and "in about 2 minutes" in failed["message"]


def test_another_course_is_not_to_be_had(ada):
    assert ada.open("/services/other/").status_code == 404
    answer = ada.own("GET", "assignments?course_id=other")
    assert not [one for one in answer.json().get("value", []) if isinstance(one, dict)]


def test_an_instructor_opens_formgrader_top_level_under_the_default_policy(people):
    page = people["grace"].open("/services/amp/")
    assert page.status_code == 200 and "/services/amp/formgrader" in page.url
    assert page.headers["Content-Security-Policy"].startswith("frame-ancestors 'none'")
    listed = people["grace"].ask("GET", "/services/amp/formgrader/api/assignments").json()
    assert "03_gradscaler" in [one["name"] for one in listed if one["status"] == "released"]
    without = people["grace"].ask("POST", "/services/amp/formgrader/api/assignment/03_gradscaler/collect", xsrf=False)
    assert without.status_code == 403


def test_the_demo_ends_with_all_that_it_started_and_keeps_the_folder_that_it_was_given(demo, ada, kernel, folder):
    before = {process.pid: process for process in demo_processes(demo)}
    assert len(before) >= 8  # hub, proxy, grader, culler, a box and in it a server and a kernel
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(60) == 0
    assert [process for process in before.values() if is_alive(process)] == []
    assert "Stopped" in demo.words and (folder / "homes" / "ada" / "lessons").is_dir()


# A real hub, on what the demo has left


@pytest.fixture(scope="module")
def real(demo, folder):
    """A function that starts a real hub, and one that ends all that is left of it."""
    assert demo.process.poll() is not None, "the demo is to have ended"
    hubs = []

    def start() -> Hub:
        said = folder.parent / f"real-{len(hubs)}.txt"
        with open(said, "wb") as output:
            command = [sys.executable, "-m", "autograder.cli", "hub", "--config", str(folder / "course.yaml")]
            hub = Hub(said, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT))
        hubs.append(hub)
        until(lambda: hub.process.poll() is not None or "is at" in hub.words, "the hub", 300, 0.2)
        assert hub.process.poll() is None, hub.words
        return hub

    yield start
    for hub in hubs:
        if hub.process.poll() is None:
            end(hub.process)
    end_all(str(folder))


def is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def boxes(folder, name: str) -> list[psutil.Process]:
    return processes(str(folder / "homes" / name), lambda one: "--unshare-pid" in one.cmdline())


def test_a_hub_that_is_restarted_or_killed_takes_nothing_from_a_student_at_work(real, demo, folder):
    hub = real()
    with Person(hub, "ada", demo.passwords["ada"]) as ada:
        assert ada.log_in().ok
        ada.start_server()
        with ada.kernel() as kernel:
            kernel.run("work = 'not lost'")
        box = boxes(folder, "ada")
        assert box
        second_hub_is_refused(folder)
        hub.process.send_signal(signal.SIGTERM)
        assert hub.process.wait(60) == 0
        assert all(is_alive(one) for one in box)

        port = grader_port(folder)
        with socket.create_server(("127.0.0.1", port)):
            again = real()
        assert f"Port {port}, which was kept for the grader, is another program's now" in again.words
        assert grader_port(folder) != port
        assert again.url == hub.url
        with ada.attached(kernel.id) as kernel:  # with the cookies from before
            assert kernel.run("print(work)") == "not lost\n"
        assert ada.is_ready()
        server_ends_when_its_student_stops_it(again, demo, folder)

        # Killed, and not asked: what is the hub's ends, what is the student's does not.
        (process,) = psutil.Process(again.process.pid).children()
        its_own = process.children(recursive=True)
        assert len(its_own) >= 3  # proxy, grader, culler
        process.kill()
        assert again.process.wait(60) == 1 and "has ended by itself" in again.words
        until(lambda: not any(is_alive(one) for one in its_own), "the end of proxy and services")
        assert all(is_alive(one) for one in box)


def grader_port(folder) -> int:
    return json.loads((folder / "run" / "ports.json").read_text(encoding="utf-8"))["grader"]


def second_hub_is_refused(folder):
    command = [sys.executable, "-m", "autograder.cli", "hub", "--config", str(folder / "course.yaml")]
    other = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert other.returncode == 1
    assert "a hub is running there already" in other.stderr and "Traceback" not in other.stderr


def server_ends_when_its_student_stops_it(hub, demo, folder):
    with Person(hub, "alan", demo.passwords["alan"]) as alan:
        alan.log_in()
        alan.start_server()
        with alan.kernel():
            box = boxes(folder, "alan")
            inside = [child for one in box for child in one.children(recursive=True)]
            assert len(inside) >= 2
            assert alan.ask("DELETE", "/hub/api/users/alan/server").status_code in (202, 204)
            until(lambda: not any(is_alive(one) for one in [*box, *inside]), "the box's end")
