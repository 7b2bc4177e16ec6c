"""The exchange with a folder for each student: nbgrader's commands on both sides, and students who try what they may not."""

import contextlib
import datetime
import errno
import logging
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import warnings
from pathlib import Path

import nbformat
import pytest

from autograder.errors import CourseError, SubmissionError
from autograder.hub import inbound
from autograder.hub.inbound import Limits

nbgrader = pytest.importorskip("nbgrader", reason="requires nbgrader")

from nbgrader.api import Gradebook  # noqa: E402
from nbgrader.auth import Authenticator  # noqa: E402
from nbgrader.coursedir import CourseDirectory  # noqa: E402
from nbgrader.exchange import ExchangeError, ExchangeFactory  # noqa: E402
from traitlets.config import Config  # noqa: E402

from autograder.hub import exchange  # noqa: E402

# nbgrader leaves files open when it lists (exchange/default/list.py, _checksum).
# It adds objects in an order that SQLAlchemy 2.1 remarks on.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
]
COURSE, WORK = "amp", "03_gradscaler"
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="requires root, to be several users")


class Hub:
    """An exchange, a course folder with one generated assignment, and a home for each student."""

    def __init__(self, folder: Path) -> None:
        self.exchange, self.root, self.homes = folder / "exchange", folder / "course", folder / "homes"
        self.views = folder / "views"
        self.students = ["ada", "bob", "j.doe@example.org"]
        exchange.prepare(self.exchange, COURSE, self.students)

    def config(self, role: str, student: str = "", **more) -> Config:
        c = Config()
        root = self.view(student) if role == "student" else self.exchange
        exchange.configure(c, role=role, root=root, course_id=COURSE, **more)
        if role == "student":
            c.Exchange.cache = str(self.homes / student / "cache")
            c.Exchange.assignment_dir = str(self.homes / student)
        else:
            c.CourseDirectory.root = str(self.root)
        return c

    def view(self, student: str) -> Path:
        """What a student's server sees: here links, where a hub mounts."""
        for source, at, _ in exchange.views(self.exchange, COURSE, student):
            link = self.views / student / at
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(source)
        return self.views / student

    def run(
        self, what: str, student: str = "", *, assignment: str = WORK, traits: dict | None = None, **more
    ) -> list[str]:
        """Do what an nbgrader command does; what it logged."""
        role = "student" if student else "grader"
        c = self.config(role, student, **more)
        if student:
            (self.homes / student).mkdir(parents=True, exist_ok=True)
        coursedir = CourseDirectory(config=c, assignment_id=assignment)
        factory = ExchangeFactory(config=c)
        app = getattr(factory, what)(coursedir=coursedir, authenticator=Authenticator(config=c), config=c)
        for name, value in (traits or {}).items():
            setattr(app, name, value)
        said, handler = [], logging.Handler()
        handler.emit = lambda record: said.append(record.getMessage())
        app.log.addHandler(handler)
        app.log.setLevel(logging.INFO)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JUPYTERHUB_USER", student or "grader-amp")
            try:
                self.returned = app.start()
            finally:
                app.log.removeHandler(handler)
        return said

    def work(self, student: str) -> Path:
        return self.homes / student / COURSE / WORK

    def submitted(self, student: str) -> Path:
        return self.root / "submitted" / student / WORK

    def inbound(self, student: str) -> Path:
        return self.exchange / COURSE / "inbound" / exchange.folder(student)

    def hand_in(self, student: str, text: str = "", **more) -> list[str]:
        """Fetch where that is still to be done, write `text` into the notebook, submit."""
        if not self.work(student).is_dir():
            self.run("FetchAssignment", student)
        if text:
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text, id="answer")])
            nbformat.write(notebook, self.work(student) / f"{WORK}.ipynb")
        return self.run("Submit", student, **more)

    def put(self, student: str, at: str = "2026-01-10 10:00:00.000000 UTC", who: str = "", text: str = "{}") -> Path:
        """A submission made by hand, as a student's server can make it."""
        place = self.inbound(student) / f"{who or exchange.folder(student)}+{WORK}+{at}+secret"
        place.mkdir(parents=True)
        for name, content in {
            f"{WORK}.ipynb": text,
            "timestamp.txt": at,
            "submission_secret.txt": "s" + student,
        }.items():
            (place / name).write_text(content)
        return place

    def due(self, at: datetime.datetime | None) -> None:
        with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}", COURSE) as book:
            book.update_or_create_assignment(WORK, duedate=at and at.replace(tzinfo=None))


@pytest.fixture(scope="session")
def empty_gradebook(tmp_path_factory) -> Path:
    from autograder.course import prepare_nbgrader

    path = tmp_path_factory.mktemp("gradebook") / "gradebook.db"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepare_nbgrader()
        with Gradebook(f"sqlite:///{path}", COURSE) as book:
            book.add_assignment(WORK)
    return path


@pytest.fixture
def hub(tmp_path, empty_gradebook) -> Hub:
    return make_hub(tmp_path, empty_gradebook)


def make_hub(folder: Path, gradebook: Path) -> Hub:
    made = Hub(folder)
    release = made.root / "release" / WORK
    release.mkdir(parents=True)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("# answer", id="answer")])
    nbformat.write(notebook, release / f"{WORK}.ipynb")
    shutil.copy(gradebook, made.root / "gradebook.db")
    return made


@pytest.fixture
def released(hub) -> Hub:
    hub.run("ReleaseAssignment")
    return hub


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


# The whole way


def test_an_assignment_goes_out_an_answer_comes_in_and_feedback_goes_back(released):
    for student in released.students:
        released.hand_in(student, f"answer = {student!r}")
    said = released.run("Collect")
    assert said[-1] == "Collected 3 of 3 students' submissions."
    for student in released.students:
        assert student in (released.submitted(student) / f"{WORK}.ipynb").read_text()
        feedback = released.root / "feedback" / student / WORK
        feedback.mkdir(parents=True)
        (feedback / f"{WORK}.html").write_text(f"well done, {student}")
    released.run("ReleaseFeedback")
    for student in released.students:
        released.run("FetchFeedback", student)
        (page,) = (released.work(student) / "feedback").rglob("*.html")
        assert page.read_text() == f"well done, {student}"
        released.run("List", student, assignment="", traits={"cached": True})
        (listed,) = released.returned
        assert listed["submissions"][0]["has_local_feedback"] and not listed["submissions"][0]["feedback_updated"]


def test_feedback_lies_in_its_students_folder_only(released):
    released.hand_in("ada")
    released.run("Collect")
    feedback = released.root / "feedback" / "ada" / WORK
    feedback.mkdir(parents=True)
    (feedback / f"{WORK}.html").write_text("ada's")
    released.run("ReleaseFeedback")
    pages = list((released.exchange / COURSE / "feedback").rglob("*.html"))
    assert [page.parent.name for page in pages] == ["ada"]
    released.run("FetchFeedback", "bob")
    assert not list((released.homes / "bob").rglob("*.html"))


def test_what_was_fetched_can_be_replaced_by_nobody_and_a_release_is_whole(released):
    assert not (released.exchange.stat().st_mode & 0o022), "nbgrader would have made the root writable for everybody"
    with pytest.raises(ExchangeError, match="is released already, so nothing was changed"):
        released.run("ReleaseAssignment")
    (released.root / "release" / WORK / "more.txt").write_text("more")
    released.run("ReleaseAssignment", traits={"force": True})
    outbound = released.exchange / COURSE / "outbound"
    assert sorted(path.name for path in (outbound / WORK).iterdir()) == [f"{WORK}.ipynb", "more.txt"]
    assert {path.name for path in outbound.iterdir()} == {WORK}
    assert (outbound / WORK / "more.txt").stat().st_mode & 0o777 == 0o644


def test_the_newest_of_several_is_collected_and_an_update_takes_a_newer_one(released):
    released.put("ada", "2026-01-10 10:00:00.000000 UTC", text="first")
    released.put("ada", "2026-01-10 10:00:00.000001 UTC", text="second")
    said = released.run("Collect", traits={"update": True})
    assert f"Collecting submission: ada {WORK}" in said
    assert (released.submitted("ada") / f"{WORK}.ipynb").read_text() == "second"
    assert (released.submitted("ada") / "timestamp.txt").read_text() == "2026-01-10 10:00:00.000001 UTC"
    assert f"No newer submission to collect: ada {WORK}" in released.run("Collect", traits={"update": True})
    released.put("ada", "2026-01-10 10:00:01.000000 UTC", text="third")
    assert f"Submission already exists, use --update to update: ada {WORK}" in released.run("Collect")
    assert (released.submitted("ada") / f"{WORK}.ipynb").read_text() == "second"
    assert f"Updating submission: ada {WORK}" in released.run("Collect", traits={"update": True})
    assert (released.submitted("ada") / f"{WORK}.ipynb").read_text() == "third"
    assert {path.name for path in released.submitted("ada").parent.iterdir()} == {WORK}


def test_one_student_can_be_collected_and_another_assignment_is_left(released):
    released.put("ada")
    released.put("bob")
    os.rename(
        released.put("bob", "2026-01-11 10:00:00 UTC"), released.inbound("bob") / "bob+other+2026-01-11 10:00:00 UTC+x"
    )
    c = released.config("grader")
    coursedir = CourseDirectory(config=c, assignment_id=WORK, student_id="bob")
    ExchangeFactory(config=c).Collect(coursedir=coursedir, authenticator=Authenticator(config=c), config=c).start()
    assert released.submitted("bob").is_dir() and not released.submitted("ada").exists()
    assert not (released.root / "submitted" / "bob" / "other").exists()


def test_the_grader_lists_by_folder_and_reads_nothing(released):
    released.put("ada")
    os.mkfifo(released.put("j.doe@example.org") / "pipe.ipynb")
    (released.inbound("bob") / "nonsense").mkdir()
    said = released.run("List", assignment="", traits={"inbound": True})
    assert [one["student_id"] for one in released.returned] == ["ada", "j.doe@example.org"]
    assert any("bob: the name 'nonsense' is not one that submitting makes" in line for line in said)


# Times


def test_late_is_what_nbgrader_says_and_is_told_on_both_sides(released):
    released.due(now() - datetime.timedelta(hours=2, minutes=5, seconds=10))
    released.run("ReleaseAssignment", traits={"force": True})
    said = released.hand_in("ada")
    assert any("It is 2 hours and 5 minutes late" in line for line in said)
    assert f"Collecting submission: ada {WORK} (2 hours and 5 minutes late)" in released.run("Collect")
    stamp = CourseDirectory(config=released.config("grader")).get_existing_timestamp(str(released.submitted("ada")))
    with Gradebook(f"sqlite:///{released.root / 'gradebook.db'}", COURSE) as book:
        book.add_student("ada")
        late = book.update_or_create_submission(WORK, "ada", timestamp=stamp).total_seconds_late
    assert 7500 < late < 7600


def test_an_extension_counts_and_is_told_to_nobody_else(released):
    released.due(now() - datetime.timedelta(hours=1))
    with Gradebook(f"sqlite:///{released.root / 'gradebook.db'}", COURSE) as book:
        book.add_student("ada")
        book.add_submission(WORK, "ada")
        book.grant_extension(WORK, "ada", hours=2)
    released.run("ReleaseAssignment", traits={"force": True})
    assert not any("late" in line for line in released.hand_in("ada"))
    assert any("1 hour late" in line for line in released.hand_in("bob"))
    said = released.run("Collect")
    assert f"Collecting submission: ada {WORK}" in said and f"Collecting submission: bob {WORK} (1 hour late)" in said
    assert "ada" not in (released.exchange / COURSE / "outbound" / exchange.DUE).read_text()
    assert not (released.exchange / COURSE / "feedback" / "bob" / exchange.DUE).exists()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata"])
def test_summer_time_moves_no_submission(released, zone):
    released.hand_in("ada", timezone=zone)
    released.run("Collect", timezone=zone)
    stamp = CourseDirectory(config=released.config("grader")).get_existing_timestamp(str(released.submitted("ada")))
    assert abs(stamp.replace(tzinfo=datetime.UTC) - now()) < datetime.timedelta(minutes=5)


def test_a_stock_submission_in_the_courses_zone_is_read_as_it_was_meant(released):
    assert inbound.parse("ada+x+2026-07-01 10:00:00.5 CEST+r", "Europe/Berlin").at.hour == 8
    assert inbound.parse("ada+x+2026-01-01 10:00:00.5 CET+r", "Europe/Berlin").at.hour == 9
    assert inbound.parse("ada+x+2026-10-25 02:30:00 CET+r", "Europe/Berlin").at.hour == 1
    with pytest.raises(SubmissionError, match="IST, which is not how Europe/Berlin is called"):
        inbound.parse("ada+x+2026-07-01 10:00:00 IST+r", "Europe/Berlin")


def test_a_time_that_the_exchange_does_not_bear_out_is_pointed_at(released):
    released.due(now() - datetime.timedelta(hours=1))
    released.put("ada", (now() - datetime.timedelta(hours=3)).strftime(inbound.STAMP))
    said = released.run("Collect")
    assert any(line.startswith("ada: the submission's name says") and "before it was due" in line for line in said)
    assert released.submitted("ada").is_dir()


def test_before_the_due_date_the_last_in_time_is_taken(released):
    due = now() - datetime.timedelta(hours=1)
    released.due(due)
    released.put("ada", (due - datetime.timedelta(hours=1)).strftime(inbound.STAMP), text="in time")
    released.put("ada", (due + datetime.timedelta(minutes=1)).strftime(inbound.STAMP), text="late")
    released.put("bob", (due + datetime.timedelta(minutes=1)).strftime(inbound.STAMP), text="late")
    released.run("Collect", traits={"before_duedate": True})
    assert (released.submitted("ada") / f"{WORK}.ipynb").read_text() == "in time"
    assert (released.submitted("bob") / f"{WORK}.ipynb").read_text() == "late"


# What is refused, and that nobody else notices


def link_to_a_file(place):
    (place / f"{WORK}.ipynb").unlink()
    (place / f"{WORK}.ipynb").symlink_to("/etc/passwd")


def link_to_a_folder(place):
    (place / "data").symlink_to("/etc")


def hard_link(place):
    os.link(place / f"{WORK}.ipynb", place.parent / ".elsewhere")


def pipe(place):
    (place / f"{WORK}.ipynb").unlink()
    os.mkfifo(place / f"{WORK}.ipynb")


def unix_socket(place):
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(place)  # such an address has room for 108 characters
        try:
            made.bind("socket")
        finally:
            os.chdir(here)


def too_large(place):
    with open(place / "checkpoint.pt", "wb") as file:
        file.truncate(30_000_000)


def too_many(place):
    for number in range(300):
        (place / str(number)).touch()


def too_deep(place):
    (place / "/".join("abcdefghijk")).mkdir(parents=True)


def odd_name(place):
    (place / "answer\u202e.ipynb").touch()


def no_text(place):
    (place / os.fsdecode(b"\xff\xfe")).touch()


def half(place):
    (place / "timestamp.txt").unlink()


REFUSED = {
    link_to_a_file: f"{WORK}.ipynb is a symbolic link",
    link_to_a_folder: "data is a symbolic link",
    hard_link: "is a hard link",
    pipe: "is a named pipe",
    unix_socket: "socket is a socket",
    too_large: "it is too large: 30 MB, where 20 MB are allowed",
    too_many: "it holds more than 200 files and folders",
    too_deep: "its folders are more than 8 deep",
    odd_name: "has characters that cannot be shown",
    no_text: "has characters that cannot be shown",
    half: "it is not whole: there is no timestamp.txt",
}


@pytest.mark.parametrize("trick", REFUSED, ids=lambda trick: trick.__name__)
def test_a_submission_that_is_none_is_refused_with_its_reason(released, trick):
    trick(released.put("ada"))
    released.put("bob")
    said = released.run("Collect")
    (refused,) = [line for line in said if line.startswith("ada: ")]
    assert "the submission of 2026-01-10 10:00 UTC was refused: " in refused and REFUSED[trick] in refused
    assert said[-1] == "Collected 1 of 2 students' submissions; 1 refused, see above."
    assert released.submitted("bob").is_dir()
    assert not released.submitted("ada").exists()


def test_an_older_submission_is_collected_where_the_newest_is_refused(released):
    released.put("ada", text="good")
    link_to_a_file(released.put("ada", "2026-01-11 10:00:00.000000 UTC"))
    said = released.run("Collect")
    assert any("2026-01-11 10:00 UTC was refused" in line for line in said)
    assert (released.submitted("ada") / f"{WORK}.ipynb").read_text() == "good"


def test_nobody_submits_for_another(released):
    released.put("ada", who="bob", text="ada's")
    said = released.run("Collect")
    assert any(line.startswith("ada: bob+03_gradscaler+") and "claims to be bob's" in line for line in said)
    assert not (released.root / "submitted" / "bob").exists() and not released.submitted("ada").exists()


@pytest.mark.parametrize(
    "name",
    [
        "notes",
        f"ada+{WORK}",
        f"ada+{WORK}+yesterday+x",
        f"ada+{WORK}+2026-13-01 10:00:00 UTC+x",
        f"+{WORK}+10+x",
        f"ada+{WORK}+10",
    ],
)
def test_a_name_that_submitting_does_not_make_is_told(released, name):
    released.put("ada").rename(released.inbound("ada") / name)
    released.put("bob")
    said = released.run("Collect")
    assert any(line.startswith("ada: the name ") for line in said)
    assert released.submitted("bob").is_dir() and not released.submitted("ada").exists()


def test_a_folder_that_the_hub_did_not_make_belongs_to_nobody(released):
    stranger = released.put("bob").parent.parent / "No.Body"
    shutil.copytree(released.inbound("bob"), stranger)
    (stranger.parent / "link").symlink_to(stranger)
    said = released.run("Collect")
    assert any(line.startswith("No.Body: ") and "is not the folder of a student" in line for line in said)
    assert any(line.startswith("link: the folder cannot be read") for line in said)
    assert sorted(path.name for path in (released.root / "submitted").iterdir()) == ["bob"]


def test_a_submission_that_is_still_being_written_is_left_for_the_next_time(released):
    place = released.put("ada")
    stop = threading.Event()

    def write():
        while not stop.is_set():
            (place / f"{WORK}.ipynb").write_text(str(time.perf_counter_ns()))

    writer = threading.Thread(target=write)
    reads = []
    with inbound.opened(place.parent) as fd:
        writer.start()
        try:
            for _ in range(200):
                try:
                    reads.append(inbound.take(fd, place.name, Limits()).files[f"{WORK}.ipynb"])
                except SubmissionError as error:
                    reads.append(str(error))
        finally:
            stop.set()
            writer.join()
        assert inbound.CHANGED in reads
        assert inbound.take(fd, place.name, Limits()).files[f"{WORK}.ipynb"]


def test_a_folder_that_becomes_a_link_while_it_is_read_leads_nowhere(released):
    place = released.put("ada")
    (place / "data").mkdir()
    (place / "data" / "passwd").write_text("mine")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            (place / "data").rename(place / "was")
            (place / "data").symlink_to("/etc")
            (place / "data").unlink()
            (place / "was").rename(place / "data")

    swapper = threading.Thread(target=swap)
    outcomes = set()
    with inbound.opened(place.parent) as fd:
        swapper.start()
        try:
            for _ in range(500):
                try:
                    files = inbound.take(fd, place.name, Limits()).files
                    outcomes |= {data for path, data in files.items() if path.endswith("passwd")}
                except SubmissionError:
                    outcomes.add("refused")
        finally:
            stop.set()
            swapper.join()
    assert "refused" in outcomes and outcomes <= {"refused", b"mine"}


@ROOT
def test_what_the_grader_may_not_read_is_refused_and_a_student_reads_nobody_elses(empty_gradebook):
    with tempfile.TemporaryDirectory() as folder:  # the tests' own folders can be entered by nobody else
        os.chmod(folder, 0o711)
        _several_users(make_hub(Path(folder), empty_gradebook))


def _several_users(hub: Hub) -> None:
    ada, bob, grader = 200_001, 200_002, 200_100
    exchange.prepare(hub.exchange, COURSE, hub.students, uids={"ada": ada, "bob": bob}, grader=(grader, grader))
    made = hub.put("ada")
    for path in [made, *made.iterdir()]:
        os.chown(path, ada, ada)
    inner = hub.exchange / COURSE / "inbound"
    assert as_user(ada, lambda: os.listdir(hub.inbound("ada"))) and as_user(grader, lambda: os.listdir(inner))
    for uid, path in [(bob, hub.inbound("ada")), (bob, inner), (bob, hub.exchange / COURSE / "feedback"), (ada, inner)]:
        with pytest.raises(PermissionError):
            as_user(uid, lambda path=path: os.listdir(path))
    with pytest.raises(PermissionError):
        as_user(ada, lambda: (hub.exchange / COURSE / "outbound" / "x").touch())
    os.chmod(made / f"{WORK}.ipynb", 0o600)
    for path in [hub.root, *hub.root.rglob("*")]:
        os.chown(path, grader, grader)
    said = as_user(grader, lambda: hub.run("Collect"))
    assert any(line.startswith("ada: ") and "it cannot be read (Permission denied)" in line for line in said)
    os.chmod(made / f"{WORK}.ipynb", 0o644)
    as_user(grader, lambda: hub.run("Collect"))
    assert (hub.submitted("ada") / f"{WORK}.ipynb").stat().st_uid == grader


def as_user(uid: int, work):
    """Do something as another user, in this process."""
    os.setegid(uid)
    groups = os.getgroups()
    os.setgroups([])
    os.seteuid(uid)
    try:
        return work()
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


# What a student is told


def test_a_submission_that_is_too_large_is_refused_before_it_is_copied(released):
    released.run("FetchAssignment", "ada")
    with open(released.work("ada") / "checkpoint.pt", "wb") as file:
        file.truncate(25_000_000)
    with pytest.raises(
        ExchangeError, match=r"was not handed in: it is too large: 25 MB, where 20 MB are allowed.*checkpoint\.pt"
    ):
        released.hand_in("ada")
    assert not os.listdir(released.inbound("ada"))
    (released.work("ada") / "checkpoint.pt").unlink()
    released.hand_in("ada")


def test_links_and_odd_names_are_refused_with_what_to_do(released):
    released.run("FetchAssignment", "ada")
    (released.work("ada") / "data").symlink_to("/etc")
    with pytest.raises(
        ExchangeError, match=r"data is a link\. Put the file itself there, or remove the link, and hand in again"
    ):
        released.hand_in("ada")
    (released.work("ada") / "data").unlink()
    os.mkfifo(released.work("ada") / "pipe")
    with pytest.raises(ExchangeError, match="pipe is neither a file nor a folder"):
        released.hand_in("ada")


def test_what_a_student_may_submit_is_what_is_collected(released):
    """The limits are the same on both sides: a submission just below each of them goes through."""
    released.run("FetchAssignment", "ada")
    work = released.work("ada")
    deep = work / "/".join("abcdefgh")
    deep.mkdir(parents=True)
    (deep / "deep.txt").write_text("deep")
    for number in range(198 - 10):
        (work / f"{number}.txt").touch()
    size = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
    with open(work / "0.txt", "wb") as file:
        file.truncate(20_000_000 - 200 - size)
    (work / ".ipynb_checkpoints").mkdir()
    (work / ".ipynb_checkpoints" / "big").write_bytes(b"0" * 1_000_000)
    released.hand_in("ada")
    said = released.run("Collect")
    assert said[-1] == "Collected 1 of 1 students' submissions."
    assert (released.submitted("ada") / "a/b/c/d/e/f/g/h/deep.txt").read_text() == "deep"
    assert not (released.submitted("ada") / ".ipynb_checkpoints").exists()
    (work / "more.txt").touch()
    with pytest.raises(ExchangeError, match="it has 199 files and folders, where 198 are allowed"):
        released.hand_in("ada")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("full", ["inbound", "cache"])
def test_a_full_disk_leaves_nothing_half_and_says_whose_disk_it_is(released, monkeypatch, number, full):
    released.hand_in("ada", "first")
    before = sorted(path.name for path in released.inbound("ada").iterdir())
    fsync, other = os.fsync, errno.EDQUOT

    def failing(fd):
        if full in os.readlink(f"/proc/self/fd/{fd}").removeprefix(str(released.exchange.parent)):
            raise OSError(number, os.strerror(number))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(ExchangeError) as caught:
        released.hand_in("ada", "second")
    theirs = full == "cache" and number == other
    assert ("your own disk is full" if theirs else "the exchange is full") in str(caught.value)
    assert "What you handed in before still counts" in str(caught.value).replace("what", "What")
    assert sorted(path.name for path in released.inbound("ada").iterdir()) == before
    assert len(list((released.homes / "ada" / "cache" / COURSE).iterdir())) == 1
    monkeypatch.undo()
    released.hand_in("ada", "second")


@contextlib.contextmanager
def small_disk(place: Path, kilobytes: int):
    """A real file system of that size; what was in `place` is back afterwards."""
    place.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"requires the right to mount: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


@ROOT
def test_a_real_full_exchange_says_so(released):
    released.run("FetchAssignment", "ada")
    place = released.inbound("ada")
    with small_disk(place, 64):
        (place / "filler").write_bytes(b"0" * 60_000)
        (released.work("ada") / "figure.png").write_bytes(os.urandom(30_000))
        with pytest.raises(ExchangeError, match="Nothing was handed in: the exchange is full"):
            released.hand_in("ada")
        assert os.listdir(place) == ["filler"]
        (place / "filler").unlink()
        released.hand_in("ada")


@ROOT
def test_a_full_home_leaves_no_half_of_an_assignment(released):
    (released.exchange / COURSE / "outbound" / WORK / "data.bin").write_bytes(os.urandom(100_000))
    with small_disk(released.homes / "ada", 64):
        with pytest.raises(
            ExchangeError, match=r"The disk is full .*: fetch the assignment\. Make room and do it again"
        ):
            released.run("FetchAssignment", "ada")
        assert not any(path.is_file() for path in released.homes.rglob("*"))
    released.run("FetchAssignment", "ada")
    assert (released.work("ada") / "data.bin").is_file()


def test_an_exchange_that_is_missing_is_a_sentence(released):
    released.hand_in("ada")
    (released.views / "ada" / COURSE / "inbound").unlink()
    released.view = lambda student: released.views / student
    with pytest.raises(ExchangeError, match=r"the exchange is missing.*Your work is safe"):
        released.run("Submit", "ada")
    (released.views / "ada").rename(released.views / "gone")
    for what in ("List", "FetchAssignment", "Submit", "FetchFeedback"):
        with pytest.raises(ExchangeError, match="The exchange is missing: there is no folder"):
            released.run(what, "ada")


def test_what_is_released_no_more_cannot_be_handed_in(released):
    released.hand_in("ada")
    released.run("List", traits={"remove": True})
    with pytest.raises(ExchangeError, match=f"Nothing was handed in: {WORK} is not released, or not any more"):
        released.hand_in("ada")


def test_feedback_on_what_did_not_come_through_the_exchange_is_told_and_stops_nobody(released):
    released.hand_in("ada")
    released.run("Collect")
    for student in ("ada", "bob"):
        feedback = released.root / "feedback" / student / WORK
        feedback.mkdir(parents=True)
        (feedback / f"{WORK}.html").write_text(student)
    said = released.run("ReleaseFeedback")
    assert any(line.startswith("bob: the feedback on") for line in said)
    released.run("FetchFeedback", "ada")
    assert list((released.work("ada") / "feedback").rglob("*.html"))
    shutil.rmtree(released.root / "feedback")
    with pytest.raises(ExchangeError, match="No feedback on 03_gradscaler was released"):
        released.run("ReleaseFeedback")


def test_feedback_belongs_to_the_submission_that_was_graded(released):
    """`autograder grade` leaves the time of what it graded; a newer submission has been collected since."""
    released.hand_in("ada", "first")
    released.run("Collect")
    graded = released.root / "autograded" / "ada" / WORK
    shutil.copytree(released.submitted("ada"), graded)
    feedback = released.root / "feedback" / "ada" / WORK
    feedback.mkdir(parents=True)
    (feedback / f"{WORK}.html").write_text("on the first")
    released.hand_in("ada", "second")
    released.run("Collect", traits={"update": True})
    first = (graded / "timestamp.txt").read_text()
    assert (released.submitted("ada") / "timestamp.txt").read_text() != first
    released.run("ReleaseFeedback")
    released.run("FetchFeedback", "ada")
    (page,) = (released.work("ada") / "feedback").rglob("*.html")
    assert page.parent.name == first


# Configuration


def test_a_role_or_a_time_zone_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(CourseError, match="'teacher' is no role"):
        exchange.configure(Config(), role="teacher", root=tmp_path, course_id=COURSE)
    with pytest.raises(CourseError, match="'Europe/Bern' is no time zone"):
        exchange.configure(Config(), role="grader", root=tmp_path, course_id=COURSE, timezone="Europe/Bern")


def test_a_students_server_is_given_its_own_folders_and_no_others(hub):
    given = exchange.views(hub.exchange, COURSE, "j.doe@example.org")
    assert [(view.source.relative_to(hub.exchange).as_posix(), view.at, view.writable) for view in given] == [
        ("amp/outbound", "amp/outbound", False),
        ("amp/inbound/j-2edoe-40example-2eorg", "amp/inbound", True),
        ("amp/feedback/j-2edoe-40example-2eorg", "amp/feedback", False),
    ]
    assert all(view.source.is_dir() for view in given)
