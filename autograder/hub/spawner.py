"""Students' servers on this machine, each in a box of bubblewrap.

A box has a file system and processes of its own. It sees the system, this Python, of the checkout the library and the check
runner, its student's home, and of the exchange what is everybody's or its student's. There are no exercises with their
solutions and mistakes, no course, no gradebook, no other home, nothing of the hub's in it: not forbidden, but not there. That
holds for a hub that runs as an ordinary user, too; where it runs as root, each student has a user id of its own besides.

The network is the host's: a server has to be reached by the proxy, and reaches the hub. Kernels therefore talk through sockets
in the box and not on ports, where they could be listened to (settings.py).
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil
from jupyterhub.spawner import LocalProcessSpawner
from tornado import web
from traitlets import Bool, Instance, Unicode

from autograder import sandbox
from autograder.atomic import write_atomically
from autograder.errors import HubError, SandboxError
from autograder.hub import ports, server
from autograder.hub.config import HubConfig

ROOT = server.ROOT
EXCHANGE, LESSONS, JUPYTER = "/srv/exchange", "/opt/course/lessons", "/opt/course/jupyter"  # in a box
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
ETC = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "ssl", "pki", "ca-certificates", "fonts"),
    *(
        "hosts",
        "nsswitch.conf",
        "resolv.conf",
        "alternatives",
        "mime.types",
        "OpenCL",
        "profile",
        "bash.bashrc",
        "inputrc",
    ),
)
MAX_LOG = 5_000_000  # bytes of a student's log, above which the next start begins a new one and keeps one old one
GPUS = Path("/proc/driver/nvidia/gpus")  # one folder for each, by PCI address


class BoxedSpawner(LocalProcessSpawner):
    """A LocalProcessSpawner whose server runs in a box, as the student's own user id where the hub runs as root."""

    course = Instance(HubConfig, help="The hub's configuration, from course.yaml.").tag(config=True)
    tied = Bool(False, help="Whether servers end with the hub: for the demo. Else a hub can be restarted.").tag(
        config=True
    )
    gpu = Unicode("", help="The GPU that this server has, as CUDA_VISIBLE_DEVICES takes it.")
    words: tuple[Path, int]  # the log, and where in it those of this server begin
    started = 0.0  # of the process whose pid we keep, in seconds since the epoch: a pid may be another's after a while

    def make_preexec_fn(self, name):
        """Nothing: the user id is changed in the box."""
        return None

    def user_env(self, env):
        home = f"/home/{self.user.name}"
        return {
            **env,
            "USER": self.user.name,
            "LOGNAME": self.user.name,
            "HOME": home,
            "SHELL": "/bin/bash",
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "LANG": env.get("LANG", "C.UTF-8"),
            "TMPDIR": "/tmp",
            "JUPYTER_CONFIG_PATH": JUPYTER,
            # On the box's own /tmp: sockets on it have short enough names, and it is gone with the server.
            "JUPYTER_RUNTIME_DIR": "/tmp/jupyter",
            "PYTHONDONTWRITEBYTECODE": "1",
            # As in devices(): numbers are in the order of the PCI bus. In a box with one GPU, that one is number 0.
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": in_the_box(self.gpu),
            # Time-slicing cannot be seen from a notebook; the lessons that measure say this beside their numbers.
            **(
                {"AMPKIT_GPU_SHARED": self.course.gpu.policy}
                if self.course.gpu.policy in ("mps", "time-slicing")
                else {}
            ),
        }

    async def start(self):
        self.proc = None
        config, name = self.course, self.user.name
        (self.port,) = ports.free()  # the last one may be another's by now
        try:
            self.gpu = self._choose_gpu()
            uid = make_home(config, name)
            command = box(config, name, uid, tied=self.tied, gpu=self.gpu, then=[*self.cmd, *self.get_args()])
        except (HubError, OSError) as error:
            raise _refusal(f"Your server was not started: {error}") from error
        log = config.logs / "servers" / f"{name}.log"
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if log.exists() and log.stat().st_size > MAX_LOG:
            log.replace(log.with_suffix(".log.1"))
        with open(log, "ab") as file:
            self.words = (log, file.tell())
            self.proc = subprocess.Popen(
                command,
                env=self.get_env(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o022,  # the hub's own is stricter, and folders on the way to what a box shows would be shut
            )
        self.pid = self.proc.pid
        self.started = psutil.Process(self.pid).create_time()
        return ("127.0.0.1", self.port)

    def _choose_gpu(self) -> str:
        gpu = self.course.gpu
        if gpu.policy == "none":
            return ""
        if gpu.policy in ("mps", "time-slicing"):
            return ",".join(gpu.devices)
        taken = {
            spawner.gpu
            for user in self.user.settings["users"].values()
            for spawner in user.spawners.values()
            if spawner is not self and spawner.active and isinstance(spawner, BoxedSpawner)
        }
        free = [device for device in gpu.devices if device not in taken]
        if not free:
            raise HubError(
                f"all {len(gpu.devices)} GPUs of this course are in use by others. They are free again when others stop their "
                f"servers, or have been idle for {self.course.limits.idle_minutes} minutes. Try again later."
            )
        return free[0]

    async def progress(self):
        """For the page of who waits: that the server has ended, where it does so as it starts (the hub itself waits on)."""
        while self.proc is None or self.proc.poll() is None:
            await asyncio.sleep(0.5)
        log, start = self.words
        said = log.read_bytes()[start:].decode(errors="replace").strip()
        message = (
            f"Your server ended as it started ({said.splitlines()[-1][:300] if said else 'without a word'}). Tell your "
            f"instructor, who finds more in {log.relative_to(self.course.folder)}. The next try is possible in about "
            f"{self.http_timeout / 60:.0f} minutes."
        )
        yield {"progress": 100, "failed": True, "message": message}

    async def poll(self):
        if self.proc is None and self.pid and not self._is_ours():
            self.clear_state()
            return 0
        return await super().poll()

    def _is_ours(self) -> bool:
        try:
            return abs(psutil.Process(self.pid).create_time() - self.started) < 1
        except psutil.NoSuchProcess:
            return False

    async def stop(self, now=False):
        """End the server: asked first, so that it shuts its kernels down, and then the box with all that is in it."""
        if await self.poll() is not None:
            return
        inside = _inside(self.pid)
        if not (now or self.tied):
            for process in inside[1:2]:  # the first is bubblewrap's own, the second the server
                _kill(process, signal.SIGTERM)
            for _ in range(100):
                if await self.poll() is not None:
                    return
                await asyncio.sleep(0.1)
        # The kernel ends all processes of a box with its first one.
        for process in inside[:1]:
            _kill(process, signal.SIGKILL)
        await self._signal(signal.SIGKILL)
        await self.wait_for_death(self.kill_timeout)

    def get_state(self):
        state = super().get_state()
        if self.pid:
            state |= {"started": self.started, "gpu": self.gpu}
        return state

    def load_state(self, state):
        super().load_state(state)
        self.started, self.gpu = state.get("started", 0.0), state.get("gpu", "")

    def clear_state(self):
        super().clear_state()
        self.started, self.gpu = 0.0, ""


def _refusal(message: str) -> web.HTTPError:
    error = web.HTTPError(503, message)
    error.jupyterhub_message = message  # what the page shows
    return error


def _inside(pid: int) -> list[psutil.Process]:
    """The processes of a box from the outermost in, from the pid of the bubblewrap that waits outside."""
    try:
        chain = [psutil.Process(pid)]
        while children := chain[-1].children():
            chain.append(children[0])
        return chain[1:]
    except psutil.NoSuchProcess:
        return []


def _kill(process: psutil.Process, number: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)  # which looks whether the pid is still the same process


# Who is who


def uids(config: HubConfig, names: Iterable[str]) -> dict[str, int]:
    """The user id of each account of the course, and of `grader-ID`; {} where the hub does not run as root.

    One that was given once is kept in uids.json and never given to another: files may still belong to it.
    """
    if os.geteuid() != 0:
        return {}
    path = config.folder / "uids.json"
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = {}
    except ValueError as error:
        raise HubError(
            f"{path} cannot be read ({error}): it says which user id each student's files belong to. Restore it from a backup; "
            "`ls -ln` in homes/ shows the ids as well."
        ) from error
    before = dict(known)
    for name in [config.grader, *names]:
        if name not in known:
            known[name] = max([config.first_uid - 1, *known.values()]) + 1
    if known != before:
        write_atomically(path, json.dumps(known, indent=1).encode() + b"\n", 0o600)
    return known


def make_home(config: HubConfig, name: str) -> int | None:
    """Make an account's home and its folders in the exchange, where they are not there. Its user id, None as a plain user."""
    from autograder.hub import exchange

    known = uids(config, [name])
    uid, grader = known.get(name), known.get(config.grader)
    home = config.homes / name
    if not home.is_dir():
        home.mkdir(mode=0o700)
        if uid is not None:
            os.chown(home, uid, uid)
    exchange.prepare(config.exchange, config.course_id, [name], known, None if grader is None else (grader, grader))
    return uid


# The box


def shown(config: HubConfig) -> list[str]:
    """The folders of this machine that every box sees, read only, in the same place."""
    return [*sandbox.prefixes(), str(ROOT / "ampkit"), str(ROOT / "autograder")]


def require_hidden(config: HubConfig) -> None:
    """HubError where something that students must not read lies in a folder that boxes see."""
    secret = [
        ROOT / "exercises",
        ROOT / "tests",
        ROOT / "hub",
        config.folder,
        config.exchange,
        config.roster,
        config.path,
    ]
    for path in filter(None, secret):
        for place in (*SYSTEM, *shown(config)):
            if path.resolve().is_relative_to(os.path.realpath(place)):
                raise HubError(
                    f"{path} lies in {place}, which students' servers see; nothing was started. Move "
                    f"{'the checkout' if path.is_relative_to(ROOT) else 'it'} elsewhere, such as /srv."
                )


def require(config: HubConfig) -> None:
    """HubError, with what to do, unless a box can be made here: one is, and looks around."""
    try:
        sandbox.bwrap()
    except SandboxError as error:
        said = str(error).partition("(")[2].partition(")")[0]
        raise HubError(
            f"This machine cannot separate students' servers ({said}); nothing was started. Install bubblewrap (apt install "
            "bubblewrap), and allow user namespaces; `autograder doctor` says more. A hub on another spawner (docker, systemd) "
            "does without."
        ) from error
    require_hidden(config)
    uid = config.first_uid if os.geteuid() == 0 else None
    looks = "import os, autograder.hub.server, ampkit; os.listdir('/tmp'); print(os.getuid())"
    command = box(config, "somebody", uid, tied=True, then=[sys.executable, "-c", looks], bare=True)
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": os.defpath, "HOME": "/tmp"}, cwd="/")
    if done.returncode or done.stdout.strip() != str(os.getuid() if uid is None else uid):
        lines = (done.stderr.strip() or "no message").splitlines()
        raise HubError(
            f"A student's server would not start on this machine ({lines[-1]}); nothing was started. Other accounts have to be "
            f"able to read {sys.prefix} and {ROOT / 'ampkit'}: install for all users, such as in /opt or /srv."
        )


def box(
    config: HubConfig,
    name: str,
    uid: int | None,
    *,
    then: list[str],
    tied: bool = False,
    gpu: str = "",
    bare: bool = False,
) -> list[str]:
    """The command that runs `then` in an account's box. `uid` is whom to become in it (as root). `bare`: without home."""
    from autograder.hub import exchange

    home = f"/home/{name}"
    command = [sandbox.bwrap(), "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", config.course_id]
    if uid is None:
        command += ["--unshare-user"]
    else:
        # Enough to become somebody else, once; what bubblewrap does not name here is gone for good.
        command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    if tied:
        command += ["--die-with-parent"]
    command += ["--proc", "/proc", "--dev", "/dev"]
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        command += [*_parents(folder), "--perms", "1777", "--tmpfs", folder]
    for path in SYSTEM:
        if os.path.islink(path):
            command += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            command += ["--ro-bind", path, path]
    command += ["--dir", "/etc"]
    for path in ETC:
        command += ["--ro-bind-try", f"/etc/{path}", f"/etc/{path}"]
    system = "/sys/devices/system"
    command += [*_parents(system), "--ro-bind-try", system, system]
    for folder in shown(config):
        command += [*_parents(folder), "--ro-bind", folder, folder]
    command += [*_parents(LESSONS), "--ro-bind", str(ROOT / "lessons"), LESSONS]
    options = ["--lessons", LESSONS, "--home", home]
    if bare:
        options = []
    else:
        command += ["--ro-bind", str(config.run / "student"), JUPYTER]
        number = os.getuid() if uid is None else uid
        for kind, line in (
            ("passwd", f"{name}:x:{number}:{number}::{home}:/bin/bash"),
            ("group", f"{name}:x:{number}:"),
        ):
            command += ["--ro-bind", str(_written(config, name, kind, line + "\n")), f"/etc/{kind}"]
        command += [*_parents(home), "--bind", str(config.homes / name), home]
        for view in exchange.views(config.exchange, config.course_id, name):
            place = f"{EXCHANGE}/{view.at}"
            command += [*_parents(place), "--bind" if view.writable else "--ro-bind", str(view.source), place]
    command += devices(gpu)
    # Nothing can be made beside the places above: what is written there would be lost with the server.
    command += ["--remount-ro", "/", "--chdir", "/"]
    limits = config.limits
    if uid is not None:
        options += ["--uid", str(uid)]
    if limits.memory_gb:
        options += ["--memory-gb", str(limits.memory_gb)]
    if limits.cpus:
        options += ["--cores", str(min(math.ceil(limits.cpus), len(os.sched_getaffinity(0))))]
    return [*command, "--", *server.command(*options, then=then)]


def _parents(path: str) -> list[str]:
    """The folders on the way to a place in the box. Those that bubblewrap makes by itself are nobody else's."""
    return [word for parent in reversed(Path(path).parents[:-1]) for word in ("--dir", str(parent))]


def _written(config: HubConfig, name: str, kind: str, line: str) -> Path:
    path = config.run / "accounts" / f"{name}.{kind}"
    write_atomically(path, line.encode(), 0o644)
    return path


# GPUs


def devices(gpu: str) -> list[str]:
    """What bubblewrap is told so that a box sees the GPUs of a CUDA_VISIBLE_DEVICES and no others, as far as they can be told.

    A whole GPU is a file of its own, /dev/nvidiaN. A MIG slice is not: there all files are shown, and CUDA_VISIBLE_DEVICES says
    which slice.
    """
    if not gpu:
        return []
    known = gpus()
    wanted = gpu.split(",")
    minors = [known.get(each) for each in wanted]
    shared = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-caps"]
    if any(minor is None for minor in minors):
        minors = sorted(set(known.values()))
    files = [*(f"/dev/nvidia{minor}" for minor in minors), *shared]
    return [word for file in files for word in ("--dev-bind-try", file, file)] + [
        *("--ro-bind-try", "/sys", "/sys"),
    ]


def in_the_box(gpu: str, folder: Path = GPUS) -> str:
    """What CUDA_VISIBLE_DEVICES says in a box: UUIDs, since numbers count what the box sees.

    >>> in_the_box("", Path("/nowhere")), in_the_box("MIG-1b3c", Path("/nowhere"))
    ('', 'MIG-1b3c')
    """
    known = gpus(folder)
    by_minor = {minor: name for name, minor in known.items() if not name.isdigit()}
    return ",".join(by_minor.get(known.get(each, -1), each) for each in gpu.split(","))


def gpus(folder: Path = GPUS) -> dict[str, int]:
    """The minor number of each GPU's device file, by its UUID and by its number in the order of the PCI bus."""
    found: dict[str, int] = {}
    for number, path in enumerate(sorted(folder.glob("*/information"))):
        text = path.read_text(encoding="utf-8", errors="replace")
        minor = re.search(r"Device Minor:\s*(\d+)", text)
        uuid = re.search(r"GPU UUID:\s*(\S+)", text)
        if minor:
            found[str(number)] = int(minor[1])
            if uuid:
                found[uuid[1]] = int(minor[1])
    return found
