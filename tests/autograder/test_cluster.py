"""Grading on a Dask cluster: a scheduler and two workers in processes of their own, over TCP; one of them is killed."""

import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder import executors
from autograder.cli import app
from autograder.errors import CourseError, WorkerError

A = "tiny"
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, boxed):
    """The address of a scheduler with two workers of one thread, the second with a GPU (so it says), and their processes."""
    pytest.importorskip("distributed", reason="requires dask: pip install -e '.[cluster]'")
    folder = tmp_path_factory.mktemp("dask")
    contact = folder / "scheduler.json"
    environment = {**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s"}

    def start(*arguments: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    processes = [
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(contact))
    ]
    try:
        deadline = time.monotonic() + 120
        while not contact.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        common = (
            "--scheduler-file",
            str(contact),
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--host",
            "127.0.0.1",
        )
        processes.append(start("worker", *common, "--name", "one"))
        processes.append(start("worker", *common, "--name", "two", "--resources", "GPU=1"))
        address = json.loads(contact.read_text())["address"]
        _wait_for_workers(address, 2)
        yield address, processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _wait_for_workers(address: str, number: int) -> None:
    code = f"from distributed import Client\nwith Client({address!r}) as c: c.wait_for_workers({number}, timeout=120)"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True, timeout=180)


def graded(root: Path) -> set[str]:
    return {path.stem for path in (root / ".autograder" / "results" / A).glob("[a-z]*.json")}


@pytest.mark.slow
def test_a_class_is_graded_on_two_workers_and_the_loss_of_one_loses_no_grade(
    cluster, small_class, handed_in, small_scores, in_gradebook, grade_here, tmp_path
):
    address, (_, one, _) = cluster
    slow = {
        student: "import time\ntime.sleep(0.7)\ndef double(x):\n    return 2 * x"
        for student in ("hal", "ida", "jim", "kim")
    }
    for student, source in slow.items():
        handed_in(small_class, student, {"double": source})
    command = [str(BIN / "autograder"), "grade", A, "--course", str(small_class), "--cluster", address]
    process = subprocess.Popen(
        [*command, "--json", str(tmp_path / "out.json")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 180
    # bob is done when the workers have begun: ada and bob are the first two
    while not {"ada", "bob"} <= graded(small_class) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    one.send_signal(signal.SIGKILL)
    at_the_kill = graded(small_class)
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, said + errors
    everybody = {*small_scores, *slow}
    assert at_the_kill < everybody, "it was killed in the middle"
    expected = {**small_scores, **dict.fromkeys(slow, 3.0)}
    records = json.loads((tmp_path / "out.json").read_text())
    assert {record["student"]: record["score"] for record in records} == expected and len(records) == len(everybody)
    book = in_gradebook(small_class)
    assert {row[0]: row[2] for row in book["submissions"]} == expected and len(book["submissions"]) == len(everybody)
    # What a worker's box shows is what a box here shows.
    here = grade_here(small_class, force=True)
    assert [here.records[record["student"]] for record in records] == records


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_gpu_assignments_jobs_go_to_workers_that_have_one(cluster):
    address = cluster[0]
    with executors.cluster(address, boxed=False, resources={"GPU": 1}) as pool:
        assert pool.width == 1
        assert {pool.executor.submit(os.getpid).result(60) for _ in range(4)} == {cluster[1][2].pid}
    with (
        pytest.raises(CourseError, match=r'none of the \d workers .* --resources "GPU=2"'),
        executors.cluster(address, boxed=False, resources={"GPU": 2}),
    ):
        pass


def test_a_notebook_says_what_its_workers_must_have(tiny_rooms, tmp_path):
    import shutil

    import nbformat

    from autograder.room import Room

    shutil.copytree(tiny_rooms / A, tmp_path / A)
    path = tmp_path / A / f"{A}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    assert Room(tmp_path / A).resources == {}
    notebook.metadata["autograder"] = {"resources": {"GPU": 1}}
    nbformat.write(notebook, path)
    assert Room(tmp_path / A).resources == {"GPU": 1}


def test_without_dask_the_error_names_the_extra(small_class, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = CliRunner().invoke(app, ["grade", A, "--course", str(small_class), "--cluster", "tcp://127.0.0.1:1"])
    assert done.exit_code == 1 and "pip install 'amp-course[cluster]'" in done.output and "--jobs" in done.output


def test_a_scheduler_that_is_not_there_is_said_in_words(small_class, monkeypatch):
    pytest.importorskip("distributed", reason="requires dask: pip install -e '.[cluster]'")
    monkeypatch.setattr(executors, "CONNECT_SECONDS", 1)
    done = CliRunner().invoke(app, ["grade", A, "--course", str(small_class), "--cluster", "tcp://127.0.0.1:1"])
    assert done.exit_code == 1 and "There is no Dask scheduler at tcp://127.0.0.1:1" in done.output
    assert graded(small_class) == set()


@pytest.mark.parametrize(
    "said, words",
    [
        ({"trouble": "no bwrap was found"}, "The worker w1 .* cannot isolate an answer: no bwrap was found"),
        ({"makes": "Python 3.10, PyTorch 1.0"}, "has Python 3.10, PyTorch 1.0, this machine has .* same versions"),
    ],
)
def test_a_worker_that_cannot_do_it_is_named_with_the_reason(said, words):
    fine = {**executors.abilities(False), "trouble": ""}
    client = types.SimpleNamespace(
        nthreads=lambda: {"w0": 2, "w1": 2}, run=lambda *_, workers: {"w0": fine, "w1": {**fine, **said}}
    )
    with pytest.raises(WorkerError, match=words):
        executors._fitting(client, "tcp://x", True, {})
    client.run = lambda *_, workers: dict.fromkeys(workers, fine)
    assert executors._fitting(client, "tcp://x", True, {}) == 4
    client.nthreads = dict
    with pytest.raises(CourseError, match="has no workers"):
        executors._fitting(client, "tcp://x", True, {})


@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:8786", "tcp://[::1"])
def test_what_is_no_address_is_said_in_words_and_no_client_is_made_of_it(monkeypatch, address):
    distributed = pytest.importorskip("distributed", reason="requires dask: pip install -e '.[cluster]'")
    monkeypatch.setattr(distributed, "Client", None)
    with pytest.raises(CourseError, match="There is no Dask scheduler"), executors.cluster(address, boxed=False):
        pass
