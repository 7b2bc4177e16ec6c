"""formgrader in a grader service: a real Jupyter server, whose work is done in processes of their own."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="requires nbgrader")
pytest.importorskip("jupyter_server", reason="requires Jupyter Server")

from grader_fixtures import grader
from jupyter_service import Server, until

from autograder.hub import exchange, work
from autograder.hub.work import Order

boxed, tiny_rooms, tiny_course, handed_in = grader.boxed, grader.tiny_rooms, grader.tiny_course, grader.handed_in

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
TINY = "tiny"
# An exporter that says who it is and waits to be let on, then grades as ours does.
SLOW = """
import os, time
from pathlib import Path
from autograder.nbgrader_seam import GradedNotebook

class Slow(GradedNotebook):
    def from_filename(self, filename, resources=None, **more):
        place = Path(os.environ["SLOW"])
        if self.parent._sanitizing and (place / "wait").exists():
            (place / f"at-work-{os.getpid()}").touch()
            while (place / "wait").exists():
                time.sleep(0.02)
        return super().from_filename(filename, resources=resources, **more)
"""
CONFIG = """
from autograder.hub.exchange import configure
configure(c, role="grader", root={root!r}, course_id="amp", timezone="Europe/Berlin")
c.Autograde.exporter_class = "slow_exporter.Slow"
c.HubFormgrader.roster = "/srv/amp/roster.csv"
"""


@pytest.fixture(scope="module")
def graded_from(tmp_path_factory, tiny_course):
    """A course that two students have handed in to through the exchange, and its grader service."""
    folder = tmp_path_factory.mktemp("service")
    root = folder / "course"
    shutil.copytree(tiny_course, root)
    exchange.prepare(folder / "exchange", "amp", ["ada", "bob"])
    with open(root / "nbgrader_config.py", "a") as config:
        config.write(CONFIG.format(root=str(folder / "exchange")))
    (folder / "slow_exporter.py").write_text(SLOW)
    server = Server(folder, root, "autograder.hub.formgrader", SLOW=str(folder))
    yield server, root, folder
    server.close()


@pytest.fixture
def server(graded_from) -> Server:
    return graded_from[0]


@pytest.fixture
def root(graded_from) -> Path:
    return graded_from[1]


@pytest.fixture
def place(graded_from) -> Path:
    return graded_from[2]


@pytest.fixture
def held(place):
    """Whoever autogrades waits until this is left; at_work() tells the processes that do."""

    class Held:
        def at_work(self) -> list[int]:
            return [int(path.name.rpartition("-")[2]) for path in place.glob("at-work-*")]

        def go(self) -> None:
            (place / "wait").unlink(missing_ok=True)

    for left in place.glob("at-work-*"):
        left.unlink()
    (place / "wait").touch()
    yield Held()
    Held().go()


def hand_in(place: Path, student: str, source: Path) -> None:
    at = "2026-01-10 10:00:00.000000 UTC"
    folder = place / "exchange" / "amp" / "inbound" / student / f"{student}+{TINY}+{at}+x"
    shutil.copytree(source, folder)
    (folder / "timestamp.txt").write_text(at)
    (folder / "submission_secret.txt").write_text("secret of " + student)


def test_every_button_gives_nbgraders_answer(boxed, server, root, place, handed_in):
    said = server.press(f"/assignment/{TINY}/assign")
    assert said["success"] and "Converting notebook" in said["log"]
    assert server.press(f"/assignment/{TINY}/release")["success"]
    assert (place / "exchange/amp/outbound" / TINY / f"{TINY}.ipynb").is_file()
    said = server.press(f"/assignment/{TINY}/release")
    assert not said["success"] and "is released already" in said["log"] and "error" not in said
    for student in ("ada", "bob"):
        notebook = handed_in(root, student, grader.SOLUTIONS if student == "ada" else {})
        hand_in(place, student, notebook.parent)
        shutil.rmtree(root / "submitted" / student)
    (place / "exchange/amp/inbound/bob/nonsense").mkdir()
    said = server.press(f"/assignment/{TINY}/collect")
    assert said["success"] and f"Collecting submission: ada {TINY}" in said["log"]
    assert "bob: the name 'nonsense' is not one that submitting makes" in said["log"]
    said = server.press(f"/submission/{TINY}/ada/autograde")
    assert said["success"], said
    submissions = {one["student"]: one for one in json.loads(server.get(f"/formgrader/api/submissions/{TINY}")[1])}
    assert submissions["ada"]["score"] == 4.0
    assert submissions["ada"]["autograded"] and not submissions["bob"]["autograded"]
    assert (root / ".autograder/results" / TINY / "ada.json").is_file(), "graded by our exporter, in a box"
    (notebook,) = json.loads(server.get(f"/formgrader/api/submitted_notebooks/{TINY}/{TINY}")[1])
    status, page = server.get(f"/formgrader/submissions/{notebook['id']}/")
    assert status == 200 and "double-value" in page
    assert "cdnjs" not in page, "nothing is asked for from elsewhere"
    assert 'data-link="' not in page, "what was handed in is not opened beside a kernel of the grader"
    assert f"autograder grade {TINY}" in server.get(f"/formgrader/manage_submissions/{TINY}")[1]
    (root / "autograded/ada" / TINY / "mine.html").write_text("<script>grade()</script>")
    assert server.get(f"/formgrader/submissions/{notebook['id']}/mine.html")[0] == 200
    assert "sandbox" in server.headers["Content-Security-Policy"], "a student's page runs no script as the instructor"
    said = server.press(f"/assignment/{TINY}/ada/generate_feedback")
    assert said["success"] and "Wrote 1 page," in said["log"]
    page = (root / "feedback/ada" / TINY / f"{TINY}.html").read_text()
    assert "4 of 9 points" in page and "reflect: 0 of 5 points" in page and "<script" not in page
    assert server.press(f"/assignment/{TINY}/ada/release_feedback")["success"]
    released = place / "exchange/amp/feedback"
    assert len(list((released / "ada").glob("*.html"))) == 1 and not list((released / "bob").glob("*.html"))
    assert server.press(f"/assignment/{TINY}/unrelease")["success"]
    assert not (place / "exchange/amp/outbound" / TINY).exists()


@pytest.fixture
def submitted(root, handed_in):
    for student in ("ada", "bob"):
        handed_in(root, student, {}, at="2026-01-10 10:00:00 UTC")
    return root


def test_a_server_that_autogrades_answers_meanwhile_and_grades_once(boxed, server, submitted, held):
    with ThreadPoolExecutor(8) as browser:
        first = browser.submit(server.press, f"/submission/{TINY}/ada/autograde")
        until(held.at_work, "autograding to begin")
        again = browser.submit(server.press, f"/submission/{TINY}/ada/autograde")
        others = [browser.submit(server.press, f"/submission/{TINY}/{name}/autograde") for name in ("bob",)]
        for _ in range(5):
            assert server.get("/formgrader/api/assignments", timeout=5)[0] == 200
            assert server.get(f"/formgrader/manage_submissions/{TINY}", timeout=5)[0] == 200
        assert len(held.at_work()) == 1, "one at a time, however many are asked for"
        assert not any(one.done() for one in (first, again, *others))
        held.go()
        assert first.result()["success"] and again.result() == first.result()
        assert all(one.result()["success"] for one in others)
    assert len(held.at_work()) == 1, "a second press does not grade a second time"


def test_a_process_that_dies_is_told_and_the_next_one_works(boxed, server, submitted, held):
    with ThreadPoolExecutor(1) as browser:
        pressed = browser.submit(server.press, f"/submission/{TINY}/ada/autograde")
        until(held.at_work, "autograding to begin")
        os.kill(held.at_work()[0], signal.SIGKILL)
        said = pressed.result()
    assert not said["success"]
    assert "ended without an answer (signal SIGKILL)" in said["log"] and "Press the button again" in said["log"]
    held.go()
    assert server.press(f"/submission/{TINY}/ada/autograde")["success"]


def ask_for(root: Path, what: str, exporter: str = "autograder.nbgrader_seam.GradedNotebook") -> dict:
    """What the work's process answers, here in this one."""
    return work.do(Order(what, TINY, "ada", {"Autograde": {"exporter_class": exporter}}, str(root)))


def test_grading_on_the_command_line_meanwhile_is_told(submitted):
    from autograder.course import Course

    with Course(submitted).alone("autograder grade tiny"):
        said = ask_for(submitted, "generate_assignment")
    assert not said["success"] and "Somebody is at work in this course: `autograder grade tiny`" in said["log"]


@pytest.mark.parametrize("exporter", ["", "nbconvert.exporters.NotebookExporter"])
def test_without_our_exporter_nothing_is_graded(submitted, monkeypatch, exporter):
    monkeypatch.setattr(work, "_warm_up", lambda: None)
    said = ask_for(submitted, "autograde", exporter)
    assert not said["success"] and "would run in a kernel beside the gradebook" in said["log"]


def test_work_that_formgrader_does_not_have_is_refused(submitted):
    with pytest.raises(ValueError, match="no work called 'fetch_feedback'"):
        ask_for(submitted, "fetch_feedback")


def test_a_button_needs_the_xsrf_token_and_who_is_logged_in(server):
    for path in (f"/assignment/{TINY}/collect", f"/submission/{TINY}/ada/autograde"):
        request = urllib.request.Request(server.url + "/formgrader/api" + path, method="POST")
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request)
        assert caught.value.code == 403
        caught.value.close()


def test_nobody_is_added_past_the_roster(server, root):
    status, body = server.ask("PUT", "/formgrader/api/student/mallory", {"first_name": "M"})
    assert status == 403 and "decided by /srv/amp/roster.csv" in json.loads(body)["message"]
    assert "mallory" not in server.get("/formgrader/api/students")[1]
    status, page = server.get("/formgrader/manage_students")
    assert status == 200 and "decided by /srv/amp/roster.csv" in page and "Add new student" not in page
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from nbgrader.api import Gradebook

        with Gradebook(f"sqlite:///{root / 'gradebook.db'}", "amp") as book:
            book.update_or_create_student("zoe")
    status, body = server.ask("PUT", "/formgrader/api/student/zoe", {"first_name": "Zoe"})
    assert status == 200 and json.loads(body)["first_name"] == "Zoe"


def test_a_link_cannot_make_formgrader_run_what_a_student_handed_in(server, place):
    """nbgrader's own runs the nbgrader_config.py of any folder that the address names."""
    trap = place / "exchange" / "amp" / "inbound" / "bob" / "trap"
    trap.mkdir(exist_ok=True)
    (trap / "nbgrader_config.py").write_text(f"open({str(place / 'sprung')!r}, 'w')")
    query = urllib.parse.urlencode({"path": str(trap)})
    assert server.get(f"/formgrader?{query}")[0] == 403
    assert server.get("/formgrader")[0] == 200
    assert not (place / "sprung").exists()


def test_links_to_folders_are_below_the_hub(server):
    status, script = server.get("/formgrader/static/js/utils.js")
    assert status == 200 and 'base_url + "/lab/tree/" + path' in script
    assert server.get("/formgrader/static/js/manage_assignments.js")[0] == 200


def test_a_due_date_is_meant_in_the_courses_zone_and_students_servers_know_it(server, place):
    for due, utc in (("2026-07-01T23:59:00", "21:59"), ("2026-12-01T23:59:00", "22:59")):
        offered = json.loads(server.get(f"/formgrader/api/assignment/{TINY}")[1])["duedate_timezone"]
        body = {"duedate_notimezone": due, "duedate_timezone": offered}
        status, answer = server.ask("PUT", f"/formgrader/api/assignment/{TINY}", body)
        assert status == 200 and json.loads(answer)["duedate_notimezone"] == due
        published = json.loads((place / "exchange/amp/outbound" / exchange.DUE).read_text())
        assert published[TINY] == f"{due[:10]}T{utc}:00+00:00"
    body = {"duedate_notimezone": "2026-07-01T23:59:00", "duedate_timezone": "+0530"}
    server.ask("PUT", f"/formgrader/api/assignment/{TINY}", body)
    assert "18:29" in (place / "exchange/amp/outbound" / exchange.DUE).read_text()


def test_the_work_ends_with_the_server_that_asked_for_it(place, submitted, held):
    """The server holds the other end of the work's standard input, and so does nobody else."""
    config = {"Autograde": {"exporter_class": "slow_exporter.Slow", "sanitize_preprocessors": []}}
    order = pickle.dumps(Order("autograde", TINY, "ada", config, str(submitted)))
    environment = {**os.environ, "PYTHONPATH": str(place), "SLOW": str(place)}
    command = [sys.executable, "-P", "-m", "autograder.hub.work"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=submitted, env=environment
    ) as process:
        process.stdin.write(len(order).to_bytes(8) + order)
        process.stdin.flush()
        until(held.at_work, "autograding to begin")
        process.stdin.close()
        assert process.wait(60) == 1 and process.stdout.read() == b""
