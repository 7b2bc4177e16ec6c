"""hub/slurm: the job scripts of its profiles, what a student can change in them, and a job that becomes a server.

There is no Slurm here. Scripts are rendered by batchspawner's own code; for a whole start, `sbatch`, `squeue` and `scancel` are
stood in for by scripts of three lines, and the hub and the server in the job are real.
"""

import asyncio
import contextlib
import copy
import json
import os
import pwd
import re
import shlex
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

batchspawner = pytest.importorskip("batchspawner", reason="requires batchspawner")

from tornado.web import HTTPError  # noqa: E402
from traitlets import TraitError  # noqa: E402
from traitlets.config import Config  # noqa: E402

from autograder.errors import CourseError  # noqa: E402
from autograder.hub import ports, slurm  # noqa: E402
from autograder.hub.kubernetes import folder  # noqa: E402

ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture(scope="module")
def config(root) -> Config:
    c = Config()
    exec((root / "hub" / "slurm" / "slurm_config.py").read_text(encoding="utf-8"), {"get_config": lambda: c})
    return c


class Person:
    name, id, url, admin = ME, 1, f"/user/{ME}/", False


def spawner(config: Config, options: dict | None = None, name: str = ME, kind=slurm.CourseSlurmSpawner):
    person = Person()
    person.name = name
    made = kind(config=config, user=person, _deprecated_db_session=None)
    made.user_options = options or {}
    made.get_env = lambda: {
        "JUPYTERHUB_API_TOKEN": "secret",
        "JUPYTERHUB_USER": name,
        "JUPYTER_CONFIG_PATH": "/shared/amp/jupyter",
    }
    made.get_args = lambda: []
    return made


def submitted(made) -> tuple[str, str]:
    """The command that the hub runs and the job script that it pipes into it, from batchspawner's own start."""
    seen = {}

    async def run_command(command, input=None, env=None):
        seen.setdefault("command", command)
        seen.setdefault("script", input)
        seen.setdefault("env", env)
        raise StopHere

    class StopHere(Exception):
        pass

    made.run_command = run_command
    with pytest.raises(StopHere):
        asyncio.run(made.start())
    return seen["command"], seen["script"]


def directives(script: str) -> dict[str, str]:
    return dict(re.findall(r"^#SBATCH --([a-z-]+)=(.*)$", script, flags=re.MULTILINE))


# Job scripts

EXPECTED = {
    "cpu": {"partition": "teaching", "cpus-per-task": "2", "mem": "4G", "time": "04:00:00"},
    "class": {
        "partition": "gpu",
        "reservation": "amp-class",
        "gres": "gpu:1",
        "cpus-per-task": "4",
        "mem": "16G",
        "time": "02:00:00",
    },
    "gpu": {"partition": "gpu", "gres": "gpu:1", "cpus-per-task": "4", "mem": "16G", "time": "02:00:00"},
    "mig": {"partition": "gpu", "gres": "gpu:1g.10gb:1", "cpus-per-task": "4", "mem": "16G", "time": "02:00:00"},
}


def test_the_profiles_are_these(config):
    assert list(config.CourseSlurmSpawner.profiles) == list(EXPECTED)


@pytest.mark.parametrize("profile", EXPECTED)
def test_a_profiles_job_asks_for_its_share_and_no_more(config, profile):
    _, script = submitted(spawner(config, {"profile": profile}))
    common = {"output", "job-name", "chdir", "export", "get-user-env"}
    asked = {name: value for name, value in directives(script).items() if name not in common}
    assert asked == EXPECTED[profile]
    assert script.startswith("#!/bin/bash\n")
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


def test_a_job_links_the_exchange_and_starts_the_server_by_full_names(config):
    _, script = submitted(spawner(config))
    lines = [line for line in script.splitlines() if line and not line.startswith("#")]
    assert "/shared/amp/environment/bin/python -P -m autograder.hub.slurm link /shared/amp/exchange amp" in lines
    assert (
        "srun /shared/amp/environment/bin/batchspawner-singleuser /shared/amp/environment/bin/jupyterhub-singleuser"
        in lines
    )


def test_the_token_is_in_the_environment_and_not_in_the_script_or_the_command(config):
    command, script = submitted(spawner(config))
    assert "secret" not in script and "secret" not in command
    assert "JUPYTERHUB_API_TOKEN" in directives(script)["export"].split(",")


def test_jobs_are_submitted_as_the_student(config):
    command, _ = submitted(spawner(config))
    assert command == f"sudo -E -u {ME} /usr/bin/sbatch --parsable"


def test_qos_and_account_get_a_line_of_their_own(config):
    c = copy.deepcopy(config)
    c.CourseSlurmSpawner.profiles = {
        "gpu": {"title": "GPU", "qos": "class", "account": "amp", "options": "--exclusive=user"}
    }
    _, script = submitted(spawner(c))
    assert "#SBATCH --qos=class --account=amp --exclusive=user\n" in script


@pytest.mark.parametrize(
    ("profiles", "said"),
    [
        ({"GPU!": {"title": "x"}}, "its name"),
        ({"gpu": {"title": "x", "prologue": "y"}}, "prologue"),
        ({"gpu": {"gres": "gpu:1"}}, "title is needed"),
        ({"gpu": {"title": "x", "gres": "gpu:1\n#SBATCH --uid=0"}}, "one line of text"),
        ({"gpu": {"title": "x", "nprocs": 4}}, "one line of text"),
    ],
)
def test_profiles_that_cannot_be_are_refused_when_the_hub_starts(profiles, said):
    c = Config()
    c.CourseSlurmSpawner.profiles = profiles
    with pytest.raises(TraitError, match=said):
        spawner(c)


def test_the_form_offers_each_profile_and_escapes_what_it_says(config):
    c = copy.deepcopy(config)
    c.CourseSlurmSpawner.profiles = {"a": {"title": "<b>"}, "b": {"title": "B"}}
    form = spawner(c).options_form
    assert re.findall(r'value="(\w+)"( checked)?', form) == [("a", " checked"), ("b", "")]
    assert "<b>" not in form and "&lt;b&gt;" in form


# What a student can change


@pytest.mark.parametrize(
    "options",
    [
        {"profile": "gpu", "gres": "gpu:8"},
        {"prologue": "nvidia-smi"},
        {"profile": "cpu", "cmd": "bash"},
        {"profile": "none"},
        {"profile": ["gpu"]},
        {"runtime": "30-00:00:00"},
    ],
)
def test_a_request_chooses_a_profile_and_nothing_else(config, options):
    with pytest.raises(HTTPError, match="cannot be chosen") as refused:
        asyncio.run(spawner(config, options).start())
    assert refused.value.status_code == 400
    assert "cannot be chosen" in refused.value.jupyterhub_message


def test_stock_batchspawner_would_have_taken_the_students_values(config):
    stock = Config()
    stock.SlurmSpawner.req_gres = "gpu:1"
    made = spawner(stock, {"gres": "gpu:8"}, kind=batchspawner.SlurmSpawner)
    assert directives(submitted(made)[1])["gres"] == "gpu:8"


def test_stock_batchspawner_would_have_let_a_job_say_what_the_hub_runs_next(config):
    made = spawner(Config(), kind=batchspawner.SlurmSpawner)
    made.api_token = "the job's"

    class Request:
        class current_user:
            spawners = {"": made}  # noqa: RUF012

        get_auth_token = staticmethod(lambda: "the job's")
        get_json_body = staticmethod(lambda: {"exec_prefix": "anything;"})
        finish = set_status = staticmethod(lambda said: None)

    slurm.BatchSpawnerAPIHandler.post.__wrapped__(Request())
    assert made.exec_prefix == "anything;"


def test_the_hub_answers_jobs_with_our_handler_alone():
    handlers = [handler for pattern, handler, *_ in slurm.default_handlers if "batchspawner" in pattern]
    assert handlers == [slurm.PortHandler]


def test_a_choice_is_taken_anew_at_each_start(config):
    made = spawner(config, {"profile": "class"})
    submitted(made)
    made.user_options = {"profile": "cpu"}
    _, script = submitted(made)
    assert directives(script).keys().isdisjoint({"gres", "reservation"})
    made.profiles = {"plain": {"title": "Plain"}}
    made.user_options = {}
    _, script = submitted(made)
    assert directives(script).keys().isdisjoint({"partition", "time", "mem"})


def test_what_all_profiles_have_in_common_may_be_set_once(config):
    c = copy.deepcopy(config)
    c.CourseSlurmSpawner.req_partition = "teaching"
    c.CourseSlurmSpawner.profiles = {"cpu": {"title": "CPU"}, "gpu": {"title": "GPU", "partition": "gpu"}}
    asked = [directives(submitted(spawner(c, {"profile": name}))[1])["partition"] for name in ("cpu", "gpu", "cpu")]
    assert asked == ["teaching", "gpu", "teaching"]


@pytest.mark.parametrize("name", ["ada; id", "$(id)", "a b", "Ada", "-u", "ada@example.org", "a" * 33])
def test_a_name_that_is_no_account_never_reaches_a_shell(config, name, monkeypatch):
    monkeypatch.setattr(pwd, "getpwnam", lambda name: pwd.getpwuid(os.getuid()))
    with pytest.raises(HTTPError, match="cannot start a job"):
        asyncio.run(spawner(config, name=name).start())


# What Jupyter does in a job


def test_idle_kernels_go_even_with_an_open_tab(root):
    from jupyter_server.services.kernels.kernelmanager import MappingKernelManager

    data = json.loads((root / "hub/slurm/jupyter/jupyter_server_config.json").read_text(encoding="utf-8"))
    manager = MappingKernelManager(**data["MappingKernelManager"])
    assert (manager.cull_connected, manager.cull_busy) == (True, False)
    assert 0 < manager.cull_interval < manager.cull_idle_timeout < data["ServerApp"]["shutdown_no_activity_timeout"]


def test_students_have_the_same_extensions_as_on_kubernetes(root):
    import yaml

    files = yaml.safe_load((root / "hub/kubernetes/values.yaml").read_text(encoding="utf-8"))["singleuser"][
        "extraFiles"
    ]
    data = json.loads((root / "hub/slurm/jupyter/jupyter_server_config.json").read_text(encoding="utf-8"))
    lab = json.loads((root / "hub/slurm/jupyter/labconfig/page_config.json").read_text(encoding="utf-8"))
    assert data["ServerApp"]["jpserver_extensions"] == files["server"]["data"]["ServerApp"]["jpserver_extensions"]
    assert data["MappingKernelManager"] == files["server"]["data"]["MappingKernelManager"]
    assert lab == files["lab"]["data"]


# The exchange


@pytest.fixture
def exchange(tmp_path) -> Path:
    from autograder.hub.exchange import prepare

    prepare(tmp_path / "exchange", "amp", ["ada", "bob"])
    return tmp_path / "exchange"


def test_a_job_shows_a_student_their_own_part_of_the_exchange(exchange, tmp_path):
    here = tmp_path / "home" / ".exchange"
    for _ in range(2):
        slurm.link(exchange, "amp", "ada", here)
    assert {path.name: path.readlink() for path in (here / "amp").iterdir()} == {
        "outbound": exchange / "amp" / "outbound",
        "inbound": exchange / "amp" / "inbound" / folder("ada"),
        "feedback": exchange / "amp" / "feedback" / folder("ada"),
    }


def test_a_student_who_is_not_in_the_exchange_is_told_who_can_help(exchange, tmp_path):
    with pytest.raises(CourseError, match="prepare"):
        slurm.link(exchange, "amp", "eve", tmp_path / "home")


def test_what_lies_in_the_way_of_a_link_is_not_deleted(exchange, tmp_path):
    mine = tmp_path / "home" / "amp" / "outbound"
    mine.mkdir(parents=True)
    with pytest.raises(CourseError, match="in the way"):
        slurm.link(exchange, "amp", "ada", tmp_path / "home")
    assert mine.is_dir()


@pytest.fixture
def open_folder():
    """A folder that everybody may pass through, which tmp_path is not."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.skipif(os.getuid() != 0, reason="requires root, to give folders to others")
def test_only_the_student_and_the_grader_can_open_a_students_folder(open_folder, monkeypatch):
    accounts = {"ada": (4001, 4001), "bob": (4002, 4002), "grader-amp": (4100, 4100)}

    class Account:
        def __init__(self, name: str) -> None:
            self.pw_uid, self.pw_gid = accounts[name]

    monkeypatch.setattr(slurm.pwd, "getpwnam", Account)
    slurm.prepare(open_folder / "exchange", "amp", ["ada", "bob"], "grader-amp")
    place = (open_folder / "exchange" / "amp" / "inbound" / "ada").stat()
    assert (place.st_uid, place.st_gid, stat.S_IMODE(place.st_mode)) == (4001, 4100, 0o2770)

    def may(uid: int, script: str) -> bool:
        command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "sh", "-c", script]
        return subprocess.run(command, cwd=open_folder / "exchange" / "amp", capture_output=True).returncode == 0

    assert may(4001, "mkdir inbound/ada/work && ls inbound/ada")
    assert may(4100, "ls inbound/ada/work && ls inbound")
    assert not may(4002, "ls inbound/ada") and not may(4002, "mkdir inbound/ada/mine")
    assert not may(4002, "ls inbound") and not may(4002, "mkdir outbound/mine")


@pytest.mark.skipif(os.getuid() != 0, reason="requires root, to give folders to others")
def test_a_grader_in_the_students_group_is_refused(tmp_path, monkeypatch):
    class Account:
        pw_uid, pw_gid = 4001, 100

        def __init__(self, name: str) -> None:
            pass

    monkeypatch.setattr(slurm.pwd, "getpwnam", Account)
    with pytest.raises(CourseError, match="primary group"):
        slurm.prepare(tmp_path / "exchange", "amp", ["ada"], "grader-amp")
    assert not (tmp_path / "exchange").exists()


def test_accounts_that_are_missing_are_all_named(tmp_path):
    with pytest.raises(CourseError, match="nobody-here-1, nobody-here-2"):
        slurm.prepare(tmp_path, "amp", [ME, "nobody-here-1", "nobody-here-2"], ME)


# A whole start

SBATCH = """#!/bin/sh
cat > {here}/script
grep -q '^#SBATCH --gres=gpu:1$' {here}/script || exit 3
setsid bash {here}/script > {here}/job.log 2>&1 &
echo $! > {here}/job
cat {here}/job
"""
# A job that has ended is a zombie where process 1 buries none.
SQUEUE = r"""#!/bin/sh
grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$3/status" && echo RUNNING 127.0.0.1 || exit 1
"""
SCANCEL = """#!/bin/bash
kill -TERM -- "-$1"
"""
HUB = """
import json
from jupyterhub.proxy import Proxy

class NoProxy(Proxy):
    should_start = False
    async def add_route(self, routespec, target, data): pass
    async def delete_route(self, routespec): pass
    async def get_all_routes(self): return {}
    async def get_route(self, routespec): return None

here, port, public_port, token, python, user, root = json.loads(%r)
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.bind_url = f"http://127.0.0.1:{public_port}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{port}"
c.JupyterHub.db_url = "sqlite://"
c.JupyterHub.cleanup_servers = True
c.JupyterHub.authenticator_class = "null"
c.Authenticator.allowed_users = {user}
c.JupyterHub.services = [{"name": "tests", "api_token": token}]
c.JupyterHub.load_roles = [{"name": "tests", "services": ["tests"], "scopes": ["admin:users", "admin:servers"]}]
c.JupyterHub.spawner_class = "autograder.hub.slurm.CourseSlurmSpawner"
c.CourseSlurmSpawner.profiles = {"gpu": {"title": "GPU", "gres": "gpu:1"}}
c.CourseSlurmSpawner.exec_prefix = ""
c.CourseSlurmSpawner.batch_submit_cmd = f"{here}/sbatch"
c.CourseSlurmSpawner.batch_query_cmd = f"{here}/squeue -h -j {{job_id}}"
c.CourseSlurmSpawner.batch_cancel_cmd = f"{here}/scancel {{job_id}}"
c.CourseSlurmSpawner.req_srun = ""
c.CourseSlurmSpawner.req_epilogue = ""
c.CourseSlurmSpawner.batchspawner_singleuser_cmd = f"{python} -m batchspawner.singleuser"
c.CourseSlurmSpawner.cmd = [f"{here}/jupyterhub-singleuser"]
c.CourseSlurmSpawner.args = ["--allow-root"] if root else []
c.CourseSlurmSpawner.ip = "127.0.0.1"
c.CourseSlurmSpawner.environment = {"HOME": here}
"""


def ask(url: str, token: str, data: object = None, method: str | None = None) -> tuple[int, str]:
    body = json.dumps(data).encode() if data is not None else None
    request = urllib.request.Request(url, data=body, method=method, headers={"Authorization": f"token {token}"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def wait_until(done, process: subprocess.Popen, logs: list[Path]) -> None:
    end = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError):
            if done():
                return
        said = "\n".join(log.read_text() for log in logs if log.exists())
        assert process.poll() is None and time.monotonic() < end, said
        time.sleep(0.1)


@pytest.mark.slow
def test_a_job_becomes_a_server_and_its_token_can_set_nothing_but_the_port(tmp_path):
    binaries = {"sbatch": SBATCH, "squeue": SQUEUE, "scancel": SCANCEL}
    singleuser = "import sys\nfrom jupyterhub.singleuser import main\nsys.exit(main())\n"
    for name, text in {**binaries, "jupyterhub-singleuser": singleuser}.items():
        path = tmp_path / name
        path.write_text(text.replace("{here}", shlex.quote(str(tmp_path))), encoding="utf-8")
        path.chmod(0o755)
    port, public_port = ports.free(2)
    token = "t" * 64
    told = [str(tmp_path), port, public_port, token, sys.executable, ME, os.getuid() == 0]
    (tmp_path / "jupyterhub_config.py").write_text(HUB % json.dumps(told), encoding="utf-8")
    log, api = tmp_path / "hub.log", f"http://127.0.0.1:{port}/hub/api"
    with log.open("w") as file, contextlib.ExitStack() as stack:
        command = [sys.executable, "-m", "jupyterhub", "-f", "jupyterhub_config.py"]
        hub = subprocess.Popen(command, cwd=tmp_path, stdout=file, stderr=file)
        stack.callback(hub.wait, 30)
        stack.callback(hub.terminate)
        stack.callback(
            subprocess.run, ["sh", "-c", f"{tmp_path}/scancel $(cat {tmp_path}/job)"], stderr=subprocess.DEVNULL
        )
        logs = [log, tmp_path / "job.log"]
        wait_until(lambda: ask(f"{api}/", token)[0] == 200, hub, logs)

        status, said = ask(f"{api}/users/{ME}/server", token, {"gres": "gpu:8"})
        assert status == 400 and "cannot be chosen" in said
        assert not (tmp_path / "script").exists()

        assert ask(f"{api}/users/{ME}/server", token, {"profile": "gpu"})[0] in (201, 202)
        wait_until(
            lambda: json.loads(ask(f"{api}/users/{ME}", token)[1])["servers"].get("", {}).get("ready"), hub, logs
        )

        job = int((tmp_path / "job").read_text())
        environ = Path(f"/proc/{job}/environ").read_bytes().split(b"\0")
        (mine,) = [line.partition(b"=")[2].decode() for line in environ if line.startswith(b"JUPYTERHUB_API_TOKEN=")]
        attacks = [
            {"exec_prefix": f"touch {tmp_path}/taken;"},
            {"port": 8888, "exec_prefix": f"touch {tmp_path}/taken;"},
            {"batch_query_cmd": f"touch {tmp_path}/taken"},
            {"port": "8888; id"},
            {"port": 22},
            {"port": True},
            [],
        ]
        for attack in attacks:
            status, said = ask(f"{api}/batchspawner", mine, attack)
            assert status == 400 and "and nothing else" in said, (attack, said)
        assert ask(f"{api}/batchspawner", mine, {"port": 8888})[0] == 409
        assert ask(f"{api}/batchspawner", token, {"port": 8888})[0] in (403, 404)

        assert ask(f"{api}/users/{ME}/server", token, method="DELETE")[0] in (202, 204)
        wait_until(lambda: not json.loads(ask(f"{api}/users/{ME}", token)[1])["servers"], hub, logs)
        assert not (tmp_path / "taken").exists()
        assert subprocess.run([tmp_path / "squeue", "-h", "-j", str(job)]).returncode == 1
