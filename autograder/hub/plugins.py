"""Authenticators and spawners by the names that course.yaml has for them: the class, what it needs, what is set on it."""

from __future__ import annotations

import copy
import difflib
import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec

from autograder.errors import HubError
from autograder.hub.config import HubConfig


@dataclass(frozen=True)
class Kind:
    """A class of JupyterHub's world: its path, and the package that brings it."""

    path: str
    package: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


OAUTH = {
    name: f"oauthenticator.{name}.{cls}OAuthenticator"
    for name, cls in (
        *(("github", "GitHub"), ("gitlab", "GitLab"), ("google", "Google"), ("bitbucket", "Bitbucket")),
        *(("globus", "Globus"), ("okpy", "Okpy"), ("generic", "Generic"), ("mediawiki", "MW")),
    )
} | {
    "azuread": "oauthenticator.azuread.AzureAdOAuthenticator",
    "auth0": "oauthenticator.auth0.Auth0OAuthenticator",
    "cilogon": "oauthenticator.cilogon.CILogonOAuthenticator",
    "openshift": "oauthenticator.openshift.OpenShiftOAuthenticator",
}
LTI = {
    "11": "ltiauthenticator.lti11.auth.LTI11Authenticator",
    "13": "ltiauthenticator.lti13.auth.LTI13Authenticator",
}
AUTHENTICATORS = {
    "passwords": Kind("autograder.hub.passwords.PasswordsAuthenticator"),
    "shared-password": Kind("jupyterhub.authenticators.shared.SharedPasswordAuthenticator"),
    "native": Kind("nativeauthenticator.NativeAuthenticator", "jupyterhub-nativeauthenticator"),
    "pam": Kind("jupyterhub.auth.PAMAuthenticator", "pamela"),
}
SPAWNERS = {
    "boxed": Kind("autograder.hub.spawner.BoxedSpawner"),
    "systemd": Kind("systemdspawner.SystemdSpawner", "jupyterhub-systemdspawner"),
    "docker": Kind("dockerspawner.DockerSpawner", "dockerspawner"),
    "kubernetes": Kind("kubespawner.KubeSpawner", "jupyterhub-kubespawner"),
    "slurm": Kind("autograder.hub.slurm.CourseSlurmSpawner", "batchspawner"),
}


def authenticator(config: HubConfig) -> tuple[Kind, dict]:
    """The authenticator's class and the traits to set on it. HubError where its package or an option is missing or wrong."""
    name, options = config.authenticator.name, dict(config.authenticator.options)
    if name == "oauth":
        kind = Kind(_chosen(options, "class", OAUTH, "which OAuth provider"), "oauthenticator")
    elif name == "lti":
        kind = Kind(_chosen(options, "version", LTI, "which version of LTI"), "jupyterhub-ltiauthenticator")
    else:
        kind = AUTHENTICATORS[name]
    if name == "passwords":
        options["file"] = str(config.folder / "passwords.json")
    _check("authenticator", kind, options)
    for wanted, why in _NEEDED.get(name, {}).items():
        if not options.get(wanted):
            raise HubError(f"authenticator.options.{wanted}: it is missing: {why}; nothing was started.")
    return kind, options


_NEEDED = {
    "shared-password": {"user_password": "the password that all students share, of at least 8 characters"},
    "native": {"admin_users": "people sign up, and somebody has to be able to authorise them: [grace]"},
}


def spawner(config: HubConfig) -> tuple[Kind, dict]:
    """The spawner's class and the traits to set on it. HubError where its package or an option is missing or wrong."""
    name, options = config.spawner.name, dict(config.spawner.options)
    kind, limits = SPAWNERS[name], config.limits
    if name != "slurm":  # whose profiles say what a job gets
        if limits.memory_gb:
            options.setdefault("mem_limit", int(limits.memory_gb * 2**30))
        if limits.cpus:
            options.setdefault("cpu_limit", limits.cpus)
    if name == "boxed":
        options["course"] = config
    if name == "docker":
        if not options.get("image"):
            raise HubError(
                "spawner.options.image: it is missing: the image for students' servers, built with "
                "hub/kubernetes/student.Dockerfile; nothing was started."
            )
        options.setdefault("remove", True)  # a stopped container is not started again with an older image
    _check("spawner", kind, options)
    return kind, options


def _chosen(options: dict, key: str, table: dict[str, str], what: str) -> str:
    value = str(options.pop(key, ""))
    value = value.replace("1.1", "11").replace("1.3", "13") if key == "version" else value
    if value not in table:
        near = difflib.get_close_matches(value, table, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise HubError(
            f"authenticator.options.{key}: {value!r}: {meant}It says {what}, one of {', '.join(table)}; nothing was started."
        )
    return table[value]


def load(kind: Kind, key: str) -> type:
    """The class. HubError with the line that installs it."""
    module, _, name = kind.path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        top = module.partition(".")[0]
        missing = getattr(error, "name", "") or ""
        if kind.package and (find_spec(top) is None or not missing.startswith(("autograder", "jupyterhub."))):
            raise HubError(
                f"{key}: {kind.name} is not installed ({error}); nothing was started. Install it where the hub runs: pip "
                f"install {kind.package}"
            ) from error
        raise


def _check(key: str, kind: Kind, options: dict) -> None:
    """HubError with every option that the class does not have, or would not take."""
    from traitlets import HasTraits, TraitError

    traits = load(kind, key).class_traits(config=True)
    wrong = []
    for name, value in options.items():
        at = f"{key}.options.{name}"
        if name not in traits:
            near = difflib.get_close_matches(name, traits, 1)
            wrong.append(f"{at}: {kind.name} has no such option{f'; did you mean {near[0]}?' if near else ''}")
            continue
        # Set on something that has this trait and does nothing else: a value is tried without a hub.
        holder = type("Holder", (HasTraits,), {name: copy.deepcopy(traits[name])})()
        try:
            setattr(holder, name, value)
        except (TraitError, TypeError, ValueError) as error:
            wrong.append(f"{at}: {value!r}: {str(error).splitlines()[0]}")
    if wrong:
        raise HubError("course.yaml has options that cannot be used; nothing was started.\n  " + "\n  ".join(wrong))


def mounts(config: HubConfig, spawner) -> None:
    """Give a student's container its home and its part of the exchange: a pre_spawn_hook, set for docker and systemd."""
    from autograder.hub import exchange
    from autograder.hub.spawner import EXCHANGE, JUPYTER, LESSONS, ROOT, make_home

    make_home(config, spawner.user.name)
    views = exchange.views(config.exchange, config.course_id, spawner.user.name)
    read_only: list[tuple[str, str]] = [(str(config.run / "student"), JUPYTER)]
    writable: list[tuple[str, str]] = []
    for view in views:
        (writable if view.writable else read_only).append((str(view.source), f"{EXCHANGE}/{view.at}"))
    if config.spawner.name == "docker":  # its image has the lessons
        home = (str(config.homes / spawner.user.name), "/home/jovyan")
        spawner.volumes = {source: place for source, place in [*writable, home]}
        spawner.read_only_volumes = dict(read_only)
        return
    read_only.append((str(ROOT / "lessons"), LESSONS))
    hidden = [config.folder, ROOT / "exercises", ROOT / "tests", *([config.path] if config.path else [])]
    spawner.unit_extra_properties = {
        **spawner.unit_extra_properties,
        "BindReadOnlyPaths": _pairs(read_only),
        "BindPaths": _pairs(writable),
        "InaccessiblePaths": " ".join(map(str, hidden)),
    }


def _pairs(binds: Iterable[tuple[str, str]]) -> str:
    return " ".join(f"{source}:{place}" for source, place in binds)
