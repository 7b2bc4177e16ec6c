"""CONTRIBUTING.md: its commands run, its table of budgets is what the tests hold, its example of a checks.py works."""

from __future__ import annotations

import os
import re
import sys

import pytest
from commands import inline, options_exist, read

CONTRIBUTING = "CONTRIBUTING.md"


def under(heading: str):
    return pytest.mark.commands(CONTRIBUTING, heading)


@pytest.fixture
def at_root(shell, root):
    shell.folder = root
    return shell


COLLECT = "--collect-only -q -p no:cacheprovider"  # the tests that it names run in this run anyway, once is enough


@under("Write a lesson")
def test_a_lesson_is_read_run_and_looked_at(at_root, root):
    before = (root / "lessons" / "claims.md").read_text(encoding="utf-8")
    at_root.run("python tests/lessons/claims.py")
    assert (root / "lessons" / "claims.md").read_text(encoding="utf-8") == before
    said = at_root.run("python -m pytest tests/lessons/test_budgets.py", add="-p no:cacheprovider")
    assert "median" in said and "failed" not in said
    said = at_root.run("python -m pytest tests/lessons/test_run.py tests/lessons/test_browser.py", add=COLLECT)
    assert "test_run.py::" in said and "test_browser.py::" in said


def test_the_budgets_are_those_that_the_tests_hold(root):
    text = (root / CONTRIBUTING).read_text(encoding="utf-8")
    budgets = (root / "tests/lessons/test_budgets.py").read_text(encoding="utf-8")
    run = (root / "tests/lessons/lesson_record.py").read_text(encoding="utf-8")
    held = {
        r"median at most (\d+) lines": re.search(r"assert middle <= (\d+)", budgets),
        r"none over (\d+) \|": re.search(r"if size > (\d+)\}", budgets),
        r"at most (\d+) words": re.search(r"words.*\n.*if size > (\d+)\}", budgets),
        r"at most (\d+) cells": re.search(r"max\(gaps\) <= (\d+)", budgets),
        r"\| (\d+) seconds \|\n\| one cell": re.search(r"WHOLE_S, CELL_S = (\d+), \d+", run),
        r"one cell \| (\d+) seconds": re.search(r"WHOLE_S, CELL_S = \d+, (\d+)", run),
    }
    for said, found in held.items():
        assert re.search(said, text)[1] == found[1], said


@under("The checks")
def test_the_example_of_a_checks_file_probes_answers(shell):
    import torch

    from autograder.probes import PUBLIC_SECRET, load_checks, run_probes, seeds

    source = shell.next("import torch")
    (exercise,) = load_checks(source, "an_example").values()
    draws = seeds(exercise, "an_example", PUBLIC_SECRET)
    records = run_probes(exercise, lambda x: float(torch.finfo(torch.float16).eps * x / 2), draws, lambda error: None)
    assert len(records) == 4
    assert all(not record["error"] and record["given"] and "returned" in record["seen"] for record in records)
    (rule,) = [rule for _, rule in exercise.symptoms]
    assert rule([]) is False


@pytest.mark.slow
@under("Prove it")
def test_an_answer_is_tried_and_rooms_are_proven(at_root):
    from autograder import sandbox
    from autograder.errors import SandboxError

    try:
        sandbox.bwrap()
    except SandboxError as error:
        pytest.skip(f"requires a sandbox: {error}")
    assert "by_hand.py  3 of 19" in at_root.run("autograder try 03_gradscaler ")
    assert "test_rooms.py::" in at_root.run("python -m pytest tests/autograder/test_rooms.py", add=COLLECT)
    assert "1 of 1: 0 failures" in at_root.run("python tests/bench/many_secrets.py 03_gradscaler")


@under("Write code")
def test_the_linter_and_the_type_checker_are_those_that_tests_run(at_root, root):
    assert at_root.next("python -m ruff check") == "python -m ruff check"
    assert at_root.next("python -m mypy ampkit") == "python -m mypy ampkit"
    assert '"-m", "mypy"' in (root / "tests/ampkit/test_api.py").read_text(encoding="utf-8")
    assert '"-m", "ruff", "check"' in (root / "tests/docs/test_repository.py").read_text(encoding="utf-8")


@under("Run what CI runs")
def test_ci_and_the_quick_tests_can_be_run(at_root, root):
    assert os.access(root / at_root.next(".ci/run"), os.X_OK)
    said = at_root.run(
        'python -m pytest -m "not slow"', add=f"{COLLECT} tests/docs"
    )  # all of them take a minute to list
    assert "deselected" in said and "test_front_door" not in said


def test_no_command_is_run_by_nobody(root):
    marked = {
        mark.args[1]
        for item in vars(sys.modules[__name__]).values()
        for mark in getattr(item, "pytestmark", [])
        if mark.name == "commands"
    }
    assert {command.heading for command in read(root / CONTRIBUTING)} == marked


def test_what_it_names_is_there(root):
    text = inline(root / CONTRIBUTING)
    options_exist(text)
    paths = [name for name in text if re.fullmatch(r"(tests|ampkit|autograder)/[\w/.-]+\.py", name)]
    assert len(paths) >= 2 and [path for path in paths if not (root / path).is_file()] == []
    tree = (root / CONTRIBUTING).read_text(encoding="utf-8").split("```text")[1].split("```")[0]
    room = re.findall(r"^    (\S+)", tree, re.MULTILINE)
    missing = [name for name in room if not (root / "exercises/03_gradscaler" / name).is_file()]
    assert len(room) == 6 and missing == ["mistakes/clipped_step/wrong_result__name.py"]
