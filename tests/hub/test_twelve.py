"""Twelve students at once: each starts a server, fetches assignment 3, writes something, hands it in; nothing is lost."""

from __future__ import annotations

import json
import shutil
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from people import Person, class_of, processes, told

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("hub_can_run"),
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
]
WORK, AIM_S = "03_gradscaler", 60
STUDENTS = [f"student{number:02d}" for number in range(1, 13)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("twelve")


@pytest.fixture(scope="module")
def hub(folder):
    from autograder import course, release
    from autograder.room import find_room

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nbgrader's own code
        course.prepare_nbgrader()
        made = course.init(folder / "course", "amp", source=[])
    # What `autograder release` proves first is tested elsewhere, and takes its time.
    shutil.copytree(release.student_files(find_room(WORK)), made.root / "release" / WORK)
    with class_of(folder, STUDENTS, made.root, WORK) as hub:
        yield hub


def test_twelve_students_at_once_fetch_and_hand_in_and_nothing_is_lost(hub, folder, report):
    start, times = threading.Barrier(len(STUDENTS)), {}

    def take_part(name: str) -> None:
        with Person(hub, name, hub.passwords[name]) as person:
            assert person.log_in().ok
            person.start_server()
            start.wait(300)
            began = time.monotonic()
            assert person.press("fetch", WORK)["success"]
            path = f"amp/{WORK}/{WORK}.ipynb"
            notebook = person.read(path)["content"]
            notebook["cells"][-1]["source"] = f"by {name}"
            person.write(path, notebook)
            said = person.press("submit", WORK)
            assert said["success"], said
            times[name] = began, time.monotonic()

    began = time.monotonic()
    with ThreadPoolExecutor(len(STUDENTS)) as everybody:
        list(everybody.map(take_part, STUDENTS))
    first = min(begin for begin, _ in times.values())
    took = max(end for _, end in times.values()) - first
    memory = _memory(folder) / 2**20
    report(
        f"twelve students: all servers after {first - began:.0f} s, all fetched and handed in {took:.1f} s later (aim "
        f"{AIM_S} s); their servers hold {memory:.0f} MiB"
    )

    with ExitStack() as stack:
        grace = stack.enter_context(Person(hub, "grace", hub.passwords["grace"]))
        grace.log_in()
        grace.open("/services/amp/")
        said = grace.ask("POST", f"/services/amp/formgrader/api/assignment/{WORK}/collect").json()
    assert said["success"] and "Collected 12 of 12 students' submissions." in said["log"], said
    course = folder / "state" / "course"
    released = {path.name: path for path in (course / "release" / WORK).iterdir()}
    for name in STUDENTS:
        submitted = course / "submitted" / name / WORK
        files = {path.name for path in submitted.iterdir()}
        assert files == {*released, "timestamp.txt", "submission_secret.txt"}, name
        cells = json.loads((submitted / f"{WORK}.ipynb").read_text(encoding="utf-8"))["cells"]
        assert "".join(cells[-1]["source"]) == f"by {name}"
        (archive,) = submitted.glob("*.zip")
        assert archive.read_bytes() == released[archive.name].read_bytes()
    assert len({(course / "submitted" / name / WORK / "submission_secret.txt").read_text() for name in STUDENTS}) == 12


def _memory(folder) -> int:
    """What students' servers hold, in bytes: what several share is counted once."""
    boxes = processes(str(folder), lambda one: one.name() == "bwrap")
    inside = {one.pid: one for some in told(boxes, lambda box: box.children(recursive=True)) for one in some}
    return sum(told(inside.values(), lambda one: one.memory_full_info().pss))
