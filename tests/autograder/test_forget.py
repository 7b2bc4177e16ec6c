"""A student's data deleted on request: nothing of it is left, and nobody else's is touched."""

import csv
import os
import shutil
import socket
import sqlite3

import pytest
from typer.testing import CliRunner

from autograder import forget
from autograder.cli import app
from autograder.course import Course, prepare_nbgrader
from autograder.errors import CourseError
from autograder.hub import ports

A = "tiny"
WHO = "quentin-x"
ANSWER = "def double(x):\n    zweimal_so_viel = x * x\n    return zweimal_so_viel"
pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


def call(*arguments: object, status: int = 0) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert isinstance(done.exception, SystemExit | None), repr(done.exception)
    assert done.exit_code == status, done.output
    return done.output


def traces(root, *words: str) -> list[str]:
    """Every file, link and folder below a folder in whose name or bytes one of the words stands."""
    found = []
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            data = name.encode()
            if name in files and not os.path.islink(path):
                with open(path, "rb") as file:
                    data += file.read()
            found += [path for word in words if word.encode() in data]
    return found


def tree(root) -> dict[str, bytes]:
    return {
        str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file() and p.name != "gradebook.db"
    }


@pytest.fixture
def graded(small_class, grade_here, handed_in):
    """The small class and one more, graded, with comments, feedback and a report."""
    from nbgrader.api import Gradebook

    handed_in(small_class, WHO, {"double": ANSWER, "reflect": "Es war zweimal_so_viel."}, at="2026-01-10 10:00:00 UTC")
    grade_here(small_class)
    prepare_nbgrader()
    with Gradebook(f"sqlite:///{small_class / 'gradebook.db'}", "amp") as book:
        book.find_comment("double", A, A, WHO).manual_comment = f"{WHO}: zweimal_so_viel?"
        book.find_comment("double", A, A, "bob").manual_comment = "See me."
        student = book.find_student(WHO)
        student.first_name, student.email = "Quentin", f"{WHO}@example.org"
        book.db.commit()
    call("feedback", A, "--course", small_class)
    call("report", A, "--course", small_class)
    return small_class


def test_nothing_is_left_of_a_forgotten_student_and_the_others_are_as_they_were(graded, in_gradebook):
    (graded / ".nbgrader.log").write_text(f"Autograding {WHO}\n")
    results = graded / ".autograder" / "results" / A
    (results / f".{WHO}.json.abc.part").write_text("half")
    before = tree(graded)
    assert len(traces(graded, WHO)) > 8
    rows = {table: [row for row in of if row[0] != WHO] for table, of in in_gradebook(graded).items()}
    said = call("forget", WHO, "--course", graded, "--yes")
    assert traces(graded, WHO, "zweimal_so_viel", "Quentin") == []
    assert in_gradebook(graded) == rows
    after = tree(graded)
    reports = {f"report/{A}.html", f"report/{A}.csv"}
    gone = {name for name in before if WHO in name} | {".nbgrader.log"}
    assert {name: data for name, data in before.items() if name not in gone | reports} == {
        name: data for name, data in after.items() if name not in reports
    }
    with open(graded / "report" / f"{A}.csv", newline="") as file:
        assert [row["student"] for row in csv.DictReader(file)] == sorted(row[0] for row in rows["students"])
    for words in ("submitted files", "1 submissions, 4 grades, 3 comments", "1 × reports", "Out of reach: backups"):
        assert words in said, said
    assert "still stands" not in said
    shutil.rmtree(graded / "report")
    call("report", A, "--course", graded)
    assert tree(graded) == after, "the report is as one that never had the student"


def test_a_dry_run_says_the_same_and_deletes_nothing(graded):
    before = tree(graded) | {"book": (graded / "gradebook.db").read_bytes()}
    said = call("forget", WHO, "--course", graded, "--dry-run")
    assert "1 × gradebook" in said and "Nothing was deleted." in said and "Deleted:" not in said
    assert "nobody is there to answer" in call("forget", WHO, "--course", graded, status=1)
    after = tree(graded) | {"book": (graded / "gradebook.db").read_bytes()}
    assert {name: data for name, data in after.items() if "lock" not in name} == {
        name: data for name, data in before.items() if "lock" not in name
    }


def test_a_student_whose_id_is_a_part_of_anothers_or_a_pattern_takes_nobody_along(graded, handed_in, grade_here):
    for student in ("ad", "ada.l", "a[d]a", "ada-2"):
        handed_in(graded, student, {"double": ANSWER})
    grade_here(graded)
    others = {student: tree(graded / "submitted" / student) for student in ("ada", "ada.l", "ada-2")}
    for student in ("ad", "a[d]a"):
        call("forget", student, "--course", graded, "--yes")
        assert not (graded / "submitted" / student).exists()
    assert {student: tree(graded / "submitted" / student) for student in others} == others
    assert {"ada", "ada.l", "ada-2"} <= {path.stem for path in (graded / ".autograder" / "results" / A).iterdir()}


def test_what_is_not_the_graders_to_change_is_named(graded):
    (graded / "grades.csv").write_text(f"student,score\n{WHO},1\n")
    (graded / "notes").mkdir()
    (graded / "notes" / "talk.md").write_text(f"Talk to {WHO}.\n")
    (graded / "notes" / "other.md").write_text(f"{WHO}2 and my_{WHO}\n")
    (graded / "gradebook.db.2026-01-01").write_bytes((graded / "gradebook.db").read_bytes())
    said = call("forget", WHO, "--course", graded, "--yes")
    for name in ("grades.csv", "notes/talk.md", "gradebook.db.2026-01-01"):
        assert f"\n  {graded / name}" in said
    assert "other.md" not in said and (graded / "notes" / "talk.md").is_file()


def test_who_is_not_known_and_what_is_no_id_is_said(graded):
    assert "Nothing is known of a student 'quentinx'" in call("forget", "quentinx", "--course", graded, status=1)
    assert f"There is {WHO}" in call("forget", "quentinx", "--course", graded, status=1)
    for name in ("..", ".", "", "../course", "*", "ada/tiny"):
        assert "is no student's id" in call("forget", name, "--course", graded, "--yes", status=1)
    assert (graded / "submitted" / "ada").is_dir()


def test_while_somebody_grades_nothing_is_deleted(graded):
    with Course(graded).alone("autograder grade tiny"):
        said = call("forget", WHO, "--course", graded, "--yes", status=1)
    assert "`autograder grade tiny`" in said and (graded / "submitted" / WHO).is_dir()


def test_a_second_run_finishes_what_a_stopped_one_began(graded, monkeypatch):
    def locked(*_):
        raise CourseError("locked")

    with monkeypatch.context() as patch:  # the rows are gone, their bytes are not
        patch.setattr(forget, "rewrite", locked)
        call("forget", WHO, "--course", graded, "--yes", status=1)
    assert traces(graded, "zweimal_so_viel") != []
    call("forget", WHO, "--course", graded, "--yes")
    assert traces(graded, WHO, "zweimal_so_viel") == []


def test_the_last_student_takes_the_report_along(small_class, grade_here, handed_in):
    shutil.rmtree(small_class / "submitted")
    handed_in(small_class, WHO, {"double": ANSWER})
    grade_here(small_class)
    call("report", A, "--course", small_class)
    call("forget", WHO, "--course", small_class, "--yes")
    assert traces(small_class, WHO, "zweimal_so_viel") == [] and not list((small_class / "report").iterdir())


def test_a_gradebook_that_something_has_open_is_said(graded):
    db = sqlite3.connect(graded / "gradebook.db", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    try:
        with pytest.MonkeyPatch.context() as patch:
            real = sqlite3.connect
            patch.setattr(forget.sqlite3, "connect", lambda path, timeout=0, **more: real(path, timeout=0.1, **more))
            with pytest.raises(CourseError, match="run the same command again"):
                forget.rewrite(graded / "gradebook.db")
    finally:
        db.close()


# A hub


@pytest.fixture
def hub(graded, tmp_path):
    """A hub's folder with JupyterHub's own tables, in which two students have accounts."""
    pytest.importorskip("jupyterhub", reason="requires JupyterHub: pip install jupyterhub")
    from jupyterhub import orm

    place = tmp_path / "hub"
    state = place / "state"
    state.mkdir(parents=True)
    graded.rename(state / "course")
    (port,) = ports.free()
    (place / "course.yaml").write_text(
        f"course: {{id: amp, title: AMP}}\ninstructors: [grace]\nroster: roster.csv\nport: {port}\n"
    )
    (place / "roster.csv").write_text(f"username,first_name,last_name,email\nada,Ada,L,a@b.c\n{WHO},Quentin,X,q@b.c\n")
    (state / "passwords.csv").write_text(f"ada,one\n{WHO},two\n")
    factory = orm.new_session_factory(f"sqlite:///{state / 'hub.sqlite'}")
    session = factory()
    group = orm.Group(name="nbgrader-amp")
    for name in (WHO, "ada"):
        user = orm.User(name=name)
        group.users.append(user)
        session.add(orm.Spawner(name="", user=user, server=orm.Server(base_url=f"/user/{name}/")))
    session.add(group)
    session.commit()
    bind = session.get_bind()
    session.close()
    bind.dispose()
    with sqlite3.connect(state / "hub.sqlite") as db:  # the native authenticator's
        db.execute("CREATE TABLE users_info (id INTEGER PRIMARY KEY, username TEXT, email TEXT)")
        db.executemany("INSERT INTO users_info (username, email) VALUES (?, ?)", [(WHO, "q@b.c"), ("ada", "a@b.c")])
    db.close()
    for name in (WHO, "ada"):
        (state / "homes" / name).mkdir(parents=True)
        (state / "homes" / name / "work.py").write_text("zweimal_so_viel" if name == WHO else "hers")
        for kind in ("inbound", "feedback"):
            from autograder.hub.kubernetes import folder

            lies = state / "exchange" / "amp" / kind / folder(name)
            lies.mkdir(parents=True)
            (lies / f"{name}+tiny+2026-01-10 10:00:00 UTC").write_text(name)
    return place


def test_a_hub_forgets_the_user_the_home_the_exchange_and_the_password(hub):
    config = hub / "course.yaml"
    said = call("forget", WHO, "--config", config, "--yes")
    assert traces(hub / "state", WHO, "zweimal_so_viel") == []
    assert "has a line of quentin-x still" in said and "--roster" in said
    for words in ("home: ", "exchange, inbound: ", "exchange, feedback: ", "1 groups, sign-up", "1 × password"):
        assert words in said, said
    db = sqlite3.connect(hub / "state" / "hub.sqlite")
    for query in ("SELECT name FROM users", "SELECT username FROM users_info"):
        assert db.execute(query).fetchall() == [("ada",)]
    for table in ("servers", "spawners", "user_group_map"):
        assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (1,), table
    db.close()
    assert (hub / "state" / "homes" / "ada" / "work.py").read_text() == "hers"
    assert (hub / "state" / "passwords.csv").read_text() == "ada,one\n"
    call("forget", WHO, "--config", config, "--roster", "--yes")
    assert traces(hub, WHO) == [] and "ada,Ada,L,a@b.c" in (hub / "roster.csv").read_text()


def test_a_hub_that_runs_would_write_the_user_back(hub):
    port = int((hub / "course.yaml").read_text().rpartition(" ")[2])
    with socket.socket() as hubs:
        hubs.bind(("127.0.0.1", port))
        hubs.listen()
        assert "Stop the hub first" in call("forget", WHO, "--config", hub / "course.yaml", "--yes", status=1)
    assert (hub / "state" / "homes" / WHO).is_dir()


def test_an_instructor_is_no_student(hub):
    assert "not a student" in call("forget", "grace", "--config", hub / "course.yaml", "--yes", status=1)
