"""Students' servers as Slurm jobs: batchspawner's SlurmSpawner with a list of profiles, and with two doors of it shut.

    python -m autograder.hub.slurm prepare /shared/exchange amp --roster roster.csv --grader grader-amp    as root
    python -m autograder.hub.slurm link /shared/exchange amp                                              in each job

The doors, in batchspawner 1.3: what somebody writes into a spawn request (`user_options`) is put into the job script in the
place of the administrator's own values; and a server tells the hub its port by a request that may set *any* attribute of the
spawner, such as the command that the hub runs next. Here a request chooses a profile and nothing else, and a server says a
port and nothing else.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import pwd
import re
import sys
from pathlib import Path

import batchspawner
from batchspawner.api import BatchSpawnerAPIHandler
from jupyterhub.apihandlers import default_handlers
from tornado import web
from traitlets import Dict, TraitError, validate

from autograder.errors import AutograderError, CourseError

# What a profile may ask Slurm for, by batchspawner's names; all are text.
REQUESTS = ("partition", "qos", "account", "reservation", "gres", "nprocs", "memory", "runtime", "options")
# The name goes into a command that a shell runs as the hub's user: what useradd takes, and nothing with a meaning to a shell.
ACCOUNT = r"[a-z_][a-z0-9_-]{0,31}"


class PortHandler(BatchSpawnerAPIHandler):
    """Where a job tells the hub on which port its server listens."""

    @web.authenticated
    def post(self):
        data = self.get_json_body()
        port = data.get("port") if isinstance(data, dict) else None
        if not isinstance(data, dict) or set(data) != {"port"} or type(port) is not int or not 1024 <= port <= 65535:
            raise web.HTTPError(400, "A job says the port of its server ({'port': 1024 to 65535}) and nothing else.")
        token = self.get_auth_token()
        servers = getattr(self.current_user, "spawners", {})  # a service has none
        spawner = next((each for each in servers.values() if each.api_token == token), None)
        if spawner is None:
            raise web.HTTPError(403, "This token belongs to no server.")
        if spawner.port:
            raise web.HTTPError(409, "The port of this server is known already. Stop the server and start it again.")
        spawner.port = port
        self.finish(json.dumps({"message": "The port is known."}))
        self.set_status(201)


# Importing batchspawner has put its own handler there; the hub asks the list when it starts.
default_handlers[:] = [
    (pattern, PortHandler if handler is BatchSpawnerAPIHandler else handler, *rest)
    for pattern, handler, *rest in default_handlers
]


def refusal(status: int, message: str) -> web.HTTPError:
    error = web.HTTPError(status, message)
    error.jupyterhub_message = message  # what the page of a failed start shows
    return error


class CourseSlurmSpawner(batchspawner.SlurmSpawner):
    """A student's server as a Slurm job of one of the profiles."""

    profiles = Dict(
        help="""What a student may choose, the first one being the default: by a short name, `title` and `description` and any
        of partition, qos, account, reservation, gres, nprocs, memory, runtime, options."""
    ).tag(config=True)

    def __init__(self, **options):
        super().__init__(**options)
        self._common = {request: getattr(self, f"req_{request}") for request in REQUESTS}

    @validate("profiles")
    def _profiles_are_known(self, proposal):
        for name, profile in proposal["value"].items():
            unknown = sorted(set(profile) - {"title", "description", *REQUESTS})
            if unknown or not re.fullmatch(r"[a-z0-9-]+", name):
                raise TraitError(
                    f"Profile {name!r} cannot be read ({', '.join(unknown) or 'its name'}). Names are made of a-z, 0-9 and "
                    f"'-', and a profile has title, description, {', '.join(REQUESTS)}."
                )
            odd = [key for key, value in profile.items() if not isinstance(value, str) or "\n" in value]
            if odd or "title" not in profile:
                raise TraitError(
                    f"Profile {name!r}: title is needed, and {', '.join(odd) or 'all'} is to be one line of text."
                )
        return proposal["value"]

    def _options_form_default(self):
        rows = []
        for number, (name, profile) in enumerate(self.profiles.items()):
            rows.append(
                f'<div class="radio"><label><input type="radio" name="profile" value="{name}"{"" if number else " checked"}> '
                f"<strong>{html.escape(profile['title'])}</strong> {html.escape(profile.get('description', ''))}</label></div>"
            )
        return "\n".join(rows) if len(rows) > 1 else ""

    def options_from_form(self, formdata):
        return {name: values[0] for name, values in formdata.items() if name == "profile" and values}

    def choose(self) -> str:
        """Take over what the chosen profile asks for; its name. HTTPError 400 for a choice that is none."""
        if not self.profiles:
            raise refusal(500, "CourseSlurmSpawner.profiles is empty: the administrator has to list at least one.")
        extra = sorted(set(self.user_options) - {"profile"})
        name = self.user_options.get("profile") or next(iter(self.profiles))
        if extra or not isinstance(name, str) or name not in self.profiles:
            raise refusal(
                400,
                f"{', '.join(extra) or repr(name)} cannot be chosen: a server is started with a profile, one of "
                f"{', '.join(self.profiles)}, and nothing else.",
            )
        # The spawner is the same one at a student's next start, with what this choice has set.
        asked = {**self._common, **self.profiles[name]}
        for request in REQUESTS:
            setattr(self, f"req_{request}", asked[request])
        # batchspawner's job script has no line for these two.
        flags = [f"--{flag}={asked[flag]}" for flag in ("qos", "account") if asked[flag]]
        self.req_options = " ".join([*flags, *filter(None, [asked["options"]])])
        return name

    async def start(self):
        if not re.fullmatch(ACCOUNT, self.user.name):
            raise refusal(
                400,
                f"{self.user.name!r} cannot start a job: the hub runs sbatch as that account of this system, and it is not the "
                "name of one (letters, digits, '_' and '-', in lower case). Ask for an account, or log in with its name.",
            )
        self.user_options = {"profile": self.choose()}
        return await super().start()


# The exchange on the file system that all nodes share


def link(root: Path, course: str, student: str, here: Path) -> None:
    """Show a student's own part of the exchange at `here`, an exchange root for nbgrader, by links.

    Slurm's nodes have no mounts for one student; what keeps the others' folders shut is that they belong to others.
    """
    from autograder.hub.exchange import views

    for view in views(root, course, student):
        if not view.source.is_dir():
            raise CourseError(
                f"{view.source} is missing: {student} is not in the exchange of {course} yet. The administrator runs "
                "`python -m autograder.hub.slurm prepare` after each change of the roster."
            )
        place = here / view.at
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink():
            place.unlink()
        elif place.exists():
            raise CourseError(
                f"{place} is in the way: links into the exchange belong there. Move it away and start again."
            )
        place.symlink_to(view.source)


def prepare(root: Path, course: str, students: list[str], grader: str) -> None:
    """Make the exchange of a course, with a folder for each student that only the student and the grader can open."""
    from autograder.hub.exchange import prepare as make

    accounts, missing = {}, []
    for name in [grader, *students]:
        try:
            accounts[name] = pwd.getpwnam(name)
        except KeyError:
            missing.append(name)
    if missing:
        raise CourseError(
            f"No account on this system: {', '.join(missing)}. Nothing was changed. Jobs run as the students' own."
        )
    if os.geteuid() != 0:
        raise CourseError(
            "Folders can be given to students by root only. Run this as root, on the file server if it squashes root."
        )
    owner = accounts[grader]
    if any(accounts[name].pw_gid == owner.pw_gid for name in students):
        raise CourseError(
            f"{grader} has the primary group of its students, and what its group may read they could read too. Give {grader} a "
            "group of its own: usermod -g GROUP."
        )
    os.umask(0o022)
    make(root, course, students, {name: accounts[name].pw_uid for name in students}, (owner.pw_uid, owner.pw_gid))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m autograder.hub.slurm", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    links = commands.add_parser("link", help="show a student's part of the exchange below the home")
    links.add_argument("--here", type=Path, default=Path.home() / ".exchange", help="default: ~/.exchange")
    prepares = commands.add_parser("prepare", help="make the exchange, as root")
    prepares.add_argument("--roster", required=True, type=Path)
    prepares.add_argument("--grader", required=True, help="the grader's account")
    for each in (links, prepares):
        each.add_argument("root", type=Path)
        each.add_argument("course")
    given = parser.parse_args(arguments)
    try:
        if given.command == "link":
            link(given.root, given.course, pwd.getpwuid(os.getuid()).pw_name, given.here)
        else:
            from autograder.hub import roster

            students = [student.username for student in roster.read(given.roster)]
            prepare(given.root, given.course, students, given.grader)
    except (AutograderError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
