"""nbgrader's own tools on our courses, with the configuration that we ship: they give the same, and keep working."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder.course import Course

A = "tiny"
pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


@pytest.fixture(scope="module")
def nbgrader(tmp_path_factory):
    """Run commands (nbgrader_commands.py) as a user with a home of its own; what each gave back, and all they said."""
    home = tmp_path_factory.mktemp("home")
    beside = str(Path(sys.executable).parent)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")},
        **{
            "HOME": str(home),
            "USER": "sam",
            "JUPYTERHUB_USER": "sam",
            "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}",
        },
    }

    def run(*commands: dict) -> tuple[list, str]:
        (home / "commands.json").write_text(json.dumps(commands, default=str))
        script = Path(__file__).with_name("nbgrader_commands.py")
        done = subprocess.run(
            [sys.executable, str(script), str(home / "commands.json")],
            env=environment,
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1]), done.stdout + done.stderr

    return run


@pytest.mark.slow
def test_its_autograde_formgrader_feedback_and_export_give_what_ours_do(
    small_class, nbgrader, grade_here, in_gradebook, small_scores, tmp_path
):
    theirs = tmp_path / "theirs"
    shutil.copytree(small_class, theirs)
    grade_here(small_class)
    results, said = nbgrader(
        {"cwd": theirs, "run": ["generate_assignment", A, "--force"]},
        {"cwd": theirs, "run": ["autograde", A]},
        {"cwd": theirs, "run": ["generate_feedback", A]},
        {"cwd": theirs, "run": ["export", f"--CsvExportPlugin.to={tmp_path / 'theirs.csv'}"]},
        {"cwd": small_class, "run": ["export", f"--CsvExportPlugin.to={tmp_path / 'ours.csv'}"]},
        {"cwd": small_class, "api": ["get_submissions", A]},
        {"cwd": small_class, "api": ["get_autograded_students", A]},
        {"cwd": small_class, "api": ["autograde", A, "bob"]},
    )
    assert results[:5] == [0] * 5, said[-3000:]
    assert in_gradebook(theirs) == in_gradebook(small_class)
    assert Course(theirs).results(A) == Course(small_class).results(A)
    page = (theirs / "feedback" / "bob" / A / f"{A}.html").read_text()
    assert "squares" in page and "You square x." in page
    tables = [
        list(csv.DictReader((tmp_path / f"{whose}.csv").read_text().splitlines())) for whose in ("ours", "theirs")
    ]
    assert {row["student_id"]: float(row["score"]) for row in tables[0]} == small_scores
    assert sorted(map(str, tables[0])) == sorted(map(str, tables[1]))
    submissions, graded, again = results[5:]
    assert {row["student"]: row["score"] for row in submissions} == small_scores
    assert all(row["autograded"] for row in submissions) and graded == sorted(small_scores)
    assert again["success"], again
    # What formgrader has graded is graded: our next run agrees and does no more than write it down.
    before = in_gradebook(small_class)
    outcome = grade_here(small_class)
    assert {student: record["score"] for student, record in outcome.records.items()} == small_scores
    assert in_gradebook(small_class) == before


@pytest.mark.slow
def test_an_assignment_goes_through_the_exchange_and_back(tiny_course, nbgrader, grade_here, tmp_path):
    course, desk, exchange = tmp_path / "course", tmp_path / "desk", tmp_path / "exchange"
    shutil.copytree(tiny_course, course)
    desk.mkdir()
    exchange.mkdir()
    exchange.chmod(0o777)
    place = [f"--Exchange.root={exchange}"]
    results, said = nbgrader(
        {"cwd": course, "run": ["release_assignment", A, *place]},
        {"cwd": desk, "run": ["fetch_assignment", A, "--course", "amp", *place]},
    )
    assert results == [0, 0], said[-3000:]
    assert sorted(path.name for path in (desk / A).iterdir()) == [f"{A}.checks.zip", f"{A}.ipynb"]
    path = desk / A / f"{A}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.metadata.nbgrader.grade_id == "double":
            cell.source = "def double(x):\n    return x + x"
    nbformat.write(notebook, path)
    results, said = nbgrader(
        {"cwd": desk, "run": ["submit", A, "--course", "amp", *place]},
        {"cwd": course, "run": ["collect", A, *place]},
    )
    assert results == [0, 0], said[-3000:]
    outcome = grade_here(course)
    (student,) = outcome.records  # whoever runs the test: the exchange asks the system
    assert outcome.records[student]["score"] == 3.0
    assert (course / "autograded" / student / A / "timestamp.txt").read_text().strip()


@pytest.mark.slow
def test_validate_tells_a_learner_what_fails_with_our_configuration(tiny_course, handed_in, nbgrader, tmp_path):
    """The code of JupyterLab's Validate button, from the folder of a learner who has the assignment's files."""
    root = tmp_path / "course"
    shutil.copytree(tiny_course, root)
    right = {
        "double": "def double(x):\n    return 2 * x",
        "halve": "def halve(x):\n    return x // 2",
        "reflect": "Much.",
    }
    for student, answers in (("right", right), ("wrong", {**right, "halve": "def halve(x):\n    return x"})):
        handed_in(root, student, answers)
        folder = root / "submitted" / student / A
        shutil.copy(root / "release" / A / f"{A}.checks.zip", folder)
    results, said = nbgrader(
        *(
            {"cwd": root / "submitted" / student / A, "run": ["validate", f"{A}.ipynb"]}
            for student in ("right", "wrong")
        )
    )
    assert results == [0, 0]
    assert "Success! Your notebook passes all the tests." in said
    assert "The following cell failed" in said and 'check("halve", "value")' in said
