"""`grade` killed with SIGKILL at any point and started again: the same grades as an undisturbed run, each made once."""

import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

A = "tiny"
SEED = 20_260
KILLS = 50
pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


class Recording:
    """A pool of one box at a time that keeps what came out of it, by job."""

    width = 1

    def __init__(self, students: dict[str, str]) -> None:
        self.students, self.kept, self.executor = students, {}, self

    def submit(self, fn, job, *rest):
        from concurrent.futures import Future

        results, seconds = fn(job, *rest)
        student = next(name for name in self.students if f"# {name}\\n" in json.dumps(job))
        self.kept[hashlib.sha256(json.dumps(job).encode()).hexdigest()] = student, results
        future: Future = Future()
        future.set_result((results, seconds))
        return future


def files(root: Path) -> dict[str, bytes]:
    """Every record and graded notebook, and nothing else may be there."""
    places = [root / ".autograder" / "results", root / "autograded"]
    return {str(path.relative_to(root)): path.read_bytes() for place in places for path in sorted(place.rglob("*.*"))}


def finished(root: Path) -> set[str]:
    return {path.stem for path in (root / ".autograder" / "results" / A).glob("[a-z]*.json")}


def booked(root: Path) -> dict[str, float]:
    """The points of each student in the gradebook."""
    db = sqlite3.connect(root / "gradebook.db")
    rows = db.execute(
        "SELECT a.student_id, SUM(g.auto_score) FROM submitted_assignment a JOIN submitted_notebook n "
        "ON n.assignment_id = a.id JOIN grade g ON g.notebook_id = n.id GROUP BY a.student_id"
    ).fetchall()
    db.close()
    return dict(rows)


@pytest.fixture
def killed(small_class, grade_here, handed_in, tmp_path):
    """A process that grades and is killed (killed.py), the class not yet graded, and what an undisturbed run made of it."""
    for path in (small_class / "submitted").glob(f"*/{A}/{A}.ipynb"):
        student = path.parts[-3]
        path.write_text(path.read_text().replace("def double(x):", f"# {student}\\ndef double(x):"))
    undisturbed = tmp_path / "undisturbed"
    shutil.copytree(small_class, undisturbed)
    recording = Recording({path.name: "" for path in (small_class / "submitted").iterdir()})
    grade_here(undisturbed, pool=recording)
    shutil.copytree(
        undisturbed / ".autograder" / "evidence", small_class / ".autograder" / "evidence", dirs_exist_ok=True
    )
    (tmp_path / "recording.json").write_text(json.dumps(recording.kept))
    assert {student for student, _ in recording.kept.values()} == recording.students.keys() - {"flo"}, (
        "who cannot be read"
    )
    shutil.copytree(small_class, tmp_path / "fresh")
    script = Path(__file__).with_name("killed.py")
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", str(script), str(small_class), str(tmp_path / "recording.json")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"

    def ask(line: str) -> dict:
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield small_class, undisturbed, tmp_path / "fresh", ask
    process.communicate()


def test_a_run_that_is_killed_anywhere_goes_on_and_ends_like_one_that_was_not(killed, in_gradebook, small_scores):
    root, undisturbed, fresh, ask = killed
    expected_files, expected_book = files(undisturbed), in_gradebook(undisturbed)
    assert len(expected_files) == 14 + 2, "two of them have a time"

    def begin_again() -> None:
        shutil.rmtree(root)
        shutil.copytree(fresh, root)

    whole = ask("never")
    assert whole["status"] == 0 and files(root) == expected_files and in_gradebook(root) == expected_book
    draw = random.Random(SEED)
    begin_again()
    kills, between, completed = 0, set(), 0
    for number in range(5 * KILLS):
        # A run that goes on where another was killed is shorter, and may end before its point: then there is no kill.
        by_event, by_time = draw.randint(1, whole["events"]), draw.uniform(0, whole["seconds"])
        point = f"at {by_event}" if number % 2 else f"after {by_time:.4f}"
        if kills >= KILLS:
            break
        done_before = finished(root)
        said = ask(point)
        assert said["killed"] or said["status"] == 0, f"{point}: the run failed by itself"
        assert not done_before & set(said["students"]), f"{point}: who was finished was run again"
        kills += said["killed"]
        # What is there is whole, and what is finished is in the gradebook.
        done = finished(root)
        assert done_before <= done, f"{point}: a grade was lost"
        for name, data in files(root).items():
            if not Path(name).name.startswith("."):
                assert data == expected_files[name], f"{point}: {name}"
        assert done <= {student for student, score in booked(root).items() if score == small_scores[student]}, point
        if said["killed"]:
            between.add(len(done))
        if len(done) == 7 and not said["killed"]:
            completed += 1
            assert in_gradebook(root) == expected_book and files(root) == expected_files, point
            begin_again()
    assert kills >= KILLS and len(between) >= 5, "it was killed at many stages of a run"
    assert ask("never")["status"] == 0
    assert in_gradebook(root) == expected_book
    assert files(root) == expected_files, "nothing that a killed run had begun is left"


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_the_command_itself_stops_and_goes_on(small_class, small_scores, handed_in, how, in_gradebook, tmp_path):
    """The real thing, once for each way to be stopped: boxes, the warm process, its folder and the lock go with the command."""
    for student in ("hal", "ida", "jim"):
        handed_in(small_class, student, {"double": "import time\ntime.sleep(1)\ndef double(x):\n    return 2 * x"})
    command = [str(Path(sys.executable).parent / "autograder"), "grade", A, "--course", str(small_class), "--jobs", "1"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    deadline = time.monotonic() + 120
    family: set = set()
    while len(family) <= 2 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
        family = _family(process.pid) if finished(small_class) else set()
    assert len(family) > 2, "the warm process and a box at least"
    assert list(tmp_path.glob("autograder-*"))
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    done = finished(small_class)
    assert 0 < len(done) < 10
    if how == signal.SIGKILL:
        assert process.returncode == -how
    else:
        assert process.returncode == 130 and "run the same command again" in said
        assert f"{len(done)} of 10 submissions are finished and saved" in said
    deadline = time.monotonic() + 20
    while family & _running().keys() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not family & _running().keys(), "nothing of it lives on"
    assert not list(tmp_path.glob("autograder-*"))
    times = {
        student: (small_class / ".autograder" / "results" / A / f"{student}.json").stat().st_mtime for student in done
    }
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert f"{len(done)} of 10 were finished before" in again.stdout
    expected = {**small_scores, "hal": 3.0, "ida": 3.0, "jim": 3.0}
    assert {row[0]: row[2] for row in in_gradebook(small_class)["submissions"]} == expected
    for student, when in times.items():
        assert (small_class / ".autograder" / "results" / A / f"{student}.json").stat().st_mtime == when


def _running() -> dict[tuple[int, str], int]:
    """Every process (its id and when it started) with the id of its parent."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(path.parent.name), fields[19]] = int(fields[1])
    return found


def _family(leader: int) -> set[tuple[int, str]]:
    """A process and all that it and its children have started."""
    running, family = _running(), {leader}
    while more := {pid for (pid, _), parent in running.items() if parent in family} - family:
        family |= more
    return {process for process in running if process[0] in family}
