"""nbgrader's exchange with a folder for each student, so that nobody sees, guesses or overwrites another's work.

On disk, whole for the grader only:        what a student's server sees of it, in the same places (see `views`):

    ROOT/COURSE/outbound/ASSIGNMENT/           ROOT/COURSE/outbound    read only
    ROOT/COURSE/inbound/FOLDER/SUBMISSION/     ROOT/COURSE/inbound     its own FOLDER, to write
    ROOT/COURSE/feedback/FOLDER/HASH.html      ROOT/COURSE/feedback    its own FOLDER, read only

FOLDER is kubernetes.folder(username). Who has submitted is the folder's name, which the hub has made, and never what is
written in it. nbgrader's own submit, list and fetch work on what a student's server sees; the classes below add sentences
for what goes wrong, and times in UTC: with a time zone that has summer time, nbgrader writes "CEST" and reads it as UTC.
"""

from __future__ import annotations

import base64
import datetime
import errno
import fnmatch
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nbgrader.api import Gradebook
from nbgrader.exchange.default import (
    Exchange,
    ExchangeCollect,
    ExchangeFetchAssignment,
    ExchangeFetchFeedback,
    ExchangeList,
    ExchangeReleaseAssignment,
    ExchangeReleaseFeedback,
    ExchangeSubmit,
)
from nbgrader.utils import get_username, notebook_hash
from traitlets import Integer

from autograder.atomic import write_atomically
from autograder.errors import CourseError, SubmissionError
from autograder.hub import inbound
from autograder.hub.inbound import Limits, Submission, megabytes
from autograder.hub.kubernetes import folder, username

DUE = ".due.json"  # in outbound/: when each assignment is due; in a student's feedback/: extensions
CLASSES = {
    "student": ("Submit", "FetchAssignment", "FetchFeedback", "List"),
    "grader": (
        "Collect",
        "ReleaseAssignment",
        "ReleaseFeedback",
        "ListForGrader",
        "Submit",
        "FetchAssignment",
        "FetchFeedback",
    ),
}
TRAITS = {
    "Submit": "submit",
    "FetchAssignment": "fetch_assignment",
    "FetchFeedback": "fetch_feedback",
    "List": "list",
    "ListForGrader": "list",
    "Collect": "collect",
    "ReleaseAssignment": "release_assignment",
    "ReleaseFeedback": "release_feedback",
}


def configure(
    c,
    *,
    role: str,
    root: str | os.PathLike,
    course_id: str,
    timezone: str = "UTC",
    submission_mb: float = 20,
    submission_files: int = 200,
) -> None:
    """Set in nbgrader's configuration `c` what the exchange needs, for a "student" or the "grader".

    `timezone` is the course's, for what people read and type (due dates); stamps are UTC. A released assignment may be as
    large as a submission.
    """
    if role not in CLASSES:
        raise CourseError(f"{role!r} is no role in the exchange: say 'student' or 'grader'.")
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise CourseError(
            f"{timezone!r} is no time zone. Such names look like Europe/Berlin, America/New_York, UTC."
        ) from error
    c.CourseDirectory.course_id = course_id
    c.Exchange.root = str(root)
    c.Exchange.path_includes_course = True
    c.Exchange.timezone = timezone
    c.NbGraderAPI.timezone = timezone
    c.HubExchange.submission_bytes = int(submission_mb * 1e6)
    c.HubExchange.submission_files = submission_files
    c.CourseDirectory.max_file_size = c.CourseDirectory.max_dir_size = int(submission_mb * 1e3)
    c.ExchangeFactory.exchange = f"{__name__}.HubExchange"
    for name in CLASSES[role]:
        setattr(c.ExchangeFactory, TRAITS[name], f"{__name__}.{name}")


class View(NamedTuple):
    """A folder of the exchange, where a student's server has it below its own exchange root, and whether it may write."""

    source: Path
    at: str
    writable: bool


def views(root: Path, course_id: str, student: str) -> list[View]:
    """What a student's server is to be given of the exchange at `root`."""
    course = Path(root) / course_id
    return [
        View(course / "outbound", f"{course_id}/outbound", False),
        View(course / "inbound" / folder(student), f"{course_id}/inbound", True),
        View(course / "feedback" / folder(student), f"{course_id}/feedback", False),
    ]


def prepare(
    root: Path,
    course_id: str,
    students: Iterable[str],
    uids: dict[str, int] | None = None,
    grader: tuple[int, int] | None = None,
) -> None:
    """Make a course's exchange, and in it the folders of `students`. What is there stays; owners and modes are set right.

    `uids` (by user name) and `grader` (uid, gid) are for a hub that runs as root: a student's folder then belongs to the
    student and to the grader's group, everything else to the grader. Without them all belongs to whoever calls.
    """
    course = Path(root) / course_id
    for path, mode in (
        (course, 0o755),
        (course / "outbound", 0o755),
        (course / "inbound", 0o711),
        (course / "feedback", 0o711),
    ):
        _own(path, mode, grader)
    for student in students:
        uid = (uids or {}).get(student)
        to_student = None if uid is None else (uid, grader[1] if grader else uid)
        _own(course / "inbound" / folder(student), 0o2770 if to_student else 0o700, to_student)
        # Names in it cannot be guessed, and it cannot be listed: readable where a server runs outside a box, too.
        _own(course / "feedback" / folder(student), 0o711, grader)


def _own(path: Path, mode: int, owner: tuple[int, int] | None) -> None:
    path.mkdir(parents=True, exist_ok=True)
    if owner and os.geteuid() == 0:
        os.chown(path, *owner, follow_symlinks=False)
    if S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)


class HubExchange(Exchange):
    """What all the exchange's classes have in common: the limits, times, and sentences for what a disk may do."""

    submission_bytes = Integer(20_000_000, min=1, help="How many bytes a submission may have.").tag(config=True)
    submission_files = Integer(200, min=2, help="How many files and folders a submission may have.").tag(config=True)
    submission_depth = Integer(8, min=0, help="How many folders in each other a submission may have.").tag(config=True)

    doing = "use the exchange"

    @property
    def limits(self) -> Limits:
        return Limits(self.submission_bytes, self.submission_files, self.submission_depth)

    @property
    def course(self) -> Path:
        return Path(self.root) / self.coursedir.course_id

    def start(self):
        try:
            return super().start()
        except shutil.Error as error:
            self.fail(self.explain(_first(error)))
        except OSError as error:
            self.fail(self.explain(error))

    def explain(self, error: OSError) -> str:
        """A sentence on an OSError that stopped the work."""
        where = f" ({error.filename})" if error.filename else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"The disk is full{where}, so this was not done: {self.doing}. Make room and do it again."
        return f"This was not done: {self.doing}. {error.strerror or error}{where}."

    def ensure_root(self) -> None:
        """Nobody but the grader needs to write at the exchange's root, so all that is asked of it is to be there."""
        if not os.path.isdir(self.root):
            self.fail(
                f"The exchange is missing: there is no folder {self.root}. Nothing was done and nothing is lost; tell whoever "
                "looks after this hub."
            )
        if self.coursedir and self.coursedir.course_id and not self.course.is_dir():
            self.fail(
                f"The exchange holds nothing of the course {self.coursedir.course_id!r} (no folder {self.course}). Nothing was "
                "done; tell whoever looks after this hub."
            )

    def ensure_directory(self, path, mode) -> None:
        if not os.path.isdir(path):
            os.makedirs(path)
            os.chmod(path, mode)

    def set_timestamp(self) -> None:
        self.timestamp = datetime.datetime.now(datetime.UTC).strftime(inbound.STAMP)

    def local(self, moment: datetime.datetime) -> str:
        """A moment as people in the course's time zone write it."""
        return moment.astimezone(ZoneInfo(self.timezone)).strftime("%Y-%m-%d %H:%M %Z")

    def due(self) -> dict[str, datetime.datetime]:
        """When each assignment is due, as far as it is published to whoever runs this (publish_due_dates)."""
        found = {}
        for place in ("outbound", "feedback"):
            with suppress(OSError, ValueError):
                read = json.loads((self.course / place / DUE).read_text(encoding="utf-8"))
                found |= {name: datetime.datetime.fromisoformat(at) for name, at in read.items()}
        return found

    def _assignment_not_found(self, src_path, other_path):
        import glob

        there = ", ".join(sorted(os.path.basename(path) for path in glob.glob(other_path))) or "none"
        self.fail(f"There is no assignment at {src_path}, so nothing was done. There are: {there}.")


def _first(error: shutil.Error) -> OSError:
    """The first of the errors that copying a folder met, which `shutil` keeps as texts."""
    _, target, text = error.args[0][0]
    known = [number for number in (errno.ENOSPC, errno.EDQUOT) if os.strerror(number) in text]
    return OSError(known[0] if known else errno.EIO, text, target)


def lateness(at: datetime.datetime, due: datetime.datetime) -> str:
    """By how much something came after it was due, in words; nothing where it did not.

    >>> from datetime import datetime, timedelta
    >>> noon = datetime(2026, 1, 1, 12)
    >>> lateness(noon + timedelta(hours=25, minutes=3), noon), lateness(noon + timedelta(seconds=9), noon), lateness(noon, noon)
    ('1 day and 1 hour late', 'less than a minute late', '')
    """
    if at <= due:
        return ""
    minutes = int((at - due).total_seconds()) // 60
    parts = [(minutes // 1440, "day"), (minutes // 60 % 24, "hour"), (minutes % 60, "minute")]
    words = [f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in parts if count][:2]
    return f"{' and '.join(words) or 'less than a minute'} late"


# The student's side


class FetchAssignment(HubExchange, ExchangeFetchAssignment):
    doing = "fetch the assignment"

    def do_copy(self, src: str, dest: str) -> None:
        """Whole or not at all: half an assignment would be listed as fetched, and could not be fetched again."""
        if os.path.isdir(dest):
            super().do_copy(src, dest)
            return
        parent = Path(dest).parent
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent, prefix=".fetching-") as temporary:
            shutil.copytree(src, Path(temporary, "new"), ignore=shutil.ignore_patterns(*self.coursedir.ignore))
            Path(temporary, "new").rename(dest)


class FetchFeedback(HubExchange, ExchangeFetchFeedback):
    doing = "fetch the feedback"


class List(HubExchange, ExchangeList):
    doing = "list the assignments"


class Submit(HubExchange, ExchangeSubmit):
    """Hand in: whole or not at all. What is too large, or no plain file, is refused before anything is copied."""

    doing = "hand in"

    def explain(self, error: OSError) -> str:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            where = f" ({error.filename})" if error.filename else ""
            return (
                f"Nothing was handed in: {error.strerror or error}{where}. Your work in your own folder is as it was, and what "
                "you handed in before still counts. Try again, then tell your instructor."
            )
        if str(error.filename or "").startswith(str(self.cache)) and not self._is_shared(error):
            return (
                f"Nothing was handed in: your own disk is full, and a copy is kept there ({self.cache}). Delete what you do "
                "not need (checkpoints, data sets) and hand in again. What you handed in before still counts."
            )
        return (
            "Nothing was handed in: the exchange is full. Your work in your own folder is as it was, and what you handed in "
            "before still counts. Tell your instructor, who can make room, and hand in again."
        )

    def _is_shared(self, error: OSError) -> bool:
        """Whether the student's own disk and the exchange are one, so that it is not the student who filled it."""
        with suppress(OSError):
            return error.errno == errno.ENOSPC and os.stat(self.cache).st_dev == os.stat(self.inbound_path).st_dev
        return False

    def init_dest(self) -> None:
        if not self.coursedir.course_id:
            self.fail("No course id specified. Re-run with --course flag.")
        if not self.authenticator.has_access(self.coursedir.student_id, self.coursedir.course_id):
            self.fail(f"Nothing was handed in: you are not enrolled in {self.coursedir.course_id}.")
        self.inbound_path = str(self.course / "inbound")
        if not os.path.isdir(self.inbound_path):
            self.fail(
                f"Nothing was handed in: the exchange is missing (there is no folder {self.inbound_path}). Your work is "
                "safe in your own folder; tell your instructor."
            )
        if not os.access(self.inbound_path, os.W_OK | os.X_OK):
            self.fail(
                f"Nothing was handed in: {self.inbound_path} cannot be written to. Your work is safe in your own "
                "folder; tell your instructor."
            )
        self.cache_path = os.path.join(self.cache, self.coursedir.course_id)
        who = self.coursedir.student_id
        if who == "*":
            who = os.environ.get("JUPYTERHUB_USER") or get_username()
        random = base64.urlsafe_b64encode(os.urandom(9)).decode("ascii")
        self.kept_as = f"{folder(who)}+{self.coursedir.assignment_id}+{self.timestamp}"
        self.assignment_filename = f"{self.kept_as}+{random}"

    def init_release(self) -> None:
        self.release_path = str(self.course / "outbound" / self.coursedir.assignment_id)
        if not os.path.isdir(self.release_path):
            self.fail(
                f"Nothing was handed in: {self.coursedir.assignment_id} is not released, or not any more. Your work is "
                "safe in your own folder; ask your instructor."
            )

    def copy_files(self) -> None:
        import secrets

        self.init_release()
        self.check_filename_diff()
        files = self.pick(Path(self.src_path))
        extra = {"timestamp.txt": self.timestamp, "submission_secret.txt": secrets.token_hex(64)}
        kept, handed_in = Path(self.cache_path, self.kept_as), Path(self.inbound_path, self.assignment_filename)
        # First in the student's own copies, where feedback will look for the secret: what was handed in is then listed.
        made = []
        try:
            for destination in (kept, handed_in):
                part = destination.with_name("." + destination.name)
                made.append(part)
                _copy(files, part, extra)
            # The instructor may delete it later.
            made[1].chmod(0o777)
            made[1].rename(handed_in)
            made[0].rename(kept)
        except BaseException:
            for part in made:
                shutil.rmtree(part, ignore_errors=True)
            raise
        self.log.info("Submitted as: %s %s %s", self.coursedir.course_id, self.coursedir.assignment_id, self.timestamp)
        due = self.due().get(self.coursedir.assignment_id)
        late = due and lateness(inbound.parse(self.assignment_filename).at, due)
        if late:
            self.log.warning("It is %s: %s was due at %s.", late, self.coursedir.assignment_id, self.local(due))

    def pick(self, source: Path) -> dict[str, Path]:
        """The files that are to be handed in, by their path in the assignment. ExchangeError says what may not be."""
        files: dict[str, Path] = {}
        sizes: dict[str, int] = {}
        folders = 0
        for at, inner, names in os.walk(source):
            inner[:] = [name for name in inner if not self.ignored(name)]
            folders += len(inner)
            for name in [*inner, *names]:
                path = Path(at, name)
                if path.is_symlink() and not self.ignored(name):
                    self._refuse(f"{path.relative_to(source)} is a link. Put the file itself there, or remove the link")
            for name in names:
                path = Path(at, name)
                if self.ignored(name):
                    continue
                if not path.is_file():
                    self._refuse(f"{path.relative_to(source)} is neither a file nor a folder. Remove it")
                files[path.relative_to(source).as_posix()] = path
                sizes[path.relative_to(source).as_posix()] = path.stat().st_size
        if sum(sizes.values()) + 200 > self.submission_bytes:
            largest = ", ".join(f"{name} ({megabytes(sizes[name])})" for name in sorted(sizes, key=sizes.get)[:-4:-1])
            self._refuse(
                f"it is too large: {megabytes(sum(sizes.values()))}, where {megabytes(self.submission_bytes)} are allowed. The "
                f"largest are {largest}. Move what the assignment does not ask for (checkpoints, data sets) out of its folder; "
                "if it is the notebook, clear its outputs"
            )
        if len(files) + folders + 2 > self.submission_files:
            self._refuse(
                f"it has {len(files) + folders} files and folders, where {self.submission_files - 2} are allowed. Move what "
                "the assignment does not ask for out of its folder"
            )
        if any(path.count("/") > self.submission_depth for path in files):
            self._refuse(f"its folders are more than {self.submission_depth} deep. Make them flatter")
        for path in files:
            if not path.isprintable() or "\\" in path:
                self._refuse(f"the name {path!a} has characters that cannot be shown. Rename that file")
        return files

    def ignored(self, name: str) -> bool:
        return any(fnmatch.fnmatch(name, pattern) for pattern in self.coursedir.ignore)

    def _refuse(self, reason: str) -> None:
        self.fail(
            f"{self.coursedir.assignment_id} was not handed in: {reason}, and hand in again. What you handed in before "
            "still counts."
        )


def _copy(files: dict[str, Path], destination: Path, extra: dict[str, str]) -> None:
    """Make a folder of `files` and of the texts in `extra`, on the disk when this returns. OSError names a file of its own."""
    for path, source in [*files.items(), *((name, None) for name in extra)]:
        target = destination / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            data = source.read_bytes() if source else extra[path].encode()
            with open(target, "xb") as file:
                os.chmod(target, 0o644)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            error.filename = error.filename or str(target)
            raise


# The grader's side


class ListForGrader(List):
    """As nbgrader's, except that it tells the submissions by folders and reads nothing in them."""

    def init_dest(self) -> None:
        super().init_dest()
        if self.inbound:
            self.found = dict(self._find())
            self.assignments = sorted(self.found)

    def _find(self):
        for course in sorted(Path(self.root).iterdir()):
            if self.coursedir.course_id in ("", "*", course.name) and (course / "inbound").is_dir():
                yield from self._find_in(course)

    def _find_in(self, course: Path):
        wanted, asked = self.coursedir.student_id, self.coursedir.assignment_id
        for name in sorted(os.listdir(course / "inbound")):
            try:
                student = username(name)
                with inbound.opened(course / "inbound" / name) as fd:
                    submissions, reasons = inbound.look(fd, self.timezone)
            except (CourseError, OSError) as error:
                self.log.warning("%s: %s", name, error)
                continue
            if wanted not in ("", "*", student):
                continue
            for reason in reasons:
                self.log.warning("%s: %s", student, reason)
            for one in submissions:
                if asked in ("", "*", one.assignment):
                    stamp = one.at.strftime(inbound.STAMP)
                    yield str(course / "inbound" / name / one.name), (course.name, student, one.assignment, stamp)

    def parse_assignments(self) -> list[dict]:
        if not self.inbound:
            return super().parse_assignments()
        grouped: dict[tuple, list[dict]] = {}
        for path, (course, student, assignment, stamp) in self.found.items():
            info = {"course_id": course, "student_id": student, "assignment_id": assignment, "timestamp": stamp}
            info |= {"status": "removed" if self.remove else "submitted", "path": path, "notebooks": []}
            info |= {"has_local_feedback": False, "has_exchange_feedback": False, "feedback_updated": False}
            info |= {"local_feedback_path": None}
            grouped.setdefault((course, student, assignment), []).append(info)
        return [
            {
                "course_id": course,
                "student_id": student,
                "assignment_id": assignment,
                "status": submissions[0]["status"],
                "submissions": sorted(submissions, key=lambda one: one["timestamp"]),
            }
            for (course, student, assignment), submissions in sorted(grouped.items())
        ]

    def format_inbound_assignment(self, info: dict) -> str:
        return "{course_id} {student_id} {assignment_id} {timestamp}".format(**info)


class Collect(HubExchange, ExchangeCollect):
    """Collect each student's newest submission that may be collected, and say why the others may not."""

    doing = "collect the submissions"

    def init_src(self) -> None:
        if not self.coursedir.course_id:
            self.fail("No course id specified. Re-run with --course flag.")
        self.inbound_path = self.course / "inbound"
        if not self.inbound_path.is_dir():
            self.fail(f"There is no {self.inbound_path}, so nobody can have handed in anything. Nothing was collected.")
        if not os.access(self.inbound_path, os.R_OK | os.X_OK):
            self.fail(f"{self.inbound_path} cannot be read by whoever collects. Nothing was collected.")
        self.due_dates = due_dates(self.coursedir)

    def copy_files(self) -> None:
        publish_due_dates(self.coursedir, self.course)
        self.collected = self.refused = self.students = 0
        with inbound.opened(self.inbound_path) as fd:
            for name in sorted(os.listdir(fd)):
                self._collect_from(fd, name)
        assignment, course = self.coursedir.assignment_id, self.coursedir.course_id
        if not self.students:
            self.log.warning("No submissions of '%s' for course '%s' to collect", assignment, course)
        refused = f"; {self.refused} refused, see above" if self.refused else ""
        self.log.info("Collected %d of %d students' submissions%s.", self.collected, self.students, refused)

    def _collect_from(self, inbound_fd: int, name: str) -> None:
        wanted = self.coursedir.student_id
        if wanted not in ("", "*") and name != folder(wanted):
            return
        try:
            student = username(name)
            with inbound.opened(name, inbound_fd) as fd:
                submissions, reasons = inbound.look(fd, self.timezone)
                for reason in reasons:
                    self._say_refused(student, reason)
                self._collect_newest(fd, name, student, submissions)
        except CourseError as error:
            self._say_refused(name, str(error))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
                raise
            self._say_refused(name, f"the folder cannot be read ({error.strerror or error})")

    def _collect_newest(self, fd: int, name: str, student: str, submissions: list[Submission]) -> None:
        assignment = self.coursedir.assignment_id
        submissions = [one for one in submissions if one.assignment == assignment]
        self.students += bool(submissions)
        due = self.due_dates.get(student, {}).get(assignment) or self.due_dates[""].get(assignment)
        if due and self.before_duedate:
            submissions.sort(key=lambda one: one.at <= due, reverse=True)
        for one in submissions:
            destination = Path(self.coursedir.format_path(self.coursedir.submitted_directory, student, assignment))
            words = self._news(destination, student, one)
            if not words:
                return
            try:
                if one.who not in (name, student):
                    raise SubmissionError(f"{one.name} claims to be {one.who}'s, and lies in {student}'s folder")
                taken = inbound.take(fd, one.name, self.limits)
            except SubmissionError as error:
                at = f"the submission of {self.local(one.at)} was refused: " if one.who in (name, student) else ""
                self._say_refused(student, f"{at}{error}")
                continue
            late = due and lateness(one.at, due)
            self.log.info("%s: %s %s%s", words, student, assignment, f" ({late})" if late else "")
            if due and one.at <= due < taken.touched - datetime.timedelta(minutes=10):
                self.log.warning(
                    "%s: the submission's name says %s, before it was due, and its files were touched at %s. Somebody "
                    "restored or changed the exchange, or the student's server does not tell the time truly.",
                    *(student, self.local(one.at), self.local(taken.touched)),
                )
            self._put(destination, one, taken.files)
            self.collected += 1
            return

    def _news(self, destination: Path, student: str, one: Submission) -> str:
        """What collecting this submission means; nothing, said, where it is not to be collected."""
        assignment = self.coursedir.assignment_id
        if not destination.is_dir():
            return "Collecting submission"
        existing = None
        with suppress(Exception):  # nbgrader's way to say that the file holds no time is an AttributeError
            existing = self.coursedir.get_existing_timestamp(str(destination))
        new = one.at.replace(tzinfo=None)
        if (self.update and (existing is None or new > existing)) or (self.before_duedate and existing != new):
            return "Updating submission"
        if self.update:
            self.log.info("No newer submission to collect: %s %s", student, assignment)
        else:
            self.log.info("Submission already exists, use --update to update: %s %s", student, assignment)
        return ""

    def _say_refused(self, student: str, reason: str) -> None:
        self.refused += 1
        self.log.error("%s: %s.", student, reason.rstrip("."))

    def _put(self, destination: Path, one: Submission, files: dict[str, bytes]) -> None:
        """Write a submission where nbgrader looks for it; what was there stays until the new one is whole."""
        directory, file = (0o2775, 0o664) if self.coursedir.groupshared else (0o755, 0o644)
        destination.parent.mkdir(parents=True, exist_ok=True)
        for left in destination.parent.glob(".collecting-*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".collecting-") as temporary:
            new = Path(temporary, "new")
            files = {path: data for path, data in files.items() if not self._ignored(path)}
            # The time is the one of the name, by which this submission was found to be the newest.
            files["timestamp.txt"] = one.at.strftime(inbound.STAMP).encode()
            new.mkdir()
            for path, data in files.items():
                target = new / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                target.chmod(file)
            for path in [new, *(path for path in new.rglob("*") if path.is_dir())]:
                path.chmod(directory)
            if destination.is_dir():
                destination.rename(Path(temporary, "old"))
            new.rename(destination)

    def _ignored(self, path: str) -> bool:
        return any(fnmatch.fnmatch(name, pattern) for name in path.split("/") for pattern in self.coursedir.ignore)


class ReleaseAssignment(HubExchange, ExchangeReleaseAssignment):
    """As nbgrader's, except that no folder is made writable for everybody and students find a release whole or not at all."""

    doing = "release the assignment"

    ensure_root = HubExchange.ensure_root

    def init_dest(self) -> None:
        if not self.coursedir.course_id:
            self.fail("No course id specified. Re-run with --course flag.")
        self.dest_path = str(self.course / "outbound" / self.coursedir.assignment_id)
        self.ensure_directory(self.course / "outbound", 0o755)

    def copy_files(self) -> None:
        destination = Path(self.dest_path)
        if destination.is_dir() and not self.force:
            self.fail(
                f"{self.coursedir.assignment_id} is released already, so nothing was changed. To replace it: --force, or "
                "unrelease it first. Who has fetched it keeps the old one."
            )
        with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".releasing-") as temporary:
            new = Path(temporary, "new")
            self.do_copy(self.src_path, str(new))
            shared = self.coursedir.groupshared
            self.set_perms(str(new), fileperms=0o664 if shared else 0o644, dirperms=0o2775 if shared else 0o755)
            if destination.is_dir():
                destination.rename(Path(temporary, "old"))
            new.rename(destination)
        publish_due_dates(self.coursedir, self.course)
        self.log.info("Released as: %s %s", self.coursedir.course_id, self.coursedir.assignment_id)


class ReleaseFeedback(HubExchange, ExchangeReleaseFeedback):
    """Give each student's feedback to that student's folder, under the name that nbgrader's fetch_feedback looks for."""

    doing = "release the feedback"

    def init_dest(self) -> None:
        if not self.coursedir.course_id:
            self.fail("No course id specified. Re-run with --course flag.")
        self.dest_path = self.course / "feedback"
        self.ensure_directory(self.dest_path, 0o711)

    def copy_files(self) -> None:
        excluded = set(self.coursedir.student_id_exclude.split(","))
        assignment, released, left = self.coursedir.assignment_id, 0, 0
        for student, page in self._pages():
            if student in excluded:
                continue
            secret = self._secret(student)
            if secret is None:
                left += 1
                self.log.error(
                    "%s: the feedback on %s cannot be released, since the submission did not come through this exchange "
                    "(there is no submission_secret.txt of the one that was graded). Give it to the student by hand: %s",
                    *(student, assignment, page),
                )
                continue
            place = self.dest_path / folder(student)
            self.ensure_directory(place, 0o711)
            hashed = notebook_hash(secret=secret, notebook_id=page.stem)
            write_atomically(place / f"{hashed}.html", page.read_bytes(), 0o644)
            released += 1
            self.log.info("Releasing feedback for student '%s' on assignment '%s'", student, assignment)
        if not released:
            but = " but what is named above" if left else ""
            self.fail(
                f"No feedback on {assignment} was released: there is none{but}. Generate it first, in formgrader or with "
                f"`autograder feedback {assignment}`."
            )

    def _pages(self):
        """Each page of feedback on the assignment, with its student."""
        wanted = self.coursedir.student_id or "*"
        pattern = Path(
            self.coursedir.format_path(self.coursedir.feedback_directory, wanted, self.coursedir.assignment_id)
        )
        regexp = self.coursedir.format_path(
            self.coursedir.feedback_directory, "(?P<student>.*)", self.coursedir.assignment_id, escape=True
        )
        root = Path(pattern.anchor)
        for page in sorted(root.glob(str(pattern.relative_to(root) / "*.html"))):
            match = re.fullmatch(regexp, str(page.parent))
            if match:
                yield match["student"], page

    def _secret(self, student: str) -> str | None:
        """The secret of the submission that was graded; None where there is none."""
        times: dict[str, str | None] = {}
        for step in ("autograded", "feedback", "submitted"):
            directory = getattr(self.coursedir, f"{step}_directory")
            place = Path(self.coursedir.format_path(directory, student, self.coursedir.assignment_id))
            times[step] = _text(place / "timestamp.txt")
            times[step + " secret"] = _text(place / "submission_secret.txt")
        graded = times["autograded"] or times["feedback"]
        # Collecting writes time and secret together; grading may leave an older secret beside a newer time.
        for step in ("submitted", "feedback", "autograded"):
            if times[step + " secret"] and (graded is None or times[step] == graded):
                return times[step + " secret"]
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None


# When things are due: known to the gradebook, and to students by what is published of it


def due_dates(coursedir) -> dict[str, dict[str, datetime.datetime]]:
    """When assignments are due (UTC, aware): for everybody under "", and by student who has an extension."""
    from nbgrader.api import Assignment, SubmittedAssignment

    def aware(moment: datetime.datetime) -> datetime.datetime:
        return moment.replace(tzinfo=datetime.UTC)

    with Gradebook(coursedir.db_url, coursedir.course_id) as book:
        found: dict[str, dict[str, datetime.datetime]] = {"": {}}
        for assignment in book.db.query(Assignment).filter(Assignment.duedate.isnot(None)):
            found[""][assignment.name] = aware(assignment.duedate)
        extended = book.db.query(SubmittedAssignment).filter(SubmittedAssignment.extension.isnot(None))
        for submission in extended:
            if submission.duedate is not None and submission.extension:
                found.setdefault(submission.student_id, {})[submission.name] = aware(submission.duedate)
    return found


def publish_due_dates(coursedir, course: Path) -> None:
    """Let students' servers know when assignments are due; an extension is told to the student who has it."""
    dates = due_dates(coursedir)
    _publish(course / "outbound" / DUE, dates.pop(""))
    for place in (course / "feedback").iterdir():
        if place.is_dir() and not place.name.startswith("."):
            with suppress(CourseError):
                _publish(place / DUE, dates.get(username(place.name), {}))


def _publish(path: Path, dates: dict[str, datetime.datetime]) -> None:
    text = json.dumps({name: at.isoformat() for name, at in sorted(dates.items())}, indent=1) + "\n"
    if _text(path) != text.strip() and (dates or path.exists()):
        write_atomically(path, text.encode(), 0o644)
