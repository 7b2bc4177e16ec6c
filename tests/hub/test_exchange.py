"""The exchange with a folder for each student: nbgrader's commands on both sides, and students who try what they may not."""

import datetime
import logging
import os
import shutil
import warnings
from pathlib import Path

import nbformat
import pytest

nbgrader = pytest.importorskip("nbgrader", reason="requires nbgrader")

from nbgrader.api import Gradebook  # noqa: E402
from nbgrader.auth import Authenticator  # noqa: E402
from nbgrader.coursedir import CourseDirectory  # noqa: E402
from nbgrader.exchange import ExchangeFactory  # noqa: E402
from traitlets.config import Config  # noqa: E402

from autograder.hub import exchange  # noqa: E402

# nbgrader leaves files open when it lists (exchange/default/list.py, _checksum).
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
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
    made = Hub(tmp_path)
    release = made.root / "release" / WORK
    release.mkdir(parents=True)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("# answer", id="answer")])
    nbformat.write(notebook, release / f"{WORK}.ipynb")
    shutil.copy(empty_gradebook, made.root / "gradebook.db")
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
