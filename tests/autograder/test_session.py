"""A grading run over a small class: what is saved, who is run again, and what else may happen to a gradebook meanwhile."""

import hashlib
import json
import os
import shutil
import sqlite3
import stat
import threading
import time
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder import executors, gradebook, session
from autograder.cli import app
from autograder.course import Course
from autograder.errors import CourseError, WorkerError

A = "tiny"
NOBODY = executors.Pool(None, 1)  # whoever needs a box gets an error
pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


def scores(outcome) -> dict[str, float]:
    return {student: record["score"] for student, record in sorted(outcome.records.items())}


def set_by_hand(root: Path, student: str, cell: str, points: float, comment: str) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{root / 'gradebook.db'}", "amp") as book:
        book.find_grade(cell, A, A, student).manual_score = points
        book.find_comment("double", A, A, student).manual_comment = comment
        book.db.commit()


def test_a_class_is_graded_and_a_second_run_grades_nobody(small_class, grade_here, small_scores, in_gradebook):
    first = grade_here(small_class)
    assert scores(first) == small_scores and not first.kept and not first.failed
    assert {student: record["status"] for student, record in first.records.items()} == {
        **dict.fromkeys(small_scores, "graded"),
        "flo": "unreadable",
    }
    before = in_gradebook(small_class)
    assert {row[0]: row[2] for row in before["submissions"]} == small_scores
    again = grade_here(small_class, pool=NOBODY)
    assert again.kept == sorted(small_scores) and again.records == first.records
    assert in_gradebook(small_class) == before


def test_what_is_written_is_what_nbgraders_own_preprocessors_write(small_class, grade_here, in_gradebook, tmp_path):
    import nbformat
    from nbgrader.preprocessors import AssignLatePenalties, SaveAutoGrades

    theirs = tmp_path / "theirs"
    shutil.copytree(small_class, theirs)
    grade_here(small_class)
    course = Course(theirs)
    config = course.directory.config
    for student in course.students(A):
        notebook = nbformat.read(small_class / "autograded" / student / A / f"{A}.ipynb", as_version=4)
        nbformat.validate(notebook)
        at = session.collect(course.path("submitted", student, A), A).at
        with gradebook.gradebook(course.directory.db_url, "amp") as book:
            book.update_or_create_student(student)
            book.update_or_create_submission(A, student, **({"timestamp": at} if at else {}))
        about = {"student": student, "assignment": A, "notebook": A, "db_url": course.directory.db_url}
        for preprocessor in (SaveAutoGrades, AssignLatePenalties):
            preprocessor(config=config).preprocess(notebook, {"nbgrader": about})
    assert in_gradebook(small_class) == in_gradebook(theirs)


@pytest.mark.parametrize(
    "change",
    ["the answer", "the time", "the graded notebook", "the gradebook", "the record", "forced"],
)
def test_who_has_something_new_is_run_again_and_nobody_else(
    small_class, grade_here, small_scores, in_gradebook, change
):
    grade_here(small_class)
    before = in_gradebook(small_class)
    everybody = sorted(small_scores)
    again, students = ["bob"], everybody
    if change == "the answer":
        path = small_class / "submitted" / "bob" / A / f"{A}.ipynb"
        path.write_text(path.read_text().replace("x * x", "x * 2"))
    elif change == "the time":
        (small_class / "submitted" / "bob" / A / "timestamp.txt").write_text("2026-01-11 10:00:00 UTC")
    elif change == "the graded notebook":
        (small_class / "autograded" / "bob" / A / f"{A}.ipynb").unlink()
    elif change == "the gradebook":
        with sqlite3.connect(small_class / "gradebook.db") as db:
            student = "SELECT n.id FROM submitted_notebook n JOIN submitted_assignment a ON n.assignment_id = a.id "
            db.execute(f"UPDATE grade SET auto_score = 9 WHERE notebook_id = ({student} WHERE a.student_id = 'bob')")
        db.close()
    elif change == "the record":
        (small_class / ".autograder" / "results" / A / "bob.json").write_text('{"half')
    elif change == "forced":
        again = everybody
    told = []
    with executors.local(2) as pool:
        outcome = grade_here(
            small_class, students, pool=pool, force=change == "forced", tell=lambda *what: told.append(what)
        )
    assert sorted(student for student, status in told if status != "finished before") == again
    assert sorted(outcome.kept) == sorted(set(everybody) - set(again)) and len(told) == len(everybody)
    expected = {**small_scores, "bob": 4.0} if change == "the answer" else small_scores
    assert scores(outcome) == expected
    if change not in ("the answer", "the time"):
        assert in_gradebook(small_class) == before


def test_manual_grades_and_comments_survive_grading_again(small_class, grade_here, in_gradebook):
    grade_here(small_class)
    set_by_hand(small_class, "bob", "double-value", 1.5, "See me.")
    set_by_hand(small_class, "gus", "reflect", 4.0, "Well said.")
    grade_here(small_class, force=True)
    found = in_gradebook(small_class)
    assert ("bob", "double-value", 0.0, 1.5, None, True) in found["grades"]
    assert ("bob", "double", None, "See me.") in found["comments"]
    assert {row[0]: row[2] for row in found["submissions"]} | {"bob": 2.5, "gus": 8.0} == {
        row[0]: row[2] for row in found["submissions"]
    }


def test_a_resubmission_without_its_check_cell_does_not_keep_the_old_points(small_class, grade_here, handed_in):
    assert grade_here(small_class, ["ada"]).records["ada"]["score"] == 4.0
    handed_in(small_class, "ada", {"double": "def double(x):\n    return x"}, without="double-value")
    outcome = grade_here(small_class, ["ada"])
    assert outcome.records["ada"]["score"] == 0.0
    assert "double-value was missing and was put back" in outcome.records["ada"]["message"]


def test_late_penalties_follow_the_due_date_and_the_courses_plugin(small_class, grade_here, in_gradebook, monkeypatch):
    from nbgrader.api import Gradebook

    (small_class / "lateness.py").write_text(
        "from nbgrader.plugins import BasePlugin\n\nclass Half(BasePlugin):\n"
        "    def late_submission_penalty(self, student_id, score, total_seconds_late):\n        return score / 2\n"
    )
    config = small_class / "nbgrader_config.py"
    config.write_text(config.read_text() + "\nc.AssignLatePenalties.plugin_class = 'lateness.Half'\n")
    monkeypatch.syspath_prepend(str(small_class))
    grade_here(small_class)
    assert dict(in_gradebook(small_class)["late"])["cy"] is None
    with Gradebook(f"sqlite:///{small_class / 'gradebook.db'}", "amp") as book:
        book.update_or_create_assignment(A, duedate="2026-01-11 00:00:00 UTC")
    outcome = grade_here(small_class, pool=NOBODY)
    late = dict(in_gradebook(small_class)["late"])
    assert outcome.kept and late["cy"] == 1.5 and late["ada"] is None, "a new due date counts without running anybody"


def test_a_full_disk_costs_only_those_that_it_hits_and_they_are_graded_next_time(
    small_class, grade_here, small_scores, in_gradebook, monkeypatch
):
    write = session.write_atomically

    def full(path, data, mode=0o600):
        if "bob" in str(path) and path.suffix == ".ipynb":
            raise OSError(28, "No space left on device")
        write(path, data, mode)

    with monkeypatch.context() as patch:
        patch.setattr(session, "write_atomically", full)
        outcome = grade_here(small_class)
    assert outcome.failed == {"bob": "OSError: [Errno 28] No space left on device"}
    assert "bob" not in outcome.records, "what is not saved is not told as a grade"
    assert not (small_class / ".autograder" / "results" / A / "bob.json").exists()
    assert "bob" not in dict(in_gradebook(small_class)["late"])
    outcome = grade_here(small_class)
    assert sorted(outcome.kept) == sorted(set(small_scores) - {"bob"}) and scores(outcome) == small_scores


def test_a_file_that_does_not_fit_leaves_the_one_before(tmp_path):
    """A limit on the size of files fails as a full disk does: in the middle of a write."""
    import resource

    path = tmp_path / "record.json"
    session.write_atomically(path, b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(OSError):
            session.write_atomically(path, b"new" * (1 << 16))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["record.json"]


@pytest.fixture
def impatient(monkeypatch):
    """SQLite itself waits for 5 s: here for a moment."""
    real = gradebook.open_gradebook

    def opened(url, course_id):
        book = real(url, course_id)
        with book.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout = 10")
        return book

    monkeypatch.setattr(gradebook, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(gradebook, "open_gradebook", opened)


@pytest.fixture
def other(small_class):
    """Another program's connection to the gradebook, which holds it."""
    connection = sqlite3.connect(small_class / "gradebook.db", check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


def test_a_locked_gradebook_is_waited_for(small_class, impatient, other, small_scores, in_gradebook):
    said = []

    def let_go(words: str) -> None:
        said.append(words)
        threading.Timer(0.2, other.rollback).start()

    course = Course(small_class)
    with course.book(A, say=let_go) as book, executors.local(2) as pool:
        outcome = session.Session(course, course.reference(A), book).run(course.students(A), pool)
    assert scores(outcome) == small_scores and len(said) == 1 and "locked by another process" in said[0]
    assert {row[0]: row[2] for row in in_gradebook(small_class)["submissions"]} == small_scores


def test_a_gradebook_that_stays_locked_ends_the_run_in_words_and_loses_nothing(
    small_class, grade_here, impatient, monkeypatch, small_scores
):
    grade_here(small_class, ["ada", "bob"])
    monkeypatch.setattr(gradebook, "LOCKED_SECONDS", 0.0)
    connection = sqlite3.connect(small_class / "gradebook.db")
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(CourseError, match="locked by another process for"):
        grade_here(small_class)
    connection.close()
    outcome = grade_here(small_class)
    assert outcome.kept == ["ada", "bob"] and scores(outcome) == small_scores


def test_a_submission_that_changes_while_it_is_read_is_read_again(small_class, monkeypatch):
    folder = small_class / "submitted" / "bob" / A
    path = folder / f"{A}.ipynb"
    read, changes = session.submission.read, iter([True, True, False])

    def meddled(where):
        cells = read(where)
        if next(changes, False):
            path.write_text(path.read_text() + " ")
        return cells

    monkeypatch.setattr(session, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(session.submission, "read", meddled)
    assert isinstance(session.collect(folder, A).cells, list)
    changes = iter([True] * 50)
    with pytest.raises(WorkerError, match="changed each time it was read"):
        session.collect(folder, A)


@pytest.mark.parametrize(
    "what", ["fifo", "link", "nonsense", "overflow", "folder", "12", "monday", "10:00 UTC+3", "Jan 10"]
)
def test_a_time_that_is_no_time_is_none(small_class, what):
    """Nor is one that names no day, or a day of this month: the grade would depend on the day of grading."""
    path = small_class / "submitted" / "bob" / A / "timestamp.txt"
    if what == "fifo":
        os.mkfifo(path)
    elif what == "link":
        path.symlink_to("/etc/hostname")
    elif what == "folder":
        path.mkdir()
    else:
        path.write_text({"nonsense": "yesterday \x00 at noon", "overflow": "9" * 500}.get(what, what))
    assert session.collect(path.parent, A).at is None


@pytest.mark.parametrize(
    "text, hour",
    [("2026-07-10 10:00:00.5 UTC", 10), ("2026-07-10 10:00:00 Europe/Berlin", 8), ("2026-07-10T10:00:00Z", 10),
     ("2026-07-10", 0), ("2026-07-10 10:00:00 XYZ", 10)],
)  # fmt: skip
def test_a_time_with_a_date_is_one_in_whatever_zone(small_class, text, hour):
    folder = small_class / "submitted" / "bob" / A
    (folder / "timestamp.txt").write_text(text)
    at = session.collect(folder, A).at
    assert (at.year, at.month, at.day, at.hour) == (2026, 7, 10, hour)


def test_a_submission_without_a_time_does_not_keep_that_of_the_one_before(small_class, grade_here, in_gradebook):
    grade_here(small_class, ["ada"])
    assert in_gradebook(small_class)["submissions"][0][1] == "2026-01-10 10:00:00"
    (small_class / "submitted" / "ada" / A / "timestamp.txt").unlink()
    grade_here(small_class, ["ada"])
    assert in_gradebook(small_class)["submissions"][0][1] == "None"


def test_a_folder_that_leads_nowhere_is_a_submission_and_what_is_no_folder_of_the_assignment_is_none(small_class):
    submitted = small_class / "submitted"
    for student, target in (("gone", "nowhere"), ("loop", A)):
        (submitted / student).mkdir()
        (submitted / student / A).symlink_to(target)
    (submitted / "round").symlink_to("round")
    (submitted / "README").write_text("not a student")
    (submitted / "other" / "another assignment").mkdir(parents=True)
    students = Course(small_class).students(A)
    assert students == ["ada", "bob", "cy", "dan", "eve", "flo", "gone", "gus", "loop", "round"]
    for student in ("gone", "loop", "round"):
        assert "cannot be read" in session.collect(submitted / student / A, A).cells


def test_a_folder_whose_name_is_no_id_is_refused_in_words_and_the_others_are_graded(small_class, grade_here, handed_in):
    longest = "\N{GRINNING FACE}" * 60  # 240 bytes: as long as a file's name may be
    for student in (longest, "x" * 129, "half\udce9"):
        handed_in(small_class, student, {})
    outcome = grade_here(small_class, ["bob", longest, "x" * 129, "half\udce9"])
    assert sorted(outcome.records) == ["bob", longest]
    assert "at most 128 characters, and this has 129. Rename" in outcome.failed["x" * 129]
    assert "not UTF-8" in outcome.failed["half\udce9"]
    done = CliRunner().invoke(app, ["grade", A, "--course", str(small_class), "--student", "half\udce9"])
    assert done.exit_code == 1 and "  half\\udce9: the name of the folder is not UTF-8" in done.output


@pytest.mark.parametrize("command", ["release", "grade", "feedback", "report"])
def test_a_gradebook_that_is_none_is_an_error_in_words(small_class, grade_here, boxed, command):
    grade_here(small_class, ["flo"])
    book = small_class / "gradebook.db"
    other = CliRunner().invoke(app, [command, A, "--course", str(small_class), "--db", "postgresql+psycopg://u@h:x/d"])
    assert other.exit_code == 1 and "is not the URL of a gradebook" in other.output
    whole = book.read_bytes()
    for data in (b"rubbish " * 9999, whole[: len(whole) // 3]):
        book.write_bytes(data)
        done = CliRunner().invoke(app, [command, A, "--course", str(small_class)])
        assert done.exit_code == 1 and isinstance(done.exception, SystemExit), done.output
        assert "gradebook" in done.output and ("not a database" in done.output or "malformed" in done.output)


@pytest.mark.parametrize("command", ["feedback", "report"])
def test_pages_of_a_gradebook_that_somebody_holds_are_an_error_in_words(small_class, grade_here, command):
    grade_here(small_class, ["flo"])
    holder = sqlite3.connect(small_class / "gradebook.db")
    holder.execute("BEGIN EXCLUSIVE")
    impatient = f"sqlite:///{small_class / 'gradebook.db'}?timeout=0.01"
    done = CliRunner().invoke(app, [command, A, "--course", str(small_class), "--db", impatient])
    holder.close()
    assert done.exit_code == 1 and "locked by another process" in done.output, done.output


@pytest.mark.parametrize(
    "rubbish", ["", '{"half', "[]", "{}", '{"exercises": [1]}', '{"exercises": {}, "journal": [1]}']
)
def test_a_damaged_record_is_named_and_made_anew(small_class, grade_here, rubbish):
    grade_here(small_class, ["flo"])
    path = small_class / ".autograder" / "results" / A / "flo.json"
    whole = path.read_bytes()
    path.write_text(rubbish)
    with pytest.raises(CourseError, match=r"flo\.json is damaged\. Grade flo again"):
        Course(small_class).results(A)
    assert not grade_here(small_class, ["flo"]).kept and path.read_bytes() == whole


def test_a_course_that_may_not_be_written_is_an_error_in_words(small_class):
    lock = small_class / ".autograder" / "lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    with pytest.raises(CourseError, match="Nobody can work in this course"), Course(small_class).alone("a test"):
        pass


def test_a_disk_too_full_for_a_note_on_who_works_locks_nobody_out(small_class, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with Course(small_class).alone("a test"):
        pass


def test_two_runs_at_a_time_are_one_and_the_other_is_told_who_it_is(small_class, boxed):
    course = Course(small_class)
    with course.alone("autograder grade tiny"):
        done = CliRunner().invoke(app, ["grade", A, "--course", str(small_class)])
        assert done.exit_code == 1
        for words in ("Somebody is at work in this course", "`autograder grade tiny`", f"process {os.getpid()} on"):
            assert words in done.output
    with course.alone("again"):
        pass


def test_what_a_killed_run_left_in_the_lock_file_locks_nobody_out(small_class):
    (small_class / ".autograder" / "lock").write_text("`autograder grade tiny`, process 1 on elsewhere\n")
    with Course(small_class).alone("a test"):
        pass


def test_any_number_of_jobs_and_any_order_give_the_same_bytes(small_class, grade_here):
    def files():
        results = small_class / ".autograder" / "results" / A
        graded = small_class / "autograded"
        return {str(p.relative_to(small_class)): p.read_bytes() for p in [*results.iterdir(), *graded.rglob("*.ipynb")]}

    grade_here(small_class, jobs=1)
    first = files()
    students = sorted(path.stem for path in (small_class / ".autograder" / "results" / A).iterdir())
    assert len(first) == 2 * len(students) == 14
    shutil.rmtree(small_class / "autograded")
    shutil.rmtree(small_class / ".autograder" / "evidence")
    grade_here(small_class, students[::-1], jobs=4, force=True)
    assert files() == first
    for student in students[:2]:
        grade_here(small_class, [student], jobs=3, force=True)
    assert files() == first


# Looks for the secret in what it may read, the environments it sees and its own memory, in both forms. It knows the first
# bytes and a digest, so that it does not find itself.
SPY = """
import ctypes, glob, hashlib
def double(x):
    known = {known!r}
    def search(where, data):
        for start, size, digest in known:
            at = data.find(start)
            while at >= 0:
                if hashlib.sha256(data[at : at + size]).hexdigest() == digest:
                    raise ValueError("found in " + where)
                at = data.find(start, at + 1)
    for path in ({root!r} + "/.autograder/secret", *glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/cmdline")):
        try:
            search(path, open(path, "rb").read())
        except OSError:
            continue
    seen = 0
    if x:
        for line in open("/proc/self/maps").read().splitlines():
            place, access = line.split()[:2]
            start, end = (int(number, 16) for number in place.split("-"))
            if access == "rw-p":
                search(line, ctypes.string_at(start, end - start))
                seen += end - start
        if seen < 50_000_000:
            raise ValueError("too little memory for a process with PyTorch in it")
    return 2 * x
"""


def _known(secret: bytes) -> list[tuple[bytes, int, str]]:
    forms = (secret, secret.hex().encode())
    return [(form[:6], len(form), hashlib.sha256(form).hexdigest()) for form in forms]


def test_the_spy_finds_a_secret_that_is_there(small_class, grade_here, handed_in):
    """Else the next test would prove nothing."""
    secret = bytes(range(100, 132))
    source = f"kept = bytes(range(100, 132))\n{SPY.format(root=str(small_class), known=_known(secret))}"
    handed_in(small_class, "spy", {"double": source})
    assert "found in" in grade_here(small_class, ["spy"]).records["spy"]["exercises"]["double"]["message"]


def test_the_secret_stays_with_the_grader(small_class, grade_here, handed_in):
    course = Course(small_class)
    folder = small_class / ".autograder"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "secret").stat().st_mode) == 0o600
    handed_in(small_class, "spy", {"double": SPY.format(root=str(small_class), known=_known(course.secret))})
    jobs = []

    class Watched:
        width = 1

        class executor:
            @staticmethod
            def submit(fn, job, *rest):
                from concurrent.futures import Future

                jobs.append(job)
                future = Future()
                future.set_result(fn(job, *rest))
                return future

    outcome = grade_here(small_class, ["spy", "bob"], pool=Watched)
    assert outcome.records["spy"]["exercises"]["double"]["passed"]
    assert len(jobs) == 3, "one of the spy, and two of bob, who is wrong somewhere"
    for job in jobs:
        assert course.secret.hex().encode() not in job and str(course.secret).encode() not in job
        assert b"expected" not in job and MISTAKE not in job, "nor what is expected, nor what mistakes look like"


MISTAKE = b"return 2 * x or None"


def test_a_worker_that_is_lost_costs_no_grade(small_class, grade_here, small_scores):
    from concurrent.futures import Future

    class Lost:
        width = 2

        class executor:
            @staticmethod
            def submit(fn, *arguments):
                future = Future()
                future.set_exception(RuntimeError("the worker died"))
                return future

    outcome = grade_here(small_class, pool=Lost)
    assert set(outcome.failed) == set(small_scores) - {"eve", "flo"} and "the worker died" in outcome.failed["ada"]
    assert scores(outcome) == {"eve": 0.0, "flo": 0.0}
    assert scores(grade_here(small_class)) == small_scores


def test_a_machine_that_can_no_longer_isolate_answers_is_not_the_answers_fault(monkeypatch):
    from autograder import sandbox
    from autograder.errors import SandboxError

    def fail(*_, **__):
        raise SandboxError("no box")

    monkeypatch.setattr(sandbox, "run", fail)
    monkeypatch.setattr(sandbox, "require", fail)
    with pytest.raises(WorkerError, match="can no longer isolate an answer: no box"):
        executors.answer({}, True, 1.0)
    monkeypatch.setattr(sandbox, "require", lambda: None)
    with pytest.raises(SandboxError, match="no box"):
        executors.answer({}, True, 1.0)
    tries = iter([fail, lambda *_, **__: ["a result"]])
    monkeypatch.setattr(sandbox, "run", lambda *a, **k: next(tries)(*a, **k))
    assert executors.answer({}, True, 1.0)[0] == ["a result"], "what may have been for once is tried again"


def test_the_class_fits_into_memory_since_few_are_under_way_at_a_time(small_class, grade_here, small_scores):
    from concurrent.futures import Future

    under_way, most = set(), []

    class Counting(executors.Threads):
        def submit(self, fn, *arguments):
            future: Future = super().submit(fn, *arguments)
            under_way.add(future)
            most.append(sum(not one.done() for one in under_way))
            return future

    pool = executors.Pool(Counting(1), 1)
    assert scores(grade_here(small_class, pool=pool)) == small_scores
    assert len(most) == 5 + 3 and max(most) <= 2, "of five who can be read three are wrong somewhere"


def test_the_command_says_what_it_did_and_what_to_do(small_class, boxed, tmp_path, monkeypatch, small_scores):
    arguments = ["grade", A, "--course", str(small_class), "--json", str(tmp_path / "out.json")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "bob  1 of 4" in done.output and "double  0 of 3  squares: You square x." in done.output
    first = (tmp_path / "out.json").read_bytes()
    assert {record["student"]: record["score"] for record in json.loads(first)} == small_scores
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0 and "All were finished before and not run again" in done.output
    assert (tmp_path / "out.json").read_bytes() == first
    both = CliRunner().invoke(app, [*arguments, "--jobs", "2", "--cluster", "tcp://127.0.0.1:1"])
    assert both.exit_code == 2 and "give one of them" in both.output


@pytest.mark.parametrize(
    "url, said",
    [
        ("nonsense", "is not the URL of a gradebook"),
        ("sqlite:////nowhere/at/all/gradebook.db", "cannot be opened"),
        ("mysql+pymysql://someone:hidden@localhost/amp", "takes the Python package pymysql"),
    ],
)
def test_a_gradebook_that_is_none_is_said_without_its_password(small_class, url, said, boxed):
    done = CliRunner().invoke(app, ["grade", A, "--course", str(small_class), "--db", url])
    assert done.exit_code == 1 and said in done.output
    assert "hidden" not in done.output and "Traceback" not in done.output


def test_an_assignment_that_was_never_released_into_this_gradebook_is_said(small_class, tmp_path, boxed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = CliRunner().invoke(
            app, ["grade", A, "--course", str(small_class), "--db", f"sqlite:///{tmp_path / 'new.db'}"]
        )
    assert done.exit_code == 1 and "autograder release tiny" in done.output


def test_what_runs_in_a_box_is_not_waited_for_when_the_process_ends():
    """Ctrl-C ends at once what runs in boxes: threads of the pool are no reason to stay."""
    import subprocess
    import sys

    code = "import time; from autograder.executors import Threads; Threads(1).submit(time.sleep, 60); time.sleep(0.2)"
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert done.returncode == 0 and time.monotonic() - start < 50
