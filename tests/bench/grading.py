"""How much faster a class is graded than by nbgrader with its default preprocessors, and how near to what the answers take.

    python tests/bench/grading.py [--students 60] [--stock 8] [--repeats 3] [--json FILE]

Interleaved in one run, since machines drift, again and again: stock nbgrader (a kernel for each notebook, checks in the kernel)
on 2 and on --stock students, of which its start and its seconds a student follow; `autograder grade` on all of them, first
from nothing and then again with the evidence of the seeds kept, as in every later run of a term (--force: nobody is left out);
and the floor. What counts are the ratios of medians; the seconds are this machine's. The scores must be the same.

The floor is what the answers themselves need, with no box, verdict, gradebook or start of a command, in three ways:

    floor        CPU seconds of the answers' own processes, as the kernel counts them, over cores: a fork of a warm process for
                 each submission, and one more for an exercise that is wrong, which is asked again by itself; a process on each
                 core. It has in it the pages that such a process has to copy, which no grader is spared that gives each
                 submission a process of its own.
    floor_bare   CPU seconds over cores of each notebook's cells and probes once, one submission after another in one process
                 that has run them before: nothing that keeps answers apart can reach it.
    floor_apart  Seconds of a fresh fork for each exercise.
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

ASSIGNMENT, WRONG = "03_gradscaler", "clipped_step"
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
    wrong = room.mistakes[WRONG][0].source
    for number in range(students):
        answers = {**room.solutions, **({WRONG: wrong} if number % 3 == 0 else {})}
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


WARM = """
import gc, json, os, sys
from autograder import runner, warm
tools = runner.warm_up()
warm.compact()
null = os.open(os.devnull, os.O_WRONLY)
jobs = json.load(sys.stdin)
"""
BARE = """
def once(job):
    runner.in_this_process({**job, "together": True}, null, tools)
used = 0
for job in jobs:
    once(job)
    before = os.times()
    once(job)
    used += sum(os.times()[:2]) - sum(before[:2])
print(used)
"""
FORKS = """
tools.load(jobs[0]["checks"], jobs[0]["assignment"])
gc.freeze()
used = 0
for job in jobs:
    if os.fork() == 0:
        runner.in_this_process(job, null, tools)
        os._exit(0)
    _, status, usage = os.wait4(-1, 0)
    assert status == 0
    used += usage.ru_utime + usage.ru_stime
print(used)
"""


def cpu_seconds(code: str, wanted: list[dict]) -> float:
    """What a process that `code` makes warm says that these jobs took."""
    command = [sys.executable, "-W", "ignore", "-c", WARM + code]
    environment = {**os.environ, **sandbox.ENVIRONMENT, **sandbox.HEAP}
    done = subprocess.run(
        command, input=json.dumps(wanted), env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def floor(wanted: list[dict]) -> float:
    """CPU seconds over cores of a fork for each submission, and of another one for its exercise that is wrong."""
    jobs = [{**job, "together": True} for job in wanted]
    jobs += [
        {**job, "variants": [{**variant, "exercises": {WRONG: variant["exercises"][WRONG]}}]}
        for job in wanted[::3]
        for variant in job["variants"]
    ]
    with ThreadPoolExecutor(max_workers=CORES) as pool:
        return sum(pool.map(lambda core: cpu_seconds(FORKS, jobs[core::CORES]), range(CORES))) / CORES


def floor_bare(wanted: list[dict]) -> float:
    """CPU seconds of the answers alone, over the cores; every third submission has a mistake, so six are a fair mean."""
    return cpu_seconds(BARE, wanted[:6]) / 6 * len(wanted) / CORES


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
    floors = {"floor": floor, "floor_bare": floor_bare, "floor_apart": floor_apart}
    timed = ("stock_2", "stock", "first", "again", *floors)
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
            for name, measure in floors.items():
                seconds[name].append(measure(wanted))
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
            for base in floors
            for ours in ("first", "again")
        },
        "floor_cpu_s_per_student": round(median["floor"] * CORES / options.students, 3),
        "floor_bare_cpu_s_per_student": round(median["floor_bare"] * CORES / options.students, 3),
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
