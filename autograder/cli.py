"""The command `autograder`: make a course, release assignments, try answers, grade a class, write feedback and a report."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="From submissions to grades.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

CourseOption = Annotated[
    Path, typer.Option("--course", metavar="DIR", help="The course; the current folder by default.")
]
JsonOption = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the results as JSON too.")]
JobsOption = Annotated[int, typer.Option("--jobs", min=1, metavar="N", help="How many submissions at a time.")]
UnsandboxedOption = Annotated[
    bool,
    typer.Option(
        "--unsandboxed", help="Run answers WITHOUT a sandbox. Only for answers that you trust; the results say so."
    ),
]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def plainly():
    """Errors that we raise on purpose are a message and exit status 1, not a traceback."""
    from autograder.errors import AutograderError

    try:
        yield
    except AutograderError as error:
        typer.secho(f"autograder: {error}", err=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        typer.secho(
            "autograder: stopped. What was finished is kept; run the same command again: it grades everybody, with the "
            "same results for those who are done.",
            err=True,
        )
        raise typer.Exit(130) from None


@app.command()
def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    course_id: Annotated[
        str, typer.Option("--course-id", metavar="ID", help="What nbgrader calls the course.")
    ] = "amp",
) -> None:
    """Make a course: nbgrader's own layout with our configuration and exercises."""
    from autograder import course

    with plainly():
        course.prepare_nbgrader()
        made = course.init(directory, course_id)
        typer.echo(
            f"Made the course {course_id!r} in {made.root} with {', '.join(made.assignments())}.\n"
            f"Next: autograder release --course {directory}"
        )


@app.command()
def release(
    assignments: Annotated[
        list[str] | None, typer.Argument(metavar="[ASSIGNMENT]...", help="All of them by default.")
    ] = None,
    course: CourseOption = Path("."),
) -> None:
    """Prove that an assignment's checks tell right from wrong, then write source/ and release/."""
    from autograder.course import Course, prepare_nbgrader

    with plainly():
        prepare_nbgrader()
        opened = Course(course)
        for assignment in assignments or opened.assignments():
            proofs = opened.release(assignment)
            typer.echo(
                f"Released {assignment}: the solution earns full marks, the empty notebook none, and {proofs} known right "
                f"and wrong answers get what they should. {opened.path('release', '.', assignment)}"
            )


@app.command("try")
def try_answers(
    assignment: Annotated[str, typer.Argument(metavar="ASSIGNMENT")],
    answers: Annotated[list[Path], typer.Argument(metavar="ANSWERS.py...", help="Files that define answers by name.")],
    json_file: JsonOption = None,
    jobs: JobsOption = CORES,
    unsandboxed: UnsandboxedOption = False,
) -> None:
    """Grade files of answers as if each had been submitted. Needs no course."""
    import secrets

    from autograder import sandbox
    from autograder.reference import compute
    from autograder.room import find_room

    with plainly():
        room = find_room(assignment)
        missing = [str(path) for path in answers if not path.is_file()]
        if missing:
            _refuse(f"There is no file {', '.join(missing)}; nothing was graded.")
        if not unsandboxed:
            sandbox.require()
        reference = compute(room, secrets.token_bytes(32), only=_exercises(room, answers))
        grades = _grade_files(reference, answers, jobs, not unsandboxed)
        records = [grade.to_json({"answers": str(path)}) for path, grade in zip(answers, grades, strict=True)]
        for record in records:
            _show(record, record["answers"])
        _write_json(json_file, records)


def _exercises(room, answers: list[Path]) -> set[str]:
    """The exercises that any of the files defines."""
    from autograder.room import defined_names

    sources = [path.read_text(encoding="utf-8-sig", errors="replace") for path in answers]
    return set().union(*map(defined_names, sources)) & set(room.exercises)


def _grade_files(reference, answers: list[Path], jobs: int, boxed: bool) -> list:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        grades = pool.map(lambda path: _grade_answers(reference, path, boxed), answers)
        return [grade for grade, _ in zip(_progress(grades, len(answers), "answers"), answers, strict=True)]


def _grade_answers(reference, path: Path, boxed: bool):
    from autograder.grading import grade_cells, unreadable
    from autograder.room import defined_names

    try:
        source = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        return unreadable(reference, f"{path.name} cannot be read: {error}", boxed)
    mine = defined_names(source) & set(reference.room.exercises)
    cells = [
        {
            "cell_type": cell.cell_type,
            "grade_id": cell.metadata.get("nbgrader", {}).get("grade_id"),
            "id": cell.id,
            "source": source if cell.metadata.get("nbgrader", {}).get("grade_id") in mine else cell.source,
        }
        for cell in reference.room.released.cells
    ]
    grade = grade_cells(reference, cells, boxed=boxed)
    if not mine:
        grade.message = f"it defines none of {', '.join(reference.room.exercises)}"
    return grade


@app.command()
def grade(
    assignment: Annotated[str, typer.Argument(metavar="ASSIGNMENT")],
    student: Annotated[
        list[str] | None, typer.Option("--student", metavar="ID", help="Only this student; may be repeated.")
    ] = None,
    course: CourseOption = Path("."),
    json_file: JsonOption = None,
    jobs: JobsOption = CORES,
    db: Annotated[
        str | None, typer.Option("--db", metavar="URL", help="The gradebook, where it is not the course's own.")
    ] = None,
    unsandboxed: UnsandboxedOption = False,
) -> None:
    """Grade the submissions of an assignment into nbgrader's gradebook."""
    from autograder import sandbox
    from autograder.course import Course, prepare_nbgrader
    from autograder.grading import grade_many

    with plainly():
        prepare_nbgrader()
        opened = Course(course, db)
        opened.room(assignment)
        opened.require_released(assignment)
        students = opened.students(assignment)
        unknown = sorted(set(student or []) - set(students))
        if unknown:
            _refuse(
                f"{', '.join(unknown)} submitted nothing for {assignment}: there is no "
                f"{opened.path('submitted', unknown[0], assignment)}. Nothing was graded."
            )
        students = sorted(set(student)) if student else students
        if not students:
            _refuse(f"Nobody submitted {assignment}: nothing matches {opened.path('submitted', '*', assignment)}.")
        if not unsandboxed:
            sandbox.require()
        records: dict[str, dict] = {}
        unsaved: dict[str, str] = {}
        paths = {one: opened.path("submitted", one, assignment) / f"{assignment}.ipynb" for one in students}
        bar = _bar(len(students), "graded")

        def done(one: str, result) -> None:
            try:
                opened.save(one, result)
            except Exception as error:  # a full disk, a locked gradebook: the others' grades are not to be lost for it
                unsaved[one] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            records[one] = result.to_json({"student": one})
            bar.set_postfix_str(f"{one}: {result.status}", refresh=False)
            bar.update()

        with bar:
            grade_many(opened.reference(assignment), paths, jobs=jobs, boxed=not unsandboxed, done=done)
        for one in students:
            _show(records[one], one)
        _write_json(json_file, [records[one] for one in students])
        if unsaved:
            said = "".join(f"\n  {one}: {why}" for one, why in sorted(unsaved.items()))
            _refuse(
                f"{len(unsaved)} of {len(students)} grades could not be saved; the others are in the gradebook.{said}\n"
                "Mend what is named here and grade these students again (--student ID); their submissions are untouched."
            )


@app.command()
def feedback(
    assignment: Annotated[str, typer.Argument(metavar="ASSIGNMENT")],
    course: CourseOption = Path("."),
) -> None:
    """Write each student's feedback as an HTML page."""
    from autograder import feedback as pages
    from autograder.course import Course, prepare_nbgrader

    with plainly():
        prepare_nbgrader()
        opened = Course(course)
        opened.room(assignment)
        written = pages.write(opened, assignment)
        typer.echo(f"Wrote {len(written)} pages: {opened.path('feedback', '*', assignment) / (assignment + '.html')}")


@app.command()
def report(
    assignment: Annotated[str, typer.Argument(metavar="ASSIGNMENT")],
    course: CourseOption = Path("."),
) -> None:
    """Write a report on the whole class: an HTML page and a CSV file."""
    from autograder import report as reports
    from autograder.course import Course, prepare_nbgrader

    with plainly():
        prepare_nbgrader()
        opened = Course(course)
        opened.room(assignment)
        summary, written = reports.write(opened, assignment)
        typer.echo(f"Wrote {' and '.join(map(str, written))} on {len(summary.rows)} submissions.")
        frequent = [
            f"{mistake.diagnosis} in {exercise} ({mistake.count} {'student' if mistake.count == 1 else 'students'})"
            for exercise, mistake in summary.frequent[:3]
        ]
        typer.echo(f"Most frequent: {', '.join(frequent) or 'no mistake at all'}.")


@app.command()
def doctor(course: CourseOption = Path(".")) -> None:
    """Say whether this machine can grade, and what is missing."""
    from autograder.doctor import findings

    bad = 0
    for fine, words in findings(course):
        bad += not fine
        typer.echo(f"{'ok  ' if fine else 'FAIL'} {words}")
    raise typer.Exit(1 if bad else 0)


def _refuse(words: str) -> None:
    from autograder.errors import CourseError

    raise CourseError(words)


def _show(record: dict, name: str) -> None:
    """One line a submission, and one a wrong exercise that was attempted."""
    status = "" if record["status"] == "graded" else f"  {record['status']}"
    note = f"  ({record['message']})" if record["message"] else ""
    typer.echo(f"{name}  {record['score']:g} of {record['max_score']:g}{status}{note}")
    for exercise, result in record["exercises"].items():
        if not result["passed"] and result["diagnosis"] != "not_attempted":
            first = result["message"].split("\n")[0]
            typer.echo(
                f"    {exercise}  {result['score']:g} of {result['max_score']:g}  {result['diagnosis']}: {first}"
            )


def _write_json(path: Path | None, records: list[dict]) -> None:
    if path:
        from autograder.reference import write_atomically

        write_atomically(path, json.dumps(records, indent=1).encode() + b"\n", 0o644)


def _bar(total: int, what: str):
    from tqdm import tqdm

    return tqdm(total=total, desc=what, unit="", file=sys.stderr, disable=not sys.stderr.isatty())


def _progress(items, total: int, what: str):
    with _bar(total, what) as bar:
        for item in items:
            bar.update()
            yield item


def main() -> None:
    app()


if __name__ == "__main__":
    main()
