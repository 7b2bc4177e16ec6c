"""The grader's own test fixtures, for tests of the hub: a course with an assignment that is graded in a moment."""

import importlib.util
from pathlib import Path

_spec = importlib.util.spec_from_file_location(
    "tests_of_the_grader", Path(__file__).resolve().parents[1] / "autograder" / "conftest.py"
)
grader = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(grader)
