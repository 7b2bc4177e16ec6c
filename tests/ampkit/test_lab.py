"""The learner's working copy: what is new arrives, what was written stays."""

import json
import os
import socket

import pytest

from ampkit import LabError, lab


def a_notebook(*sources, outputs=(), metadata=None):
    cells = [
        {"cell_type": "code", "id": f"c{i}", "source": source, "outputs": list(outputs), "metadata": {}}
        for i, source in enumerate(sources)
    ]
    return json.dumps({"cells": cells, "metadata": metadata or {}, "nbformat": 4, "nbformat_minor": 5})


def a_build(room):
    """A release of the room's notebook without its solution, with the bundle of checks beside it."""
    out = room.parents[1] / "build" / room.name
    out.mkdir(parents=True, exist_ok=True)
    text = (room / f"{room.name}.ipynb").read_text().replace("SOLUTION", "...")
    (out / f"{room.name}.ipynb").write_text(text)
    (out / f"{room.name}.checks.zip").write_bytes(b"zip of " + text.encode())
    return out


@pytest.fixture
def root(tmp_path):
    """A checkout with one lesson, one stored measurement and one room."""
    root = tmp_path / "checkout"
    for folder in ("lessons/measured", "exercises/03_x/mistakes"):
        (root / folder).mkdir(parents=True)
    (root / "lessons/03_x.ipynb").write_text(a_notebook("print(1)"))
    (root / "lessons/measured/h.json").write_text("{}")
    (root / "exercises/03_x/03_x.ipynb").write_text(a_notebook("SOLUTION"))
    (root / "exercises/03_x/mistakes/wrong.py").write_text("SOLUTION")
    return root


@pytest.fixture
def course(tmp_path):
    return tmp_path / "course"


@pytest.fixture
def update(root, course):
    return lambda build=None: lab.prepare(course, root=root, build=build or a_build)


LESSON, NEW = "lessons/03_x.ipynb", "lessons/03_x.new-version.ipynb"


def test_the_first_start_brings_lessons_measurements_and_released_exercises_only(update, course):
    assert update() == []
    files = {path.relative_to(course).as_posix() for path in course.rglob("*") if path.is_file()}
    assert files == {
        lab.MANIFEST,
        LESSON,
        "lessons/measured/h.json",
        "exercises/03_x/03_x.ipynb",
        "exercises/03_x/03_x.checks.zip",
    }
    assert "SOLUTION" not in (course / "exercises/03_x/03_x.ipynb").read_text()


def test_a_second_start_changes_nothing(update, course):
    update()
    before = {path: path.stat().st_mtime_ns for path in course.rglob("*.ipynb")}
    assert update() == []
    assert {path: path.stat().st_mtime_ns for path in course.rglob("*.ipynb")} == before and len(before) == 2


def test_an_untouched_file_is_replaced_by_the_courses_new_version(update, root, course):
    update()
    (root / LESSON).write_text(a_notebook("print(2)"))
    assert update() == []
    assert "print(2)" in (course / LESSON).read_text() and not (course / NEW).exists()


def test_a_notebook_that_was_only_run_counts_as_untouched(update, root, course):
    update()
    (course / LESSON).write_text(a_notebook("print(1)", outputs=[{"text": "1"}], metadata={"kernel": "mine"}))
    (root / LESSON).write_text(a_notebook("print(2)"))
    assert update() == []
    assert "print(2)" in (course / LESSON).read_text()


def test_the_learners_outputs_stay_while_the_course_has_nothing_new(update, course):
    update()
    mine = a_notebook("print(1)", outputs=[{"text": "1"}])
    (course / LESSON).write_text(mine)
    update()
    assert (course / LESSON).read_text() == mine


def test_what_the_learner_wrote_stays_when_the_course_did_not_change(update, course):
    update()
    (course / LESSON).write_text(a_notebook("mine"))
    assert update() == []
    assert "mine" in (course / LESSON).read_text() and not (course / NEW).exists()


def test_what_the_learner_wrote_stays_and_the_new_version_stands_beside_it(update, root, course):
    update()
    (course / LESSON).write_text(a_notebook("mine"))
    (root / LESSON).write_text(a_notebook("print(2)"))
    (line,) = update()
    assert LESSON in line and "03_x.new-version.ipynb" in line
    assert "mine" in (course / LESSON).read_text() and "print(2)" in (course / NEW).read_text()
    assert update() == []  # said once


def test_a_later_new_version_replaces_an_untouched_one_but_never_one_that_was_written_in(update, root, course):
    update()
    (course / LESSON).write_text(a_notebook("mine"))
    for version in (2, 3):
        (root / LESSON).write_text(a_notebook(f"print({version})"))
        update()
    assert "print(3)" in (course / NEW).read_text()
    (course / NEW).write_text(a_notebook("mine too"))
    (root / LESSON).write_text(a_notebook("print(4)"))
    update()
    assert "mine too" in (course / NEW).read_text()
    assert "print(4)" in (course / "lessons/03_x.new-version-2.ipynb").read_text()


def test_a_deleted_file_comes_back_and_a_file_of_the_learners_own_is_left_alone(update, course):
    update()
    (course / LESSON).unlink()
    (course / "notes.txt").write_text("mine")
    update()
    assert (course / LESSON).exists() and (course / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("manifest", ["", "{", "[]", None])
def test_without_a_readable_manifest_nothing_of_the_learners_is_lost(update, course, manifest):
    update()
    (course / LESSON).write_text(a_notebook("mine"))
    if manifest is None:
        (course / lab.MANIFEST).unlink()
    else:
        (course / lab.MANIFEST).write_text(manifest)
    update()
    assert "mine" in (course / LESSON).read_text() and "print(1)" in (course / NEW).read_text()


def test_a_notebook_that_is_broken_counts_as_the_learners(update, root, course):
    update()
    (course / LESSON).write_text("{ half a noteb")
    (root / LESSON).write_text(a_notebook("print(2)"))
    update()
    assert (course / LESSON).read_text() == "{ half a noteb" and (course / NEW).exists()


def test_a_write_that_fails_leaves_the_old_file_and_no_rubbish(update, root, course, monkeypatch):
    update()
    (root / LESSON).write_text(a_notebook("print(2)"))
    replace = os.replace

    def fail(source, target):
        if str(target).endswith("03_x.ipynb"):
            raise OSError("disk full")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(LabError, match=r"disk full.*Nothing of yours was changed"):
        update()
    assert "print(1)" in (course / LESSON).read_text()
    assert {path.name for path in course.rglob(".ampkit-*")} == {lab.MANIFEST}
    monkeypatch.undo()
    update()
    assert "print(2)" in (course / LESSON).read_text()


def test_an_exercise_that_cannot_be_released_is_said_and_the_lessons_still_come(update, course):
    def broken(room):
        raise RuntimeError("the solution fails its own check")

    assert update(broken) == ["exercises/03_x could not be released: the solution fails its own check"]
    assert (course / LESSON).exists() and not (course / "exercises").exists()
    update()
    assert (course / "exercises/03_x/03_x.ipynb").exists()  # nothing half built was kept


@pytest.mark.parametrize("inside", [".", "lessons", "exercises/mine"])
def test_the_working_copy_cannot_be_in_the_checkout(root, inside):
    with pytest.raises(LabError, match="outside"):
        lab.prepare(root / inside, root=root, build=a_build)


def test_a_package_that_is_not_in_a_checkout_is_an_error_that_says_how_to_get_one(course, tmp_path, monkeypatch):
    monkeypatch.setattr("ampkit.__file__", str(tmp_path / "site-packages/ampkit/__init__.py"))
    with pytest.raises(LabError, match=r"Clone the course.*pip install -e"):
        lab.prepare(course)


def test_a_folder_that_is_a_file_is_an_error_with_a_way_out(root, tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(LabError, match="choose another: ampkit lab --dir"):
        lab.prepare(tmp_path / "taken", root=root, build=a_build)


def test_the_working_copy_is_the_folder_given_or_named_in_the_environment_or_in_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPKIT_COURSE_DIR", str(tmp_path / "named"))
    assert lab.course_dir(tmp_path / "given").name == "given"
    assert lab.course_dir().name == "named"
    monkeypatch.delenv("AMPKIT_COURSE_DIR")
    assert lab.course_dir().name == "amp-course"


def test_a_port_in_use_is_an_error_that_names_another_before_anything_is_written(course):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(LabError, match=rf"Port {port} is in use.*--port"):
            lab.run(course, port=port)
    assert not course.exists()


def test_jupyterlab_is_started_on_the_working_copy_with_the_port_and_without_a_browser(course, monkeypatch, capsys):
    commands = []

    class Server:
        def __init__(self, command):
            commands.append(command)

        def wait(self):
            if len(commands) == 1:
                commands.append("interrupted")
                raise KeyboardInterrupt  # Ctrl-C reaches both; JupyterLab decides when it is over
            return 0

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setattr(lab, "prepare", lambda course: [])
    monkeypatch.setattr(lab, "Popen", Server)
    monkeypatch.setattr(lab.signal, "signal", lambda *_: None)
    assert lab.run(course, port=port, browser=False) == 0
    command = commands[0]
    assert command[1:3] == ["-m", "jupyterlab"] and "--no-browser" in command
    assert f"--ServerApp.root_dir={course}" in command and f"--ServerApp.port={port}" in command
    assert "GPU" in capsys.readouterr().out
