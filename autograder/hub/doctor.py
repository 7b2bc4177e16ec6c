"""What of a hub, its machine and its course.yaml is in the way of a class: one finding a line, with its cure.

Without a course.yaml only the machine is looked at. Nothing is changed, and nothing leaves the machine.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import pwd
import re
import shutil
import sqlite3
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import AutograderError
from autograder.hub.config import HubConfig, Tls

Found = Iterator[tuple[bool, str]]

# The oldest release of each series without a hole that is known here: 5.5.1 of 2026-08-10 is a security release (JupyterHub's
# changelog); which of the 6 series are was not found, so it is the release that the course is tested with.
SAFE_JUPYTERHUB = {5: (5, 5, 1), 6: (6, 1, 1)}
OLDEST_JUPYTERHUB = (5, 2)
# File systems on which SQLite's locks are not to be relied on (sqlite.org/faq.html#q5; nbgrader#1854 for NFS).
NETWORK = (
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "fuse",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "smb",
    "virtiofs",
)
LOCAL_FUSE = ("fuse.fuse-overlayfs", "fuseblk")
BATCH = 32 * 3 * 224 * 224 * 4  # bytes of a batch of images, FP32, the largest that the lessons and loops hand over
WORKERS, PREFETCHED = 4, 2  # DataLoader: workers of a common script, batches that each holds ready (prefetch_factor)
OLD_BACKUP = datetime.timedelta(days=7)
SOON = datetime.timedelta(days=21)
LONG_IDLE = 240  # minutes; half a day of teaching in which nobody else has the GPU's memory
UPLOAD = 512 << 20  # bytes: jupyter_server's max_body_size
SYSTEM_CONFIG = (Path("/etc/jupyter"), Path("/usr/local/etc/jupyter"))  # read by every nbgrader of the machine
NGINX = 1.0  # MB: nginx's client_max_body_size where nobody sets it


def findings(config: HubConfig | None = None, backups: Path | None = None) -> Found:
    """(is it fine, what was found and what to do). backups: the folder where this course's backups are kept."""
    yield from _versions()
    yield from _proxy()
    yield from _driver()
    yield from _gpus(config)
    yield from _shm(config)
    if config is None:
        yield True, "no course.yaml was given; --config course.yaml checks a hub's own settings, folders and people"
        return
    checks: tuple[Callable[[HubConfig], Found], ...] = (
        _boxes,
        _idle,
        _limits,
        _memory,
        _zones,
        _exchange,
        _databases,
        _people,
        _door,
    )
    for check in checks:
        try:
            yield from check(config)
        except AutograderError as error:  # what cannot be looked at is a finding too
            yield False, str(error)
    yield from _backups(config, backups)


# The machine


def _versions() -> Found:
    try:
        version = importlib.metadata.version("jupyterhub")
    except importlib.metadata.PackageNotFoundError:
        yield False, "JupyterHub: it is not installed: pip install 'amp-course[hub]'"
        return
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    safe = SAFE_JUPYTERHUB.get(numbers[0])
    if numbers < OLDEST_JUPYTERHUB:
        yield (
            False,
            f"JupyterHub: {version} is older than 5.2, which this configuration is for: pip install -U jupyterhub",
        )
    elif safe and numbers < safe:
        wanted = ".".join(map(str, safe))
        yield (
            False,
            f"JupyterHub: {version} is older than {wanted}, the oldest of its series that is known to be safe: pip install -U "
            f"'jupyterhub>={wanted},<{numbers[0] + 1}'; "
            "after a new series `jupyterhub upgrade-db`",
        )
    elif not safe:
        yield (
            False,
            f"JupyterHub: {version} is newer than what this configuration was tested with: pip install 'jupyterhub<7'",
        )
    else:
        yield True, f"JupyterHub {version}"


def _proxy() -> Found:
    from autograder.hub import start

    try:
        yield True, f"proxy: {start.proxy_command(tied=False)[-1]}"
    except AutograderError as error:
        yield False, f"proxy: {error}"


def _driver() -> Found:
    """What `ampkit doctor` says of driver and wheel, of that alone: the rest is about a learner's machine."""
    from ampkit.doctor.machine import look, verdict

    causes = ("old_torch", "wsl1", "gpus_hidden", "cpu_build", "old_driver", "cuda_unavailable", "arch_not_built")
    machine = look(measure=False)
    found = [finding for finding in verdict(machine).findings if finding.cause in causes]
    for finding in found:
        yield False, f"{finding.where}: {finding.what} {finding.why} {finding.cure}"
    if not found:
        driver = f"driver {machine.driver}" if machine.driver else "no NVIDIA driver, and so no GPU"
        build = f"built for CUDA {machine.cuda_build}" if machine.cuda_build else "built for CPUs"
        yield True, f"GPU: {driver}; PyTorch {machine.torch}, {build}"


@dataclass(frozen=True)
class Holder:
    """Who a process on a GPU is: its hub user or its account, its program, and hours since its server was last active."""

    user: str
    program: str
    idle_hours: float | None = None


def _gpus(config: HubConfig | None) -> Found:
    from ampkit import gpu

    devices = gpu.devices()
    wanted = config.gpu.devices if config else ()
    if devices is None:
        if config and config.gpu.policy != "none":
            yield (
                False,
                f"gpu.policy is {config.gpu.policy}, and NVML shows no GPU here (no driver, or no "
                "nvidia-ml-py: pip install "
                "nvidia-ml-py). Servers would start without one",
            )
        return
    for device in wanted:
        if device.isdigit() and int(device) >= len(devices):
            yield (
                False,
                f"gpu.devices: {device}: this machine has {len(devices)} GPUs, numbered from 0; see nvidia-smi -L",
            )
    for number, seen in enumerate(devices):
        used = "" if seen.used_bytes is None else f", {seen.used_bytes / 2**20:,.0f} MiB in use"
        yield True, f"GPU {number}: {seen.name}{used}, {len(seen.processes)} processes"
        for process in sorted(seen.processes, key=lambda each: -(each.used_bytes or 0)):
            yield _held(number, process, _holder(process.pid, config), config)
    if config and config.gpu.policy in ("mps", "time-slicing"):
        yield (
            True,
            f"gpu.policy: {config.gpu.policy}: students share {', '.join(wanted) or 'the GPUs'}; what "
            "they time means nothing, and "
            "the lessons say so",
        )


def _held(number: int, process, holder: Holder, config: HubConfig | None) -> tuple[bool, str]:
    memory = (
        "memory that NVML does not tell" if process.used_bytes is None else f"{process.used_bytes / 2**20:,.0f} MiB"
    )
    words = f"GPU {number}: {holder.user} holds {memory} (pid {process.pid}, {holder.program})"
    if holder.idle_hours is None:
        return True, words
    allowed = config.limits.kernel_idle_minutes / 60 if config else 1.0
    words += f"; last active {holder.idle_hours:.1f} hours ago"
    if holder.idle_hours <= allowed:
        return True, words
    return False, (
        f"{words}, and a kernel may idle for {allowed * 60:.0f} minutes: stop that server on the "
        "hub's admin page, or end the "
        f"process if it outlived its kernel (kill {process.pid})"
    )


def _holder(pid: int, config: HubConfig | None) -> Holder:
    proc = Path(f"/proc/{pid}")
    try:
        account = pwd.getpwuid(proc.stat().st_uid).pw_name
    except KeyError:
        account = f"uid {proc.stat().st_uid}"
    except OSError:
        return Holder("somebody", "a process of another container or that has ended")
    environment = dict(line.partition("=")[::2] for line in _words(proc / "environ"))
    arguments = _words(proc / "cmdline")
    kernel = any(re.search(r"kernel-[\w-]+\.json$", word) for word in arguments)
    program = "a notebook's kernel" if kernel else Path(arguments[0]).name if arguments else "a process"
    user = environment.get("JUPYTERHUB_USER")
    return Holder(user or account, program, _idle_hours(user, config) if user else None)


def _words(path: Path) -> list[str]:
    try:
        return [word for word in path.read_bytes().decode(errors="replace").split("\0") if word]
    except OSError:  # another user's, and we are not root
        return []


def _idle_hours(user: str, config: HubConfig | None) -> float | None:
    """Hours since the hub last heard of a user's server; None where it does not know."""
    if config is None or not config.database.is_file():
        return None
    query = """SELECT max(spawners.last_activity) FROM spawners JOIN users ON users.id = spawners.user_id
               WHERE users.name = ? AND spawners.server_id IS NOT NULL"""
    with suppress(sqlite3.Error, ValueError):
        with closing(sqlite3.connect(f"{config.database.as_uri()}?mode=ro", uri=True)) as database:
            (at,) = database.execute(query, [user]).fetchone()
        if at:
            moment = datetime.datetime.fromisoformat(at).replace(
                tzinfo=datetime.UTC
            )  # JupyterHub keeps UTC, without saying so
            return (datetime.datetime.now(datetime.UTC) - moment).total_seconds() / 3600
    return None


def _shm(config: HubConfig | None) -> Found:
    need = BATCH * WORKERS * PREFETCHED
    if config and config.spawner.name == "boxed":
        yield True, "/dev/shm: each student's box has its own, for a DataLoader's workers"
        return
    if not os.path.isdir("/dev/shm"):
        return
    size = shutil.disk_usage("/dev/shm").total
    words = (
        f"/dev/shm: {size / 2**20:,.0f} MiB; a DataLoader's {WORKERS} workers hold up to "
        f"{need / 2**20:.0f} MiB of images in it"
    )
    if size < need:
        yield (
            False,
            f"{words}, and die with a bus error. Docker: --shm-size=2g (DockerSpawner: "
            "extra_host_config shm_size); Kubernetes: an "
            "emptyDir of medium Memory on /dev/shm, as in hub/kubernetes/values.yaml",
        )
    else:
        yield True, words


def _boxes(config: HubConfig) -> Found:
    from autograder import sandbox

    if config.spawner.name == "boxed":
        yield True, f"boxes: {sandbox.bwrap()} works here"


# What course.yaml says


def _idle(config: HubConfig) -> Found:
    from autograder.hub import settings

    with tempfile.TemporaryDirectory() as folder:
        settings.write(config, "student", Path(folder))
        jupyter = json.loads((Path(folder) / "jupyter_server_config.json").read_text(encoding="utf-8"))
    cull = jupyter.get("MappingKernelManager", {})
    where = "hub/jupyter/student/jupyter_server_config.json"
    fine = True
    if not (cull.get("cull_idle_timeout", 0) > 0 and cull.get("cull_interval", 0) > 0):
        fine = False
        yield (
            False,
            f"idle kernels: they are never ended, and each holds its GPU memory: set cull_idle_timeout in {where}",
        )
    if not cull.get("cull_connected", False):
        fine = False
        yield False, f"idle kernels: an open browser tab keeps one for ever: set cull_connected to true in {where}"
    if cull.get("cull_busy", False):
        fine = False
        yield (
            False,
            f"idle kernels: one that computes is ended as well, so that training is: set cull_busy to false in {where}",
        )
    limits = config.limits
    if config.gpu.policy != "none" and limits.kernel_idle_minutes > LONG_IDLE:
        fine = False
        yield (
            False,
            f"limits.kernel_idle_minutes: {limits.kernel_idle_minutes}: so long nobody else has the "
            "memory that a forgotten kernel "
            f"holds on a GPU; {LONG_IDLE} or fewer",
        )
    if limits.idle_minutes * 60 < limits.cell_seconds:
        fine = False
        yield (
            False,
            f"limits.idle_minutes: {limits.idle_minutes}: a cell that prints nothing is no activity, "
            "and one may run for "
            f"{limits.cell_seconds} s (limits.cell_seconds): its server would be stopped under it; make it larger",
        )
    if limits.idle_minutes < limits.kernel_idle_minutes:
        fine = False
        yield (
            False,
            f"limits.idle_minutes: {limits.idle_minutes}: the server goes before its kernels may "
            f"(kernel_idle_minutes: {limits.kernel_idle_minutes}), and running ones with it; make it "
            "the larger of the two",
        )
    if fine:
        yield (
            True,
            f"idle: a kernel ends after {limits.kernel_idle_minutes} minutes without a running cell, "
            "also behind an open tab; a "
            f"server after {limits.idle_minutes}",
        )


def _limits(config: HubConfig) -> Found:
    from autograder.hub import roster

    limits = config.limits
    sent = limits.submission_mb * 1e6 * 4 / 3  # JSON carries a file as base64
    if sent > UPLOAD:
        yield (
            False,
            f"limits.submission_mb: {limits.submission_mb:g}: Jupyter takes files of up to "
            f"{UPLOAD * 3 / 4 / 1e6:.0f} MB in one "
            "request (ServerApp.max_body_size), so that a file of that size cannot be saved: lower "
            "the one or raise the other",
        )
    elif config.tls == "elsewhere" and limits.submission_mb > NGINX:
        yield (
            True,
            f"limits.submission_mb: {limits.submission_mb:g}: the reverse proxy has to let "
            f"{sent / 1e6:.0f} MB through as well (nginx: "
            f"client_max_body_size, which is {NGINX:g} MB where nobody sets it)",
        )
    count = len(roster.students(config))
    full = count * limits.submission_mb * 1e6
    place = _existing(config.exchange)
    free = shutil.disk_usage(place).free
    words = (
        f"disk: {free / 1e9:.1f} GB free at {place}; one submission of {count} students is at most {full / 1e6:,.0f} MB"
    )
    yield free > full, words if free > full else f"{words}: make room, or lower limits.submission_mb"
    yield (
        True,
        f"time: a cell has {limits.cell_seconds} s where a student validates (limits.cell_seconds); "
        "grading does not ask nbgrader's "
        "Execute.timeout, as each exercise says its own",
    )


def _memory(config: HubConfig) -> Found:
    from autograder.hub import roster

    count, each = len(roster.students(config)), config.limits.memory_gb
    if config.spawner.name not in ("boxed", "systemd", "docker"):
        return
    if each is None:
        yield (
            True,
            "memory: limits.memory_gb is not set, so one student can take all of the machine's; 4 is "
            "enough for the lessons",
        )
        return
    with suppress(OSError, ValueError):
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        words = (
            f"memory: {total:.0f} GiB for servers of at most {each:g}, so {total // each:.0f} that are full, "
            f"for {count} students"
        )
        yield total >= each, words if total >= each else f"{words}: lower limits.memory_gb"


def _zones(config: HubConfig) -> Found:
    from autograder.hub import settings

    wrong = False
    with tempfile.TemporaryDirectory() as made:
        settings.write(config, "grader", Path(made))
        for folder in (Path(made), config.course, *SYSTEM_CONFIG):
            path = folder / "nbgrader_config.py"
            if not path.is_file():
                continue
            loaded = _nbgrader_config(path)
            for cls in ("Exchange", "NbGraderAPI"):
                zone = loaded.get(cls, {}).get("timezone")
                if zone and zone != config.timezone:
                    wrong = True
                    yield (
                        False,
                        f"time zone: {cls}.timezone is {zone!r} in {path}, and timezone in "
                        f"course.yaml {config.timezone!r}: due dates "
                        "are read in one and shown in the other; take it out there",
                    )
    if not wrong:
        yield True, f"time zone: {config.timezone}, for due dates as typed and as shown"
    if config.timezone == "UTC":
        yield (
            True,
            "time zone: in UTC a due date at 0:00 is not midnight where most students are; set timezone in course.yaml",
        )


def _nbgrader_config(path: Path) -> dict:
    from traitlets.config import PyFileConfigLoader

    try:
        return PyFileConfigLoader(path.name, path=str(path.parent)).load_config()
    except Exception as error:  # it is a program, and raises whatever it likes
        raise AutograderError(
            f"{path} does not run ({type(error).__name__}: {error}); nbgrader will say the same. Mend it"
        ) from error


def _exchange(config: HubConfig) -> Found:
    from autograder.hub.inbound import NAME

    root, course = config.exchange, config.exchange / config.course_id
    if not course.is_dir():
        yield True, f"exchange: {course} is made when the hub starts"
        return
    wrong = False
    for path in (root, course, course / "outbound", course / "inbound", course / "feedback"):
        with suppress(FileNotFoundError):
            about = path.stat()
            if about.st_mode & stat.S_IWOTH:
                wrong = True
                yield False, f"exchange: everybody on this machine can write to {path}: chmod o-w {path}"
            if about.st_uid not in (0, os.geteuid(), course.stat().st_uid):
                wrong = True
                yield (
                    False,
                    f"exchange: {path} belongs to {_account(about.st_uid)} and {course} to "
                    f"{_account(course.stat().st_uid)}: chown --reference={course} {path}",
                )
    for kind in ("inbound", "feedback"):
        with suppress(FileNotFoundError):
            if (course / kind).stat().st_mode & stat.S_IROTH:
                wrong = True
                yield (
                    False,
                    f"exchange: everybody can list {course / kind}, and so who takes the course: "
                    f"chmod o-r {course / kind}",
                )
    inbound = sorted((course / "inbound").iterdir()) if (course / "inbound").is_dir() else []
    stock = [path.name for path in inbound if NAME.fullmatch(path.name)]
    if stock:
        wrong = True
        yield (
            False,
            f"exchange: {len(stock)} submissions lie in {course / 'inbound'} itself, nbgrader's own "
            f"layout, such as {stock[0]!r}: "
            "there anybody can hand in under anybody's name. Collect them with nbgrader and take "
            "them away; ours has a folder for each",
        )
    for path in inbound:
        if path.name not in stock and path.is_dir() and path.stat().st_mode & stat.S_IRWXO:
            wrong = True
            yield False, f"exchange: others can look into {path}, which is one student's: chmod o= {path}"
    if not wrong:
        yield True, f"exchange: {course}, a folder for each student, {len(inbound)} so far"


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _databases(config: HubConfig) -> Found:
    gradebook = config.gradebook or f"sqlite:///{config.course / 'gradebook.db'}"
    files = {"the hub's database": config.database}
    if gradebook.startswith("sqlite:///"):
        files["the gradebook"] = Path("/" + gradebook.removeprefix("sqlite:///").lstrip("/"))
    for what, path in files.items():
        kind = file_system(path)
        if kind.startswith(NETWORK) and kind not in LOCAL_FUSE:
            cure = (
                "set gradebook to a PostgreSQL database" if what == "the gradebook" else "put `folder` on a local disk"
            )
            yield (
                False,
                f"{what}: {path} is SQLite on {kind}, a network file system, whose locks SQLite cannot rely on: {cure}",
            )
        else:
            yield True, f"{what}: SQLite on {kind or 'a file system of unknown kind'}"
    if not gradebook.startswith("sqlite"):
        yield True, f"the gradebook: {gradebook.partition(':')[0]}"


def file_system(path: Path, mounts: str | None = None) -> str:
    """The type of the file system that a path is on, or would be: ext4, nfs4, …; "" where the system does not say.

    `mounts` is the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(errors="replace")
        except OSError:
            return ""
    path = Path(os.path.realpath(path))
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields, _, after = line.partition(" - ")
        place = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields.split()[4])
        if path.is_relative_to(place) and len(place) >= best:  # of two on one place the later one is on top
            best, kind = len(place), after.split()[0]
    return kind


def _people(config: HubConfig) -> Found:
    from autograder.hub import roster

    students = roster.students(config)  # its HubError names duplicates and whatever else is wrong, a line each
    if config.roster is None:
        yield True, f"roster: none; {config.authenticator.name} says who takes the course"
        return
    if not students:
        yield (
            False,
            f"roster: there is nobody in {config.roster}; nobody but {', '.join(config.instructors)} can log in",
        )
        return
    yield True, f"roster: {len(students)} students in {config.roster}"
    book = config.course / "gradebook.db"
    if config.gradebook is None and not book.is_file():
        yield True, "gradebook: it is made when the hub starts"
        return
    known = _in_gradebook(config)
    missing = [student.username for student in students if student.username not in known]
    if missing:
        some = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        yield (
            False,
            f"gradebook: {len(missing)} on the roster are not in it ({some}): start the hub again, or "
            "autograder hub --roster-only",
        )
    unlisted = sorted(known - {student.username for student in students})
    if unlisted:
        some = ", ".join(unlisted[:5]) + (", …" if len(unlisted) > 5 else "")
        yield (
            True,
            f"gradebook: {len(unlisted)} in it are not on the roster ({some}); autograder forget "
            "deletes what is theirs",
        )


def _in_gradebook(config: HubConfig) -> set[str]:
    from autograder.course import Course, prepare_nbgrader
    from autograder.gradebook import gradebook

    prepare_nbgrader()
    opened = Course(config.course, config.gradebook)
    with gradebook(opened.directory.db_url, opened.directory.course_id) as book:
        return {student.id for student in book.students}


def _door(config: HubConfig) -> Found:
    import ipaddress

    open_to_all = not ipaddress.ip_address(config.address).is_loopback
    if isinstance(config.tls, Tls):
        yield from _certificate(config.tls)
    elif open_to_all:
        behind = (
            "whoever asks this port and not the reverse proxy speaks plain http"
            if config.tls
            else "it speaks plain http"
        )
        yield (
            False,
            f"door: {config.address}:{config.port} is open to the network, and {behind}: address: 127.0.0.1, or tls",
        )
    else:
        yield True, f"door: {config.url}, from this machine alone" + (", behind a reverse proxy" if config.tls else "")


def _certificate(tls: Tls) -> Found:
    import ssl

    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(tls.certificate.read_bytes())
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key, password=lambda: b"")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        yield (
            False,
            f"certificate: {tls.certificate} and {tls.key} cannot be used together ({error}): give "
            "the PEM files of one",
        )
        return
    left = certificate.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    if left < datetime.timedelta():
        yield False, f"certificate: {tls.certificate} ended {-left.days} days ago, and browsers refuse it: renew it"
    elif left < SOON:
        yield False, f"certificate: {tls.certificate} ends in {left.days} days: renew it"
    else:
        yield True, f"certificate: good for {left.days} days more"
    if stat.S_IMODE(tls.key.stat().st_mode) & 0o077:
        yield False, f"certificate: others can read its key: chmod 600 {tls.key}"


def _backups(config: HubConfig, folder: Path | None) -> Found:
    from autograder import backup

    places = [folder] if folder else [config.folder.parent, config.folder.parent / "backups"]
    found = [
        path for place in places if place.is_dir() for path in place.iterdir() if path.name.endswith(backup.SUFFIXES)
    ]
    found = [path for path in found if _is_backup(path, backup.MARK)]
    places_said = " and ".join(map(str, places))
    how = f"autograder backup --config {config.path or 'course.yaml'} FILE.tar.gz"
    if not found and not _is_begun(config):
        yield True, f"backups: none yet, and nothing is handed in or graded yet; then: {how}"
        return
    if not found:
        elsewhere = "" if folder else "; if you keep them elsewhere, --backups DIR looks there"
        yield False, f"backups: there is none in {places_said}: {how}{elsewhere}"
        return
    newest = max(found, key=lambda path: path.stat().st_mtime)
    age = datetime.datetime.now().timestamp() - newest.stat().st_mtime
    days = age / 86_400
    if age > OLD_BACKUP.total_seconds():
        yield False, f"backups: the newest, {newest}, is {days:.0f} days old: {how}"
    else:
        yield True, f"backups: the newest, {newest}, is {days:.1f} days old"


def _is_begun(config: HubConfig) -> bool:
    """Whether there is anything of a student's to lose."""
    places = [config.exchange / config.course_id / "inbound", config.course / "submitted"]
    depths = ("*/[!.]*", "*")
    return any(True for place, depth in zip(places, depths, strict=True) for _ in place.glob(depth))


def _is_backup(path: Path, mark: str) -> bool:
    """Whether it is an archive of ours. Of .tar.zst only its name is known where Python cannot read it (before 3.14)."""
    if not path.name.endswith(".gz"):
        return True
    try:
        with tarfile.open(path, "r:gz") as archive:
            first = archive.next()
            return first is not None and first.name == mark
    except (OSError, EOFError, tarfile.TarError):
        return False


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
