"""The checks in a learner's notebook: what they say, what they leave alone, where they are found."""

import ast
import io
import zipfile
from contextlib import redirect_stderr, redirect_stdout

import nbformat
import pytest
import torch

from autograder import student
from autograder.bundle import file_name, unpack
from autograder.errors import RoomError
from autograder.release import write_student_files
from autograder.student import CheckFailed, Checks


@pytest.fixture(scope="module")
def folder(reference, tmp_path_factory):
    """The learner's files of assignment 3, made from a reference on other than the public seeds where that is no matter."""
    from autograder.probes import PUBLIC_SECRET
    from autograder.reference import compute

    made = tmp_path_factory.mktemp("learner")
    write_student_files(compute(reference.room, PUBLIC_SECRET), made)
    return made


@pytest.fixture
def check(folder, monkeypatch):
    monkeypatch.chdir(folder)
    checks = Checks("03_gradscaler")

    def run(source: str, *arguments: str) -> str:
        """Run an answer cell and a check as a notebook would; what they print."""
        names = {"torch": torch, "check": checks}
        exec(source, names)
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            exec(f"check({', '.join(map(repr, arguments))})", names)
        assert err.getvalue() == ""
        return out.getvalue()

    return run


CLIPPED_WRONG = """
def clipped_step(scaler, optimizer, loss, parameters, max_norm):
    scaler.scale(loss).backward()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return norm.item()
"""


def test_a_right_answer_prints_one_line_and_shows_no_value(check, room):
    for name, exercise in room.exercises.items():
        for part in exercise.parts:
            assert check(room.solutions[name], name, part).startswith(f"✓ {name}, {part}: right (")


def test_a_wrong_answer_is_told_which_mistake_on_which_input(check):
    with pytest.raises(CheckFailed) as failed:
        check(CLIPPED_WRONG, "clipped_step", "update")
    words = str(failed.value)
    assert words.startswith("✗ clipped_step, update: 0 of 2 points — clip_before_unscale")
    assert "Given scale 2**" in words and "expected" in words
    assert all(len(line) <= student.WIDTH for line in words.split("\n"))
    assert failed.value._render_traceback_() == words.split("\n")


def test_a_part_behind_a_wrong_core_says_so(check):
    with pytest.raises(CheckFailed, match="part update has to be right first"):
        check(CLIPPED_WRONG, "clipped_step", "norm")


def test_a_right_part_passes_beside_a_wrong_one(check, room):
    source = room.solutions["clipped_step"].replace("return float(norm)", "return norm")
    assert check(source, "clipped_step", "update").startswith("✓")
    with pytest.raises(CheckFailed, match=r"a tensor of torch\.float32"):
        check(source, "clipped_step", "norm")


def test_an_error_is_told_with_the_students_own_line(check):
    source = "def simulate_scale(found_inf, *options):\n    history = []\n    return histroy\n"
    with pytest.raises(CheckFailed, match=r"(?s)histroy.*line 3 of\s+your\s+cell"):
        check(source, "simulate_scale", "history")


def test_the_released_cell_is_told_to_be_open(check, room):
    for name in room.exercises:
        with pytest.raises(CheckFailed, match="as it was released"):
            check(room.stubs[name], name)


def test_what_is_not_there_is_named(check):
    with pytest.raises(CheckFailed, match="not defined yet"):
        check("", "LossScaler")
    with pytest.raises(CheckFailed, match="no exercise 'clip'"):
        check("", "clip")
    with pytest.raises(CheckFailed, match="no part 'sum'"):
        check("", "LossScaler", "sum")


def test_a_check_leaves_the_notebooks_state_alone(check, room):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    source = room.solutions["clipped_step"].replace(
        "scaler.update()", "scaler.update()\n    torch.autocast('cpu', torch.float16).__enter__()"
    )
    check(source, "clipped_step")
    assert torch.equal(torch.get_rng_state(), before) and not torch.is_autocast_enabled("cpu")
    assert not hasattr(torch.nn.utils.clip_grad_norm_, "__wrapped__") or "recorded" not in repr(
        torch.nn.utils.clip_grad_norm_
    )


def long_lines(source: str) -> set[str]:
    """The lines of code that are long enough not to stand anywhere else by accident; docstrings are words, not code."""
    tree = ast.parse(source)
    words = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            words.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return {line.strip() for i, line in enumerate(source.split("\n"), 1) if i not in words and len(line.strip()) > 45}


def test_the_learners_files_hold_no_solution_and_no_mistakes_code(folder, room):
    with zipfile.ZipFile(folder / file_name(room.name)) as archive:
        bundle = "\n".join(archive.read(name).decode() for name in archive.namelist())
    notebook = nbformat.read(folder / f"{room.name}.ipynb", 4)
    assert notebook == room.released
    released = set().union(*(cell.source.split("\n") for cell in notebook.cells))
    sources = [*room.solutions.values(), *(mistake.source for known in room.mistakes.values() for mistake in known)]
    secret = set().union(*map(long_lines, sources)) - {line.strip() for line in released}
    assert len(secret) > 50
    assert not [line for line in secret if line in bundle or line in released]


def test_the_bundle_is_the_same_bytes_each_time(folder, reference, tmp_path):
    from autograder.probes import PUBLIC_SECRET
    from autograder.reference import compute

    write_student_files(compute(reference.room, PUBLIC_SECRET), tmp_path)
    name = file_name(reference.room.name)
    assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_a_damaged_bundle_says_what_to_do(tmp_path):
    path = tmp_path / "a.checks.zip"
    path.write_bytes(b"PK")
    with pytest.raises(RoomError, match="Get the assignment's files again"):
        unpack(path)


def test_without_files_and_checkout_it_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RoomError, match=r"no 99_nothing.checks.zip beside the notebook"):
        Checks("99_nothing")
