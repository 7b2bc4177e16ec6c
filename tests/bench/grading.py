"""How much faster a class is graded than by nbgrader with its default preprocessors, on the same submissions.

    python tests/bench/grading.py [--students 6] [--repeats 3] [--json FILE]

Interleaved in one run, since machines drift: stock nbgrader (a kernel for each notebook, checks in the kernel), then
`autograder grade`, again and again. What counts is the ratio of the medians; the seconds are this machine's. The scores of
both must be the same. Both start from nothing each time, so that the start of each tool, and for ours the expected evidence
of a first run, is in its time; `again` is ours with that evidence kept, as in every later run of a term.
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
from pathlib import Path

import nbformat

from autograder.course import Course

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
    run(BIN / "autograder", "release", cwd=ours)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--students", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {"stock": [], "first": [], "again": []}
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        ours, stock = make(Path(temporary), options.students)
        for _ in range(options.repeats):
            seconds["stock"].append(run(BIN / "nbgrader", "autograde", ASSIGNMENT, "--force", cwd=stock))
            shutil.rmtree(ours / ".autograder" / "evidence", ignore_errors=True)
            seconds["first"].append(run(BIN / "autograder", "grade", ASSIGNMENT, cwd=ours))
            seconds["again"].append(run(BIN / "autograder", "grade", ASSIGNMENT, cwd=ours))
        same = scores(ours / "gradebook.db", "amp", ASSIGNMENT) == scores(stock / "gradebook.db", "", ASSIGNMENT)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    result = {
        "students": options.students,
        "repeats": options.repeats,
        "seconds": {name: [round(value, 2) for value in values] for name, values in seconds.items()},
        "stock_over_first": round(medians["stock"] / medians["first"], 2),
        "stock_over_again": round(medians["stock"] / medians["again"], 2),
        "same_scores": same,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
    }
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    if not same:
        raise SystemExit("the scores differ")


if __name__ == "__main__":
    main()
