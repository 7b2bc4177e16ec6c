"""A gradebook in PostgreSQL: a real server, started here in a folder of its own, as a user of its own."""

import os
import pwd
import shutil
import subprocess
import threading
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course import Course, prepare_nbgrader
from autograder.hub import ports

A = "tiny"
pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


def _server() -> Path | None:
    """The folder of the newest initdb and postgres of this machine."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    on_path = shutil.which("initdb")
    found += [Path(on_path).resolve().parent] if on_path else []
    return max(found, key=lambda path: [int(part) for part in path.parts if part.isdigit()], default=None)


def _ordinary_user() -> list[str]:
    """What comes before a command so that it runs as no root, which PostgreSQL refuses to be."""
    if os.geteuid():
        return []
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        user = pwd.getpwnam("nobody")
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    """The URL of an empty database on a server of our own."""
    pytest.importorskip("psycopg", reason="requires psycopg: pip install -e '.[postgres]'")
    programs = _server()
    if programs is None:
        pytest.skip("requires a PostgreSQL server: apt install postgresql")
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("requires setpriv (util-linux): PostgreSQL does not run as root")
    as_user = _ordinary_user()
    # Not pytest's own folder: the server's user may not enter that.
    made = subprocess.run(
        [*as_user, "mktemp", "-d", "/tmp/postgres-XXXXXX"], capture_output=True, text=True, check=True
    )
    data = Path(made.stdout.strip())
    (port,) = ports.free()
    initdb = [
        programs / "initdb",
        "-D",
        data / "data",
        "-U",
        "amp",
        "--auth=trust",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
    ]
    server = None
    try:
        subprocess.run([*as_user, *map(str, initdb)], check=True, capture_output=True, cwd="/")
        options = ["-D", data / "data", "-p", port, "-k", data, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        server = subprocess.Popen(
            [*as_user, str(programs / "postgres"), *map(str, options)], stderr=subprocess.PIPE, text=True, cwd="/"
        )
        for line in server.stderr:
            if "ready to accept connections" in line:
                break
        else:
            raise RuntimeError("the server did not start")
        threading.Thread(target=server.stderr.read, daemon=True).start()
        createdb = [programs / "createdb", "-h", "127.0.0.1", "-p", port, "-U", "amp", "amp"]
        subprocess.run([*as_user, *map(str, createdb)], check=True, capture_output=True, cwd="/")
        yield f"postgresql+psycopg://amp@127.0.0.1:{port}/amp"
    finally:
        if server is not None:
            server.terminate()
            server.wait()
            server.stderr.close()
        shutil.rmtree(data, ignore_errors=True)


@pytest.fixture
def released(small_class, postgres, monkeypatch, tmp_path):
    """The small class, its assignment released into the server's gradebook."""
    from autograder import release

    monkeypatch.setattr(release, "ROOT", tmp_path / "build")
    prepare_nbgrader()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Course(small_class, postgres).release(A)
    return small_class


@pytest.mark.slow
def test_several_graders_write_to_it_at_the_same_time(released, postgres, grade_here, small_scores, in_gradebook):
    """Courses of several graders, one gradebook: each grades all, and no row is there twice."""
    copies = []
    for number in range(3):
        copies.append(released.parent / f"grader{number}")
        shutil.copytree(released, copies[-1])
    failed = []

    def work(root: Path) -> None:
        outcome = grade_here(root, db=postgres, force=True)
        failed.extend(outcome.failed.items())

    threads = [threading.Thread(target=work, args=(root,)) for root in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    book = in_gradebook(released, postgres)
    assert {row[0]: row[2] for row in book["submissions"]} == small_scores
    assert len(book["submissions"]) == len(small_scores)


@pytest.mark.slow
def test_grades_are_the_same_in_postgresql_as_in_sqlite(released, postgres, grade_here, small_scores, in_gradebook):
    done = CliRunner().invoke(app, ["grade", A, "--course", str(released), "--db", postgres])
    assert done.exit_code == 0, done.output
    theirs = in_gradebook(released, postgres)
    assert {row[0]: row[2] for row in theirs["submissions"]} == small_scores
    assert grade_here(released, db=postgres, pool=None).kept == sorted(small_scores), "nobody is run again"
    # The course's own gradebook knows nobody yet: what is finished there does not count here.
    outcome = grade_here(released)
    assert not outcome.kept and in_gradebook(released) == theirs
    for command in ("feedback", "report"):
        done = CliRunner().invoke(app, [command, A, "--course", str(released), "--db", postgres])
        assert done.exit_code == 0, done.output


@pytest.mark.slow
def test_a_backup_has_the_servers_gradebook_and_a_student_is_forgotten_there(
    released, postgres, grade_here, in_gradebook, tmp_path
):
    if not (shutil.which("pg_dump") and shutil.which("pg_restore")):
        pytest.skip("requires pg_dump and pg_restore: apt install postgresql-client")
    grade_here(released, db=postgres, force=True)
    before = in_gradebook(released, postgres)
    file, elsewhere = tmp_path / "course.tar.gz", tmp_path / "elsewhere"
    for command in (["backup", file, "--course", released, "--db", postgres], ["restore", file, elsewhere]):
        done = CliRunner().invoke(app, [str(word) for word in command])
        assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["forget", "bob", "--course", str(released), "--db", postgres, "--yes"])
    assert done.exit_code == 0 and "PostgreSQL overwrites deleted rows" in done.output, done.output
    after = in_gradebook(released, postgres)
    assert after == {table: [row for row in rows if row[0] != "bob"] for table, rows in before.items()} != before
    url = postgres.replace("postgresql+psycopg", "postgresql")
    restore = ["pg_restore", "--no-owner", "--clean", "-d", url, elsewhere / "gradebook.pgdump"]
    subprocess.run([str(word) for word in restore], check=True, capture_output=True)
    assert in_gradebook(released, postgres) == before


def test_a_server_that_is_not_there_is_said_without_the_password(small_class, boxed):
    pytest.importorskip("psycopg", reason="requires psycopg: pip install -e '.[postgres]'")
    url = "postgresql+psycopg://amp:hidden@127.0.0.1:1/amp"
    done = CliRunner().invoke(app, ["grade", A, "--course", str(small_class), "--db", url])
    assert done.exit_code == 1 and "cannot be opened" in done.output and "hidden" not in done.output
