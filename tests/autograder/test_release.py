"""Releasing: the learner's files are built once, again when something they depend on changes, and also without forks."""

import shutil
import signal
import threading
import time

import pytest

from autograder import release, sandbox
from autograder.bundle import file_name
from autograder.errors import RoomError
from autograder.reference import Reference, compute, job
from autograder.room import Room


@pytest.fixture
def small(room, tmp_path):
    """A copy of assignment 3 with one mistake an exercise, which is built in a moment."""
    folder = tmp_path / "rooms" / room.name
    shutil.copytree(room.path, folder)
    for exercise in (folder / "mistakes").iterdir():
        for path in sorted(exercise.glob("*.py"))[1:]:
            path.unlink()
    return folder


def test_the_learners_files_are_built_once_and_again_when_the_room_changes(small, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "ROOT", tmp_path)
    said = []
    first = release.student_files(Room(small), said.append)
    assert sorted(path.name for path in first.iterdir()) == sorted([file_name(small.name), f"{small.name}.ipynb"])
    assert release.student_files(Room(small), said.append) == first and len(said) == 1
    checks = small / "checks.py"
    checks.write_text(checks.read_text() + "\n# changed\n")
    second = release.student_files(Room(small), said.append)
    assert second != first and len(said) == 2 and not first.exists()


def test_a_build_that_fails_leaves_nothing_behind(small, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "compute", lambda *_: (_ for _ in ()).throw(RoomError("no solution")))
    with pytest.raises(RoomError, match="no solution"):
        release.student_files(Room(small))
    assert list((tmp_path / "build" / "released").rglob("*.zip")) == []
    monkeypatch.undo()


def test_without_forks_the_evidence_is_the_same(small):
    """The path of Windows and macOS, where the course's own code runs in one process."""
    room = Room(small)
    cells = room.cells(room.solutions)
    wanted = job(room, b"s", [("solution", cells, list(room.exercises))])
    forked = sandbox.run(wanted, boxed=False, seconds=120)
    assert len(forked) == len(room.exercises) and forked == sandbox.run_alone(wanted, 120)
    wanted = {**wanted, "together": True}
    assert forked == sandbox.run(wanted, boxed=False, seconds=120) == sandbox.run_alone(wanted, 120)


def test_a_room_that_proves_too_little_is_not_released_and_every_reason_is_said(small):
    mistakes = small / "mistakes"
    shutil.rmtree(mistakes / "clipped_step")
    (small / "also_right" / "LossScaler" / "new.py").write_text("LossScaler = None\n")
    (mistakes / "two_optimizers_step" / "harmless.py").write_text(
        '"""Not wrong at all."""\n' + Room(small).solutions["two_optimizers_step"]
    )
    known = (mistakes / "underflow_report" / "counts_zeros.py").read_text()
    (mistakes / "underflow_report" / "unscaled.py").write_text(known)
    with pytest.raises(RoomError, match="not fit for release, so nothing was written") as stopped:
        release.verify(compute(Room(small), b"s"))
    for reason in (
        "clipped_step: there is no mistake in",
        "LossScaler: also_right new earns 0 of 4 points",
        "two_optimizers_step: mistake harmless earns full marks: its check does not catch it",
        "underflow_report: mistake unscaled is diagnosed as counts_zeros",
        "choose_init_scale: checks.py has a symptom 'too_small' and no mistake of that name",
    ):
        assert reason in str(stopped.value)


def test_a_solution_that_fails_or_raises_stops_with_its_place(small):
    notebook = small / f"{small.name}.ipynb"
    notebook.write_text(notebook.read_text().replace("return stepped", "return steppd"))
    with pytest.raises(RoomError, match=r"step_and_schedule.*NameError"):
        compute(Room(small), b"s")


def test_expected_evidence_is_kept_and_found_again(small, tmp_path, monkeypatch):
    first = compute(Room(small), b"s", tmp_path / "kept")
    monkeypatch.setattr(sandbox, "run", lambda *_, **__: pytest.fail("it was kept"))
    again = compute(Room(small), b"s", tmp_path / "kept")
    assert isinstance(again, Reference) and again.raw == first.raw
    assert "secret" not in repr(first)


def test_ctrl_c_does_not_wait_for_the_answers_that_run(room, monkeypatch):
    started, let_go, finished = threading.Event(), threading.Event(), threading.Event()

    def endless(job, **options):
        started.set()
        let_go.wait(60)
        finished.set()
        return []

    def interrupt():
        started.wait(60)
        time.sleep(0.5)  # until the main thread waits: just before, the signal would not wake it
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    monkeypatch.setattr(sandbox, "run", endless)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            compute(room, b"a secret")
        assert not finished.is_set()
    finally:
        signal.signal(signal.SIGINT, before)
        let_go.set()
