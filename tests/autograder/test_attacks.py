"""Hostile answers, each a small file in attacks/: what it tries, whether stock nbgrader lets it, what it says here.

Each is one answer of a submission that has a right answer behind it. Whatever it does, it earns nothing, the right answer
counts (unless it bends Python or PyTorch for the cells behind it, as a notebook can), nothing outside has changed, nothing
was learnt, nothing is left running. That the attacks are real is shown by those
that are marked "Unboxed: yes": without the box they reach what they are after.

The docstring of an attack: what it tries; its number in the catalogue of attacks on nbgrader (where it has one); whether stock
nbgrader 0.9.6 lets it; a pattern of what comes out here, so that one that fails for another reason is noticed.
"""

import contextlib
import hashlib
import json
import os
import random
import re
import socket
import sqlite3
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from autograder import sandbox
from autograder.errors import EvidenceError
from autograder.probes import load_checks, seeds
from autograder.verdict import judge, read_records

FILES = sorted(Path(__file__).with_name("attacks").glob("*/*.py"))
SECRET = "the-solution-that-nobody-may-see-4711"

CHECKS = """
from autograder.probes import Exercise

f = Exercise("f", parts={"value": 3}, seconds=SECONDS)
g = Exercise("g", parts={"value": 2}, seconds=10)


@f.probe()
def call_f(answer, p):
    p.see("value", answer(p.random.randrange(10**9)))


@g.probe()
def call_g(answer, p):
    p.see("value", answer(p.random.randrange(10**9)))
"""
EXERCISES = load_checks(CHECKS.replace("SECONDS", "30"), "t")
RIGHT_F = "def f(x):\n    return 3 * x + 1"
RIGHT_G = "import torch\ndef g(x):\n    import random, base64\n    return x * 2 - 5"

# What an attacker may be taken to know; and a way to try several things and say what came of each.
KNOWN = """
COURSE, MARK, SLEEP, PORT, VICTIM, GRADER, WARM, PUBLIC_X = {known!r}


def attempt(*acts):
    said = []
    for act in acts:
        try:
            said.append(repr(act())[:3000])
        except Exception as error:
            said.append(f"{{type(error).__name__}}: {{error}}")
    return said
"""


@dataclass
class World:
    """What an attack may be after: a course with a gradebook, a process, servers; and what is seen of attacks on them."""

    course: Path
    mark: str
    victim: subprocess.Popen
    port: int
    sleep: str
    heard: list[bytes] = field(default_factory=list)

    def state(self) -> str:
        """A digest of all files of the course."""
        digest = hashlib.sha256()
        for path in sorted(self.course.rglob("*")):
            digest.update(str(path).encode() + (path.read_bytes() if path.is_file() else b""))
        return digest.hexdigest()

    def survivors(self) -> list[str]:
        """Processes that an attack started and that are still there."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                if self.mark.encode() in command or self.sleep.encode() in command:
                    found.append(command.decode(errors="replace"))
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    course = tmp_path_factory.mktemp("course")
    for path in ("source/n.ipynb", "submitted/bob/n.ipynb"):
        (course / path).parent.mkdir(parents=True)
        (course / path).write_text(SECRET)
    with sqlite3.connect(course / "gradebook.db") as book:
        book.execute("create table grade (student text, score real)")
        book.executemany("insert into grade values (?, ?)", [("ada", 1.0), (SECRET, 5.0)])
    book.close()
    number = time.time_ns()
    mark, sleep = f"mark-{number}", str(number % 10**9 + 10**9)
    environment = {"PATH": os.environ["PATH"], "JUPYTERHUB_API_TOKEN": SECRET}
    victim = subprocess.Popen(["sleep", "100000"], env=environment)
    heard: list[bytes] = []
    servers = []
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", 0)),
        (socket.AF_UNIX, str(course / "socket")),
        (socket.AF_UNIX, "\0" + mark),
    ):
        server = socket.socket(family)
        server.bind(address)
        server.listen()
        threading.Thread(target=_listen, args=(server, heard), daemon=True).start()
        servers.append(server)
    yield World(course, mark, victim, servers[0].getsockname()[1], sleep, heard)
    for server in servers:
        # Closing alone does not wake the thread that waits in accept.
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        server.close()
    victim.kill()
    victim.wait()


def _listen(server: socket.socket, heard: list[bytes]) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        with client:
            heard.append(client.recv(100))


def job(world: World, source: str) -> dict:
    drawn = {name: seeds(exercise, "t", b"secret") for name, exercise in EXERCISES.items()}
    known = KNOWN.format(
        known=(
            str(world.course),
            world.mark,
            world.sleep,
            world.port,
            world.victim.pid,
            os.getpid(),
            sandbox.warm().process.pid,
            PUBLIC_X,
        )
    )
    cells = [
        {"id": "setup", "source": known, "exercise": None},
        {"id": "f", "source": source, "exercise": "f"},
        {"id": "f-value", "source": "", "check": "f"},
        {"id": "g", "source": RIGHT_G, "exercise": "g"},
        {"id": "g-value", "source": "", "check": "g"},
    ]
    # An attack that only time ends is not waited for; the others are to meet the limit that they are after.
    checks = CHECKS.replace("SECONDS", "1.5" if "timeout" in source else "30")
    variant = {"name": "mallory", "exercises": drawn, "cells": cells}
    return {"assignment": "t", "checks": checks, "cell_seconds": 2, "variants": [variant]}


def _public_x() -> int:
    return random.Random(seeds(EXERCISES["f"], "t", b"public")["call_f"][0]).randrange(10**9)


PUBLIC_X = _public_x()


@pytest.fixture(scope="module")
def expected(world) -> dict[str, list[dict]]:
    """The evidence of the right answers, on the seeds that the attacks are graded on."""
    return {
        result["exercise"]: read_records(result["records"], EXERCISES[result["exercise"]])
        for result in sandbox.run(job(world, RIGHT_F), boxed=False, seconds=60)
    }


def score(expected, results: dict[str, dict], name: str) -> float:
    exercise = EXERCISES[name]
    if results.get(name, {}).get("outcome") != "evidence":
        return 0.0
    try:
        got = read_records(results[name]["records"], exercise)
    except EvidenceError:
        return 0.0
    return judge(exercise, expected[name], got, []).score


def run(world, source: str, *, boxed: bool = True, together: bool = False) -> dict[str, dict]:
    wanted = {**job(world, source), "together": together}
    return {result["exercise"]: result for result in sandbox.run(wanted, boxed=boxed, seconds=90)}


def says(source: str) -> str:
    return re.search(r"^Says: (.*)$", source, re.MULTILINE).group(1)


def test_the_attacks_are_many_and_say_what_they_are():
    assert len(FILES) >= 60
    for path in FILES:
        text = path.read_text()
        assert re.search(r'^r?"""\S.*\n\nCatalogue: .+\. Stock: .+\nSays: .+\n"""$', text, re.MULTILINE | re.DOTALL), (
            path
        )
        compile(text, str(path), "exec")
        re.compile(says(text))


def test_the_right_answers_earn_all_points(boxed, world, expected):
    results = run(world, RIGHT_F)
    assert (score(expected, results, "f"), score(expected, results, "g")) == (3.0, 2.0)


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}-{path.stem}" for path in FILES])
@pytest.mark.parametrize("together", [False, True], ids=["alone", "together"])
def test_an_attack_harms_nobody_but_itself(boxed, world, expected, path, together):
    """By itself, and in the first run of a submission, where the answer behind it has the same process."""
    source = path.read_text()
    before, warm, heard = world.state(), sandbox.warm().process.pid, len(world.heard)
    results = run(world, source, together=together)
    said = json.dumps(list(results.values()))
    assert score(expected, results, "f") == 0, "it earns nothing"
    if not together:
        if "Behind it: lost" not in source:
            assert score(expected, results, "g") == 2.0, "the right answer behind it counts"
        said = json.dumps(results["f"])
        assert re.search(says(source).replace(r"\"", '"'), said.replace('\\"', '"')), said[:1000]
    assert SECRET not in said and len(world.heard) == heard, "nothing was learnt, nothing got out"
    assert world.victim.poll() is None and sandbox.warm().process.pid == warm, "nobody was ended"
    assert world.survivors() == [], "nothing is left running"
    assert world.state() == before, "nothing was written"


def test_another_student_gets_the_same_grade_while_attacks_are_run(boxed, world, expected):
    names = ("every_core", "memory_of_many_processes", "processes_that_fork", "printing", "many_files")
    attacks = [path.read_text() for path in FILES if path.stem in names]
    threads = [threading.Thread(target=run, args=(world, source)) for source in attacks]
    for thread in threads:
        thread.start()
    scores = []
    while any(thread.is_alive() for thread in threads) or not scores:
        results = run(world, RIGHT_F)
        scores.append((score(expected, results, "f"), score(expected, results, "g")))
    for thread in threads:
        thread.join()
    assert len(attacks) == len(names) and set(scores) == {(3.0, 2.0)}


UNBOXED = [path for path in FILES if "Unboxed: yes" in path.read_text()]


@pytest.mark.parametrize("path", UNBOXED, ids=[path.stem for path in UNBOXED])
def test_without_the_box_the_attack_succeeds(world, path, tmp_path):
    book = (world.course / "gradebook.db").read_bytes()
    before, heard = world.state(), len(world.heard)
    said = json.dumps(run(world, path.read_text(), boxed=False)["f"])
    deadline = time.monotonic() + 20
    while world.survivors() and time.monotonic() < deadline:
        time.sleep(0.05)
    reached = [SECRET in said, world.state() != before, len(world.heard) > heard]
    (world.course / "gradebook.db").write_bytes(book)
    (world.course / "pwned").unlink(missing_ok=True)
    assert any(reached), said[:500]


def test_no_process_is_left_when_all_is_over(boxed, world):
    time.sleep(0.5)  # the one that writes into the gradebook afterwards waits for 0.4 s
    assert not (world.course / "pwned").exists() and world.survivors() == []


ON_STOCK_NBGRADER = [
    "displays_first",
    "displays_a_grade",
    "equals_everything",
    "drops_asserts",
    "rewrites_later_cells",
    "patches_comparisons",
    "no_assertion_error",
    "custom_exception_handler",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_STOCK_NBGRADER)
def test_stock_nbgrader_gives_what_the_attack_says_that_it_gives(name, world):
    """The answer and a visible test of it, in a kernel, scored as nbgrader does."""
    nbformat = pytest.importorskip("nbformat", reason="requires nbformat")
    nbgrader = pytest.importorskip("nbgrader.preprocessors", reason="requires nbgrader")
    from nbgrader.utils import determine_grade

    path = next(path for path in FILES if path.stem == name)
    test = nbformat.v4.new_code_cell("import math\nassert f(7) == 22 or math.isclose(f(7), 22)")
    test.metadata["nbgrader"] = {
        **{"grade": True, "solution": False, "locked": True, "task": False, "schema_version": 3},
        **{"grade_id": "f-value", "points": 3, "cell_type": "code"},
    }
    known = next(cell["source"] for cell in job(world, "")["variants"][0]["cells"])
    cells = [nbformat.v4.new_code_cell(known), nbformat.v4.new_code_cell(path.read_text()), test]
    notebook = nbformat.v4.new_notebook(
        cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "", "language": "python"}}
    )
    notebook, _ = nbgrader.Execute(timeout=60).preprocess(notebook, {})
    got, most = determine_grade(notebook.cells[-1], None)
    stock = re.search(r"Stock: (\w+)", path.read_text()).group(1)
    assert most == 3 and got == (3 if stock == "yes" else 0)
