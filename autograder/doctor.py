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
    look = (
        "import os, socket\n"
        "def look(home):\n"
        "    try:\n"
        "        socket.create_connection(('192.0.2.1', 80), timeout=1)\n"
        "        return 'it reaches the network'\n"
        "    except OSError:\n"
        "        return 'it sees ' + home if os.path.exists(home) and os.listdir(home) else ''\n"
    )
    checks = (
        "from autograder.probes import Exercise\n"
        "look = Exercise('look', parts={'look': 1})\n"
        "@look.probe()\n"
        "def inside(answer, p):\n"
        f"    p.see('found', answer({str(Path.home())!r}))\n"
    )
    job = {
        "assignment": "doctor",
        "checks": checks,
        "cell_seconds": 20,
        "variants": [
            {
                "name": "look",
                "exercises": {"look": {"inside": [1]}},
                "cells": [{"id": "look", "source": look, "exercise": "look"}],
            }
        ],
    }
    results = sandbox.run(job, boxed=True, seconds=60)
    record = (
        results[0]["records"][0] if results and results[0]["outcome"] == "evidence" else {"seen": {}, "error": results}
    )
    if record["seen"].get("found") == "":
        return True, "sandbox: starts, has no network and no home"
    return False, f"sandbox: {record['seen'].get('found') or record['error']}"


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
