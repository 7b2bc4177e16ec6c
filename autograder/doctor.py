"""Can this machine grade? One finding a line, with its cure."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path


def findings(course: Path) -> Iterator[tuple[bool, str]]:
    """(is it fine, what was found and what to do), one for each thing that grading needs."""
    from autograder import sandbox
    from autograder.errors import AutograderError

    yield True, f"Python {sys.version.split()[0]} in {sys.prefix}"
    try:
        import torch

        yield True, f"PyTorch {torch.__version__}"
    except ImportError as error:
        yield False, f"PyTorch does not import ({error}): pip install torch"
    try:
        path = sandbox.bwrap()
        yield True, f"sandbox: {path}"
        yield _box_is_closed(sandbox)
    except AutograderError as error:
        yield False, f"sandbox: {error}"
    try:
        import nbgrader

        yield True, f"nbgrader {nbgrader.__version__}"
    except ImportError as error:
        yield False, f"nbgrader does not import ({error}): pip install nbgrader"
    alembic = shutil.which("alembic") or shutil.which("alembic", path=str(Path(sys.executable).parent))
    yield bool(alembic), f"alembic: {alembic or 'not found; nbgrader makes its gradebook with it: pip install alembic'}"
    if (course / ".autograder").is_dir():
        yield _gradebook(course)
    else:
        yield True, f"{course.resolve()} is no course; --course DIR checks one"


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


def _gradebook(course: Path) -> tuple[bool, str]:
    from autograder.course import Course, prepare_nbgrader

    try:
        prepare_nbgrader()
        opened = Course(course)
        from nbgrader.api import Gradebook

        with Gradebook(opened.directory.db_url, opened.directory.course_id) as gradebook:
            return True, f"gradebook: {len(gradebook.students)} students, {len(gradebook.assignments)} assignments"
    except Exception as error:
        return False, f"gradebook: {type(error).__name__}: {error}"
