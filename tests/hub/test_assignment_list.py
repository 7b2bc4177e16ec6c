"""What a student reads in JupyterLab's assignment list: sentences, for everything that may go wrong or needs to be known."""

import datetime
import json
import os
import shutil
import urllib.error
import urllib.request
import warnings

import nbformat
import pytest

pytest.importorskip("nbgrader", reason="requires nbgrader")
pytest.importorskip("jupyter_server", reason="requires Jupyter Server")

from jupyter_service import Server

from autograder.hub import exchange
from autograder.hub.assignment_list import Assignments

pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
COURSE, WORK = "amp", "03_gradscaler"
CONFIG = """
c = get_config()
from autograder.hub.exchange import configure
configure(c, role="student", root={root!r}, course_id="amp", timezone="Europe/Berlin", submission_mb=1)
c.Exchange.cache = {cache!r}
"""


class Student:
    """A student's home, with an exchange in which one assignment is released."""

    def __init__(self, folder) -> None:
        self.home, self.disk, self.view = folder / "home", folder / "disk", folder / "exchange"
        self.home.mkdir()
        exchange.prepare(self.disk, COURSE, ["ada"])
        release = self.disk / COURSE / "outbound" / WORK
        release.mkdir()
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("# answer", id="answer")])
        nbformat.write(notebook, release / f"{WORK}.ipynb")
        for source, at, _ in exchange.views(self.disk, COURSE, "ada"):
            (self.view / at).parent.mkdir(parents=True, exist_ok=True)
            (self.view / at).symlink_to(source)
        cache = str(self.home / ".cache")
        (self.home / "nbgrader_config.py").write_text(CONFIG.format(root=str(self.view), cache=cache))
        self.panel = Assignments()
        self.panel.root_dir = str(self.home)
        self.work = self.home / COURSE / WORK

    def listed(self, status: str) -> list[dict]:
        answer = self.panel.list_assignments(course_id=COURSE)
        assert answer["success"], answer
        return [one for one in answer["value"] if one["status"] == status]

    def lines(self) -> list[str]:
        """What the panel shows below a submitted assignment."""
        (assignment,) = self.listed("submitted")
        return [submission["timestamp"] for submission in assignment["submissions"]]

    def due(self, at: datetime.datetime) -> None:
        (self.disk / COURSE / "outbound" / exchange.DUE).write_text(json.dumps({WORK: at.isoformat()}))


@pytest.fixture
def student(tmp_path, monkeypatch) -> Student:
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    monkeypatch.setenv("HOME", str(tmp_path))
    return Student(tmp_path)


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def test_a_student_fetches_submits_and_sees_it(student):
    assert [one["assignment_id"] for one in student.listed("released")] == [WORK]
    before = os.getcwd()
    assert student.panel.fetch_assignment(COURSE, WORK) == {"success": True}
    (fetched,) = student.listed("fetched")
    assert fetched["path"] == f"{COURSE}/{WORK}" and fetched["notebooks"][0]["path"] == f"{COURSE}/{WORK}/{WORK}.ipynb"
    assert student.panel.submit_assignment(COURSE, WORK) == {"success": True}
    (line,) = student.lines()
    assert line.endswith((" CET", " CEST")) and "late" not in line
    assert os.getcwd() == before


def test_late_and_twice_are_told_in_each_submissions_line(student):
    student.panel.fetch_assignment(COURSE, WORK)
    student.due(now() + datetime.timedelta(hours=1))
    student.panel.submit_assignment(COURSE, WORK)
    student.due(now() - datetime.timedelta(hours=3, minutes=2, seconds=9))
    assert student.panel.submit_assignment(COURSE, WORK)["success"], "late is accepted"
    first, second = student.lines()
    assert first.endswith("late, replaced by a newer one")
    assert second.endswith(", 3 hours and 2 minutes late, counts, as the newest of 2")
    assert len(list((student.disk / COURSE / "inbound" / "ada").iterdir())) == 2, "both are kept"


def test_too_large_is_said_with_sizes_and_what_to_do(student):
    student.panel.fetch_assignment(COURSE, WORK)
    (student.work / "checkpoint.pt").write_bytes(b"0" * 1_500_000)
    answer = student.panel.submit_assignment(COURSE, WORK)
    assert not answer["success"] and "Traceback" not in answer["value"]
    assert (
        "too large: 1.5 MB, where 1 MB are allowed" in answer["value"] and "checkpoint.pt (1.5 MB)" in answer["value"]
    )
    assert "What you handed in before still counts" in answer["value"]


def test_a_missing_exchange_is_said_wherever_it_is_missed(student):
    student.panel.fetch_assignment(COURSE, WORK)
    before = os.getcwd()
    shutil.rmtree(student.view)
    for answer in (
        student.panel.list_assignments(course_id=COURSE),
        student.panel.list_courses(),
        student.panel.fetch_assignment(COURSE, WORK),
        student.panel.submit_assignment(COURSE, WORK),
        student.panel.fetch_feedback(COURSE, WORK),
    ):
        assert not answer["success"] and answer["value"].startswith("The exchange is missing: there is no folder")
    assert os.getcwd() == before


def test_what_nobody_thought_of_is_a_sentence_too(student, monkeypatch, caplog):
    def broken(self):
        raise RuntimeError("a bolt came loose")

    monkeypatch.setattr(exchange.Submit, "copy_files", broken)
    student.panel.fetch_assignment(COURSE, WORK)
    answer = student.panel.submit_assignment(COURSE, WORK)
    assert answer["value"].startswith(
        "Could not submit: RuntimeError: a bolt came loose. Nothing of yours was changed."
    )
    assert "Traceback" in caplog.text, "the server's log has it"


def test_the_panel_is_answered_over_http(student, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = Server(tmp_path, student.home, "autograder.hub.assignment_list")
    try:
        assert json.loads(server.get("/courses")[1]) == {"success": True, "value": [COURSE]}
        body = {"course_id": COURSE, "assignment_id": WORK}
        fetched = json.loads(server.ask("POST", "/assignments/fetch", body)[1])
        assert [one["status"] for one in fetched["value"]] == ["fetched"]
        submitted = json.loads(server.ask("POST", "/assignments/submit", body)[1])
        assert sorted(one["status"] for one in submitted["value"]) == ["fetched", "submitted"]
        (student.work / "checkpoint.pt").write_bytes(b"0" * 1_500_000)
        refused = json.loads(server.ask("POST", "/assignments/submit", body)[1])
        assert not refused["success"] and "too large" in refused["value"]
        assert server.ask("POST", "/assignments/submit", {"course_id": COURSE})[0] == 400
        request = urllib.request.Request(
            f"{server.url}/assignments/submit", method="POST", data=json.dumps(body).encode()
        )
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request)
        assert caught.value.code == 403
        caught.value.close()
    finally:
        server.close()
