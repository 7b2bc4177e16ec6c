"""Can this machine grade? One finding a line, with its cure."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from autograder.watch import MEMORY_BYTES

LITTLE_DISK = 1 << 30


def findings(course: Path) -> Iterator[tuple[bool, str]]:
    """(is it fine, what was found and what to do), one for each thing that grading needs."""
    from autograder import sandbox
    from autograder.errors import AutograderError

    yield True, f"Python {sys.version.split()[0]} in {sys.prefix}"
    yield _imports("torch", "PyTorch")
    yield _imports("nbgrader", "nbgrader")
    alembic = shutil.which("alembic") or shutil.which("alembic", path=str(Path(sys.executable).parent))
    yield bool(alembic), f"alembic: {alembic or 'not found; nbgrader makes its gradebook with it: pip install alembic'}"
    try:
        yield True, f"sandbox: {sandbox.bwrap()}"
        yield _box_is_closed(sandbox)
    except AutograderError as error:
        yield False, f"sandbox: {error}"
    yield _memory()
    for package, what in (("distributed", "cluster"), ("psycopg", "postgres")):
        there = importlib.util.find_spec(package) is not None
        wanted = "" if there else f"; only for that: pip install 'amp-course[{what}]'"
        option = {"cluster": "--cluster", "postgres": "--db postgresql+psycopg://…"}[what]
        yield (
            True,
            f"optional: {option} {'can be used' if there else f'takes {package}, which is not installed'}{wanted}",
        )
    if not (course / ".autograder").is_dir():
        yield True, f"{course.resolve()} is no course; --course DIR checks one"
        return
    yield _secret(course)
    yield _gradebook(course)
    yield from _upgraded(course)
    yield _disk(course)
    yield _nobody_at_work(course)


def _imports(module: str, name: str) -> tuple[bool, str]:
    try:
        importlib.import_module(module)
    except Exception as error:  # a library that is broken raises whatever it likes
        return False, f"{name} does not import ({type(error).__name__}: {error}): pip install {module}"
    return True, f"{name} {importlib.metadata.version(module)}"


def _box_is_closed(sandbox) -> tuple[bool, str]:
    """Start the box as for an answer, and look from inside at what must not be there."""
    home = Path.home()
    look = """
import os, socket
def look(home):
    fences = []
    if any(line.split() == ["Seccomp:", "2"] for line in open("/proc/self/status")):
        fences.append("seccomp")
    try:
        open("/proc/self/oom_score_adj", "w").close()
    except PermissionError:
        fences.append("Landlock")
    return [fences, seen(home)]
def seen(home):
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=1)
        return ["the network"]
    except OSError:
        return sorted(os.listdir(home)) if os.path.isdir(home) else []
"""
    checks = f"""
from autograder.probes import Exercise
look = Exercise("look", parts={{"look": 1}})
@look.probe()
def inside(answer, p):
    fences, found = answer({str(home)!r})
    p.see("fences", fences)
    p.see("found", found)
"""
    cells = [{"id": "look", "source": look, "exercise": "look", "check": None}]
    variant = {"name": "look", "exercises": {"look": {"inside": [1]}}, "cells": cells}
    job = {"assignment": "doctor", "checks": checks, "cell_seconds": 20, "variants": [variant]}
    results = sandbox.run(job, boxed=True, seconds=60)
    if not results or results[0]["outcome"] != "evidence":
        return False, f"sandbox: it starts and gives no evidence: {results}"
    record = results[0]["records"][0]
    # A Python that is installed in the home folder is the one thing of it that an answer needs.
    python = {
        Path(prefix).relative_to(home).parts[0] for prefix in sandbox.prefixes() if Path(prefix).is_relative_to(home)
    }
    seen = set(record["seen"].get("found", [f"an error: {record['error']}"])) - python
    if seen:
        return False, f"sandbox: an answer sees {', '.join(sorted(seen))}"
    missing = [fence for fence in ("seccomp", "Landlock") if fence not in record["seen"]["fences"]]
    without = f" (this kernel has no {' and no '.join(missing)}: one fence less)" if missing else ""
    return True, f"sandbox: it starts; an answer in it has no network and sees nothing of your home folder{without}"


def _memory() -> tuple[bool, str]:
    from autograder.executors import CORES

    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return True, "memory: this system does not say how much is free"
    words = f"memory: {free / 2**30:.1f} GiB free for {CORES} answers at a time"
    if free < CORES * MEMORY_BYTES:
        return (
            False,
            f"{words}, each of which may take {MEMORY_BYTES >> 30} GiB: grade with --jobs {max(1, free // MEMORY_BYTES)}",
        )
    return True, words


def _secret(course: Path) -> tuple[bool, str]:
    from autograder.course import Course
    from autograder.errors import AutograderError

    try:
        opened = Course(course)
        _ = opened.secret
    except AutograderError as error:
        return False, f"secret: {error}"
    path = opened.root / ".autograder" / "secret"
    for place, mode in ((path.parent, 0o700), (path, 0o600)):
        if stat.S_IMODE(place.stat().st_mode) & ~mode:
            return False, f"secret: others can read {place}, which the grading seeds come from: chmod {mode:o} {place}"
    return True, "secret: it is there, and only you can read it"


def _gradebook(course: Path) -> tuple[bool, str]:
    from autograder.course import Course, prepare_nbgrader
    from autograder.gradebook import gradebook

    try:
        prepare_nbgrader()
        opened = Course(course)
        with gradebook(opened.directory.db_url, opened.directory.course_id) as book:
            return True, f"gradebook: {len(book.students)} students, {len(book.assignments)} assignments"
    except Exception as error:
        return False, f"gradebook: {type(error).__name__}: {error}"


def _upgraded(course: Path) -> Iterator[tuple[bool, str]]:
    from autograder import upgrade
    from autograder.course import Course
    from autograder.errors import AutograderError

    try:
        yield from upgrade.findings(Course(course))
    except AutograderError as error:
        yield False, f"course: {error}"


def _disk(course: Path) -> tuple[bool, str]:
    free = shutil.disk_usage(course).free
    if not os.access(course, os.W_OK) or not os.access(course / ".autograder", os.W_OK):
        return False, f"disk: you may not write into {course.resolve()}, where grades are kept"
    if free < LITTLE_DISK:
        return (
            False,
            f"disk: only {free / 2**20:.0f} MiB are free where the course is; grades are saved as long as they last",
        )
    return True, f"disk: {free / 2**30:.1f} GiB free where the course is"


def _nobody_at_work(course: Path) -> tuple[bool, str]:
    from autograder.course import Course
    from autograder.errors import AutograderError

    try:
        with Course(course).alone("autograder doctor"):
            return True, "nobody else is grading in this course"
    except AutograderError as error:
        return True, f"busy: {error}"
