"""The command `autograder`: make a course, release assignments, try answers, grade a class, write feedback and a report."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager, suppress
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
JsonOption = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", dir_okay=False, writable=True, help="Write the results as JSON too."),
]
DbOption = Annotated[
    str | None,
    typer.Option(
        "--db", envvar="AUTOGRADER_DB", metavar="URL", help="The gradebook, where it is not the course's own."
    ),
]
JobsOption = Annotated[int, typer.Option("--jobs", min=1, metavar="N", help="How many submissions at a time.")]
UnsandboxedOption = Annotated[
    bool,
    typer.Option(
        "--unsandboxed", help="Run answers WITHOUT a sandbox. Only for answers that you trust; the results say so."
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="A hub's course.yaml: its course, and what is the hub's."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def plainly():
    """Errors that we raise on purpose, and those of a disk, are a message and exit status 1, not a traceback."""
    from autograder.errors import AutograderError

    if "jsonschema" not in sys.modules:
        # Where this package is there, jsonschema compiles a grammar of international URIs whenever it is imported: a third
        # of what a command takes to start, for a format that no notebook has.
        sys.modules.setdefault("rfc3987_syntax", None)
    try:
        yield
    except AutograderError as error:
        typer.secho("\n".join(map(_plain, f"autograder: {error}".split("\n"))), err=True)
        raise typer.Exit(1) from error
    except BrokenPipeError:  # nobody reads what is printed, which typer knows how to end
        raise
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        typer.secho(
            f"autograder: {error.strerror or error}{where}. What was finished before is kept. See that the disk has room and "
            "that you may write there, then run the same command again.",
            err=True,
        )
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        typer.secho("autograder: stopped. What was finished is kept; run the same command again.", err=True)
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
    db: DbOption = None,
) -> None:
    """Prove that an assignment's checks tell right from wrong, then write source/ and release/."""
    from autograder.course import Course, prepare_nbgrader

    with plainly():
        prepare_nbgrader()
        opened = Course(course, db)
        for assignment in assignments or opened.assignments():
            with opened.alone(f"autograder release {assignment}"):
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

    with _starting():
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
        reference = compute(room, secrets.token_bytes(32), only=_exercises(room, answers), lazily=True)
        grades = _grade_files(reference, answers, jobs, not unsandboxed)
        records = [grade.to_json({"answers": str(path)}) for path, grade in zip(answers, grades, strict=True)]
        unwritten = _write_json(json_file, records)
        for record in records:
            _show(record, record["answers"])
        if unwritten:
            _refuse(unwritten)


def _exercises(room, answers: list[Path]) -> set[str]:
    """The exercises that any of the files defines."""
    from autograder.room import answered

    return set().union(*(answered(room, path.read_text(encoding="utf-8-sig", errors="replace")) for path in answers))


def _grade_files(reference, answers: list[Path], jobs: int, boxed: bool) -> list:
    from autograder import executors
    from autograder.grading import grade_many, unreadable
    from autograder.room import answered

    grades: dict[int, object] = {}
    nothing: set[int] = set()

    def filled():
        for number, path in enumerate(answers):
            try:
                source = path.read_text(encoding="utf-8-sig")
            except (OSError, ValueError) as error:
                done(number, unreadable(reference, f"{path.name} cannot be read: {error}", boxed))
                continue
            mine = answered(reference.room, source)
            if not mine:
                nothing.add(number)
            yield number, _with_answers(reference.room, source, mine)

    def done(number: int, grade) -> None:
        if number in nothing:
            wanted = [name for exercise in reference.room.exercises.values() for name in exercise.defines]
            grade.message = f"it defines none of {', '.join(wanted)}"
        grades[number] = grade
        bar.update()

    def lost(number: int, error) -> None:
        raise error

    with _bar(len(answers), "answers") as bar, executors.local(jobs) as pool:
        grade_many(reference, filled(), pool, boxed=boxed, done=done, lost=lost)
    return [grades[number] for number in range(len(answers))]


def _with_answers(room, source: str, mine: set[str]) -> list[dict]:
    """The released notebook's cells with `source` in the answer cells of the exercises `mine`."""
    return [
        {
            "cell_type": cell.cell_type,
            "grade_id": cell.metadata.get("nbgrader", {}).get("grade_id"),
            "id": cell.id,
            "source": source if cell.metadata.get("nbgrader", {}).get("grade_id") in mine else cell.source,
        }
        for cell in room.released.cells
    ]


@app.command()
def grade(
    assignment: Annotated[str, typer.Argument(metavar="ASSIGNMENT")],
    student: Annotated[
        list[str] | None, typer.Option("--student", metavar="ID", help="Only this student; may be repeated.")
    ] = None,
    course: CourseOption = Path("."),
    json_file: JsonOption = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", min=1, metavar="N", help=f"Submissions at a time; by default as many as cores ({CORES})."
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", metavar="ADDRESS", help="Grade on the workers of this Dask scheduler, not on this machine."
        ),
    ] = None,
    db: DbOption = None,
    force: Annotated[bool, typer.Option("--force", help="Grade those again, too, who are finished.")] = False,
    unsandboxed: UnsandboxedOption = False,
) -> None:
    """Grade the submissions of an assignment into nbgrader's gradebook.

    Who was graded before, and has handed in nothing new since, is finished and left alone. A run that was stopped, or killed,
    goes on where it was when the same command is given again.
    """
    if jobs and cluster:
        raise typer.BadParameter("--jobs is for this machine, --cluster for others: give one of them.")
    with plainly(), _stoppable():
        with _starting(warm=not cluster):
            from nbgrader import api  # noqa: F401

            from autograder import sandbox
            from autograder.course import Course, prepare_nbgrader
            from autograder.session import Session

            prepare_nbgrader()
        opened = Course(course, db)
        room = opened.room(assignment)
        students = _submitters(opened, assignment, student)
        with (
            opened.alone(f"autograder grade {assignment}"),
            _bar(len(students), "graded") as bar,
            opened.book(assignment, say=bar.write) as book,
        ):
            if not (unsandboxed or cluster):
                sandbox.require()

            def tell(one: str, status: str) -> None:
                bar.set_postfix_str(f"{_plain(one)}: {status}", refresh=False)
                bar.update()

            session = Session(opened, opened.reference(assignment), book, not unsandboxed, force, tell)
            try:
                with _pool(room, jobs, cluster, not unsandboxed) as pool:
                    outcome = session.run(students, pool)
            except KeyboardInterrupt:
                bar.close()
                _say_stopped(session.outcome, students)
                raise typer.Exit(130) from None
        _say_outcome(outcome, students, json_file)


@contextmanager
def _starting(*, warm: bool = True):
    """Import what a command needs while the process that runs answers does so (if it is wanted, `warm`) on another core.

    No garbage is looked for in what is imported, then or later: it stays, and at the end that would take most of a second.
    """
    import gc
    from threading import Thread

    from autograder import sandbox
    from autograder.errors import SandboxError

    def start() -> None:
        with suppress(SandboxError, OSError):  # sandbox.require will say what is missing
            sandbox.warm()

    if warm and sys.platform.startswith("linux"):
        Thread(target=start, daemon=True).start()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _stoppable():
    """What a scheduler of jobs or an administrator ends is ended as with Ctrl-C."""
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _submitters(opened, assignment: str, wanted: list[str] | None) -> list[str]:
    students = opened.students(assignment)
    unknown = sorted(set(wanted or []) - set(students))
    if unknown:
        _refuse(
            f"{', '.join(unknown)} submitted nothing for {assignment}: there is no "
            f"{opened.path('submitted', unknown[0], assignment)}. Nothing was graded."
        )
    students = sorted(set(wanted)) if wanted else students
    if not students:
        _refuse(f"Nobody submitted {assignment}: nothing matches {opened.path('submitted', '*', assignment)}.")
    return students


def _pool(room, jobs: int | None, cluster: str | None, boxed: bool):
    from autograder import executors

    if cluster:
        return executors.cluster(cluster, boxed=boxed, resources=room.resources)
    return executors.local(jobs or CORES)


def _say_stopped(outcome, students: list[str]) -> None:
    typer.secho(
        f"autograder: stopped. {len(outcome.records)} of {len(students)} submissions are finished and saved; run the same "
        "command again, and it goes on with the others.",
        err=True,
    )


def _say_outcome(outcome, students: list[str], json_file: Path | None) -> None:
    records = [outcome.records[one] for one in students if one in outcome.records]
    unwritten = _write_json(json_file, records)
    for record in records:
        _show(record, record["student"])
    if outcome.kept:
        kept, many = len(outcome.kept), len(students)
        typer.echo(
            f"{'All' if kept == many else kept} {'' if kept == many else f'of {many} '}were finished before and not run again "
            "(--force does)."
        )
    if outcome.otherwise:
        said = "; ".join(dict.fromkeys(words for different in outcome.otherwise.values() for words in different))
        typer.echo(
            f"{len(outcome.otherwise)} of these were graded by other rules than today's, and keep their grades. What has "
            f"changed since: {said}. To grade them by today's rules: --force, with --student ID for one of them."
        )
    if outcome.failed:
        said = "".join(f"\n  {_plain(one)}: {_plain(why)}" for one, why in sorted(outcome.failed.items()))
        _refuse(
            f"{len(outcome.failed)} of {len(students)} submissions could not be graded or saved; the others are in the "
            f"gradebook.{said}\nMend what is named here and run the same command again: it does these and no others."
            + (f"\n{unwritten}" if unwritten else "")
        )
    if unwritten:
        _refuse(unwritten)


@app.command()
def feedback(
    assignment: Annotated[str, typer.Argument(metavar="ASSIGNMENT")],
    course: CourseOption = Path("."),
    db: DbOption = None,
) -> None:
    """Write each student's feedback as an HTML page."""
    from autograder import feedback as pages
    from autograder.course import Course, prepare_nbgrader

    with plainly():
        prepare_nbgrader()
        opened = Course(course, db)
        opened.room(assignment)
        written = pages.write(opened, assignment)
        pages_said = "1 page" if len(written) == 1 else f"{len(written)} pages"
        typer.echo(f"Wrote {pages_said}: {opened.path('feedback', '*', assignment) / (assignment + '.html')}")


@app.command()
def report(
    assignment: Annotated[str, typer.Argument(metavar="ASSIGNMENT")],
    course: CourseOption = Path("."),
    db: DbOption = None,
) -> None:
    """Write a report on the whole class: an HTML page and a CSV file."""
    from autograder import report as reports
    from autograder.course import Course, prepare_nbgrader

    with plainly():
        prepare_nbgrader()
        opened = Course(course, db)
        opened.room(assignment)
        summary, written = reports.write(opened, assignment)
        typer.echo(f"Wrote {' and '.join(map(str, written))} on {len(summary.rows)} submissions.")
        frequent = [
            f"{mistake.diagnosis} in {exercise} ({mistake.count} {'student' if mistake.count == 1 else 'students'})"
            for exercise, mistake in summary.frequent[:3]
        ]
        typer.echo(f"Most frequent: {', '.join(frequent) or 'no mistake at all'}.")


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file that ends in .tar.gz or .tar.zst.")],
    course: CourseOption = Path("."),
    config: ConfigOption = None,
    db: DbOption = None,
) -> None:
    """Copy a course into one file, as one moment has it, also while it is graded.

    The file is for you only: it holds the secret that the grading seeds come from, and everybody's grades.
    """
    from autograder import backup as backups
    from autograder.course import prepare_nbgrader

    with plainly(), _stoppable():
        prepare_nbgrader()
        opened, hub = _course_of(course, config, db)
        with _bytes("copied") as tell:
            made = backups.backup(opened, file, hub=hub, tell=tell)
        typer.echo(
            f"Wrote {file} ({file.stat().st_size / 1e6:.1f} MB): the course {made.course_id!r} with {len(made.files)} files, "
            f"read back and found whole. Keep it as you keep the course: it holds the secret and all grades."
        )
        _say_left_out(made.left_out)
        if hub:
            typer.echo(f"Students' homes in {hub.homes} are not in it, nor the cookie secret: people log in again.")
        typer.echo(f"To get it back: autograder restore {file} DIR")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `autograder backup` wrote.")],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
) -> None:
    """Make a folder the course that a backup is of. All of it is verified before anything is written."""
    from autograder import backup as backups

    with plainly(), _stoppable():
        with _bytes("restored") as tell:
            made = backups.restore(file, directory, tell)
        typer.echo(
            f"Restored the course {made.course_id!r} as it was at {made.at} to {directory}: {len(made.files)} files."
        )
        _say_left_out(made.left_out)
        for words in backups.remarks(made, directory):
            typer.echo(words)


@app.command()
def forget(
    student: Annotated[str, typer.Argument(metavar="STUDENT", help="The id that nbgrader and the hub know them by.")],
    course: CourseOption = Path("."),
    config: ConfigOption = None,
    db: DbOption = None,
    roster: Annotated[bool, typer.Option("--roster", help="Remove the line in the hub's roster, too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what there is.")] = False,
    yes: YesOption = False,
) -> None:
    """Delete a student's data: work, grades, comments, feedback; on a hub also account, home and what was handed in."""
    from collections import Counter

    from autograder import forget as forgetting
    from autograder.course import prepare_nbgrader

    with plainly(), _stoppable():
        prepare_nbgrader()
        opened, hub = _course_of(course, config, db)
        with opened.alone("autograder forget"):
            found = forgetting.find(opened, student, hub, roster=roster)
            if not found and not forgetting.in_roster(hub, student):
                near = forgetting.alike(opened, student)
                meant = f" There is {', '.join(near)}." if near else ""
                _refuse(f"Nothing is known of a student {student!r} here, so nothing was deleted.{meant}")
            for one in found:
                typer.echo(f"{one.kind}: {one.what}")
            counts = ", ".join(f"{many} × {kind}" for kind, many in Counter(one.kind for one in found).items())
            if dry_run:
                typer.echo(f"There is {counts or 'nothing'}. Nothing was deleted.")
                return
            if hub and forgetting.is_running(hub):
                _refuse(
                    f"The hub runs ({hub.url}) and would write the user back. Nothing was deleted. Stop the hub first."
                )
            if found and not _agreed(yes, f"Delete all this of {student}? It cannot be undone."):
                typer.echo("Nothing was deleted.")
                return
            forgetting.delete(opened, found)
            typer.echo(f"Deleted: {counts or 'nothing'}.")
            for words in forgetting.remarks(opened, student, hub):
                typer.echo(words)


def _course_of(course: Path, config: Path | None, db: str | None = None):
    """The course of --course, or of the hub that --config names; and that hub, or None."""
    from autograder.course import Course

    if config is None:
        return Course(course, db), None
    if course != Path("."):
        raise typer.BadParameter("--config names the hub and its course with it: leave --course out.")
    from autograder.hub import config as hubs

    hub = hubs.read(config)
    return Course(hub.course, db or hub.gradebook), hub


def _say_left_out(left_out: list[str]) -> None:
    for words in left_out[:10]:
        typer.echo(f"Left out: {words}")
    if len(left_out) > 10:
        typer.echo(f"Left out: {len(left_out) - 10} more, which the archive's manifest.json names")


@contextmanager
def _bytes(what: str):
    """A progress bar of bytes, as a function of what is done and the total."""
    from tqdm import tqdm

    with tqdm(desc=what, unit="B", unit_scale=True, file=sys.stderr, disable=not sys.stderr.isatty()) as bar:

        def tell(done: int, total: int) -> None:
            bar.total = max(total, done)
            bar.update(done - bar.n)

        yield tell


@app.command()
def upgrade(
    assignments: Annotated[
        list[str] | None, typer.Argument(metavar="[ASSIGNMENT]...", help="All of them by default.")
    ] = None,
    course: CourseOption = Path("."),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is newer.")] = False,
    yes: YesOption = False,
) -> None:
    """Take this installation's newer assignments over into a course that an earlier one made.

    Files that you have edited are left as they are. Students get the new ones with the next `autograder release`; grades stay
    as they are until `autograder grade --force`.
    """
    from autograder import upgrade as newer
    from autograder.course import Course, prepare_nbgrader

    with plainly():
        prepare_nbgrader()
        opened = Course(course)
        unknown = sorted(set(assignments or []) - set(newer.installed()))
        if unknown:
            _refuse(f"This installation has no assignment {', '.join(unknown)}; it has {', '.join(newer.installed())}.")
        with opened.alone("autograder upgrade"):
            wanted = [
                found
                for found in newer.differences(opened)
                if found and (not assignments or found.assignment in assignments)
            ]
            for found in wanted:
                typer.echo(f"Newer in this installation: {found}")
            if not wanted:
                typer.echo("Nothing is newer in this installation than in the course.")
            elif not dry_run and _agreed(yes, "Take these over into the course?"):
                for found in wanted:
                    kept = newer.take(opened, found)
                    was = f"; as it was it is in {kept}" if kept else ""
                    typer.echo(f"Took over {found.assignment}{was}. Next: autograder release {found.assignment}")


@app.command()
def doctor(
    course: CourseOption = Path("."),
    hub: Annotated[
        bool, typer.Option("--hub", help="Of a JupyterHub instead: GPUs, exchange, limits, people …")
    ] = False,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="With --hub: the hub's course.yaml.")
    ] = None,
    backups: Annotated[
        Path | None, typer.Option("--backups", metavar="DIR", help="With --hub: where its backups are kept.")
    ] = None,
) -> None:
    """Say whether this machine can grade, or serve a class, and what is missing."""
    from autograder.doctor import findings

    if (config or backups) and not hub:
        raise typer.BadParameter("--config and --backups go with --hub: autograder doctor --hub --config course.yaml")
    if hub:
        from autograder.hub import config as hubs
        from autograder.hub import doctor as hub_doctor

        with plainly():
            found = hub_doctor.findings(hubs.read(config) if config else None, backups)
    else:
        found = findings(course)
    bad = 0
    with plainly():
        for fine, words in found:
            bad += not fine
            typer.echo(f"{'ok  ' if fine else 'FAIL'} {words}")
    raise typer.Exit(1 if bad else 0)


@app.command()
def hub(
    demo: Annotated[bool, typer.Option("--demo", help="A whole hub on this machine, gone when you stop it.")] = False,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="A real one; hub/course.example.yaml shows the file."),
    ] = None,
    directory: Annotated[
        Path | None, typer.Option("--dir", metavar="DIR", help="Where the demo is kept; by default nowhere.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="The demo's; by default a free one.")
    ] = None,
    one: Annotated[
        bool, typer.Option("--one", help="With --demo: release one assignment, and not the others while it runs.")
    ] = False,
    roster_only: Annotated[
        bool, typer.Option("--roster-only", help="With --config: only take over the roster, and start nothing.")
    ] = False,
) -> None:
    """Run a JupyterHub for the course: students' servers, the exchange, formgrader for the instructors."""
    if demo == bool(config) or (config and (directory or port or one)) or (demo and roster_only):
        raise typer.BadParameter(
            "give --demo (with --dir, --port and --one, if you like) or --config FILE (with --roster-only, if you like)."
        )

    def say(words: str) -> None:
        typer.echo(words)
        sys.stdout.flush()

    with plainly():
        from autograder.hub import start

        if config:
            raise typer.Exit(start.main_config(config, say, roster_only=roster_only))
        raise typer.Exit(start.demo(directory, port, say, only_first=one))


def _agreed(yes: bool, question: str) -> bool:
    """Whether to go on. Where nobody can be asked, `--yes` has to say so."""
    if yes:
        return True
    if not sys.stdin.isatty():
        _refuse("Nothing was changed: this asks before it does so, and nobody is there to answer. --yes answers.")
    return typer.confirm(question, default=False)


def _refuse(words: str) -> None:
    from autograder.errors import CourseError

    raise CourseError(words)


def _show(record: dict, name: str) -> None:
    """One line a submission, and one a wrong exercise that was attempted."""
    status = "" if record["status"] == "graded" else f"  {record['status']}"
    note = f"  ({_plain(record['message'])})" if record["message"] else ""
    typer.echo(f"{_plain(name)}  {record['score']:g} of {record['max_score']:g}{status}{note}")
    for exercise, result in record["exercises"].items():
        if not result["passed"] and result["diagnosis"] != "not_attempted":
            first = _plain(result["message"].split("\n")[0])
            typer.echo(
                f"    {exercise}  {result['score']:g} of {result['max_score']:g}  {result['diagnosis']}: {first}"
            )


def _write_json(path: Path | None, records: list[dict]) -> str:
    """Write what --json asks for; in words, why it is not there ("" where it is)."""
    if path is None:
        return ""
    from autograder.atomic import write_atomically

    data = json.dumps(records, indent=1).encode() + b"\n"
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # /dev/stdout, say, in whose place no file is to be put
        else:
            write_atomically(Path(os.path.realpath(path)), data, 0o644)
    except OSError as error:
        return f"The results are not in {path}, which cannot be written ({error.strerror}). Give --json another file."
    return ""


def _plain(text: str) -> str:
    """Text for a terminal: what would move its cursor or turn its text around, or is half a character, stands as in Python."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


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
