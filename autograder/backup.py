"""A course in one file, and back: all that grading needs, as one moment had it.

    autograder-backup.json     that it is one, and of which format
    course/…                   the course's folder; the gradebook as a copy that SQLite (or pg_dump) made
    hub/…                      of a hub: course.yaml, roster, passwords, database, and what students have handed in
    manifest.json              versions, and size, mode and SHA-256 of every file above

Left out is what is made anew (.autograder/evidence), what is only of the moment (locks, half-written files, caches), and
whatever is no regular file. While a copy is taken no grade is saved (Course.moment), so that notebook, gradebook and record of
each submission belong together; grading waits meanwhile and goes on. What students hand in is copied after that: whatever is
newer than its grade is graded when the copy is.

Of a hub there is no cookie_secret in it: with that and the database whoever finds the archive could be anybody on the hub; the
hub makes a new one, and people log in again. Homes are not in it either: they are many times as large, and people's own.

An archive is read as if an enemy had written it: twice, and nothing is written before all of it is verified.
"""

from __future__ import annotations

import datetime
import errno
import gzip
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import shutil
import signal
import sqlite3
import stat
import subprocess
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING
from urllib.parse import quote

from autograder.course import Course
from autograder.errors import CourseError, HubError

if TYPE_CHECKING:
    from autograder.hub.config import HubConfig

FORMAT = 1
MARK, MANIFEST = "autograder-backup.json", "manifest.json"
SUFFIXES = (".tar.gz", ".tar.zst")
SKIPPED = {"__pycache__", ".ipynb_checkpoints"}
LARGEST = 2 << 30  # bytes of one file, which is held in memory
LARGEST_LIST = 64 << 20  # bytes of the manifest
LARGEST_HEADER = 1 << 20  # bytes of one file's name and attributes
CHUNK = 1 << 20
READINGS = 5
LOCKED_SECONDS = 120.0
VERSIONS = ("amp-course", "nbgrader", "torch")


@dataclass
class Part:
    """A folder (or one file) that goes into the archive as `prefix`.

    `leave` says of a file's place in it whether it stays out. In a `strange` part others write what they like: what cannot be
    read is left out and said, instead of stopping the backup.
    """

    prefix: str
    folder: Path
    leave: Callable[[PurePosixPath], bool] = lambda name: False
    strange: bool = False


@dataclass
class Manifest:
    """What an archive says of itself. `files` are by name: {"size", "sha256", "mode"}; `left_out` is in words.
    `hub` is the place of the course in a hub's folder; empty where there is no hub."""

    course_id: str
    at: str
    versions: dict[str, str]
    gradebook: str
    files: dict[str, dict] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    hub: str = ""

    @property
    def size(self) -> int:
        return sum(file["size"] for file in self.files.values())


# Writing


def backup(
    course: Course,
    target: Path,
    *,
    hub: HubConfig | None = None,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Manifest:
    """Write the course, and what its hub cannot do without, into the new file `target` (.tar.gz or .tar.zst), readable by its
    owner only. `tell(done, total)` is called with bytes.

    CourseError says why there is no archive; then nothing is left of it.
    """
    target = _place(Path(target), [course.root, *([hub.folder, hub.exchange] if hub else [])])
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as raw:
            with _compressed(raw, target) as stream:
                made = _write(course, stream, tell, hub)
            raw.flush()
            os.fsync(raw.fileno())
        with open(temporary, "rb") as raw:
            verify(raw)
        os.replace(temporary, target)
    except OSError as error:
        raise CourseError(_not_written(target, error)) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    return made


def _place(target: Path, forbidden: list[Path]) -> Path:
    target = target.absolute()
    if not target.name.endswith(SUFFIXES) or target.name in SUFFIXES:
        raise CourseError(
            f"{target.name} does not say how to compress: name a file that ends in {' or '.join(SUFFIXES)}."
        )
    if not target.parent.is_dir():
        raise CourseError(f"There is no folder {target.parent} to write {target.name} to. Make it first.")
    if target.exists() or target.is_symlink():
        raise CourseError(
            f"{target} is there already and was left as it is. Name another file; a date in its name helps."
        )
    real = target.parent.resolve() / target.name
    for folder in forbidden:
        if real.is_relative_to(folder.resolve()):
            raise CourseError(
                f"{target} lies in {folder}, which it is to be a copy of: what destroys the one would destroy the other. Name "
                "a file elsewhere, best on another disk."
            )
    if not os.access(target.parent, os.W_OK):
        raise CourseError(f"You may not write into {target.parent}. Name a file elsewhere.")
    return target


def _not_written(target: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"The disk of {target.parent} is full: there is no backup, and nothing left of it. Name a file on another disk."
    where = f" ({error.filename})" if error.filename and not str(error.filename).endswith(".part") else ""
    return f"There is no backup: {error.strerror or error}{where}. Nothing is left of it."


@contextmanager
def _compressed(raw: IO[bytes], target: Path) -> Iterator[IO[bytes]]:
    if target.name.endswith(".tar.gz"):
        with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0, filename="") as stream:
            yield stream
        return
    process = subprocess.Popen([_zstd(), "-q", "-T0", "-c"], stdin=subprocess.PIPE, stdout=raw, stderr=subprocess.PIPE)
    try:
        with suppress(BrokenPipeError):  # zstd ended, and says why
            yield process.stdin
            process.stdin.close()
        said = process.stderr.read().decode(errors="replace").strip()
        if process.wait():
            full = "No space left" in said or process.returncode == -signal.SIGXFSZ
            raise OSError(errno.ENOSPC if full else errno.EIO, said.splitlines()[-1] if said else "zstd failed")
    finally:
        _end(process)


def _end(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            with suppress(OSError):
                stream.close()


def _zstd() -> str:
    program = shutil.which("zstd")
    if program is None:
        raise CourseError(
            "Archives .tar.zst are made and read by the program zstd, which is not installed: apt install zstd, or name a file "
            "that ends in .tar.gz."
        )
    return program


class _Writer:
    """Files into a tar stream and, with their checksums, into a manifest."""

    def __init__(self, tar: tarfile.TarFile, made: Manifest, tell: Callable[[int], None]) -> None:
        self.tar, self.made, self.tell = tar, made, tell

    def data(self, name: str, data: bytes, mode: int = 0o600, at: float = 0.0) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = len(data), mode, int(at or time.time())
        self.tar.addfile(info, io.BytesIO(data))
        if name not in (MARK, MANIFEST):
            self.made.files[name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "mode": mode}
        self.tell(len(data))

    def part(self, part: Part, wanted: Callable[[str], bool] = lambda top: True) -> None:
        """What lies in a part's folder, below those things at its top that are `wanted`."""
        for path, info in _walk(part, wanted):
            name = str(PurePosixPath(part.prefix, path.relative_to(part.folder)))
            if stat.S_ISDIR(info.st_mode):
                self.made.folders[name] = stat.S_IMODE(info.st_mode) & 0o777
            elif not stat.S_ISREG(info.st_mode):
                self.made.left_out.append(f"{name}: a link, or no file at all")
            elif info.st_size > LARGEST:
                self.made.left_out.append(f"{name}: larger than {LARGEST >> 30} GiB")
            else:
                self._file(name, path, part)

    def _file(self, name: str, path: Path, part: Part) -> None:
        try:
            data, info = _read(path)
        except FileNotFoundError:  # removed since it was listed
            return
        except (OSError, CourseError) as error:
            if not part.strange:
                raise
            self.made.left_out.append(f"{name}: {error}")
        else:
            self.data(name, data, stat.S_IMODE(info.st_mode) & 0o777, info.st_mtime)


def _walk(part: Part, wanted: Callable[[str], bool] = lambda top: True) -> Iterator[tuple[Path, os.stat_result]]:
    """Everything below a part's folder that goes into the archive, folders before what is in them."""
    folders = [part.folder]
    if not part.folder.is_dir():
        folders = []
        if part.folder.is_file():
            yield part.folder, part.folder.stat()
    while folders:
        folder = folders.pop()
        try:
            names = sorted(os.listdir(folder))
        except FileNotFoundError:
            continue
        for name in names:
            path = folder / name
            place = PurePosixPath(path.relative_to(part.folder).as_posix())
            if not wanted(place.parts[0]) or name in SKIPPED:
                continue
            if (name.startswith(".") and name.endswith(".part")) or part.leave(place):
                continue
            try:
                info = os.lstat(path)
            except FileNotFoundError:
                continue
            yield path, info
            if stat.S_ISDIR(info.st_mode):
                folders.append(path)


def _read(path: Path) -> tuple[bytes, os.stat_result]:
    """A file's bytes as one moment had them. CourseError where something writes it all the time."""
    for _ in range(READINGS):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode):
                raise CourseError(f"{path} was a file and is none now. Back up again when nobody changes it.")
            data = file.read(LARGEST)
            after = os.fstat(handle)
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns) and len(data) == after.st_size:
            return data, after
        time.sleep(0.2)
    raise CourseError(f"{path} changed each time it was read: something is writing it. Back up again when that ends.")


def _hub_parts(hub: HubConfig) -> tuple[str, list[Part]]:
    """Where the course lies in a hub's folder, and what of the hub goes into the archive beside it: what course.yaml names by a
    path relative to itself is found there again when all of it is restored elsewhere."""
    if hub.path is None:
        raise CourseError("The demo's hub has no course.yaml, and nothing in it is to be kept.")
    home = hub.path.parent

    def place(path: Path, otherwise: str) -> str:
        return path.relative_to(home).as_posix() if path != home and path.is_relative_to(home) else otherwise

    state = place(hub.folder, "state")
    exchange = place(hub.exchange, f"{state}/exchange")
    inbound = hub.exchange / hub.course_id / "inbound"
    parts = [
        Part("hub/course.yaml", hub.path),
        Part(f"hub/{state}/passwords.csv", hub.folder / "passwords.csv"),
        Part(f"hub/{exchange}/{hub.course_id}/inbound", inbound, strange=True),
    ]
    if hub.roster is not None:
        parts.append(Part(f"hub/{place(hub.roster, 'roster.csv')}", hub.roster))
    return f"{state}/course", parts


def _write(course: Course, stream: IO[bytes], tell: Callable, hub: HubConfig | None) -> Manifest:
    versions = {name: importlib.metadata.version(name) for name in VERSIONS} | {"python": platform.python_version()}
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    made = Manifest(course.directory.course_id, now, versions, "sqlite")
    made.hub, also = _hub_parts(hub) if hub else ("", [])
    whole = Part("course", course.root, _passing(course))
    total = sum(info.st_size for part in (whole, *also) for _, info in _walk(part) if stat.S_ISREG(info.st_mode))
    done = 0

    def count(size: int) -> None:
        nonlocal done
        done += size
        tell(done, total)

    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT, bufsize=CHUNK) as tar:
        writer = _Writer(tar, made, count)
        writer.data(MARK, json.dumps({"autograder backup": FORMAT}).encode() + b"\n")
        with course.moment(writing=False):
            name, data = _gradebook(course)
            made.gradebook = "sqlite" if name == "gradebook.db" else "postgresql"
            writer.data(f"course/{name}", data)
            for step in ("autograded", "source", "release"):
                _inside(course, step)
            first = {".autograder", *(_top(course, step) for step in ("autograded", "source", "release"))}
            writer.part(whole, lambda top: top in first)
        for step in ("submitted", "feedback"):
            _inside(course, step)
        writer.part(whole, lambda top: top not in first)  # what is newer there is not of that moment
        for part in also:
            writer.part(part)
        if hub and hub.database.is_file():
            writer.data(f"hub/{PurePosixPath(made.hub).parent}/{hub.database.name}", copy_of_sqlite(hub.database))
        writer.data(MANIFEST, json.dumps(made.__dict__, indent=1).encode() + b"\n")
    return made


def _passing(course: Course) -> Callable[[PurePosixPath], bool]:
    """What of a course is made anew, is only of the moment, or is copied otherwise."""
    book = _sqlite_file(course)
    here = book.relative_to(course.root).as_posix() if book and book.is_relative_to(course.root) else None
    copied = {f"{here}{end}" for end in ("", "-journal", "-wal", "-shm")} if here else set()
    for_now = {".autograder/evidence", ".autograder/lock", ".autograder/moment"}
    return lambda place: str(place) in copied or str(place) in for_now


def _inside(course: Course, step: str) -> None:
    place = course.root / getattr(course.directory, f"{step}_directory")
    if not place.resolve().is_relative_to(course.root):
        raise CourseError(
            f"nbgrader_config.py puts the {step} files into {place}, outside the course. A backup is of the course's own "
            "folder: it would be without them. Move them into it, or copy both folders while nobody works in them."
        )


def _top(course: Course, step: str) -> str:
    place = course.root / getattr(course.directory, f"{step}_directory")
    return place.relative_to(course.root).parts[0]


def _sqlite_file(course: Course) -> Path | None:
    kind, _, path = course.directory.db_url.partition(":///")
    return Path(path).resolve() if kind.partition("+")[0] == "sqlite" else None


def _gradebook(course: Course) -> tuple[str, bytes]:
    """The gradebook's name in a course, and its bytes."""
    path = _sqlite_file(course)
    if path is None:
        return "gradebook.pgdump", _dump(course.directory.db_url)
    if not path.is_file():
        raise CourseError(
            f"There is no gradebook in {path}, so there is no backup. Name it with --db, or restore it first."
        )
    return "gradebook.db", copy_of_sqlite(path)


def copy_of_sqlite(path: Path) -> bytes:
    """A database as one moment has it, whoever writes it meanwhile. CourseError where it is damaged, or locked for long."""
    give_up = time.monotonic() + LOCKED_SECONDS

    def wait(*_) -> None:
        if time.monotonic() > give_up:
            raise CourseError(
                f"{path} has been locked by another process for {LOCKED_SECONDS:.0f} s, so there is no backup. End it and try "
                "again."
            )

    there = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=0.1)
    here = sqlite3.connect(":memory:")
    try:
        there.backup(here, progress=wait, sleep=0.1)
        said = here.execute("PRAGMA integrity_check").fetchone()[0]
        if said != "ok":
            raise sqlite3.DatabaseError(said.splitlines()[0])
        return here.serialize()
    except sqlite3.Error as error:
        raise CourseError(
            f"{path} is damaged ({error}), so there is no backup. What an earlier backup has of it is the best there is."
        ) from error
    finally:
        there.close()
        here.close()


def _dump(db_url: str) -> bytes:
    """What pg_dump says of a gradebook in PostgreSQL."""
    from sqlalchemy.engine import make_url

    url = make_url(db_url)
    program = shutil.which("pg_dump")
    shown = url.render_as_string(hide_password=True)
    if url.get_backend_name() != "postgresql" or program is None:
        raise CourseError(
            f"The gradebook {shown} is copied by pg_dump, which is not installed here: apt install postgresql-client, of the "
            "server's version or newer."
        )
    password = {"PGPASSWORD": url.password} if url.password else {}
    plain = url._replace(drivername="postgresql", password=None).render_as_string(hide_password=False)
    done = subprocess.run(
        [program, "--format=custom", "--no-owner", "--no-password", f"--dbname={plain}"],
        capture_output=True,
        env={**os.environ, **password},
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise CourseError(
            f"pg_dump could not copy the gradebook {shown}: {said[-1] if said else 'it does not say why'}"
        )
    return done.stdout


# Reading


class _Info(tarfile.TarInfo):
    """A member whose name and attributes are of a size that names and attributes have: they are read into memory whole."""

    def _proc_member(self, tar):
        if self.type not in tarfile.REGULAR_TYPES and self.size > LARGEST_HEADER:
            self._refuse()
        return super()._proc_member(tar)

    def _refuse(self, *_):
        raise tarfile.ReadError("a member of a kind that a backup does not have")

    # Files with holes have lists of them, of any length.
    _proc_sparse = _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse


def verify(raw: IO[bytes]) -> Manifest:
    """Read an archive to its end. CourseError where it is none, is damaged, or is not wholly what its manifest says."""
    found: dict[str, dict] = {}
    folders: set[str] = set()
    manifest: dict | None = None
    with _readable(raw):
        for member, chunks in _members(raw):
            if manifest is not None:
                raise CourseError(
                    f"{_name(raw)} goes on after its manifest: {_shown(member.name)} is not the backup's."
                )
            if member.name == MANIFEST:
                if member.size > LARGEST_LIST:
                    raise CourseError(
                        f"{_name(raw)} has a manifest of {member.size} bytes; no backup has. Nothing was written."
                    )
                manifest = _json(b"".join(chunks), raw)
                continue
            digest = hashlib.sha256()
            for chunk in chunks:
                digest.update(chunk)
            if member.name in found:
                raise CourseError(
                    f"{_name(raw)} holds {_shown(member.name)} twice; no backup does. Nothing was written."
                )
            found[member.name] = {"size": member.size, "sha256": digest.hexdigest()}
    if manifest is None:
        raise CourseError(
            f"{_name(raw)} is cut short: its end, which lists what is in it, is missing. Nothing was written."
        )
    try:
        made = Manifest(**manifest)
        said = {name: {"size": file["size"], "sha256": file["sha256"]} for name, file in made.files.items()}
        folders = {*made.folders}
        modes = [*(file["mode"] for file in made.files.values()), *made.folders.values()]
        texts = [made.course_id, made.at, made.gradebook, made.hub, *made.left_out, *made.versions.values()]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("no texts")
    except (TypeError, KeyError, AttributeError) as error:
        raise CourseError(
            f"{_name(raw)} has a manifest that is none of a backup's ({error}). Nothing was written."
        ) from error
    if not all(type(mode) is int and 0 <= mode <= 0o777 for mode in modes):
        raise CourseError(f"{_name(raw)} has a manifest that is none of a backup's (modes). Nothing was written.")
    for name in folders | ({f"hub/{made.hub}"} if made.hub else set()):
        _check_name(name, raw)
    if not made.hub and any(name.startswith("hub/") for name in folders | {*found}):
        raise CourseError(f"{_name(raw)} has a manifest that is none of a backup's (hub). Nothing was written.")
    for name in sorted({*found} | {*said}):
        if found.get(name) != said.get(name):
            what = "is missing" if name not in found else "is not in its list" if name not in said else "is damaged"
            raise CourseError(f"{_name(raw)}: {_shown(name)} {what}. Nothing was written; use another backup.")
    for name in ("course/nbgrader_config.py", "course/.autograder/secret"):
        if name not in found:
            raise CourseError(f"{_name(raw)} is not of a whole course: {name} is missing. Nothing was written.")
    return made


def _members(raw: IO[bytes]) -> Iterator[tuple[tarfile.TarInfo, Iterator[bytes]]]:
    """The files of an archive after its mark, each with its bytes, to be read before the next. To be used in _readable."""
    raw.seek(0)
    with (
        _decompressed(raw) as stream,
        tarfile.open(fileobj=stream, mode="r|", tarinfo=_Info, bufsize=CHUNK) as tar,
    ):
        for number, member in enumerate(tar):
            tar.members = []  # which it would keep
            if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
                raise CourseError(
                    f"{_name(raw)} holds {_shown(member.name)}, which is no file but a link, a device or the like: no "
                    "backup has such. Nothing was written."
                )
            _check_name(member.name, raw)
            file = tar.extractfile(member)
            if number == 0:
                _check_mark(member, file.read(200), raw)
                continue
            yield member, iter(lambda file=file: file.read(CHUNK), b"")


@contextmanager
def _readable(raw: IO[bytes]) -> Iterator[None]:
    """What goes wrong in reading an archive, in words."""
    try:
        yield
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno:  # of the disk, not of what is on it
            raise
        why = str(error).splitlines()[0] if str(error) else "it ends too early"
        raise CourseError(
            f"{_name(raw)} is damaged, cut short, or no backup ({why}). Nothing was written; use another backup."
        ) from error


@contextmanager
def _decompressed(raw: IO[bytes]) -> Iterator[IO[bytes]]:
    first = raw.read(4)
    raw.seek(0)
    if first[:2] == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=raw, mode="rb") as stream:
            yield stream
        return
    if first != b"\x28\xb5\x2f\xfd":
        raise CourseError(f"{_name(raw)} is not a backup: it is neither .tar.gz nor .tar.zst. Nothing was written.")
    os.lseek(raw.fileno(), 0, os.SEEK_SET)  # where another process begins to read
    process = subprocess.Popen(
        [_zstd(), "-q", "-d", "-c"], stdin=raw, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        yield process.stdout
        while process.stdout.read(CHUNK):
            pass
        if process.wait():
            raise tarfile.ReadError("zstd cannot read it to its end")
    finally:
        _end(process)


def _check_name(name: str, raw: IO[bytes]) -> None:
    parts = name.split("/")
    known = (parts[0] in ("course", "hub") and len(parts) > 1) or name in (MARK, MANIFEST)
    if not known or {"", ".", ".."} & {*parts} or "\0" in name:
        raise CourseError(f"{_name(raw)} wants to write {_shown(name)}; no backup does. Nothing was written.")


def _check_mark(member: tarfile.TarInfo, data: bytes, raw: IO[bytes]) -> None:
    version = _json(data, raw).get("autograder backup") if member.name == MARK else None
    if version is None:
        raise CourseError(
            f"{_name(raw)} is an archive of something else: `autograder backup` did not make it. Nothing was written."
        )
    if version != FORMAT:
        raise CourseError(
            f"{_name(raw)} was made by another version of the course (format {_shown(str(version))}, this one reads {FORMAT}). "
            "Nothing was written; install the version that made it."
        )


def _json(data: bytes, raw: IO[bytes]) -> dict:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CourseError(f"{_name(raw)} is damaged, or no backup ({error}). Nothing was written.") from error
    if not isinstance(found, dict):
        raise CourseError(f"{_name(raw)} is no backup. Nothing was written.")
    return found


def _name(raw: IO[bytes]) -> str:
    return str(getattr(raw, "name", "The archive"))


def _shown(name: str) -> str:
    return ascii(name[:100])


def restore(archive: Path, target: Path, tell: Callable[[int, int], None] = lambda done, total: None) -> Manifest:
    """Make the new or empty folder `target` the course (or the hub's folder) of an archive.

    CourseError says what is wrong with either; then nothing was written.
    """
    target = Path(target).absolute()
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise CourseError(f"{target} is there and not empty; nothing was changed. Name a new folder.")
    above = next(folder for folder in target.parents if folder.is_dir())
    try:
        raw = open(archive, "rb")  # noqa: SIM115
    except OSError as error:
        raise CourseError(f"{archive} cannot be read: {error.strerror}. Nothing was written.") from error
    with raw:
        if not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
            raise CourseError(f"{archive} is no file. Nothing was written.")
        made = verify(raw)
        free = shutil.disk_usage(above).free
        if made.size > free:
            raise CourseError(
                f"{archive} holds {made.size / 1e6:.0f} MB, and only {free / 1e6:.0f} MB are free in {above}. Nothing was "
                "written."
            )
        try:
            with _readable(raw):
                _put(raw, made, target, tell)
        except OSError as error:
            raise CourseError(
                f"{archive} could not be restored to {target}: {error.strerror or error}. Nothing is left of it."
            ) from error
    return made


def _put(raw: IO[bytes], made: Manifest, target: Path, tell: Callable[[int, int], None]) -> None:
    """Unpack beside the target, verify once more what is written, and move it there."""
    missing = [folder for folder in (target.parent, *target.parent.parents) if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part"))
    try:
        for name in sorted(made.folders):
            (staging / name).mkdir(parents=True, exist_ok=True)
        done = 0
        for member, chunks in _members(raw):
            if member.name == MANIFEST:
                continue
            path, known, digest = staging / member.name, made.files[member.name], hashlib.sha256()
            path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
                for chunk in chunks:
                    digest.update(chunk)
                    file.write(chunk)
                    done += len(chunk)
                    tell(done, made.size)
            if digest.hexdigest() != known["sha256"]:
                raise CourseError(f"{_name(raw)} changed while it was read. Nothing is left of it; try again.")
            os.utime(path, (member.mtime, member.mtime))
            os.chmod(path, known["mode"] & 0o755)
        for name in sorted(made.folders, reverse=True):
            os.chmod(staging / name, made.folders[name] & 0o755 | 0o700)
        secret = staging / "course" / ".autograder" / "secret"
        os.chmod(secret.parent, 0o700)
        os.chmod(secret, 0o600)
        os.sync()
        if made.hub:
            course = staging / "hub" / made.hub
            course.parent.mkdir(parents=True, exist_ok=True)
            (staging / "course").rename(course)
        os.rename(staging / ("hub" if made.hub else "course"), target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        for folder in missing:  # empty, unless the course lies there now
            with suppress(OSError):
                folder.rmdir()


def remarks(made: Manifest, target: Path) -> Iterator[str]:
    """What to know, or to do, after restoring an archive here."""
    here = {name: importlib.metadata.version(name) for name in VERSIONS} | {"python": platform.python_version()}
    other = [
        f"{name} {made.versions.get(name, '?')}, here {here[name]}"
        for name in here
        if made.versions.get(name) != here[name]
    ]
    if other:
        yield (
            f"It was made with {'; '.join(other)}. Grades stay as they are; `autograder doctor` says what is different, and "
            "`autograder grade ASSIGNMENT --force` grades by the rules of today."
        )
    if made.hub:
        yield from _hub_remarks(made, Path(target).resolve())
    if made.gradebook == "postgresql":
        dump = next(iter(sorted(Path(target).rglob("gradebook.pgdump"))), Path(target) / "gradebook.pgdump")
        yield (
            "Its gradebook is in PostgreSQL. Make an empty database, then: pg_restore --no-owner -d postgresql://…/DATABASE "
            f"{dump}\nThen name the database with --db, or as c.CourseDirectory.db_url in nbgrader_config.py."
        )


def _hub_remarks(made: Manifest, target: Path) -> Iterator[str]:
    from autograder.hub import config

    yield (
        "Of the hub there are course.yaml, the roster, the passwords, its database and what students had handed in; not their "
        "homes, nor a cookie_secret: people log in again."
    )
    try:
        hub = config.read(target / "course.yaml")
    except HubError as error:
        yield f"Before it can start: {error}"
        return
    for key, found, here in (("folder", hub.course, target / made.hub), ("roster", hub.roster, None)):
        if found is not None and not found.is_relative_to(target):
            yield (
                f"course.yaml names another place as its {key} ({found}): write there where it is now"
                f"{f', {here.parent.relative_to(target)}' if here else ''}."
            )
