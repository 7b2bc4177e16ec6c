"""A course's own copy of hub/kubernetes: the files with its id, images and people filled in, its secrets made once.

    python -m autograder.hub.kubernetes fill --course amp --image registry.example/amp --tag 2026.1 \\
        --roster roster.csv --instructors ada,grace build/hub-amp
    python -m autograder.hub.kubernetes deliver /opt/course/lessons /home/jovyan/lessons

`fill` is for the administrator, before `helm upgrade` and `kubectl apply`; `deliver` runs in a student's pod as it starts.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import string
import sys
from collections.abc import Iterable
from pathlib import Path

from autograder.errors import AutograderError, CourseError

FILES = Path(__file__).resolve().parents[2] / "hub" / "kubernetes"
FILLED = ("values.yaml", "storage.yaml", "quota.yaml", "grader.yaml")
# Services are called grader-COURSE and have to be DNS labels, of 63 characters at most.
COURSE_ID = r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?"
SAFE = string.ascii_lowercase + string.digits


def folder(username: str) -> str:
    """The name of a student's folder in the exchange: what KubeSpawner 7 puts for `{escaped_username}`.

    Lower-case letters and digits stand for themselves, every other byte of the name (UTF-8) is "-" and two hexadecimal
    digits. So no two names share a folder, no name leaves it, and the name can be read back, which KubeSpawner's newer
    `{username}` (a shortened name with a hash) does not allow.

    >>> folder("ada"), folder("j.doe@example.org")
    ('ada', 'j-2edoe-40example-2eorg')
    """
    return "".join(each if each in SAFE else "".join(f"-{byte:02x}" for byte in each.encode()) for each in username)


def username(folder_name: str) -> str:
    """Whose folder it is: the inverse of `folder`. CourseError for a name that `folder` does not make.

    >>> username("j-2edoe-40example-2eorg")
    'j.doe@example.org'
    """
    read = re.sub(rb"-([0-9a-f]{2})", lambda match: bytes([int(match[1], 16)]), folder_name.encode())
    try:
        name = read.decode()
    except UnicodeDecodeError:
        name = ""
    if not name or folder(name) != folder_name:
        raise CourseError(
            f"{folder_name!r} is not the folder of a student: it is no escaped user name, so nobody's server has it "
            "mounted. Whoever made it in the exchange should move it away; nothing in it was collected."
        )
    return name


def deliver(lessons: Path, destination: Path) -> list[str]:
    """Bring the lessons of the image into a student's home as `ampkit lab` does: nothing that was changed is replaced."""
    from ampkit.lab import sync

    files = {path.relative_to(lessons).as_posix(): path for path in sorted(lessons.rglob("*")) if path.is_file()}
    if not files:
        raise CourseError(f"There are no lessons in {lessons}: the image was built without them. Build it anew.")
    return sync(files, destination)


# What the administrator fills in


def check_course(course: str) -> None:
    if not re.fullmatch(COURSE_ID, course):
        raise CourseError(
            f"{course!r} cannot be the id of a course on Kubernetes: its service is called grader-{course}, which has to be "
            "a DNS label. Use 1 to 40 lower-case letters, digits and '-', a letter first, no '-' last."
        )


def people(course: str, students: Iterable[str], instructors: Iterable[str]) -> dict:
    """Helm values that say who may log in, and who is a student, an instructor, the grader of the course."""
    students, instructors, grader = sorted(students), sorted(instructors), f"grader-{course}"
    if not instructors:
        raise CourseError(f"The course {course} has no instructor, so nobody could open its grader. Name one.")
    if grader in (*students, *instructors):
        raise CourseError(f"{grader} is the account that the course's grader runs as; no person can have it.")
    both = sorted(set(students) & set(instructors))
    if both:
        raise CourseError(f"{', '.join(both)}: student and instructor of {course} at once. Take them off the roster.")
    return {
        "hub": {
            "config": {
                "Authenticator": {"allowed_users": [*students, *instructors]},
                # A group's members have to be users of the hub, and the hub makes users of them: of the grader as well,
                # whose name nbgrader asks the hub for.
                "JupyterHub": {
                    "load_groups": {
                        f"formgrade-{course}": {"users": [*instructors, grader]},
                        f"nbgrader-{course}": {"users": students},
                    }
                },
            }
        }
    }


def tokens(course: str, token: str) -> tuple[dict, dict]:
    """The grader's token as Helm values for the hub, and as a Secret for the grader."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"grader-{course}"},
        "type": "Opaque",
        "stringData": {"JUPYTERHUB_API_TOKEN": token},
    }
    return {"hub": {"services": {course: {"apiToken": token}}}}, secret


def fill_in(text: str, values: dict[str, str]) -> str:
    """Put the values for $COURSE, $IMAGE and so on. KeyError for one that has none."""
    return string.Template(text).substitute(values)


def write(out: Path, values: dict[str, str], students: list[str], instructors: list[str]) -> list[Path]:
    """Write the filled-in files, people.yaml, and unless they are there secret-values.yaml and grader-secret.yaml."""
    import yaml

    check_course(values["COURSE"])
    files = {name: fill_in((FILES / name).read_text(encoding="utf-8"), values) for name in FILLED}
    files["people.yaml"] = yaml.safe_dump(people(values["COURSE"], students, instructors), sort_keys=False)
    secret = [out / "secret-values.yaml", out / "grader-secret.yaml"]
    if sum(path.exists() for path in secret) == 1:
        raise CourseError(
            f"Of {secret[0]} and {secret[1].name} one is missing: they hold the same token, which hub and grader must agree "
            "on. Restore it, or delete the other one too, and apply both that are made then."
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (out / name).write_text(text, encoding="utf-8")
        if not secret[0].exists():
            for path, content in zip(secret, tokens(values["COURSE"], secrets.token_hex(32)), strict=True):
                with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                    file.write(yaml.safe_dump(content, sort_keys=False))
    except OSError as error:
        raise CourseError(f"{out} cannot be written: {error}") from error
    return [*(out / name for name in files), *secret]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m autograder.hub.kubernetes", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    fills = commands.add_parser("fill", help="write a course's copy of hub/kubernetes")
    fills.add_argument("out", type=Path, help="the folder to write; keep it out of git, it holds a token")
    fills.add_argument("--course", required=True, help="the course's id")
    fills.add_argument(
        "--image", required=True, help="images are IMAGE-student:TAG, IMAGE-student:TAG-cuda, IMAGE-grader:TAG"
    )
    fills.add_argument("--tag", required=True)
    fills.add_argument("--roster", required=True, type=Path, help="CSV with a column `username`")
    fills.add_argument("--instructors", required=True, help="user names, separated by commas")
    fills.add_argument("--timezone", default="UTC", help="of due dates, such as Europe/Zurich")
    brings = commands.add_parser("deliver", help="bring the image's lessons into a home")
    brings.add_argument("lessons", type=Path)
    brings.add_argument("destination", type=Path)
    given = parser.parse_args(arguments)
    try:
        if given.command == "deliver":
            print(*deliver(given.lessons, given.destination), sep="\n")
            return 0
        values = {"COURSE": given.course, "IMAGE": given.image, "TAG": given.tag, "TIMEZONE": given.timezone}
        instructors = [name.strip() for name in given.instructors.split(",") if name.strip()]
        from autograder.hub import roster

        students = [student.username for student in roster.read(given.roster, tuple(instructors))]
        for path in write(given.out, values, students, instructors):
            print(path)
    except AutograderError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
