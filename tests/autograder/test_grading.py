"""Grading one submission: an answer breaks its own exercise and nothing else, whatever it does."""

import copy
import json

import nbformat
import pytest

from autograder import grading
from autograder.errors import SandboxError
from autograder.feedback import Booked, page
from autograder.grading import grade_cells, grade_file
from autograder.submission import parse

RIGHT = {"step_and_schedule", "two_optimizers_step"}


FORGED = """
import os
def simulate_scale(*a, **k):
    for n in range(3, 64):
        try:
            os.write(n, b'{%s}\\n')
        except OSError:
            pass
"""


@pytest.fixture
def grade(reference, boxed):
    def run(answers: dict[str, str], own: str = ""):
        """Grade the released notebook with the solutions of RIGHT and these answers in it."""
        notebook = copy.deepcopy(reference.room.released)
        sources = {name: reference.room.solutions[name] for name in RIGHT} | answers
        for cell in notebook.cells:
            cell.source = sources.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
        if own:
            notebook.cells.insert(2, nbformat.v4.new_code_cell(own))
        return grade_cells(reference, parse(nbformat.writes(notebook).encode(), "n.ipynb"))

    return run


@pytest.mark.parametrize(
    "source, slug, said",
    [
        (
            "import os, signal\ndef simulate_scale(*a, **k):\n    os.kill(-1, signal.SIGKILL)",
            "raises",
            "No such process",
        ),
        ("import os, signal\nos.kill(-1, signal.SIGKILL)", "raises", "No such process"),
        ("import os\nos._exit(0)", "raises", "process ended"),
        ("def simulate_scale(*a, **k):\n    raise SystemExit", "raises", "SystemExit"),
        ("def simulate_scale(*a, **k):\n    return simulate_scale(*a, **k)", "raises", "RecursionError"),
        ("def simulate_scale(:\n", "raises", "SyntaxError"),
        ("raise ValueError('mine')", "raises", "ValueError: mine (line 1 of your cell)"),
        ("x = 1", "raises", "name 'simulate_scale' is not defined"),
        ("simulate_scale = 5", "raises", "not callable"),
        ("def simulate_scale(*a, **k):\n    return [0] * 10**6", "wrong_result", "expected"),
        ("def simulate_scale(*a, **k):\n    return [[0] * 1000] * 600", "raises", "too large to be looked at"),
        ("def simulate_scale(*a, **k):\n    return ['x' * 2000] * 9000", "raises", "too large to be looked at"),
        (FORGED % '"outcome": "evidence"', "wrong_result", "not one record for each draw"),
        (FORGED % '"outcome": "raises"', "wrong_result", "malformed error"),
        (FORGED % '"outcome": "raises", "error": null', "wrong_result", "malformed error"),
        (
            "class Yes(list):\n    __eq__ = lambda *_: True\ndef simulate_scale(*a, **k):\n    return Yes()",
            "wrong_result",
            "exp",
        ),
        ("def simulate_scale(*a, **k):\n    return '<script>alert(1)</script>'", "wrong_result", "script"),
        ("def simulate_scale(*a, **k):\n    raise ValueError('\\ud800 \\x1b[31m \\x00 end')", "raises", "end"),
        ("def simulate_scale(*a, **k):\n    return ['\\ud800'] * 3", "wrong_result", "expected"),
        ("simulate_scale = type('\\ud800' if False else 'X', (), {})()", "raises", "not callable"),
    ],
    ids=[
        "kill",
        "kill in cell",
        "exit",
        "SystemExit",
        "recursion",
        "syntax",
        "cell",
        "missing",
        "number",
        "huge",
        "many",
        "long",
        "no records",
        "no error",
        "null",
        "liar",
        "html",
        "surrogate",
        "in evidence",
        "object",
    ],
)
def test_an_answer_that_breaks_costs_its_own_exercise(grade, source, slug, said):
    result = grade({"simulate_scale": source})
    assert result.status == "graded"
    mine = result.results["simulate_scale"]
    assert mine.score == 0 and mine.diagnosis == slug and said in mine.message
    assert {name for name, other in result.results.items() if other.passed} == RIGHT
    assert {result.results[name].diagnosis for name in ("LossScaler", "clipped_step")} == {"not_attempted"}
    assert "\\x1b" not in mine.message and "\\x00" not in mine.message
    nbformat.writes(result.notebook).encode()
    json.dumps(result.to_json({})).encode()
    page(result.to_json({"student": "s"}), {"simulate_scale": source}, Booked(0.0, 19.0)).encode()


@pytest.mark.parametrize("where", ["", "def simulate_scale(*a, **k):\n    "], ids=["in cell", "in answer"])
def test_a_report_that_only_a_forger_writes_is_tampering_and_costs_its_own_exercise(grade, where):
    result = grade({"simulate_scale": where + "import os; os.system('for n in 3 4 5 6 7 8 9; do echo 1 >&$n; done')"})
    assert result.status == "graded", "no descriptor is inherited by what an answer starts"
    result = grade(
        {
            "simulate_scale": where
            + "import os; [os.write(n, b'1\\n') for n in range(3, 20) if os.path.exists(f'/proc/self/fd/{n}')]"
        }
    )
    assert result.status == "tampered" and "simulate_scale" in result.message
    mine = result.results["simulate_scale"]
    assert mine.score == 0 and "something else than the grader's own reports" in mine.message
    assert {name for name, other in result.results.items() if other.passed} == RIGHT


@pytest.fixture
def asked(monkeypatch) -> list[tuple[bool, list[str]]]:
    """What boxes are asked for: whether all in one process, and which exercises."""
    jobs, answer = [], grading.answer

    def spy(wanted: dict, *others):
        jobs.append((wanted.get("together", False), list(wanted["variants"][0]["exercises"])))
        return answer(wanted, *others)

    monkeypatch.setattr(grading, "answer", spy)
    return jobs


def test_right_answers_take_one_process_and_a_wrong_one_a_second(grade, reference, asked):
    everything = list(reference.room.exercises)
    assert grade(reference.room.solutions).score == sum(e.points for e in reference.room.exercises.values())
    assert asked == [(True, everything)]
    asked.clear()
    wrong = reference.room.mistakes["clipped_step"][0]
    result = grade({**reference.room.solutions, "clipped_step": wrong.source})
    assert result.results["clipped_step"].diagnosis == wrong.slug
    assert asked == [(True, everything), (False, ["clipped_step"])]


def test_what_an_answer_bends_while_it_is_called_costs_nobody_else(grade, asked):
    source = "def simulate_scale(*a, **k):\n    import torch\n    torch.amp.GradScaler.step = lambda *_: None\n    return [1.0]"
    result = grade({"simulate_scale": source})
    assert {name for name, other in result.results.items() if other.passed} == RIGHT
    assert asked == [(together, ["simulate_scale", *sorted(RIGHT)]) for together in (True, False)]


def test_a_first_run_that_fails_decides_nothing(grade, monkeypatch):
    answer = grading.answer

    def broken(job: dict, *others):
        if job.get("together"):
            raise SandboxError("no box")
        return answer(job, *others)

    monkeypatch.setattr(grading, "answer", broken)
    result = grade({})
    assert result.status == "graded" and {name for name, other in result.results.items() if other.passed} == RIGHT


def test_an_answer_that_never_returns_is_a_timeout(grade, reference, monkeypatch):
    monkeypatch.setattr(reference.room.exercises["simulate_scale"], "seconds", 2.0)
    checks = reference.room.checks.replace(
        'parts={"history": 1, "range": 1}', 'parts={"history": 1, "range": 1}, seconds=2'
    )
    monkeypatch.setattr(reference.room, "checks", checks)
    result = grade({"simulate_scale": "def simulate_scale(*a, **k):\n    while True:\n        pass"})
    assert result.results["simulate_scale"].diagnosis == "timeout" and result.status == "graded"
    assert {name for name, other in result.results.items() if other.passed} == RIGHT


def test_a_submission_that_takes_too_long_in_all_keeps_what_it_had_answered(grade, monkeypatch):
    monkeypatch.setattr(grading, "SUBMISSION_SECONDS", 4.0)
    monkeypatch.setattr(grading, "TOGETHER_SECONDS", 2.0)
    slow = "import time\ntime.sleep(60)\n"
    result = grade({"two_optimizers_step": slow})
    assert result.status == "timeout" and "what it had answered" in result.message
    assert result.results["step_and_schedule"].passed and not result.results["two_optimizers_step"].passed


def test_a_helper_in_a_cell_of_ones_own_is_found(grade):
    own = """
def mine(scaler, optimizer):
    before = scaler.get_scale()
    scaler.update()
    return scaler.get_scale() >= before
"""
    source = """
def step_and_schedule(scaler, optimizer, scheduler, loss):
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    stepped = mine(scaler, optimizer)
    if stepped:
        scheduler.step()
    return stepped
"""
    assert grade({"step_and_schedule": source}, own).results["step_and_schedule"].passed


def test_verdicts_stand_below_the_check_cells(grade):
    notebook = grade({"simulate_scale": "x = 1"}).notebook
    nbformat.validate(notebook)
    outputs = {
        cell.metadata.nbgrader.grade_id: cell.outputs
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    assert outputs["step_and_schedule-skip"][0].text.startswith("✓")
    assert outputs["simulate_scale-history"][0].output_type == "error" and len(outputs) == 16


def test_the_same_submission_gives_the_same_grade_alone_and_beside_others(grade, reference, tmp_path):
    first = grade({"clipped_step": "def clipped_step(*a):\n    return 1.0"})
    path = tmp_path / "n.ipynb"
    nbformat.write(first.notebook, path)
    again = grade_file(reference, path)
    assert first.to_json({}) == again.to_json({})
