"""How much faster a class is graded than by nbgrader with its default preprocessors, and how near to what the answers take.

    python tests/bench/grading.py [--students 60] [--stock 8] [--repeats 3] [--json FILE]

Interleaved in one run, since machines drift, again and again: stock nbgrader (a kernel for each notebook, checks in the kernel)
on 2 and on --stock students, of which its start and its seconds a student follow; `autograder grade` on all of them, first
from nothing and then again with the evidence of the seeds kept, as in every later run of a term (--force: nobody is left out);
and the floor. What counts are the ratios of medians; the seconds are this machine's. The scores must be the same.

The floor is what the answers themselves need on every core, with no box, verdict, gradebook or start of a command, in two ways:
`floor`, CPU seconds over cores of each notebook's cells and probes once, one after another in a process that is warm (nothing
that keeps answers apart can reach it); `floor_apart`, seconds of a fresh fork of that process for each exercise.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

from autograder import sandbox, submission
from autograder.course import Course
from autograder.executors import CORES
from autograder.reference import job

ASSIGNMENT = "03_gradscaler"
BIN = Path(sys.executable).parent


def run(*command: object, cwd: Path) -> float:
    """Seconds of a command."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    start = time.perf_counter()
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return seconds


def scores(database: Path, course_id: str, assignment: str) -> dict[str, float]:
    code = (
        "import sys, json; from nbgrader.api import Gradebook\n"
        "with Gradebook(sys.argv[1], sys.argv[2]) as g:\n"
        "    print(json.dumps({s.student.id: s.score for s in g.assignment_submissions(sys.argv[3])}))"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, f"sqlite:///{database}", course_id, assignment]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def make(folder: Path, students: int) -> tuple[Path, Path]:
    """Two courses with the same submissions, every third with a mistake in it: ours and a stock one."""
    ours, stock = folder / "ours", folder / "stock"
    run(BIN / "autograder", "init", ours, cwd=folder)
    run(BIN / "autograder", "release", ASSIGNMENT, cwd=ours)
    room = Course(ours).room(ASSIGNMENT)
    wrong = room.mistakes["clipped_step"][0].source
    for number in range(students):
        answers = {**room.solutions, **({"clipped_step": wrong} if number % 3 == 0 else {})}
        notebook = nbformat.read(ours / "release" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)
        for cell in notebook.cells:
            cell.source = answers.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
        for root in (ours, stock):
            target = root / "submitted" / f"s{number:03d}" / ASSIGNMENT
            shutil.copytree(ours / "release" / ASSIGNMENT, target)
            nbformat.write(notebook, target / f"{ASSIGNMENT}.ipynb")
    shutil.copytree(ours / "release" / ASSIGNMENT, stock / "source" / ASSIGNMENT)
    run(BIN / "nbgrader", "generate_assignment", ASSIGNMENT, cwd=stock)
    return ours, stock


def jobs(course: Course, students: int) -> list[dict]:
    """What the warm process is asked for these students: all exercises of each."""
    room, made = course.room(ASSIGNMENT), []
    for number in range(students):
        path = course.path("submitted", f"s{number:03d}", ASSIGNMENT) / f"{ASSIGNMENT}.ipynb"
        cells = submission.rebuild(room, submission.read(path)).cells
        made.append(job(room, course.secret, [("answer", cells, list(room.exercises))]))
    return made


ANSWERS = """
import gc, json, os, sys, time
from autograder import runner
tools = runner.warm_up()
gc.collect()
gc.freeze()  # as the warm process does
null = os.open(os.devnull, os.O_WRONLY)
wanted = {**json.load(sys.stdin), "together": True}
runner.in_this_process(wanted, null, tools)
start = time.process_time()
runner.in_this_process(wanted, null, tools)
print(time.process_time() - start)
"""


def floor(wanted: list[dict]) -> float:
    """CPU seconds of an answer alone, over the cores; every third submission has a mistake, so six are a fair mean."""
    seconds = []
    for one in wanted[:6]:
        command = [sys.executable, "-W", "ignore", "-c", ANSWERS]
        done = subprocess.run(command, input=json.dumps(one), capture_output=True, text=True, check=True)
        seconds.append(float(done.stdout))
    return statistics.fmean(seconds) * len(wanted) / CORES


def floor_apart(wanted: list[dict]) -> float:
    """Seconds of the jobs in forks of the warm process, as many at a time as there are cores."""
    sandbox.warm()
    start = time.perf_counter()
    with ThreadPoolExecutor(max_workers=CORES) as pool:
        for results in pool.map(lambda one: sandbox.run(one, boxed=False, seconds=600), wanted):
            assert all(result["outcome"] == "evidence" for result in results)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--students", type=int, default=60)
    parser.add_argument("--stock", type=int, default=8, choices=range(3, 11), help="stock nbgrader is timed on as many")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    timed = ("stock_2", "stock", "first", "again", "floor", "floor_apart")
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        ours, stock = make(Path(temporary), options.students)
        wanted = jobs(Course(ours), options.students)
        for _ in range(options.repeats):
            for name, number in (("stock_2", 2), ("stock", options.stock)):
                some = f"--student=s00[0-{number - 1}]"  # nbgrader takes a pattern
                seconds[name].append(run(BIN / "nbgrader", "autograde", ASSIGNMENT, "--force", some, cwd=stock))
            shutil.rmtree(ours / ".autograder" / "evidence", ignore_errors=True)
            for name in ("first", "again"):
                seconds[name].append(run(BIN / "autograder", "grade", ASSIGNMENT, "--force", cwd=ours))
            seconds["floor"].append(floor(wanted))
            seconds["floor_apart"].append(floor_apart(wanted))
        theirs = scores(stock / "gradebook.db", "", ASSIGNMENT)
        mine = scores(ours / "gradebook.db", "amp", ASSIGNMENT)
    same = len(theirs) == options.stock and all(mine[student] == score for student, score in theirs.items())
    median = {name: statistics.median(values) for name, values in seconds.items()}
    each = (median["stock"] - median["stock_2"]) / (options.stock - 2)
    whole = median["stock"] + (options.students - options.stock) * each
    result = {
        "students": options.students,
        "repeats": options.repeats,
        "seconds": {name: [round(value, 2) for value in values] for name, values in seconds.items()},
        "stock_s_per_student": round(each, 2),
        "stock_s_for_all": round(whole, 1),
        "stock_over_first": round(whole / median["first"], 1),
        "stock_over_again": round(whole / median["again"], 1),
        **{
            f"{ours}_over_{base}": round(median[ours] / median[base], 2)
            for base in ("floor", "floor_apart")
            for ours in ("first", "again")
        },
        "floor_cpu_s_per_student": round(median["floor"] * CORES / options.students, 3),
        "same_scores": same,
        "cores": CORES,
        "load_average": [round(load, 1) for load in os.getloadavg()],
        "python": platform.python_version(),
    }
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    if not same:
        raise SystemExit("the scores differ")


if __name__ == "__main__":
    main()
