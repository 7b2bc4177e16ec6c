"""`autograder doctor`: what it finds on a machine that can grade, and on one where something is missing."""

import sys

import pytest
from typer.testing import CliRunner

from autograder import doctor, sandbox
from autograder.cli import app
from autograder.course import Course
from autograder.errors import SandboxError

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


def look(course, status: int) -> str:
    done = CliRunner().invoke(app, ["doctor", "--course", str(course)])
    assert done.exit_code == status, done.output
    return done.output


def test_a_machine_and_a_course_that_can_grade(small_class, boxed):
    said = look(small_class, 0)
    assert "FAIL" not in said
    for words in (
        "sandbox: it starts; an answer in it has no network",
        "gradebook: 0 students, 1 assignments",
        "secret: it is there, and only you can read it",
        "GiB free where the course is",
        "nobody else is grading",
    ):
        assert words in said


def test_each_thing_that_is_wrong_with_a_course_is_said_with_its_cure(small_class, boxed, monkeypatch):
    monkeypatch.setattr(sandbox, "bwrap", lambda: (_ for _ in ()).throw(SandboxError("no bwrap was found")))
    monkeypatch.setitem(sys.modules, "nbgrader", None)
    monkeypatch.setattr(doctor, "LITTLE_DISK", 1 << 60)
    monkeypatch.setattr(doctor, "MEMORY_BYTES", 1 << 60)
    (small_class / ".autograder" / "secret").chmod(0o644)
    (small_class / "gradebook.db").write_bytes(b"no database " * 100)
    said = look(small_class, 1)
    for words in (
        "FAIL nbgrader does not import",
        "FAIL sandbox: no bwrap was found",
        "FAIL secret: others can read",
        "chmod 600",
        "FAIL gradebook: ",
        "FAIL disk: only",
        "FAIL memory: ",
        "grade with --jobs 1",
    ):
        assert words in said, said
    assert "Traceback" not in said


def test_a_grading_run_that_is_under_way_is_no_fault(small_class):
    with Course(small_class).alone("autograder grade tiny"):
        fine, words = doctor._nobody_at_work(small_class)
    assert fine and "`autograder grade tiny`" in words


def test_without_a_course_it_says_how_to_check_one(tmp_path, boxed):
    assert "is no course; --course DIR checks one" in look(tmp_path, 0)
