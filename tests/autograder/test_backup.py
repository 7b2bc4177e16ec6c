"""A course in one file and back: whole, of one moment, for the instructor only; and archives that are none, or an enemy's."""

import gzip
import hashlib
import io
import json
import os
import resource
import shutil
import sqlite3
import stat
import tarfile
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder import backup as backups
from autograder import executors
from autograder.backup import MANIFEST, MARK, backup, restore, verify
from autograder.cli import app
from autograder.course import Course, prepare_nbgrader
from autograder.errors import CourseError
from autograder.gradebook import Book

A = "tiny"
NOBODY = executors.Pool(None, 1)  # whoever needs a box gets an error
pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
needs_zstd = pytest.mark.skipif(shutil.which("zstd") is None, reason="requires the program zstd: apt install zstd")


def call(*arguments: object, status: int = 0) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert isinstance(done.exception, SystemExit | None), repr(done.exception)
    assert done.exit_code == status, done.output
    return done.output


def tree(root: Path) -> dict[str, bytes | None]:
    """Every file (its bytes) and folder (None) below a course, without what a backup makes anew."""
    anew = {".autograder/evidence", ".autograder/lock", ".autograder/moment", "gradebook.db"}
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*")}
    return {
        name: path.read_bytes() if path.is_file() else None
        for name, path in found.items()
        if not any(name == out or name.startswith(f"{out}/") for out in anew)
    }


@pytest.fixture(scope="module")
def archive(tiny_course, tmp_path_factory) -> Path:
    """A backup of a course in which nobody has submitted."""
    prepare_nbgrader()
    file = tmp_path_factory.mktemp("backups") / "course.tar.gz"
    backup(Course(tiny_course), file)
    return file


# There and back


@pytest.mark.parametrize("suffix", [".tar.gz", pytest.param(".tar.zst", marks=needs_zstd)])
def test_a_restored_course_grades_byte_for_byte_like_the_one_it_was(
    small_class, grade_here, handed_in, in_gradebook, tmp_path, suffix
):
    first = grade_here(small_class)
    (small_class / "submitted" / "ada" / A / "half\udcff.txt").write_text("a name that is no UTF-8")
    (small_class / "submitted" / "eve" / A / "back\\slash.txt").write_text("x")
    file, elsewhere = tmp_path / f"course{suffix}", tmp_path / "new" / "folder" / "course"
    said = call("backup", file, "--course", small_class)
    assert "read back and found whole" in said and "Left out" not in said
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    said = call("restore", file, elsewhere)
    assert "Restored the course 'amp'" in said and "made with" not in said
    assert tree(elsewhere) == tree(small_class) and in_gradebook(elsewhere) == in_gradebook(small_class)
    assert not (elsewhere / ".autograder" / "evidence").exists()
    assert stat.S_IMODE((elsewhere / ".autograder").stat().st_mode) == 0o700
    assert stat.S_IMODE((elsewhere / ".autograder" / "secret").stat().st_mode) == 0o600
    assert os.listdir(elsewhere.parent) == ["course"] and os.listdir(elsewhere.parent.parent) == ["folder"]

    assert grade_here(elsewhere, pool=NOBODY).kept == sorted(first.records), "nobody is run again"
    out = tmp_path / "there.json", tmp_path / "here.json"
    for root, json_file in zip((small_class, elsewhere), out, strict=True):
        call("grade", A, "--force", "--course", root, "--json", json_file)
    assert out[0].read_bytes() == out[1].read_bytes()
    assert tree(elsewhere) == tree(small_class) and in_gradebook(elsewhere) == in_gradebook(small_class)
    handed_in(elsewhere, "zoe", {"double": "def double(x):\n    return 2 * x"})
    assert grade_here(elsewhere).records["zoe"]["score"] == 3.0


def test_an_archive_says_what_is_in_it_and_by_what_it_was_made(archive, tiny_course):
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        manifest = json.load(tar.extractfile(MANIFEST))
        assert (names[0], names[-1]) == (MARK, MANIFEST)
        assert {(member.uid, member.gid, member.uname) for member in tar} == {(0, 0, "")}
        for name, file in manifest["files"].items():
            assert hashlib.sha256(tar.extractfile(name).read()).hexdigest() == file["sha256"]
    assert set(manifest["versions"]) == {"amp-course", "nbgrader", "torch", "python"}
    wanted = {f"course/{name}" for name, data in tree(tiny_course).items() if data is not None}
    assert set(manifest["files"]) == wanted | {"course/gradebook.db"} and len(wanted) > 8
    assert set(names) == {*manifest["files"], MARK, MANIFEST}


def test_what_is_only_of_the_moment_and_what_is_no_file_stays_out_and_is_said(small_class, tmp_path):
    folder = small_class / "submitted" / "ada" / A
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    (folder / ".tiny.ipynb.x1.part").write_text("half")
    (small_class / ".ipynb_checkpoints").mkdir()
    said = call("backup", tmp_path / "course.tar.gz", "--course", small_class)
    assert said.count("Left out: course/submitted/ada/tiny/") == 3
    for name in ("link", "loop", "pipe"):
        assert f"{name}: a link, or no file at all" in said
    with tarfile.open(tmp_path / "course.tar.gz") as tar:
        assert not [name for name in tar.getnames() if "part" in name or "checkpoints" in name or "evidence" in name]


def test_versions_that_differ_are_said_when_it_is_restored(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(backups.platform, "python_version", lambda: "3.99.0")
    said = call("restore", archive, tmp_path / "new")
    assert "here 3.99.0. Grades stay as they are" in said and "autograder doctor" in said


# Of one moment


def test_a_backup_while_a_grade_is_saved_has_notebook_gradebook_and_record_of_it_or_none(
    small_class, grade_here, tmp_path, monkeypatch
):
    """Each copy is asked for when the notebook is written and the record is not; restored, it is as between two submissions."""
    copies, threads, real = [], [], Book.save

    def save(book, student, *rest) -> None:
        copies.append(tmp_path / f"{student}.tar.gz")
        threads.append(threading.Thread(target=backup, args=(Course(small_class), copies[-1])))
        threads[-1].start()
        time.sleep(0.1)
        real(book, student, *rest)

    monkeypatch.setattr(Book, "save", save)
    everybody = grade_here(small_class).records
    for thread in threads:
        thread.join()
    monkeypatch.setattr(Book, "save", real)
    for file in copies[::3]:
        root = tmp_path / f"course-{file.name}"
        restore(file, root)
        records = {path.stem for path in (root / ".autograder" / "results" / A).glob("*.json")}
        assert file.name.partition(".")[0] in records <= {*everybody}
        assert records == {path.parts[-3] for path in (root / "autograded").glob(f"*/{A}/{A}.ipynb")}
        assert records == {*grade_here(root, sorted(records), pool=NOBODY).kept}


def test_a_run_waits_while_a_copy_is_taken(small_class):
    course, order = Course(small_class), []

    def save() -> None:
        with course.moment(writing=True):
            order.append("saved")

    with course.moment(writing=False), course.moment(writing=False):
        thread = threading.Thread(target=save)
        thread.start()
        time.sleep(0.2)
        order.append("copied")
    thread.join()
    assert order == ["copied", "saved"]


def test_a_gradebook_that_is_written_to_meanwhile_is_copied_whole(small_class):
    path, stop = small_class / "gradebook.db", threading.Event()

    def write() -> None:
        db = sqlite3.connect(path, timeout=30)
        db.execute("CREATE TABLE pairs (a, b)")
        while not stop.is_set():
            with db:
                db.execute("INSERT INTO pairs VALUES (1, 0)")
                db.execute("UPDATE pairs SET b = a")
            time.sleep(0.005)
        db.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        seen = set()
        while len(seen) < 3:
            db = sqlite3.connect(":memory:")
            db.deserialize(backups.copy_of_sqlite(path))
            if db.execute("SELECT name FROM sqlite_master WHERE name = 'pairs'").fetchone():
                assert db.execute("SELECT count(*) FROM pairs WHERE b != a").fetchone() == (0,)
                seen.add(db.execute("SELECT count(*) FROM pairs").fetchone())
            db.close()
    finally:
        stop.set()
        thread.join()


def test_a_gradebook_that_is_locked_for_long_or_damaged_is_said(small_class, tmp_path, monkeypatch):
    monkeypatch.setattr(backups, "LOCKED_SECONDS", 0.3)
    db = sqlite3.connect(small_class / "gradebook.db", isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    assert "locked by another process" in call("backup", tmp_path / "a.tar.gz", "--course", small_class, status=1)
    db.execute("ROLLBACK")
    db.close()
    data = bytearray((small_class / "gradebook.db").read_bytes())
    data[200:] = bytes(len(data) - 200)
    (small_class / "gradebook.db").write_bytes(data)
    assert "is damaged" in call("backup", tmp_path / "a.tar.gz", "--course", small_class, status=1)
    (small_class / "gradebook.db").unlink()
    assert "There is no gradebook" in call("backup", tmp_path / "a.tar.gz", "--course", small_class, status=1)
    assert not list(tmp_path.glob("*.tar.gz")) and not list(tmp_path.glob(".*"))


def test_a_file_that_changes_all_the_time_is_no_part_of_a_backup(tmp_path, monkeypatch):
    path = tmp_path / "growing"
    path.write_text("x")
    real = os.fdopen

    def grow(handle, mode):
        path.write_text(path.read_text() + "x")
        file = real(handle, mode)
        read = file.read

        def grows(*size):
            data = read(*size)
            path.write_text(path.read_text() + "x")
            return data

        return _Wrapped(file, grows)

    class _Wrapped:
        def __init__(self, file, read):
            self.file, self.read = file, read

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

    monkeypatch.setattr(backups.os, "fdopen", grow)
    monkeypatch.setattr(backups.time, "sleep", lambda seconds: None)
    with pytest.raises(CourseError, match="changed each time"):
        backups._read(path)


# Where it may not be written


@pytest.mark.parametrize(
    "name, said",
    [
        ("course/copy.tar.gz", "lies in"),
        ("course/submitted/copy.tar.gz", "lies in"),
        ("link/copy.tar.gz", "lies in"),
        ("copy.zip", "name a file that ends in .tar.gz or .tar.zst"),
        (".tar.gz", "does not say how to compress"),
        ("nowhere/copy.tar.gz", "There is no folder"),
        ("there.tar.gz", "is there already"),
    ],
)
def test_a_backup_is_refused_where_it_would_be_of_no_use(small_class, tmp_path, name, said):
    (tmp_path / "link").symlink_to(small_class)
    (tmp_path / "there.tar.gz").write_text("an older one")
    before = {path: path.stat().st_mtime_ns for path in small_class.rglob("*")}
    assert said in call("backup", tmp_path / name, "--course", small_class, status=1)
    assert {path: path.stat().st_mtime_ns for path in small_class.rglob("*")} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["course", "link", "there.tar.gz"]
    assert (tmp_path / "there.tar.gz").read_text() == "an older one"


@pytest.mark.parametrize("suffix", [".tar.gz", pytest.param(".tar.zst", marks=needs_zstd)])
def test_a_full_disk_leaves_nothing_and_is_said(small_class, tmp_path, suffix):
    """RLIMIT_FSIZE: a write beyond it fails as on a full disk."""
    (small_class / "noise.bin").write_bytes(os.urandom(3 << 20))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        said = call("backup", tmp_path / f"a{suffix}", "--course", small_class, status=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "is full: there is no backup, and nothing left of it" in said
    assert [path.name for path in tmp_path.iterdir()] == ["course"]


def test_without_zstd_it_says_what_else_there_is(small_class, tmp_path, monkeypatch):
    monkeypatch.setattr(backups.shutil, "which", lambda name: None)
    assert "name a file that ends in .tar.gz" in call(
        "backup", tmp_path / "a.tar.zst", "--course", small_class, status=1
    )
    assert [path.name for path in tmp_path.iterdir()] == ["course"]


def test_files_that_the_configuration_keeps_outside_the_course_are_not_left_out_in_silence(small_class, tmp_path):
    with open(small_class / "nbgrader_config.py", "a") as file:
        file.write(f"\nc.CourseDirectory.submitted_directory = {str(tmp_path / 'elsewhere')!r}\n")
    assert "outside the course" in call("backup", tmp_path / "a.tar.gz", "--course", small_class, status=1)
    assert not (tmp_path / "a.tar.gz").exists()


# PostgreSQL


def test_a_gradebook_in_postgresql_is_dumped_by_pg_dump_with_the_password_out_of_sight(
    small_class, tmp_path, monkeypatch
):
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "pg_dump"
    fake.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\nprintf "dump by $PGPASSWORD"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    url = "postgresql+psycopg://amp:hidden@db.example:5433/amp"
    call("backup", tmp_path / "a.tar.gz", "--course", small_class, "--db", url)
    arguments = (tmp_path / "arguments").read_text()
    assert "--dbname=postgresql://amp@db.example:5433/amp" in arguments and "hidden" not in arguments
    said = call("restore", tmp_path / "a.tar.gz", tmp_path / "new")
    assert (tmp_path / "new" / "gradebook.pgdump").read_text() == "dump by hidden"
    assert "pg_restore" in said and str(tmp_path / "new" / "gradebook.pgdump") in said
    fake.write_text("#!/bin/sh\necho 'pg_dump: error: no such server' >&2\nexit 1\n")
    said = call("backup", tmp_path / "b.tar.gz", "--course", small_class, "--db", url, status=1)
    assert "no such server" in said and "hidden" not in said
    monkeypatch.setattr(backups.shutil, "which", lambda name: None)
    said = call("backup", tmp_path / "b.tar.gz", "--course", small_class, "--db", url, status=1)
    assert "apt install postgresql-client" in said and "hidden" not in said and not (tmp_path / "b.tar.gz").exists()


# Archives that are none


def refused(archive: Path, said: str, target: Path | None = None) -> None:
    target = target or archive.parent / "target"
    before = sorted(archive.parent.iterdir())
    printed = call("restore", archive, target, status=1)
    assert said in printed and "Traceback" not in printed, printed
    assert sorted(archive.parent.iterdir()) == before, "nothing is left behind"


@pytest.mark.parametrize("suffix", [".tar.gz", pytest.param(".tar.zst", marks=needs_zstd)])
def test_wherever_an_archive_is_cut_or_changed_it_is_refused(tiny_course, tmp_path, suffix):
    file = tmp_path / f"course{suffix}"
    backup(Course(tiny_course), file)
    data, broken = file.read_bytes(), tmp_path / f"broken{suffix}"
    cuts = [0, 1, 5, len(data) // 3, len(data) // 2, len(data) - 30]
    changes = [3, 30, len(data) // 4, len(data) // 2, 3 * len(data) // 4]
    for cut in cuts:
        broken.write_bytes(data[:cut])
        refused(broken, "Nothing was written")
    for place in changes:
        broken.write_bytes(data[:place] + bytes([data[place] ^ 0xFF, data[place + 1] ^ 0xFF]) + data[place + 2 :])
        with open(broken, "rb") as raw:
            try:
                verify(raw)
            except CourseError:
                continue
        assert place < 10, "only what stands in the header of the compression may change"


def rewritten(archive: Path, target: Path, edit) -> Path:
    """An archive whose members `edit` has changed: edit(list of (TarInfo, bytes)) -> another such list."""
    with tarfile.open(archive) as tar:
        members = [(member, tar.extractfile(member).read()) for member in tar]
    with tarfile.open(target, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for member, data in edit(members):
            member.size = len(data) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(data))
    return target


def evil(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info, b"evil"


def listed(members: list, name: str, **entry) -> list:
    """The members with `name` in their manifest, as an enemy who can write would have it."""
    *rest, (info, data) = members
    manifest = json.loads(data)
    manifest["files"][name] = {"size": 4, "sha256": hashlib.sha256(b"evil").hexdigest(), "mode": 0o644, **entry}
    return [*rest, (info, json.dumps(manifest).encode())]


@pytest.mark.parametrize(
    "name",
    ["/etc/evil", "../evil", "course/../../evil", "course//evil", "course/./evil", "evil", "course", "other/evil", ""],
)
def test_an_archive_that_would_write_elsewhere_is_refused(archive, tmp_path, name):
    file = rewritten(archive, tmp_path / "a.tar.gz", lambda ms: [ms[0], evil(name), *listed(ms, name)[1:]])
    refused(file, "no backup does")
    assert not Path("/etc/evil").exists() and not (tmp_path.parent / "evil").exists()


@pytest.mark.parametrize(
    "kind, link",
    [
        (tarfile.SYMTYPE, "/etc"),
        (tarfile.SYMTYPE, ".."),
        (tarfile.LNKTYPE, "course/nbgrader_config.py"),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
        (tarfile.FIFOTYPE, ""),
        (tarfile.DIRTYPE, ""),
        (tarfile.CONTTYPE, ""),
    ],
    ids=["symlink", "symlink up", "hard link", "character device", "block device", "pipe", "folder", "contiguous"],
)
def test_an_archive_with_anything_but_files_is_refused(archive, tmp_path, kind, link):
    file = rewritten(
        archive, tmp_path / "a.tar.gz", lambda ms: [ms[0], evil("course/x", kind, link), *listed(ms, "course/x")[1:]]
    )
    refused(file, "no backup has such")


def test_a_link_cannot_be_put_where_a_later_file_goes(archive, tmp_path):
    members = [evil("course/x", tarfile.SYMTYPE, str(tmp_path)), evil("course/x/evil")]
    file = rewritten(archive, tmp_path / "a.tar.gz", lambda ms: [ms[0], *members, *listed(ms, "course/x/evil")[1:]])
    refused(file, "no backup has such")


def _setuid(manifest: dict) -> None:
    manifest["files"]["course/nbgrader_config.py"]["mode"] = 0o4755


def _folder(manifest: dict) -> None:
    manifest["folders"]["course/../../evil"] = 0o755


def _hub(manifest: dict) -> None:
    manifest["hub"] = "../../evil"


def _unknown(manifest: dict) -> None:
    manifest["more"] = 1


def _text(manifest: dict) -> None:
    manifest["course_id"] = ["\x1b[2J"]


def _list(manifest: dict) -> None:
    manifest["files"] = []


@pytest.mark.parametrize("edit", [_setuid, _folder, _hub, _unknown, _text, _list], ids=lambda edit: edit.__name__)
def test_a_manifest_that_says_what_no_backup_says_is_refused(archive, tmp_path, edit):
    def change(members: list) -> list:
        *rest, (info, data) = members
        manifest = json.loads(data)
        edit(manifest)
        return [*rest, (info, json.dumps(manifest).encode())]

    refused(rewritten(archive, tmp_path / "a.tar.gz", change), "Nothing was written")


def test_a_file_that_is_twice_missing_not_listed_or_changed_is_refused(archive, tmp_path):
    def named(name: str):
        return lambda members: [m for m in members if m[0].name == name]

    config = named("course/nbgrader_config.py")
    edits = {
        "twice": lambda ms: [*ms[:-1], *config(ms), ms[-1]],
        "is missing": lambda ms: [m for m in ms if m not in config(ms)],
        "is not in its list": lambda ms: [ms[0], evil("course/x"), *ms[1:]],
        "is damaged": lambda ms: [(i, b"evil" if i.name == "course/nbgrader_config.py" else d) for i, d in ms],
        "goes on after its manifest": lambda ms: [*ms, evil("course/x")],
        "cut short": lambda ms: ms[:-1],
        "is an archive of something else": lambda ms: ms[1:],
        "not of a whole course": lambda ms: _without(ms, "course/.autograder/secret"),
    }
    for number, (said, edit) in enumerate(edits.items()):
        refused(rewritten(archive, tmp_path / f"{number}.tar.gz", edit), said)


def _without(members: list, name: str) -> list:
    *rest, (info, data) = members
    manifest = json.loads(data)
    del manifest["files"][name]
    return [*(m for m in rest if m[0].name != name), (info, json.dumps(manifest).encode())]


def test_another_format_another_archive_and_another_thing_are_said(archive, tmp_path):
    def newer(members: list) -> list:
        return [(members[0][0], b'{"autograder backup": 99}'), *members[1:]]

    refused(rewritten(archive, tmp_path / "a.tar.gz", newer), "format '99'")
    (tmp_path / "b.tar.gz").write_bytes(b"PK\x03\x04 a zip")
    refused(tmp_path / "b.tar.gz", "neither .tar.gz nor .tar.zst")
    (tmp_path / "c.tar.gz").write_bytes(gzip.compress(b"a text"))
    refused(tmp_path / "c.tar.gz", "Nothing was written")
    with tarfile.open(tmp_path / "d.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("holiday.jpg"))
    refused(tmp_path / "d.tar.gz", "wants to write 'holiday.jpg'; no backup does")
    refused(tmp_path / "none.tar.gz", "cannot be read: No such file")
    refused(tmp_path, "cannot be read: Is a directory", tmp_path / "target")


def test_a_name_of_a_gigabyte_is_not_read_into_memory(archive, tmp_path):
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    with gzip.open(tmp_path / "a.tar.gz", "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.USTAR_FORMAT))
        file.write(bytes(1 << 20))
    refused(tmp_path / "a.tar.gz", "a member of a kind that a backup does not have")


def test_it_is_restored_into_a_new_or_an_empty_folder_only(archive, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").write_text("x")
    for target in (full, full / "mine"):
        assert "is there and not empty" in call("restore", archive, target, status=1)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert "is there and not empty" in call("restore", archive, tmp_path / "link", status=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "link"] and (full / "mine").read_text() == "x"
    empty = tmp_path / "empty"
    empty.mkdir()
    call("restore", archive, empty)
    assert Course(empty).assignments() == [A]


def test_a_disk_without_room_is_said_before_and_one_that_fills_up_leaves_nothing(archive, tmp_path, monkeypatch):
    from types import SimpleNamespace

    with monkeypatch.context() as patch:
        patch.setattr(backups.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
        assert "0 MB are free" in call("restore", archive, tmp_path / "deep" / "course", status=1)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backups.os, "chmod", full)
    said = call("restore", archive, tmp_path / "deep" / "course", status=1)
    assert "No space left on device. Nothing is left of it" in said and list(tmp_path.iterdir()) == []


# A hub


@pytest.fixture
def hub(small_class, tmp_path):
    """A hub's folder as it lies on a disk: course.yaml, roster, state with the course, database, exchange, homes."""
    place = tmp_path / "hub"
    (place / "state" / "exchange" / "amp" / "inbound" / "ada" / "ada+tiny+2026-01-10 10:00:00 UTC").mkdir(parents=True)
    small_class.rename(place / "state" / "course")
    (place / "course.yaml").write_text("course: {id: amp, title: AMP}\ninstructors: [grace]\nroster: roster.csv\n")
    (place / "roster.csv").write_text("username,first_name,last_name,email\nada,Ada,L,a@example.org\n")
    state = place / "state"
    inbound = state / "exchange" / "amp" / "inbound" / "ada"
    (inbound / "ada+tiny+2026-01-10 10:00:00 UTC" / "tiny.ipynb").write_text("{}")
    (inbound / "hidden").symlink_to("/etc/shadow")
    (state / "passwords.csv").write_text("ada,secret\n")
    (state / "cookie_secret").write_text("cookies")
    (state / "homes" / "ada").mkdir(parents=True)
    (state / "homes" / "ada" / "note.txt").write_text("mine")
    with sqlite3.connect(state / "hub.sqlite") as db:
        db.execute("CREATE TABLE users (name)")
        db.execute("INSERT INTO users VALUES ('ada')")
    db.close()
    return place


def test_a_hub_is_restored_with_what_it_cannot_do_without(hub, tmp_path):
    said = call("backup", tmp_path / "hub.tar.gz", "--config", hub / "course.yaml")
    assert "homes" in said and "cookie secret" in said and "inbound/ada/hidden: a link" in said
    new = tmp_path / "new"
    said = call("restore", tmp_path / "hub.tar.gz", new)
    assert "people log in again" in said and "names another place" not in said
    for name in ("course.yaml", "roster.csv", "state/passwords.csv"):
        assert (new / name).read_bytes() == (hub / name).read_bytes()
    submission = "state/exchange/amp/inbound/ada/ada+tiny+2026-01-10 10:00:00 UTC/tiny.ipynb"
    assert (new / submission).read_text() == "{}"
    assert tree(new / "state" / "course") == tree(hub / "state" / "course")
    db = sqlite3.connect(new / "state" / "hub.sqlite")
    assert db.execute("SELECT name FROM users").fetchall() == [("ada",)]
    db.close()
    assert not list(new.rglob("cookie_secret")) and not list(new.rglob("note.txt"))


def test_a_hub_whose_files_lay_elsewhere_says_what_to_write_into_its_configuration(hub, tmp_path):
    (hub / "state").rename(tmp_path / "away")
    (hub / "roster.csv").rename(tmp_path / "people.csv")
    config = hub / "course.yaml"
    config.write_text(
        f"course: {{id: amp, title: AMP}}\ninstructors: [grace]\nroster: ../people.csv\nfolder: {tmp_path}/away\n"
    )
    call("backup", tmp_path / "hub.tar.gz", "--config", config)
    for inside in (tmp_path / "away" / "x.tar.gz", tmp_path / "away" / "exchange" / "x.tar.gz"):
        assert "lies in" in call("backup", inside, "--config", config, status=1)
    said = call("restore", tmp_path / "hub.tar.gz", tmp_path / "new")
    assert f"another place as its folder ({tmp_path}/away/course): write there where it is now, state." in said
    assert "another place as its roster" in said
    assert (tmp_path / "new" / "roster.csv").is_file() and (tmp_path / "new" / "state" / "course").is_dir()


def test_a_hub_is_named_by_its_configuration_alone(hub, tmp_path):
    done = CliRunner().invoke(
        app, ["backup", str(tmp_path / "a.tar.gz"), "--config", str(hub / "course.yaml"), "--course", str(hub)]
    )
    assert done.exit_code == 2 and "leave --course out" in done.output
    assert "There is no" in call("backup", tmp_path / "a.tar.gz", "--config", hub / "nothing.yaml", status=1)
