"""course.yaml: what an administrator says about a course's hub, read and checked before anything starts.

`read(path)` gives a HubConfig or one HubError that names every wrong key with its value, the reason and what to do.
hub/course.example.yaml shows all keys.
"""

from __future__ import annotations

import difflib
import ipaddress
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from autograder.errors import HubError

COURSE_ID = r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?"
USERNAME = r"[a-z0-9]([a-z0-9._@-]{0,62}[a-z0-9])?"
AUTHENTICATORS = ("passwords", "shared-password", "native", "oauth", "lti", "pam")
SPAWNERS = ("boxed", "systemd", "docker", "kubernetes", "slurm")
GPU_POLICIES = ("none", "whole", "mig", "mps", "time-slicing")
FIRST_UID, LAST_UID = 1000, 2**31


@dataclass(frozen=True)
class Plugin:
    """An authenticator or a spawner: our name for it, and what is set on its class (traits, by name)."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """What one student may use.

    `cell_seconds` is how long a cell may run when a notebook is validated. `submission_mb` (megabytes of 10^6 bytes) and
    `submission_files` are enforced when submissions are collected. `memory_gb` (GiB; None: as the machine has) and `cpus`
    (None: all) hold for a server where its spawner can enforce them; the boxed one limits memory per process and binds the
    server to so many cores. A kernel ends after `kernel_idle_minutes` without work, a server after `idle_minutes`.
    """

    cell_seconds: int = 300
    submission_mb: float = 20
    submission_files: int = 200
    memory_gb: float | None = None
    cpus: float | None = None
    idle_minutes: int = 60
    kernel_idle_minutes: int = 20


@dataclass(frozen=True)
class Gpu:
    """Which GPUs students' servers see, and how those are shared (hub/GPU.md).

    `policy` is "none", "whole", "mig", "mps" or "time-slicing"; `devices` are what CUDA_VISIBLE_DEVICES takes: numbers,
    or UUIDs (GPU-…, MIG-…). "whole" and "mig" give each server one device for itself, "mps" and "time-slicing" share all.
    """

    policy: str = "none"
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tls:
    """The certificate and key (PEM files) that the hub's proxy serves https with."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class HubConfig:
    """A course's hub. All paths are absolute; relative ones of course.yaml start at its own folder.

    `path` is course.yaml itself, None for the demo. `roster` is the CSV file of students (roster.py), None where the
    authenticator alone says who they are. `gradebook` is a database URL, None for gradebook.db in the course.
    `tls` is None, Tls, or "elsewhere": a reverse proxy in front of the hub speaks https.
    """

    course_id: str
    title: str
    instructors: tuple[str, ...]
    roster: Path | None
    folder: Path
    exchange: Path
    gradebook: str | None = None
    authenticator: Plugin = Plugin("passwords")
    spawner: Plugin = Plugin("boxed")
    timezone: str = "UTC"
    limits: Limits = Limits()
    gpu: Gpu = Gpu()
    address: str = "127.0.0.1"
    port: int = 8000
    tls: Tls | str | None = None
    first_uid: int = 200_000
    path: Path | None = None

    @property
    def grader(self) -> str:
        """The account that the course's grader service runs as; a user of the hub that nobody can log in as."""
        return f"grader-{self.course_id}"

    @property
    def course(self) -> Path:
        """The course folder (autograder.course.Course)."""
        return self.folder / "course"

    @property
    def homes(self) -> Path:
        return self.folder / "homes"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def run(self) -> Path:
        """What only running processes need: their configuration, secrets' files, sockets."""
        return self.folder / "run"

    @property
    def database(self) -> Path:
        return self.folder / "hub.sqlite"

    @property
    def students_group(self) -> str:
        return f"nbgrader-{self.course_id}"

    @property
    def graders_group(self) -> str:
        return f"formgrade-{self.course_id}"

    @property
    def url(self) -> str:
        """Where a browser on this machine finds the hub."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.address, self.address)
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return f"{'https' if isinstance(self.tls, Tls) else 'http'}://{host}:{self.port}"


def is_username(name: str) -> bool:
    """Whether a name can be a student's or an instructor's: on the hub, as a folder, and in a submission's name.

    >>> is_username("ada"), is_username("j.doe@example.org"), is_username("Ada"), is_username("a+b"), is_username("../b")
    (True, True, False, False, False)
    """
    return bool(re.fullmatch(USERNAME, name)) and ".." not in name and not name.startswith("grader-")


def why_no_username(name: str) -> str:
    """What is wrong with a name for which `is_username` is false."""
    if name.startswith("grader-"):
        return "names that begin with grader- are for the accounts that courses' graders run as"
    if name != name.lower() and is_username(name.lower()):
        return f"JupyterHub folds user names to lower case; write {name.lower()!r}"
    return "a user name has 1 to 64 of a–z, 0–9, '.', '_', '-' and '@', begins and ends with a letter or digit, and has no '..'"


def read(path: Path) -> HubConfig:
    """Read and check a course.yaml. HubError with all that is wrong in it, a line each."""
    path = Path(path).resolve()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise HubError(
            f"There is no {path}; nothing was started. Copy hub/course.example.yaml there and fill it in, or look at a hub "
            "without one: autograder hub --demo"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise HubError(f"{path} cannot be read ({error}); nothing was started.") from error
    return parse(_load(text, path), path)


def parse(data: Any, path: Path) -> HubConfig:
    """A HubConfig from what YAML read. `path` is where it was read; its folder is where relative paths start."""
    reader = _Reader(path)
    config = reader.config(data)
    if reader.wrong:
        count = len(reader.wrong)
        raise HubError(
            f"{path} has {'a mistake' if count == 1 else f'{count} mistakes'}; nothing was started.\n  "
            + "\n  ".join(reader.wrong)
        )
    assert config is not None
    return config


def _load(text: str, path: Path) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML in which a key stands once: of two, the standard loader silently takes the last."""

        def construct_mapping(self, node, deep=False):
            seen = set()
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if key in seen:
                    raise HubError(f"{path}:{key_node.start_mark.line + 1}: the key `{key}` stands there twice.")
                seen.add(key)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}" if mark else ""
        raise HubError(
            f"{path}{where} is not YAML: {error.problem or error.context}; nothing was started. Indent with spaces, two a "
            "level, and put text with ':' or '#' in it into quotes."
        ) from error
    except (yaml.YAMLError, TypeError) as error:
        raise HubError(f"{path} is not YAML: {error}; nothing was started.") from error


_MISSING = object()
_NO_SECTION: dict[str, Any] = {}


class _Reader:
    """Takes values out of a course.yaml and collects what is wrong with them."""

    def __init__(self, path: Path) -> None:
        self.path, self.wrong = path, []

    def config(self, data: Any) -> HubConfig | None:
        if not isinstance(data, dict):
            self.wrong.append(f"it holds {_said(data)} and not keys with values; hub/course.example.yaml shows them")
            return None
        keys = (
            *("course", "instructors", "roster", "folder", "exchange", "gradebook", "authenticator", "spawner"),
            *("timezone", "limits", "gpu", "address", "port", "tls", "first_uid"),
        )
        self.known(data, keys, "")
        course = self.section(data, "course", ("id", "title"), needed=True)
        course_id = self.course_id(course)
        folder = self.a_path(data, "folder", Path("state"))
        spawner = self.plugin(data, "spawner", SPAWNERS, "boxed")
        authenticator = self.plugin(data, "authenticator", AUTHENTICATORS, "passwords")
        config = HubConfig(
            course_id=course_id,
            title=self.text(course, "course.title", f"The course {course_id}"),
            instructors=self.instructors(data, course_id),
            roster=self.roster(data, authenticator),
            folder=folder,
            exchange=self.a_path(data, "exchange", folder / "exchange"),
            gradebook=self.gradebook(data),
            authenticator=authenticator,
            spawner=spawner,
            timezone=self.timezone(data),
            limits=self.limits(data),
            gpu=self.gpu(data, spawner),
            address=self.address(data),
            port=self.number(data, "port", 8000, 1, 65535, whole=True),
            tls=self.tls(data),
            first_uid=self.number(data, "first_uid", 200_000, FIRST_UID, LAST_UID, whole=True),
            path=self.path,
        )
        self.address_and_tls(config)
        return config

    def say(self, key: str, value: Any, reason: str) -> None:
        self.wrong.append(f"{key}: {_said(value)}: {reason}")

    def known(self, data: dict, keys: tuple[str, ...], at: str) -> None:
        for key in data:
            if key not in keys:
                near = difflib.get_close_matches(str(key), keys, 1, 0.6)
                meant = f"did you mean `{at}{near[0]}`?" if near else f"the keys here are {', '.join(keys)}."
                self.wrong.append(f"{at}{key}: there is no such key; {meant}")

    def get(self, data: dict, key: str, default: Any = _MISSING) -> Any:
        """The value of a key such as "limits.cpus" in its section; the default where it is missing or empty."""
        value = data.get(key.rpartition(".")[2])
        if value is not None:
            return value
        if default is _MISSING:
            self.wrong.append(f"{key}: it is missing, and has no default")
            return None
        return default

    def section(self, data: dict, key: str, keys: tuple[str, ...], needed: bool = False) -> dict:
        value = self.get(data, key, _MISSING if needed else _NO_SECTION)
        if value is None or value is _NO_SECTION:
            return _NO_SECTION
        if not isinstance(value, dict):
            self.say(key, value, f"it has keys of its own: {', '.join(keys)}, indented below it")
            return _NO_SECTION
        self.known(value, keys, f"{key}.")
        return value

    def text(self, data: dict, key: str, default: Any = _MISSING) -> str:
        value = self.get(data, key, default)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.say(key, value, f"it is text; write it in quotes: '{value}'")
            return ""
        if not value.strip() or not value.isprintable():
            self.say(key, value, "it is one line of printable text, and not empty")
        return value.strip()

    def number(self, data: dict, key: str, default: Any, low: float, high: float, whole: bool = False) -> Any:
        value = self.get(data, key, default)
        if value is None:
            return None
        good = isinstance(value, int) or (isinstance(value, float) and not whole)
        if not good or isinstance(value, bool) or not math.isfinite(value) or not low <= value <= high:
            to = f"at least {low:g}" if high >= LAST_UID else f"from {low:g} to {high:g}"
            quoted = ", without quotes" if isinstance(value, str) else ""
            self.say(key, value, f"it is a {'whole ' if whole else ''}number {to}{quoted}")
            return default
        return value

    def choice(self, data: dict, key: str, choices: tuple[str, ...], default: str) -> str:
        value = self.get(data, key, default)
        if value not in choices:
            near = difflib.get_close_matches(str(value), choices, 1, 0.6)
            meant = f"did you mean {near[0]!r}? " if near else ""
            self.say(key, value, f"{meant}It is one of {', '.join(choices)}")
            return default
        return value

    def a_path(self, data: dict, key: str, default: Path) -> Path:
        value = self.get(data, key, str(default))
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            self.say(key, value, "it is the path of a file or folder")
            value = str(default)
        return (self.path.parent / Path(value).expanduser()).resolve()

    def course_id(self, course: dict) -> str:
        if course is _NO_SECTION:
            if not any(line.startswith("course:") for line in self.wrong):
                self.wrong.append("course.id: it is missing, and has no default")
            return "course"
        value = self.text(course, "course.id")
        if value and not re.fullmatch(COURSE_ID, value):
            self.say(
                "course.id",
                value,
                "it is part of addresses and of account names: 1 to 40 of a–z, 0–9 and '-', a letter first, no '-' last",
            )
        return value

    def instructors(self, data: dict, course_id: str) -> tuple[str, ...]:
        value = self.get(data, "instructors")
        if value is None:
            return ()
        if not isinstance(value, list) or not value:
            self.say("instructors", value, "it is a list of at least one user name: [ada, grace]")
            return ()
        for name in value:
            if not isinstance(name, str):
                self.say("instructors", name, f"a user name is text; write it in quotes: '{name}'")
            elif not is_username(name):
                self.say("instructors", name, why_no_username(name))
            elif value.count(name) > 1 and f"instructors: {_said(name)}: it stands there twice" not in self.wrong:
                self.say("instructors", name, "it stands there twice")
        return tuple(map(str, value))

    def roster(self, data: dict, authenticator: Plugin) -> Path | None:
        if data.get("roster") is None:
            if authenticator.name in ("oauth", "lti") and "manage_groups" in authenticator.options:
                return None
            self.wrong.append(
                "roster: it is missing. It is a CSV file whose first line is username,first_name,last_name,email; start with "
                "that line alone if there are no students yet"
            )
            return None
        path = self.a_path(data, "roster", Path("roster.csv"))
        if not path.is_file():
            self.say("roster", data["roster"], f"there is no file {path}")
        return path

    def gradebook(self, data: dict) -> str | None:
        value = self.get(data, "gradebook", None)
        if value is None:
            return None
        if not isinstance(value, str) or not re.match(r"(sqlite:////?|postgresql(\+psycopg)?://)", value):
            hidden = re.sub(r"(://[^:/@]*:)[^@]*@", r"\1***@", value) if isinstance(value, str) else value
            self.say(
                "gradebook",
                hidden,
                "it is a database URL, sqlite:////absolute/path or postgresql+psycopg://USER:PASSWORD@HOST/NAME; leave it out "
                "for gradebook.db in the course",
            )
        elif value.startswith("postgresql"):
            from importlib.util import find_spec

            if find_spec("psycopg") is None:
                self.wrong.append(
                    "gradebook: PostgreSQL needs the package psycopg, which is not installed: pip install 'psycopg[binary]'"
                )
            value = re.sub(r"^postgresql:", "postgresql+psycopg:", value)
        return value

    def plugin(self, data: dict, key: str, names: tuple[str, ...], default: str) -> Plugin:
        value = self.get(data, key, default)
        if isinstance(value, str):  # `spawner: boxed` is short for a name without options
            value = {"name": value}
        section = self.section({key: value}, key, ("name", "options"))
        name = self.choice(section, f"{key}.name", names, default)
        options = self.get(section, f"{key}.options", {})
        if not isinstance(options, dict) or not all(isinstance(each, str) for each in options):
            self.say(f"{key}.options", options, "it is keys with values: what is set on the class")
            options = {}
        return Plugin(name, options)

    def timezone(self, data: dict) -> str:
        value = self.get(data, "timezone", "UTC")
        try:
            ZoneInfo(value)
        except (TypeError, ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
            self.say("timezone", value, "it is a name such as Europe/Zurich, America/New_York or UTC")
            return "UTC"
        return value

    def limits(self, data: dict) -> Limits:
        section = self.section(data, "limits", tuple(Limits.__dataclass_fields__))
        return Limits(
            cell_seconds=self.number(section, "limits.cell_seconds", 300, 1, 86_400, whole=True),
            submission_mb=self.number(section, "limits.submission_mb", 20, 0.1, 10_000),
            submission_files=self.number(section, "limits.submission_files", 200, 4, 10_000, whole=True),
            memory_gb=self.number(section, "limits.memory_gb", None, 1, 100_000),
            cpus=self.number(section, "limits.cpus", None, 0.1, 10_000),
            idle_minutes=self.number(section, "limits.idle_minutes", 60, 1, 100_000, whole=True),
            kernel_idle_minutes=self.number(section, "limits.kernel_idle_minutes", 20, 1, 100_000, whole=True),
        )

    def gpu(self, data: dict, spawner: Plugin) -> Gpu:
        section = self.section(data, "gpu", ("policy", "devices"))
        policy = self.choice(section, "gpu.policy", GPU_POLICIES, "none")
        devices = self.get(section, "gpu.devices", [])
        if not isinstance(devices, list):
            self.say("gpu.devices", devices, "it is a list: [0, 1], or UUIDs as `nvidia-smi -L` prints them")
            return Gpu(policy)
        shape = r"MIG-[\w/-]+" if policy == "mig" else r"\d+|GPU-[\w-]+"
        for device in devices:
            if not re.fullmatch(shape, str(device)):
                kind = "MIG-… of `nvidia-smi -L`" if policy == "mig" else "a number, or GPU-… of `nvidia-smi -L`"
                self.say("gpu.devices", device, f"with the policy {policy} it is {kind}")
        if len(set(map(str, devices))) < len(devices):
            self.say("gpu.devices", devices, "a device stands there twice")
        if policy == "none" and devices:
            self.say("gpu.devices", devices, "the policy is none, so no server would see them; choose a policy")
        if policy in ("whole", "mig", "mps", "time-slicing") and not devices and spawner.name in ("boxed", "systemd"):
            self.say("gpu.devices", devices, f"the policy {policy} needs the devices that students' servers may see")
        return Gpu(policy, tuple(map(str, devices)))

    def address(self, data: dict) -> str:
        value = self.get(data, "address", "127.0.0.1")
        try:
            return str(ipaddress.ip_address(value if isinstance(value, str) else ""))
        except ValueError:
            self.say(
                "address",
                value,
                "it is the IP address to listen on: 127.0.0.1 for this machine alone, 0.0.0.0 for all networks",
            )
            return "127.0.0.1"

    def tls(self, data: dict) -> Tls | str | None:
        value = self.get(data, "tls", None)
        if value is None or value == "elsewhere":
            return value
        if not isinstance(value, dict):
            self.say("tls", value, "it has the keys certificate and key, or is the word elsewhere")
            return None
        section = self.section(data, "tls", ("certificate", "key"))
        files = []
        for key in ("certificate", "key"):
            if self.get(section, f"tls.{key}") is None:
                continue
            path = self.a_path(section, f"tls.{key}", Path(key))
            if not path.is_file():
                self.say(f"tls.{key}", section[key], f"there is no file {path}")
            files.append(path)
        return Tls(*files) if len(files) == 2 else None

    def address_and_tls(self, config: HubConfig) -> None:
        local = ipaddress.ip_address(config.address).is_loopback
        if not local and config.tls is None and not any(line.startswith("tls") for line in self.wrong):
            self.say(
                "address",
                config.address,
                "passwords would cross the network in the clear. Give tls.certificate and tls.key, or, where a reverse proxy "
                "in front of the hub speaks https, say `tls: elsewhere`",
            )


def _said(value: Any) -> str:
    """A value as a message shows it, no longer than half a line."""
    if isinstance(value, str):
        text = repr(value)
    elif isinstance(value, list | dict):
        text = f"the {'list' if isinstance(value, list) else 'section'} {value}" if value else "nothing"
    elif value is None:
        text = "nothing"
    else:
        text = str(value)
    return text if len(text) <= 60 else text[:57] + "…"
