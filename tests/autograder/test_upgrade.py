"""A course that outlives its installation: newer assignments, newer checks, another version, an older gradebook."""

import shutil
import sqlite3
import sys

import pytest
from typer.testing import CliRunner

from autograder import course as courses
from autograder import executors, journal, upgrade
from autograder.cli import app
from autograder.course import Course
from autograder.errors import CourseError, RoomError

A = "tiny"
NOBODY = executors.Pool(None, 1)  # whoever needs a box gets an error
pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


def call(*arguments: object, status: int = 0) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, done.output
    return done.output


@pytest.fixture
def installed(tiny_rooms, tmp_path, monkeypatch):
    """The rooms of an installation that is about to become newer."""
    rooms = tmp_path / "installed"
    shutil.copytree(tiny_rooms, rooms)
    monkeypatch.setattr(courses, "ROOMS", rooms)
    return rooms


def append(path, text: str) -> None:
    path.write_text(path.read_text() + text)


def said(course, of: str) -> str:
    return "\n".join(words for _, words in upgrade.findings(Course(course)) if words.startswith(of))


# Grades


@pytest.mark.parametrize(
    "change, words",
    [
        ("checks", "the assignment's files"),
        ("mistake", "the assignment's files"),
        ("PyTorch", "PyTorch (2.11.0, now "),
        ("grader", "what judges the evidence"),
        ("runner", "what runs answers and reads their evidence"),
    ],
)
def test_grades_stay_as_they_are_when_the_rules_change_and_the_run_says_so(
    small_class, grade_here, in_gradebook, monkeypatch, change, words
):
    first = grade_here(small_class)
    room = small_class / "exercises" / A
    if change == "checks":  # everybody's answer to halve is wrong by these
        checks = room / "checks.py"
        checks.write_text(checks.read_text().replace("answer(2 * p", "answer(2.5 * p"))
    elif change == "mistake":
        append(room / "mistakes" / "double" / "squares.py", "\n# edited\n")
    else:
        part = {"PyTorch": "torch", "grader": "grader", "runner": "fingerprint"}[change]
        other = {"torch": "2.11.0"}.get(part, "another")
        for path in (small_class / ".autograder" / "results" / A).glob("*.json"):
            path.write_text(
                path.read_text().replace(f'"{part}": "{today_of(small_class, part)}"', f'"{part}": "{other}"')
            )
    before = in_gradebook(small_class)
    again = grade_here(small_class, pool=NOBODY)
    assert again.records == first.records and in_gradebook(small_class) == before
    assert sorted(again.otherwise) == again.kept == sorted(first.records)
    assert all(different[0].startswith(words) and len(different) == 1 for different in again.otherwise.values())
    printed = call("grade", A, "--course", small_class)
    assert "7 of these were graded by other rules than today's, and keep their grades" in printed and words in printed
    assert "--force" in printed


def today_of(root, part: str) -> str:
    course = Course(root)
    return journal.rules(course.room(A), course.secret)[part]


def test_todays_rules_hold_for_who_hands_in_anew_and_for_whom_they_are_asked(small_class, grade_here, handed_in):
    grade_here(small_class)
    checks = small_class / "exercises" / A / "checks.py"
    checks.write_text(
        checks.read_text().replace("return 2 * x", "").replace("x = p.random.randrange(3, 10**6)", "x = 1.5")
    )
    handed_in(small_class, "bob", {"double": "def double(x):\n    return int(2 * x)"})
    outcome = grade_here(small_class)
    assert "bob" not in outcome.kept and sorted(outcome.otherwise) == outcome.kept and len(outcome.kept) == 6
    one = grade_here(small_class, ["ada"], force=True)
    assert not one.kept and not one.otherwise
    rest = grade_here(small_class, pool=NOBODY)
    assert {"ada", "bob"} & {*rest.otherwise} == set() and len(rest.otherwise) == 5


def test_a_record_says_by_what_it_was_made(small_class, grade_here):
    grade_here(small_class, ["ada"])
    made = journal.read(Course(small_class).result_path(A, "ada"))["journal"]
    assert set(made) == {"submission", "rules", "notebook"}
    assert set(made["rules"]) == {"amp-course", *journal.CHANGED}
    assert made["rules"]["python"] == sys.version.split()[0]
    assert journal.changed({"journal": {**made, "rules": None}}, made["rules"]) == ["an unknown version of the grader"]


# What the doctor says


def test_the_doctor_has_nothing_to_say_of_a_course_that_is_as_new_as_its_installation(
    small_class, installed, grade_here
):
    grade_here(small_class)
    assert said(small_class, "exercises") == "exercises: the course has those of this installation"
    assert said(small_class, "grades") == ""
    assert "are those of the installed nbgrader (schema" in said(small_class, "gradebook")


def test_the_doctor_names_the_assignments_that_are_newer_in_the_installation(small_class, installed):
    append(installed / A / "checks.py", "\n# newer\n")
    (installed / A / "mistakes" / "halve" / "keeps.py").write_text('"""You return x."""\ndef halve(x):\n    return x\n')
    shutil.copytree(installed / A, installed / "second")
    (installed / "second" / f"{A}.ipynb").rename(installed / "second" / "second.ipynb")
    words = said(small_class, "exercises")
    assert "second (the course has none of this name); tiny (checks.py, mistakes/halve/keeps.py)." in words
    assert "The course goes on with its own" in words and "autograder upgrade" in words


def test_the_doctor_tells_an_edit_that_was_not_released(small_class, installed):
    append(small_class / "exercises" / A / "checks.py", "\n# edited\n")
    assert "checks.py of tiny changed since its release" in said(small_class, "exercises")


def test_the_doctor_counts_the_grades_of_other_rules(small_class, installed, grade_here):
    grade_here(small_class, ["ada", "bob"])
    append(small_class / "exercises" / A / "checks.py", "\n# edited\n")
    grade_here(small_class, ["cy"])
    words = said(small_class, "grades")
    assert "2 of 3 in tiny were made by other rules than today's" in words and "autograder grade tiny --force" in words
    assert "the assignment's files" in words and "amp-course " in words


@pytest.mark.parametrize("version", ["old", None])
def test_a_gradebook_of_another_nbgrader_is_a_fault_with_its_cure(small_class, installed, version):
    with sqlite3.connect(small_class / "gradebook.db") as db:
        if version:
            db.execute("UPDATE alembic_version SET version_num = 'old'")
        else:
            db.execute("DROP TABLE alembic_version")
    db.close()
    found = [(fine, words) for fine, words in upgrade.findings(Course(small_class)) if words.startswith("gradebook")]
    [(fine, words)] = found
    assert not fine and f"of schema {version or 'unknown'}" in words
    assert "autograder backup" in words and "nbgrader db upgrade" in words


# Taking over


def test_newer_files_are_taken_over_and_the_instructors_own_are_left(small_class, installed):
    append(installed / A / "checks.py", "\n# newer\n")
    (installed / A / "mistakes" / "double" / "adds_two.py").unlink()
    (installed / A / "mistakes" / "halve" / "keeps.py").write_text('"""You return x."""\ndef halve(x):\n    return x\n')
    mine = small_class / "exercises" / A / "mistakes" / "double" / "squares.py"
    append(mine, "\n# mine\n")
    before = {path: path.read_bytes() for path in (small_class / "exercises").rglob("*.py")}
    shown = call("upgrade", "--course", small_class, "--dry-run")
    assert "Newer in this installation: tiny (checks.py, mistakes/double/adds_two.py, mistakes/halve/keeps.py)" in shown
    assert {path: path.read_bytes() for path in (small_class / "exercises").rglob("*.py")} == before
    assert "nobody is there to answer" in call("upgrade", "--course", small_class, status=1)
    assert {path: path.read_bytes() for path in (small_class / "exercises").rglob("*.py")} == before
    done = call("upgrade", A, "--course", small_class, "--yes")
    assert "Next: autograder release tiny" in done
    room = small_class / "exercises" / A
    assert "# newer" in (room / "checks.py").read_text() and "# mine" in mine.read_text()
    assert (room / "mistakes" / "halve" / "keeps.py").is_file()
    assert not (room / "mistakes" / "double" / "adds_two.py").exists()
    [kept] = (small_class / ".autograder" / "replaced").iterdir()
    assert {kept / path.relative_to(room): data for path, data in before.items()} == {
        path: path.read_bytes() for path in kept.rglob("*.py")
    }
    assert "Nothing is newer" in call("upgrade", "--course", small_class, "--yes")


def test_a_file_that_both_have_changed_is_left_to_the_instructor(small_class, installed):
    append(installed / A / "checks.py", "\n# newer\n")
    append(small_class / "exercises" / A / "checks.py", "\n# mine\n")
    assert "yours are your own: checks.py" in call("upgrade", "--course", small_class, "--yes", status=1)
    assert "# newer" not in (small_class / "exercises" / A / "checks.py").read_text()
    shutil.copyfile(installed / A / "checks.py", small_class / "exercises" / A / "checks.py")
    assert "Nothing is newer" in call("upgrade", "--course", small_class, "--yes")


def test_in_a_course_that_does_not_remember_what_it_was_given_every_difference_may_be_the_instructors(
    small_class, installed
):
    (small_class / ".autograder" / "rooms.json").unlink()
    append(installed / A / "checks.py", "\n# newer\n")
    [found] = upgrade.differences(Course(small_class))
    assert found.both == ["checks.py"] and not found.newer
    with pytest.raises(CourseError, match="by hand"):
        upgrade.take(Course(small_class), found)


def test_an_assignment_that_is_new_is_copied_and_one_that_would_not_load_is_not(small_class, installed):
    shutil.rmtree(small_class / "exercises" / A)
    [found] = upgrade.differences(Course(small_class))
    assert found.new and upgrade.take(Course(small_class), found) is None
    assert Course(small_class).room(A).exercises
    append(installed / A / "checks.py", "\nreturn\n")
    [found] = upgrade.differences(Course(small_class))
    with pytest.raises(RoomError):
        upgrade.take(Course(small_class), found)
    assert Course(small_class).room(A).exercises
    assert [path.name for path in (small_class / ".autograder").glob("upgrade-*")] == []


def test_what_is_asked_for_and_is_not_there_is_said(small_class, installed):
    assert "has no assignment 99_no; it has tiny" in call("upgrade", "99_no", "--course", small_class, status=1)


def test_a_released_course_after_an_upgrade_is_released_and_graded_by_the_new_rules(
    small_class, installed, grade_here, small_scores, monkeypatch, tmp_path
):
    from autograder import release

    monkeypatch.setattr(release, "ROOT", tmp_path / "build")
    grade_here(small_class)
    append(installed / A / "checks.py", "\n# newer\n")
    call("upgrade", "--course", small_class, "--yes")
    assert "tiny changed since its release" in said(small_class, "exercises")
    call("release", A, "--course", small_class)
    assert said(small_class, "exercises") == "exercises: the course has those of this installation"
    assert len(grade_here(small_class, pool=NOBODY).otherwise) == 7
    outcome = grade_here(small_class, force=True)
    assert {student: record["score"] for student, record in outcome.records.items()} == small_scores
    assert said(small_class, "grades") == ""
