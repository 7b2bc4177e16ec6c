"""What the hub's parts may do, as its configuration says: scopes, people, boxes, plugins. test_demo.py asks a running hub."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

pytest.importorskip("jupyterhub", reason="requires jupyterhub")

from traitlets.config import PyFileConfigLoader

from autograder import sandbox
from autograder.errors import HubError
from autograder.hub import config, exchange, kubernetes, plugins, ports, server, settings, spawner, start

SMALLEST = "course: {id: amp}\ninstructors: [grace]\nroster: roster.csv\n"
# The least that works; each was found by taking it away (JupyterHub 6.1, nbgrader 0.9.6).
ROLES = {
    "server": {
        *("users:activity!user", "access:servers!server", "read:users:name!user", "read:users:groups!user"),
        *("list:services", "read:services"),
    },
    "formgrade-amp": {"access:services!service=amp", "list:services", "read:services!service=amp"},
    "grader-amp": {
        *("read:users:name!user=grader-amp", "read:users:groups!user=grader-amp"),
        *("list:groups!group=nbgrader-amp", "groups!group=nbgrader-amp"),
    },
    "idle-culler": {"list:users", "read:users:activity", "read:servers", "delete:servers"},
}


@pytest.fixture
def written(tmp_path):
    """A function that makes a hub's configuration from a few more lines of course.yaml."""

    def write(more: str = "", roster: str = "username\nada\nemmy\n") -> config.HubConfig:
        (tmp_path / "roster.csv").write_text(roster, encoding="utf-8")
        (tmp_path / "course.yaml").write_text(SMALLEST + more, encoding="utf-8")
        hub = config.read(tmp_path / "course.yaml")
        for folder in (hub.homes, hub.run / "accounts"):
            folder.mkdir(parents=True, exist_ok=True)
        return hub

    return write


@pytest.fixture
def loaded(root, monkeypatch):
    """A function that gives what hub/jupyterhub_config.py makes of a configuration."""
    monkeypatch.setattr(start, "proxy_command", lambda tied=True: ["configurable-http-proxy"])

    def load(hub: config.HubConfig, *, tied: bool = False):
        monkeypatch.setenv("AUTOGRADER_COURSE_YAML", str(hub.path))
        if tied:
            monkeypatch.setenv("AUTOGRADER_HUB_TIED", "1")
        return PyFileConfigLoader("jupyterhub_config.py", path=str(root / "hub")).load_config()

    return load


# Who may do what


def test_every_role_has_the_least_scopes_that_work_and_there_are_no_other_roles(written, loaded):
    roles = loaded(written()).JupyterHub.load_roles
    assert {role["name"]: set(role["scopes"]) for role in roles} == ROLES
    holders = {role["name"]: (role.get("groups"), role.get("services"), role.get("users")) for role in roles}
    assert holders == {
        "server": (None, None, None),
        "formgrade-amp": (["formgrade-amp"], None, None),
        "grader-amp": (None, ["amp"], None),
        "idle-culler": (None, ["idle-culler"], None),
    }


def test_a_hub_on_kubernetes_gives_the_same_scopes(root, written, loaded):
    text = (root / "hub" / "kubernetes" / "values.yaml").read_text(encoding="utf-8")
    names = {"COURSE": "amp", "IMAGE": "image", "TAG": "1", "TIMEZONE": "UTC"}
    there = yaml.safe_load(kubernetes.fill_in(text, names))["hub"]["loadRoles"]
    here = {role["name"]: set(role["scopes"]) for role in loaded(written()).JupyterHub.load_roles}
    compared = set(there) & set(here)
    assert compared >= {"server", "formgrade-amp", "grader-amp"}
    assert {name: set(there[name]["scopes"]) for name in compared} == {name: here[name] for name in compared}


def test_nobody_is_an_admin_and_only_who_is_named_comes_in(written, loaded):
    made = loaded(written())
    assert set(made.Authenticator.allowed_users) == {"ada", "emmy", "grace"}  # not the grader's account
    assert made.Authenticator.allow_existing_users is False
    assert "allow_all" not in made.Authenticator and "admin_users" not in made.Authenticator
    assert made.JupyterHub.load_groups == {
        "nbgrader-amp": {"users": ["ada", "emmy"]},
        "formgrade-amp": {"users": ["grace", "grader-amp"]},
    }


def test_the_grader_is_called_as_the_course_opens_formgrader_and_has_no_account_to_log_in_with(written, loaded):
    grader, culler = loaded(written()).JupyterHub.services
    assert grader["name"] == "amp" and grader["oauth_no_confirm"] is True
    assert grader["url"].startswith("http://127.0.0.1:")
    assert grader["environment"]["JUPYTERHUB_DEFAULT_URL"] == "/formgrader"
    assert grader["environment"]["JUPYTERHUB_USER"] == "grader-amp"
    assert not {"admin", "api_token", "user"} & {*grader, *culler}
    assert not any("TOKEN" in key or "PASSWORD" in key for key in grader["environment"])


@pytest.mark.parametrize("tied", [False, True])
def test_a_real_hub_leaves_servers_running_and_the_demo_does_not(written, loaded, tied):
    made = loaded(written(), tied=tied)
    assert made.JupyterHub.cleanup_servers is tied and made.BoxedSpawner.tied is tied
    assert made.JupyterHub.bind_url == "http://127.0.0.1:8000"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", made.JupyterHub.hub_bind_url)


def test_ports_and_the_proxys_token_are_the_same_at_the_next_start(written):
    hub = written()
    assert ports.of(hub) == ports.of(hub) and len(set(ports.of(hub).values())) == 3
    assert start.proxy_token(hub) == start.proxy_token(hub) and len(start.proxy_token(hub)) == 64
    assert (hub.folder / "proxy_token").stat().st_mode & 0o777 == 0o600


def test_a_port_that_another_program_has_taken_is_chosen_anew_and_the_others_stay(written):
    hub, said = written(), []
    before = ports.of(hub)
    ports.claim(hub, said.append)
    assert ports.of(hub) == before and said == []
    with socket.create_server(("127.0.0.1", before["hub"])):
        ports.claim(hub, said.append)
    now = ports.of(hub)
    assert {name for name in now if now[name] != before[name]} == {"hub"} and now["hub"] not in before.values()
    assert str(before["hub"]) in said[0] and "stopped and started" in said[1] and len(said) == 2


@pytest.mark.parametrize("given_away", ["32768\t60999\n", "1024 65535\n", "30000 65000\n", None])
def test_no_port_is_chosen_twice_or_where_the_kernel_would_give_it_to_others(given_away, tmp_path, monkeypatch):
    file = tmp_path / "range"
    if given_away:
        file.write_text(given_away, encoding="utf-8")
    monkeypatch.setattr(ports, "GIVEN_AWAY", file)
    with socket.create_server(("127.0.0.1", ports.free()[0])) as other:
        monkeypatch.setattr(ports, "_turn", ports._turn - 1)  # that one is next
        chosen = ports.free(3) + [ports.free()[0] for _ in range(300)]
        assert len(set(chosen)) == 303 and other.getsockname()[1] not in chosen
    low, high = map(int, given_away.split()) if given_away and not given_away.startswith("1024") else (0, 0)
    assert not any(low <= port <= high for port in chosen) and all(20000 <= port < 65536 for port in chosen)


def test_of_a_hub_that_does_not_start_its_log_says_why_and_not_what_went_well(tmp_path):
    lines = [
        "[C 2026-11-29 20:00:00.000 JupyterHub] of the last time",
        "[I 2026-11-30 18:39:19.514 ServerApp] all is well",
        "    and goes on",
        "[C 2026-11-30 18:39:20.643 JupyterHub app:3808] Service amp exited with status 1",
        *(f"[I 2026-11-30 18:39:20.{n:03} JupyterHub log:192] 200 GET /hub/error/404" for n in range(30)),
        "2026-11-30T18:39:21.078Z [ConfigProxy] warn: Terminated",
    ]
    hub = SimpleNamespace(log=tmp_path / "hub.log", start_of_log=len(lines[0]) + 1)
    hub.log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert start.Hub.last_words(hub).splitlines() == [f"  {line}" for line in (lines[3], lines[-1])]
    hub.log.write_text("\n".join(lines[:3]) + "\n", encoding="utf-8")
    assert start.Hub.last_words(hub).splitlines() == [f"  {line}" for line in lines[1:3]]


def test_a_learning_platform_that_keeps_the_groups_is_the_only_one_that_does(written, loaded, monkeypatch):
    kind = plugins.Kind("jupyterhub.auth.DummyAuthenticator")
    monkeypatch.setattr(plugins, "authenticator", lambda hub: (kind, {"manage_groups": True}))
    made = loaded(written())
    assert "load_groups" not in made.JupyterHub and "allowed_users" not in made.Authenticator


@pytest.mark.parametrize("role", ["student", "grader"])
def test_each_role_has_its_own_parts_of_nbgrader(written, tmp_path, role):
    settings.write(written("limits: {kernel_idle_minutes: 10, cell_seconds: 77}\n"), role, tmp_path / role)
    jupyter = json.loads((tmp_path / role / "jupyter_server_config.json").read_text(encoding="utf-8"))
    on = {name for name, value in jupyter["ServerApp"]["jpserver_extensions"].items() if value}
    mine = {"student": "autograder.hub.assignment_list", "grader": "autograder.hub.formgrader"}[role]
    assert on == {mine, "nbgrader.server_extensions.validate_assignment"}
    culling = jupyter["MappingKernelManager"]
    assert culling["cull_idle_timeout"] == 600 and culling["cull_connected"] and not culling["cull_busy"]
    read = PyFileConfigLoader("nbgrader_config.py", path=str(tmp_path / role)).load_config()
    assert read.Execute.timeout == 77 and read.Exchange.path_includes_course is True
    assert read.Exchange.timezone == read.NbGraderAPI.timezone == "UTC"
    assert read.Authenticator.plugin_class == "nbgrader.auth.JupyterHubAuthPlugin"


def test_no_server_of_a_hub_looks_for_language_servers(root):
    """The search starts npm, and until that has started it may hold the port that the server is about to listen on."""
    manifests = yaml.safe_load_all((root / "hub" / "kubernetes" / "grader.yaml").read_text(encoding="utf-8"))
    (grader,) = (one["data"]["jupyter_server_config.json"] for one in manifests if one["kind"] == "ConfigMap")
    values = yaml.safe_load((root / "hub" / "kubernetes" / "values.yaml").read_text(encoding="utf-8"))
    files = [
        root / "hub" / name / "jupyter_server_config.json"
        for name in ("jupyter/student", "jupyter/grader", "slurm/jupyter")
    ]
    told = [json.loads(grader), values["singleuser"]["extraFiles"]["server"]["data"]]
    told += [json.loads(path.read_text(encoding="utf-8")) for path in files]
    assert [one["LanguageServerManager"] for one in told] == [{"autodetect": False}] * 5


def test_the_password_of_a_database_is_in_no_file_that_students_see(written, tmp_path):
    pytest.importorskip("psycopg", reason="requires psycopg")
    hub = written("gradebook: postgresql://grader:geheim@localhost/amp\n")
    for role in ("student", "grader"):
        settings.write(hub, role, tmp_path / role)
    found = [path for path in tmp_path.rglob("*") if path.is_file() and b"geheim" in path.read_bytes()]
    assert set(found) == {tmp_path / "course.yaml", tmp_path / "grader" / "nbgrader_config.py"}
    assert (tmp_path / "grader" / "nbgrader_config.py").stat().st_mode & 0o077 == 0


# Boxes


def test_a_box_shows_one_home_and_one_students_part_of_the_exchange(written, root):
    hub = written()
    command = spawner.box(hub, "ada", None, then=["true"])
    binds = {
        (command[at], command[at + 1], command[at + 2])
        for at, word in enumerate(command)
        if word in ("--bind", "--ro-bind")
    }
    writable = {(source, place) for kind, source, place in binds if kind == "--bind"}
    assert writable == {
        (str(hub.homes / "ada"), "/home/ada"),
        (str(hub.exchange / "amp/inbound/ada"), "/srv/exchange/amp/inbound"),
    }
    inside = {source for _, source, _ in binds if Path(source).is_relative_to(root)}
    venv = {source for source in inside if Path(source) in {Path(prefix) for prefix in sandbox.prefixes()}}
    assert inside - venv == {str(root / name) for name in ("ampkit", "autograder", "lessons")}


@pytest.mark.parametrize("where", ["folder", "exchange"])
def test_a_folder_that_every_box_would_see_is_refused(written, where):
    hub = written(f"{where}: {sys.prefix}/state\n")
    with pytest.raises(HubError, match=r"which students' servers see; nothing was started\. Move"):
        spawner.require_hidden(hub)


def test_a_box_starts_here_and_is_what_it_says(written, hub_can_run):
    hub = written()
    os.chmod(hub.folder, 0o711)
    exchange.prepare(hub.exchange, "amp", ["ada"])
    spawner.require(hub)


@pytest.mark.skipif(os.geteuid() != 0, reason="requires root")
def test_each_account_keeps_a_user_id_of_its_own_and_none_is_given_twice(written):
    hub = written("first_uid: 300000\n")
    first = spawner.uids(hub, ["ada", "emmy"])
    assert first == {"grader-amp": 300000, "ada": 300001, "emmy": 300002}
    assert (
        spawner.uids(hub, ["zoe"])["zoe"] == 300003
    )  # ada and emmy are gone from the roster, and their files may not be
    assert spawner.uids(hub, ["emmy"])["emmy"] == 300002
    (hub.folder / "uids.json").write_text("{", encoding="utf-8")
    with pytest.raises(HubError, match=r"uids\.json cannot be read.*backup"):
        spawner.uids(hub, [])


def test_a_pid_that_is_another_process_by_now_is_not_taken_for_the_server():
    import asyncio

    one = spawner.BoxedSpawner()
    one.load_state({"pid": os.getpid(), "started": 1.0, "gpu": "GPU-1"})
    assert asyncio.run(one.poll()) == 0 and one.pid == 0 and one.gpu == ""


def test_of_several_gpus_a_box_sees_its_own(tmp_path, monkeypatch):
    for number, address in enumerate(("0000:07:00.0", "0000:0f:00.0")):
        (tmp_path / address).mkdir()
        text = f"Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-{number}abc\nDevice Minor: \t {1 - number}\n"
        (tmp_path / address / "information").write_text(text, encoding="utf-8")
    found = spawner.gpus(tmp_path)
    assert found == {"0": 1, "GPU-0abc": 1, "1": 0, "GPU-1abc": 0}
    assert spawner.in_the_box("0", tmp_path) == "GPU-0abc"
    monkeypatch.setattr(spawner, "gpus", lambda folder=tmp_path: found)
    assert "/dev/nvidia1" in spawner.devices("0") and "/dev/nvidia0" not in spawner.devices("0")
    assert {"/dev/nvidia0", "/dev/nvidia1"} <= {*spawner.devices("MIG-1b3c")}  # a slice has no file of its own
    assert spawner.devices("") == []


def test_a_gpu_is_given_to_one_server_at_a_time_and_who_comes_too_late_reads_why(written):
    hub = written("gpu: {policy: whole, devices: [0, 1]}\n")
    users = {}
    made = []
    for name in ("ada", "emmy", "zoe"):
        user = SimpleNamespace(name=name, settings={"users": users}, spawners={})
        one = spawner.BoxedSpawner(course=hub)
        one.user = user
        user.spawners[""] = one
        users[name] = user
        made.append(one)
    type(made[0]).active = property(lambda self: bool(self.gpu))
    try:
        made[0].gpu, made[1].gpu = made[0]._choose_gpu(), ""
        made[1].gpu = made[1]._choose_gpu()
        assert (made[0].gpu, made[1].gpu) == ("0", "1")
        with pytest.raises(HubError, match=r"all 2 GPUs of this course are in use.*60 minutes"):
            made[2]._choose_gpu()
        made[0].clear_state()
        assert made[2]._choose_gpu() == "0"
    finally:
        del type(made[0]).active


# What a server becomes


def test_limits_hold_for_what_the_server_starts(tmp_path):
    code = "import resource, os; print(resource.getrlimit(resource.RLIMIT_DATA)[0], len(os.sched_getaffinity(0)), os.getcwd())"
    command = server.command(
        "--memory-gb", "3", "--cores", "1", "--home", str(tmp_path), then=[sys.executable, "-c", code]
    )
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert said == [str(3 * 2**30), "1", str(tmp_path)]


def test_what_is_tied_ends_with_what_started_it(tmp_path):
    sleeper = server.command(server.tied(), then=["sleep", "1000"])
    code = f"import subprocess, time; print(subprocess.Popen({sleeper!r}).pid, flush=True); time.sleep(1000)"
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    import psutil
    from people import until

    child = psutil.Process(int(parent.stdout.readline()))
    until(lambda: child.cmdline()[:1] == ["sleep"], "the sleeper")
    parent.kill()
    parent.communicate()

    def ended() -> bool:
        try:
            return not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:  # between the two questions
            return True

    until(ended, "its end")


def test_lessons_are_brought_and_a_full_disk_is_said_in_the_home(root, tmp_path, monkeypatch):
    server.deliver(root / "lessons", tmp_path)
    assert len(list((tmp_path / "lessons").glob("*.ipynb"))) >= 4
    mine = tmp_path / "lessons" / "01_fp16_range.ipynb"
    mine.write_text("mine", encoding="utf-8")
    server.deliver(root / "lessons", tmp_path)
    assert mine.read_text(encoding="utf-8") == "mine"

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ampkit.lab.sync", full)
    server.deliver(root / "lessons", tmp_path)
    assert "No space left" in (tmp_path / "LESSONS-NOT-UPDATED.txt").read_text(encoding="utf-8")


# Authenticators and spawners by name


def test_every_name_of_course_yaml_has_a_class_and_each_that_is_here_takes_what_is_set(written):
    assert set(plugins.SPAWNERS) == set(config.SPAWNERS)
    assert {*plugins.AUTHENTICATORS, "oauth", "lti"} == set(config.AUTHENTICATORS)
    tried = 0
    for kind in plugins.SPAWNERS.values():
        try:
            cls = plugins.load(kind, "spawner")
        except HubError as error:
            assert f"pip install {kind.package}" in str(error)
        else:
            assert cls.__name__ == kind.name
            tried += 1
    assert tried >= 2


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("authenticator: {name: oauth, options: {class: githup}}", r"options\.class: 'githup': did you mean github"),
        ("authenticator: {name: oauth}", r"options\.class: '': It says which OAuth provider, one of github"),
        ("authenticator: {name: lti, options: {version: 2}}", r"options\.version: '2': .*one of 11, 13"),
        ("authenticator: {name: shared-password}", r"options\.user_password: it is missing"),
        (
            "authenticator: {name: shared-password, options: {user_pasword: x}}",
            r"options\.user_pasword: SharedPasswordAuthenticator has no such option; did you mean user_password",
        ),
        ("authenticator: {name: passwords, options: {allow_all: maybe}}", r"options\.allow_all: 'maybe': .*boolean"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_before_anything_starts(written, more, says):
    with pytest.raises(HubError, match=says) as error:
        plugins.authenticator(written(more + "\n"))
    assert "nothing was started" in str(error.value)


def test_a_package_that_is_missing_is_named_with_the_line_that_installs_it(written, monkeypatch):
    monkeypatch.setitem(plugins.SPAWNERS, "docker", plugins.Kind("no_such_package.DockerSpawner", "dockerspawner"))
    with pytest.raises(HubError, match=r"DockerSpawner is not installed.*pip install dockerspawner"):
        plugins.spawner(written("spawner: {name: docker, options: {image: x}}\n"))
    with pytest.raises(HubError, match=r"spawner\.options\.image: it is missing"):
        plugins.spawner(written("spawner: docker\n"))


def test_a_container_gets_its_home_and_its_part_of_the_exchange(written):
    hub = written("spawner: {name: docker, options: {image: x}}\n")
    hub.exchange.mkdir(parents=True)
    container = SimpleNamespace(user=SimpleNamespace(name="ada"))
    plugins.mounts(hub, container)
    assert container.volumes == {
        str(hub.homes / "ada"): "/home/jovyan",
        str(hub.exchange / "amp/inbound/ada"): "/srv/exchange/amp/inbound",
    }
    assert set(container.read_only_volumes.values()) == {
        *("/opt/course/jupyter", "/srv/exchange/amp/outbound", "/srv/exchange/amp/feedback"),
    }


def test_a_systemd_unit_sees_neither_the_hubs_folder_nor_the_exercises(written, root):
    hub = written("spawner: systemd\n")
    hub.exchange.mkdir(parents=True)
    unit = SimpleNamespace(user=SimpleNamespace(name="ada"), unit_extra_properties={"TasksMax": "512"})
    plugins.mounts(hub, unit)
    hidden = unit.unit_extra_properties["InaccessiblePaths"].split()
    assert {str(hub.folder), str(root / "exercises"), str(hub.path)} <= {*hidden}
    assert unit.unit_extra_properties["TasksMax"] == "512"
    assert f"{hub.exchange / 'amp/inbound/ada'}:/srv/exchange/amp/inbound" in unit.unit_extra_properties["BindPaths"]


def test_limits_of_course_yaml_are_the_spawners(written):
    hub = written("limits: {memory_gb: 4, cpus: 1.5}\nspawner: kubernetes\n")
    pytest.importorskip("kubespawner", reason="requires kubespawner")
    kind, options = plugins.spawner(hub)
    assert kind.name == "KubeSpawner" and options == {"mem_limit": 4 * 2**30, "cpu_limit": 1.5}


# What is missing on a machine


def test_without_node_or_without_the_proxy_the_line_that_installs_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(start.sys, "prefix", str(tmp_path))
    with pytest.raises(HubError, match=r"Node\.js is not installed.*apt install nodejs npm"):
        start.proxy_command()
    (tmp_path / "node").write_text("#!/bin/sh\n")
    (tmp_path / "node").chmod(0o755)
    with pytest.raises(HubError, match=r"npm install --global --prefix .* configurable-http-proxy"):
        start.proxy_command()


@pytest.mark.parametrize(
    ("version", "good"), [("4.1.6", False), ("5.1.0", False), ("5.2.0", True), ("6.1.1", True), ("7.0", False)]
)
def test_only_a_jupyterhub_that_this_was_made_for_is_taken(monkeypatch, version, good):
    monkeypatch.setattr(start.importlib.metadata, "version", lambda name: version)
    if good:
        start._require_jupyterhub()
    else:
        with pytest.raises(
            HubError, match=rf"JupyterHub {re.escape(version)} is installed, and this hub is made for 5\.2 to 6"
        ):
            start._require_jupyterhub()


def test_without_jupyterhub_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(start.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(HubError, match=r"pip install -e '\.\[hub\]'"):
        start._require_jupyterhub()


def test_without_bubblewrap_students_are_not_mixed_but_the_start_is_refused(written, monkeypatch):
    def none():
        raise sandbox.SandboxError("This machine cannot isolate an answer (no bwrap was found). More.")

    monkeypatch.setattr(sandbox, "bwrap", none)
    with pytest.raises(
        HubError, match=r"cannot separate students' servers \(no bwrap was found\); nothing was started"
    ):
        spawner.require(written())


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (["hub"], "give --demo"),
        (["hub", "--demo", "--config", "course.yaml"], "give --demo"),
        (["hub", "--config", "nowhere.yaml"], "There is no"),
        (["hub", "--demo", "--port", "1x"], "Invalid value for '--port'"),
        (["hub", "--demo", "--dir", "full"], "is not empty and holds no earlier demo"),
    ],
)
def test_a_command_that_is_typed_wrong_says_what_to_type(tmp_path, monkeypatch, typed, says):
    from typer.testing import CliRunner

    from autograder.cli import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    done = CliRunner().invoke(app, typed)
    assert done.exit_code in (1, 2) and says in re.sub(r"\s*│?\n│?\s*", " ", done.output)
    assert "Traceback" not in done.output
