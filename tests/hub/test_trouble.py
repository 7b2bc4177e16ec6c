"""What goes wrong on a hub, and what those who meet it read: in the Assignments panel, in formgrader."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psutil
import pytest
import requests
from grader_fixtures import grader
from people import Person, class_of, processes, running, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("hub_can_run", "boxed"),
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
]

boxed, tiny_rooms, tiny_course = grader.boxed, grader.tiny_rooms, grader.tiny_course
WORK = "tiny"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("trouble")


@pytest.fixture(scope="module")
def small_exchange(folder):
    """A file system of its own for the exchange, of 3 MB. None where none can be mounted."""
    place = folder / "exchange"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=755", "tmpfs", str(place)]
    mounted = sys.platform.startswith("linux") and os.geteuid() == 0 and not subprocess.run(mount).returncode
    yield place if mounted else None
    if mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="module")
def hub(folder, small_exchange, tiny_course):
    limits = {"submission_mb": 1}
    with class_of(folder, ["ada", "bob"], tiny_course, WORK, exchange="exchange", limits=limits) as hub:
        yield hub


@pytest.fixture(scope="module")
def people(hub):
    with ExitStack() as stack:
        found = {name: stack.enter_context(Person(hub, name, word)) for name, word in hub.passwords.items()}
        for person in found.values():
            person.log_in()
        with ThreadPoolExecutor(2) as both:
            list(both.map(Person.start_server, (found["ada"], found["bob"])))
        for name in ("ada", "bob"):
            assert found[name].press("fetch", WORK)["success"]
        found["grace"].open("/services/amp/")
        yield found


@pytest.fixture
def ada(people) -> Person:
    return people["ada"]


@pytest.fixture
def bob(people) -> Person:
    return people["bob"]


class Formgrader:
    """What an instructor's buttons do."""

    def __init__(self, grace: Person) -> None:
        self.grace = grace

    def ask(self, method: str, path: str, **more):
        return self.grace.ask(method, f"/services/amp/formgrader/api{path}", **more)

    def press(self, path: str) -> dict:
        answer = self.ask("POST", path)
        assert answer.ok, (answer.status_code, answer.text)
        return answer.json()

    def due(self, when: str | None) -> None:
        body = {"duedate_notimezone": when, "duedate_timezone": "+0000"}
        answer = self.ask("PUT", f"/assignment/{WORK}", json=body)
        assert answer.ok, (answer.status_code, answer.text)


@pytest.fixture
def formgrader(people) -> Formgrader:
    return Formgrader(people["grace"])


def lines(person: Person) -> list[str]:
    """What the panel shows for each submission."""
    return [one["timestamp"] for work in person.listed("submitted") for one in work["submissions"]]


def test_a_submission_that_is_too_large_is_refused_with_sizes_and_what_to_do(ada, hub):
    ada.write(f"amp/{WORK}/weights.txt", "0" * 2_000_000, "file", "text")
    said = ada.press("submit", WORK)
    assert not said["success"]
    assert said["value"].startswith(f"{WORK} was not handed in: it is too large: 2 MB, where 1 MB are allowed.")
    assert "weights.txt (2 MB)" in said["value"] and "Move what the assignment does not ask for" in said["value"]
    assert lines(ada) == []
    assert ada.own("DELETE", f"api/contents/amp/{WORK}/weights.txt").status_code == 204
    assert ada.press("submit", WORK)["success"]


def test_of_two_submissions_the_panel_says_which_counts(ada, formgrader):
    assert ada.press("submit", WORK)["success"]
    assert [line.partition(", ")[2] for line in lines(ada)] == ["replaced by a newer one", "counts, as the newest of 2"]
    said = formgrader.press(f"/assignment/{WORK}/collect")
    assert said["success"] and "Collected 1 of 1 students' submissions" in said["log"]


def test_late_work_is_taken_and_both_sides_read_how_late(bob, formgrader):
    formgrader.due("2020-01-01T12:00:00")
    try:
        assert bob.press("submit", WORK)["success"]
        (line,) = lines(bob)
        assert " days" in line and line.endswith(" late")
        said = formgrader.press(f"/assignment/{WORK}/collect")
        assert f"Collecting submission: bob {WORK} (" in said["log"] and " late)" in said["log"]
    finally:
        formgrader.due(None)


def test_a_full_exchange_says_so_and_loses_nothing(ada, small_exchange):
    if small_exchange is None:
        pytest.skip("requires the right to mount a small file system")
    before = lines(ada)
    ada.write(f"amp/{WORK}/figure.txt", "0" * 500_000, "file", "text")
    filler = small_exchange / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while file.write(b"0" * 65536):
                pass
        except OSError:
            pass
    try:
        said = ada.press("submit", WORK)
        assert not said["success"]
        assert said["value"].startswith("Nothing was handed in: the exchange is full.")
        assert "what you handed in before still counts" in said["value"]
        assert lines(ada) == before
    finally:
        filler.unlink()
    assert ada.press("submit", WORK)["success"] and len(lines(ada)) == len(before) + 1
    assert ada.own("DELETE", f"api/contents/amp/{WORK}/figure.txt").status_code == 204


def at_work(folder) -> list[psutil.Process]:
    """The processes in which formgrader's work is done."""
    return processes(str(folder), lambda one: "autograder.hub.work" in one.cmdline())


def test_a_grading_process_that_is_killed_is_told_and_the_next_press_grades(formgrader, folder):
    with ThreadPoolExecutor(1) as browser:
        pressed = browser.submit(formgrader.press, f"/submission/{WORK}/ada/autograde")
        (process,) = until(lambda: at_work(folder), "grading to begin")
        process.kill()
        said = pressed.result()
    assert not said["success"]
    assert "ended without an answer (signal SIGKILL)" in said["log"] and "Press the button again" in said["log"]
    assert formgrader.press(f"/submission/{WORK}/ada/autograde")["success"]
    (graded,) = [one for one in formgrader.ask("GET", f"/submissions/{WORK}").json() if one["student"] == "ada"]
    assert graded["autograded"] and graded["max_score"] == 9.0


def test_a_grader_that_is_killed_is_started_again_by_the_hub(formgrader, folder):
    (service,) = graders(folder)
    service.kill()
    until(lambda: formgrader.ask("GET", "/assignments").status_code == 200, "the grader to come back", 90, 0.5)
    assert formgrader.press(f"/submission/{WORK}/bob/autograde")["success"]


def graders(folder) -> list[psutil.Process]:
    """The grader service, without what starts it."""
    return processes(
        str(folder),
        lambda one: (
            one.environ().get("JUPYTERHUB_SERVICE_NAME") == "amp"
            and one.cmdline()[-2:] == ["-m", "jupyterhub.singleuser"]
            and "--" not in one.cmdline()
        ),
    )


def is_reached(person: Person) -> bool:
    try:
        return person.own("GET", "api/status").ok
    except requests.ConnectionError:
        return False


def test_a_hub_that_is_killed_takes_no_work_with_it(hub, ada, folder):
    """What a page has not saved stays in the page: it cannot reach its server until the hub is back, and then can."""
    with ada.kernel() as kernel:
        kernel.run("work = 'not lost'")
    count = len(lines(ada))
    for process in [psutil.Process(hub.process.pid), *psutil.Process(hub.process.pid).children()]:
        process.kill()
    hub.process.wait(30)
    until(lambda: not is_reached(ada), "the proxy to end with its hub")
    until(lambda: graders(folder) == [], "the grader to end with its hub")
    unsaved = (f"amp/{WORK}/notes.txt", "written while the hub was away", "file", "text")
    with pytest.raises(requests.ConnectionError):
        ada.write(*unsaved)
    with running(folder, "--config", str(folder / "course.yaml")) as again:
        assert again.url == hub.url
        with ada.attached(kernel.id) as same:  # with the cookies from before
            assert same.run("print(work)") == "not lost\n"
        ada.write(*unsaved)
        assert ada.press("submit", WORK)["success"] and len(lines(ada)) == count + 1
        assert len(graders(folder)) == 1
