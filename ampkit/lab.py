"""`ampkit lab`: the learner's working copy of the course, kept up to date without touching what was written in it."""

import hashlib
import json
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from subprocess import Popen

import ampkit
from ampkit.errors import LabError

__all__ = ["course_dir", "fingerprint", "prepare", "run", "sync"]

MANIFEST = ".ampkit-manifest.json"  # in the working copy: path -> fingerprint of what was delivered there last

Builder = Callable[[Path], Path]  # from an assignment's room to the folder with the files that a student gets


def run(dir: Path | None = None, *, port: int = 8888, browser: bool = True, prepare_only: bool = False) -> int:
    """Prepare the working copy and run JupyterLab on it until it is stopped; returns JupyterLab's exit status.

    Raises LabError: no checkout of the course, no JupyterLab, the port in use, a folder that cannot be written.
    """
    course = course_dir(dir)
    if not prepare_only:
        if find_spec("jupyterlab") is None:
            raise LabError(f"JupyterLab is not installed here. Install it: {sys.executable} -m pip install jupyterlab")
        _check_port(port)
    for line in prepare(course):
        print(line)
    print(f"The course is in {course}.")
    print(_what_this_machine_shows(), flush=True)
    return 0 if prepare_only else _serve(course, port, browser)


def course_dir(dir: Path | None = None) -> Path:
    """Where the working copy is: the folder given, else AMPKIT_COURSE_DIR, else amp-course in the home folder."""
    chosen = dir or os.environ.get("AMPKIT_COURSE_DIR") or Path.home() / "amp-course"
    return Path(chosen).expanduser().resolve()


def prepare(course: Path, *, root: Path | None = None, build: Builder | None = None) -> list[str]:
    """Make or update the working copy in course; returns what there is to say about it, a line each.

    root is the checkout of the course, by default the one that ampkit is installed from. build(room) gives the folder
    with the files that a student gets; by default autograder.release.student_files does. Raises LabError.
    """
    root = _checkout() if root is None else root.resolve()
    course = course.resolve()
    if course == root or (root in course.parents and root / "build" not in course.parents):
        raise LabError(
            f"The working copy cannot be in the checkout {root}: your answers would stand among its own files. "
            "Choose a folder outside of it: ampkit lab --dir FOLDER"
        )
    lessons = {f"lessons/{path.name}": path for path in sorted((root / "lessons").glob("*.ipynb"))}
    for path in sorted((root / "lessons" / "measured").rglob("*")):
        if path.is_file():
            lessons[path.relative_to(root).as_posix()] = path
    try:
        (course / "lessons").mkdir(parents=True, exist_ok=True)  # JupyterLab opens there
        lines = sync(lessons, course)  # before the exercises, which take a while to release
        released, unreleased = _released(root, build)
        return lines + unreleased + sync(released, course)
    except OSError as error:
        raise LabError(
            f"The working copy {course} cannot be written: {error}. "
            "Nothing of yours was changed. Free the folder, or choose another: ampkit lab --dir FOLDER"
        ) from error


def _checkout() -> Path:
    root = Path(ampkit.__file__).resolve().parents[1]
    if not ((root / "lessons").is_dir() and (root / "exercises").is_dir() and (root / "pyproject.toml").is_file()):
        raise LabError(
            "The lessons are not beside the installed ampkit: it was not installed from a checkout. "
            "Clone the course and install that: pip install -e FOLDER"
        )
    return root


# The working copy


def sync(files: dict[str, Path], course: Path) -> list[str]:
    """Bring files (path in the working copy -> file of the course) into course; returns a line for each that needs one.

    A missing file is copied. One that the learner left as it was delivered is replaced when the course has another.
    One that the learner changed is never touched: if the course changed as well, its version is put beside it, as
    NAME.new-version.ipynb. Nothing is deleted, and what is written appears all at once.
    """
    manifest = _read_manifest(course)
    lines = []
    try:
        for name, source in files.items():
            lines += _sync_one(name, source.read_bytes(), course, manifest)
    finally:  # what was delivered stays recorded, even if a later file could not be written
        course.mkdir(parents=True, exist_ok=True)
        _write(course / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n")
    return lines


def _sync_one(name: str, new: bytes, course: Path, manifest: dict[str, str]) -> list[str]:
    path = course / name
    ours, delivered = fingerprint(name, new), manifest.get(name)
    if not path.exists():
        _write(path, new)
    else:
        theirs = fingerprint(name, path.read_bytes())
        if theirs != ours and theirs == delivered:
            _write(path, new)
        elif theirs != ours and ours != delivered:
            beside = _place_beside(name, course, manifest)
            _write(course / beside, new)
            manifest[beside] = fingerprint(beside, new)
            manifest[name] = ours
            return [f"{name}: you changed it, so it stays; the course's new version is beside it, {Path(beside).name}"]
    manifest[name] = ours
    return []


def _place_beside(name: str, course: Path, manifest: dict[str, str]) -> str:
    """The first NAME.new-version.ipynb, NAME.new-version-2.ipynb … that holds nothing of the learner's."""
    path = Path(name)
    number = 1
    while True:
        suffix = ".new-version" if number == 1 else f".new-version-{number}"
        beside = path.with_name(path.stem + suffix + path.suffix).as_posix()
        taken = course / beside
        if not taken.exists() or fingerprint(beside, taken.read_bytes()) == manifest.get(beside):
            return beside
        number += 1


def fingerprint(name: str, content: bytes) -> str:
    """What counts as the same file: for a notebook its cells' types and sources in order, for others every byte.

    Outputs, execution counts and metadata of a notebook change by running it, and running is not writing.
    """
    if name.endswith(".ipynb"):
        try:
            cells = json.loads(content)["cells"]
            content = json.dumps([[cell["cell_type"], "".join(cell["source"])] for cell in cells]).encode()
        except (ValueError, KeyError, TypeError):
            pass  # not a notebook any more: compare its bytes, so that it counts as changed and is kept
    return hashlib.sha256(content).hexdigest()


def _read_manifest(course: Path) -> dict[str, str]:
    try:
        manifest = json.loads((course / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}  # then every file that differs counts as the learner's, which loses nothing
    return manifest if isinstance(manifest, dict) else {}


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".ampkit-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if os.name == "posix":  # mkstemp makes files that only the owner can read
            os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


# The released exercises


def _build(room: Path) -> Path:
    from autograder.release import student_files
    from autograder.room import Room

    return student_files(Room(room), say=lambda words: print(words, flush=True))


def _released(root: Path, build: Builder | None) -> tuple[dict[str, Path], list[str]]:
    if build is None:
        build = _build
    files, lines = {}, []
    for room in sorted((root / "exercises").iterdir()):
        if not (room / f"{room.name}.ipynb").is_file():
            continue
        try:
            built = build(room)
        except Exception as error:  # whatever is wrong with one assignment, the lessons are to open
            lines.append(f"exercises/{room.name} could not be released: {error}")
            continue
        for path in sorted(built.iterdir()):
            files[f"exercises/{room.name}/{path.name}"] = path
    return files, lines


# JupyterLab


def _what_this_machine_shows() -> str:
    import torch

    if torch.cuda.is_available():
        return f"GPU: {torch.cuda.get_device_name()}; speed and memory are measured on it."
    return (
        "No GPU here: everything works, with real FP16 arithmetic on the CPU; "
        "speed and memory are shown where a stored run of a GPU has them, and left out where there is none."
    )


def _check_port(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        if os.name == "posix":  # a port that was free a minute ago is free; on Windows the option means something else
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            raise LabError(f"Port {port} needs administrator's rights. Choose one above 1023: --port 8889") from None
        except OSError:
            raise LabError(
                f"Port {port} is in use; perhaps the course is already open: look at http://localhost:{port}/lab. "
                f"Otherwise choose another port: ampkit lab --port {port + 1 if port < 65535 else port - 1}"
            ) from None


def _serve(course: Path, port: int, browser: bool) -> int:
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={course}",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        "--LabApp.default_url=/lab",  # with lessons and exercises beside each other
        "--LabApp.news_url=None",  # a question about news would be the first thing that a learner sees
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--Application.log_level=WARN",  # the address to open is printed all the same
        f"--CourseDirectory.root={course}",  # nbgrader's extensions complain of a course outside of the server's root
    ]
    if getattr(os, "geteuid", lambda: 1)() == 0:
        # JupyterLab refuses to run as root, which is who one is in most containers; it still listens on localhost only
        command.append("--allow-root")
    if not browser:
        command.append("--no-browser")
    server = Popen(command)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())  # else the server would outlive this process
    while True:
        try:
            return server.wait()
        except KeyboardInterrupt:
            continue  # Ctrl-C reaches JupyterLab as well, which asks before it stops
