"""`autograder doctor --hub`: each bad situation is made here, and found with its cure."""

import datetime
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_nvml import FakeGpu, fake_nvml, process
from typer.testing import CliRunner

from autograder.cli import app
from autograder.errors import AutograderError, HubError, SandboxError
from autograder.hub import doctor, settings
from autograder.hub.config import Gpu, HubConfig, Limits, Plugin, Tls
from autograder.hub.doctor import file_system, findings

MIB = 2**20
NOW = datetime.datetime.now(datetime.UTC)


@pytest.fixture
def config(tmp_path) -> HubConfig:
    """A hub that nothing is wrong with, and that has not started yet."""
    roster = tmp_path / "roster.csv"
    roster.write_text("username,first_name,last_name,email\nada,Ada,L,\nbob,Bob,B,\n")
    return HubConfig(
        "amp", "AMP", ("grace",), roster, tmp_path / "state", tmp_path / "exchange", timezone="Europe/Zurich"
    )


def bad(found) -> list[str]:
    return [words for fine, words in found if not fine]


def one(found) -> str:
    """The only bad finding."""
    (words,) = bad(found)
    return words


# The machine


def test_a_hub_that_nothing_is_wrong_with_has_no_bad_findings(config):
    checks = (doctor._idle, doctor._limits, doctor._memory, doctor._zones, doctor._exchange, doctor._databases)
    said = [each for check in (*checks, doctor._people, doctor._door) for each in check(config)]
    assert len(said) >= 10 and not bad(said)
    assert not bad(doctor._backups(config, None))


@pytest.mark.parametrize(
    ("version", "cure"),
    [("5.1.0", "older than 5.2"), ("5.4.3", "jupyterhub>=5.5.1,<6"), ("6.0.0", "jupyterhub>=6.1.1,<7"), ("7.0", "<7")],
)
def test_a_jupyterhub_that_is_too_old_or_has_holes_is_named_with_the_pip_line(monkeypatch, version, cure):
    monkeypatch.setattr(doctor.importlib.metadata, "version", lambda name: version)
    assert cure in one(doctor._versions())
    for good in ("5.5.4", "6.1.1"):
        monkeypatch.setattr(doctor.importlib.metadata, "version", lambda name, good=good: good)
        assert not bad(doctor._versions())


def test_a_hub_without_jupyterhub_or_its_proxy_is_told_how_to_get_them(monkeypatch, tmp_path):
    def missing(name):
        raise doctor.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.importlib.metadata, "version", missing)
    assert "amp-course[hub]" in one(doctor._versions())
    monkeypatch.setattr(shutil, "which", lambda *arguments, **named: None)
    assert "Node.js is not installed" in one(doctor._proxy())


def test_a_driver_too_old_for_the_wheel_is_found(monkeypatch):
    from ampkit.doctor import machine

    old = machine.Machine("2.14.1", cuda_build="13.0", driver="535.1", driver_cuda=(12, 2), shm_bytes=0, nvml=True)
    monkeypatch.setattr(machine, "look", lambda measure: old)
    assert "Driver 535.1 runs CUDA up to 12.2" in one(doctor._driver())
    monkeypatch.setattr(machine, "look", lambda measure: machine.Machine("2.14.1", cuda_build="13.0"))
    assert not bad(doctor._driver())


def test_a_small_shm_is_found_where_students_share_it(config, monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage._replace(total=64 * MIB))
    monkeypatch.setattr(doctor.os.path, "isdir", lambda path: True)
    said = one(doctor._shm(replace(config, spawner=Plugin("docker"))))
    assert "64 MiB" in said and "--shm-size=2g" in said and "147 MiB" in said
    assert not bad(doctor._shm(config))  # a box has its own


def test_a_machine_that_has_no_boxes_is_told_by_the_sandboxs_own_words(config, monkeypatch):
    from autograder import sandbox

    def none():
        raise SandboxError("This machine cannot isolate an answer.")

    monkeypatch.setattr(sandbox, "bwrap", none)
    assert "This machine cannot isolate an answer." in bad(findings(config))


# Who holds a GPU's memory


@pytest.fixture
def nvml(monkeypatch):
    def make(*gpus, **options):
        monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(*gpus, **options))

    return make


@pytest.fixture
def kernel(tmp_path):
    """A process that looks like the kernel of ada's server."""
    file = tmp_path / "kernel-1234-abcd.json"
    code = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", code, "-f", str(file)],
        env={**os.environ, "JUPYTERHUB_USER": "ada"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as running:
        running.stdout.readline()
        yield running.pid
        running.communicate()


def activity(config, hours, running=True):
    """The hub's database, in which ada's server was last active so many hours ago."""
    config.folder.mkdir(exist_ok=True)
    at = (NOW - datetime.timedelta(hours=hours)).replace(tzinfo=None)
    with sqlite3.connect(config.database) as database:
        database.execute("CREATE TABLE IF NOT EXISTS users (id INTEGER, name TEXT)")
        database.execute(
            "CREATE TABLE IF NOT EXISTS spawners (user_id INTEGER, server_id INTEGER, last_activity DATETIME)"
        )
        database.execute("DELETE FROM users")
        database.execute("DELETE FROM spawners")
        database.execute("INSERT INTO users VALUES (1, 'ada')")
        database.execute("INSERT INTO spawners VALUES (1, ?, ?)", (1 if running else None, str(at)))
    database.close()


def test_who_holds_gpu_memory_is_named_with_how_much_and_how_long_idle(config, nvml, kernel):
    nvml(FakeGpu(compute=(process(kernel, 1204 * MIB),), used=1204 * MIB))
    activity(config, 3.2)
    said = one(doctor._gpus(config))
    assert said.startswith(f"GPU 0: ada holds 1,204 MiB (pid {kernel}, a notebook's kernel); last active 3.2 hours ago")
    assert f"kill {kernel}" in said
    activity(config, 0.1)
    assert not bad(doctor._gpus(config))
    activity(config, 3.2, running=False)  # the hub has no such server: it says who, and does not guess since when
    found = list(doctor._gpus(config))
    assert not bad(found) and any("ada holds 1,204 MiB" in words for _, words in found)


def test_the_tables_that_are_asked_are_jupyterhubs_own():
    orm = pytest.importorskip("jupyterhub.orm", reason="requires JupyterHub, whose tables these are")
    tables = orm.Base.metadata.tables
    assert {"id", "name"} <= set(tables["users"].columns.keys())
    assert {"user_id", "server_id", "last_activity"} <= set(tables["spawners"].columns.keys())


def test_a_process_that_cannot_be_seen_is_still_counted(config, nvml):
    nvml(FakeGpu(compute=(process(2**22 + 1, None),)))
    words = [words for _, words in doctor._gpus(config)]
    assert any("somebody holds memory that NVML does not tell" in each for each in words)


def test_gpus_of_course_yaml_that_are_not_there_are_found(config, nvml):
    nvml(driver=False)
    assert "NVML shows no GPU here" in one(doctor._gpus(replace(config, gpu=Gpu("whole", ("0",)))))
    assert list(doctor._gpus(config)) == []
    nvml(FakeGpu())
    assert "gpu.devices: 1: this machine has 1 GPU" in one(doctor._gpus(replace(config, gpu=Gpu("whole", ("0", "1")))))


@pytest.mark.parametrize(("policy", "shared"), [("whole", None), ("mps", "mps"), ("time-slicing", "time-slicing")])
def test_a_server_on_a_shared_gpu_is_told_so_as_it_cannot_see_it(config, policy, shared):
    spawners = pytest.importorskip("autograder.hub.spawner", reason="requires JupyterHub, whose servers these are")
    spawner = spawners.BoxedSpawner(course=replace(config, gpu=Gpu(policy, ("0",))))
    spawner.user = SimpleNamespace(name="ada")
    assert spawner.user_env({}).get("AMPKIT_GPU_SHARED") == shared


# What course.yaml says


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cull_connected": False}, "an open browser tab keeps one for ever"),
        ({"cull_busy": True}, "training is"),
        ({"cull_connected": None}, "an open browser tab"),
    ],
)
def test_culling_that_never_happens_or_ends_training_is_found(config, monkeypatch, tmp_path, change, words):
    copy = tmp_path / "jupyter"
    shutil.copytree(settings.FOLDER, copy)
    path = copy / "student" / "jupyter_server_config.json"
    said = json.loads(path.read_text())
    said["MappingKernelManager"] |= change
    path.write_text(json.dumps(said))
    monkeypatch.setattr(settings, "FOLDER", copy)
    assert words in one(doctor._idle(config))


def test_a_hub_whose_kernels_are_never_culled_is_found(config, monkeypatch):
    monkeypatch.setattr(
        settings, "write", lambda config, role, folder: (folder / "jupyter_server_config.json").write_text("{}")
    )
    assert any("they are never ended" in words for words in bad(doctor._idle(config)))


@pytest.mark.parametrize(
    ("limits", "gpu", "words"),
    [
        (Limits(idle_minutes=1440, kernel_idle_minutes=600), Gpu("whole", ("0",)), "kernel_idle_minutes: 600"),
        (Limits(idle_minutes=30, cell_seconds=3600), Gpu(), "its server would be stopped under it"),
        (Limits(idle_minutes=10, kernel_idle_minutes=20), Gpu(), "make it the larger of the two"),
    ],
)
def test_idle_times_that_hurt_somebody_are_found(config, limits, gpu, words):
    assert words in one(doctor._idle(replace(config, limits=limits, gpu=gpu)))


def test_submissions_larger_than_an_upload_or_than_the_disk_are_found(config, monkeypatch):
    large = replace(config, limits=Limits(submission_mb=500))
    assert "max_body_size" in one(doctor._limits(large))
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage._replace(free=30 * 10**6))
    assert "one submission of 2 students is at most 40 MB: make room" in one(doctor._limits(config))
    said = [words for _, words in doctor._limits(replace(config, tls="elsewhere"))]
    assert any("client_max_body_size" in words for words in said)
    assert any("grading does not ask nbgrader's Execute.timeout" in words for words in said)


def test_a_server_larger_than_the_machine_is_found(config):
    assert "lower limits.memory_gb" in one(doctor._memory(replace(config, limits=Limits(memory_gb=90_000))))


def test_time_zones_that_disagree_are_found_in_the_file_that_says_so(config):
    config.course.mkdir(parents=True)
    file = config.course / "nbgrader_config.py"
    file.write_text("c = get_config()\nc.Exchange.timezone = 'UTC'\nc.NbGraderAPI.timezone = 'Europe/Zurich'\n")
    said = one(doctor._zones(config))
    assert "Exchange.timezone is 'UTC'" in said and str(file) in said and "'Europe/Zurich'" in said
    file.write_text("c = get_config()\nraise ValueError('oh')\n")
    with pytest.raises(AutograderError, match="does not run"):
        list(doctor._zones(config))


# The exchange


@pytest.fixture
def exchange(config) -> Path:
    from autograder.hub.exchange import prepare  # as the hub makes it

    config.exchange.mkdir()
    prepare(config.exchange, config.course_id, ["ada"])
    return config.exchange / config.course_id


def test_an_exchange_as_the_hub_makes_it_is_fine(config, exchange):
    found = list(doctor._exchange(config))
    assert not bad(found) and "a folder for each student, 1 so far" in found[0][1]


def test_a_world_writable_exchange_is_found(config, exchange):
    config.exchange.chmod(0o777)  # what nbgrader's own exchange insists on
    assert f"chmod o-w {config.exchange}" in one(doctor._exchange(config))


def test_an_inbound_that_everybody_can_list_or_look_into_is_found(config, exchange):
    (exchange / "inbound").chmod(0o755)
    assert "who takes the course" in one(doctor._exchange(config))
    (exchange / "inbound").chmod(0o711)
    (exchange / "inbound" / "ada").chmod(0o755)
    assert "others can look into" in one(doctor._exchange(config))


def test_submissions_in_nbgraders_own_layout_are_found(config, exchange):
    (exchange / "inbound" / "eve+03_gradscaler+2026-01-11 10:00:00 UTC").mkdir()
    assert "anybody can hand in under anybody's name" in one(doctor._exchange(config))


@pytest.mark.skipif(os.geteuid() != 0, reason="requires root, to give a folder away")
def test_a_folder_of_the_exchange_that_somebody_else_owns_is_found(config, exchange):
    os.chown(exchange / "outbound", 12345, -1)
    assert "belongs to uid 12345 and" in one(doctor._exchange(config))


# Databases


MOUNTS = """\
1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 0:44 / /srv rw - nfs4 server:/srv rw
3 2 8:2 / /srv/local\\040disk rw - xfs /dev/sdb rw
4 1 0:45 / /mnt rw - fuse.sshfs me@there: rw
5 1 0:46 / /boxes rw - fuse.fuse-overlayfs overlay rw
"""


def test_the_file_system_of_a_path_is_that_of_the_deepest_mount():
    assert file_system(Path("/var/x"), MOUNTS) == "ext4"
    assert file_system(Path("/srv/state"), MOUNTS) == "nfs4"
    assert file_system(Path("/srvice"), MOUNTS) == "ext4"
    assert file_system(Path("/srv/local disk/x"), MOUNTS) == "xfs"
    assert file_system(Path("/srv"), MOUNTS + "6 1 0:47 / /srv rw - btrfs /dev/sdc rw\n") == "btrfs"


def test_sqlite_on_a_network_file_system_is_found(config, monkeypatch):
    monkeypatch.setattr(doctor, "file_system", lambda path: file_system(path, MOUNTS))
    nfs = replace(config, folder=Path("/srv/state"))
    hub, book = bad(doctor._databases(nfs))
    assert "hub.sqlite is SQLite on nfs4" in hub and "gradebook.db is SQLite on nfs4" in book and "PostgreSQL" in book
    assert len(bad(doctor._databases(replace(config, folder=Path("/mnt/state"))))) == 2
    assert not bad(doctor._databases(replace(config, folder=Path("/boxes/state"))))
    assert len(bad(doctor._databases(replace(nfs, gradebook="postgresql+psycopg://u:secret@h/n")))) == 1
    assert "secret" not in str(list(doctor._databases(replace(nfs, gradebook="postgresql+psycopg://u:secret@h/n"))))
    assert len(bad(doctor._databases(replace(config, gradebook="sqlite:////srv/book.db")))) == 1


# People


def test_duplicates_on_the_roster_are_a_finding_and_no_end_of_the_others(config):
    config.roster.write_text("username\nada\nada\n")
    with pytest.raises(HubError, match="stands there 2 times"):
        list(doctor._people(config))
    found = list(findings(config))
    assert any("stands there 2 times" in words for words in bad(found))
    assert any(words.startswith("door:") for _, words in found)  # what comes after it is still looked at


def test_students_missing_in_the_gradebook_are_found(config):
    from autograder.course import CONFIG, prepare_nbgrader
    from autograder.gradebook import gradebook

    prepare_nbgrader()
    (config.course / ".autograder").mkdir(parents=True)
    (config.course / "nbgrader_config.py").write_text(CONFIG.format(course_id=config.course_id))
    with gradebook(f"sqlite:///{config.course / 'gradebook.db'}", config.course_id) as book:
        book.add_student("bob")
        book.add_student("old")
    found = list(doctor._people(config))
    assert "1 on the roster are not in it (ada)" in one(found)
    assert any("1 in it are not on the roster (old)" in words for _, words in found)


def test_an_empty_roster_is_found(config):
    config.roster.write_text("username\n")
    assert "nobody but grace can log in" in one(doctor._people(config))


# The door


def test_plain_http_for_the_network_is_found_and_also_behind_a_reverse_proxy(config):
    assert "it speaks plain http" in one(doctor._door(replace(config, address="0.0.0.0")))
    assert "not the reverse proxy" in one(doctor._door(replace(config, address="0.0.0.0", tls="elsewhere")))
    assert not bad(doctor._door(replace(config, tls="elsewhere")))


def certificate(folder, days, key_mode=0o600) -> Tls:
    x509 = pytest.importorskip("cryptography.x509", reason="requires cryptography, to make a certificate")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hub.example.org")])
    ends = NOW + datetime.timedelta(days=days, hours=1)
    made = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=1,
        not_valid_before=ends - datetime.timedelta(days=90),
        not_valid_after=ends,
    ).sign(key, hashes.SHA256())
    tls = Tls(folder / f"{days}.pem", folder / f"{days}.key")
    tls.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    tls.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    tls.key.chmod(key_mode)
    return tls


def test_certificates_that_ended_or_end_soon_or_fit_no_key_are_found(config, tmp_path):
    good, soon, ended = (certificate(tmp_path, days) for days in (60, 5, -3))
    assert not bad(doctor._door(replace(config, tls=good)))
    assert "ends in 5 days" in one(doctor._door(replace(config, tls=soon)))
    assert "ended" in one(doctor._door(replace(config, tls=ended)))
    assert "cannot be used together" in one(doctor._door(replace(config, tls=Tls(good.certificate, soon.key))))
    good.key.chmod(0o644)
    assert f"chmod 600 {good.key}" in one(doctor._door(replace(config, tls=good)))


# Backups


def archive(path, first, days):
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo(first), io.BytesIO())
    at = NOW.timestamp() - days * 86_400
    os.utime(path, (at, at))


def test_no_backup_and_one_older_than_a_week_are_found(config, tmp_path):
    from autograder.backup import MARK

    config.course.mkdir(parents=True)
    archive(tmp_path / "lessons.tar.gz", "something else", 0)
    assert not bad(doctor._backups(config, None)), "a course that nobody has handed anything in for"
    (config.exchange / config.course_id / "inbound" / "ada").mkdir(parents=True, exist_ok=True)
    assert not bad(doctor._backups(config, None))
    (config.course / "submitted" / "ada").mkdir(parents=True)
    assert "there is none in" in one(doctor._backups(config, None))
    archive(tmp_path / "old.tar.gz", MARK, 9)
    assert "old.tar.gz, is 9 days old" in one(doctor._backups(config, None))
    (tmp_path / "backups").mkdir()
    archive(tmp_path / "backups" / "new.tar.gz", MARK, 2)
    assert not bad(doctor._backups(config, None))
    empty = tmp_path / "elsewhere"
    empty.mkdir()
    assert f"there is none in {empty}" in one(doctor._backups(config, empty))


# The command


def test_the_command_says_a_line_for_each_finding_and_fails_if_one_is_bad(config, tmp_path):
    path = tmp_path / "course.yaml"
    path.write_text("course: {id: amp}\ninstructors: [grace]\nroster: roster.csv\ntimezone: Europe/Zurich\n")
    config.roster.write_text("username\nada\nada\n")
    done = CliRunner().invoke(app, ["doctor", "--hub", "--config", str(path)])
    assert done.exit_code == 1 and "FAIL The roster" in done.output and "ok   idle:" in done.output
    assert "Traceback" not in done.output


def test_the_command_wrongly_typed_is_told_what_goes_with_what(tmp_path):
    done = CliRunner().invoke(app, ["doctor", "--config", "course.yaml"])
    assert done.exit_code == 2 and "--hub" in done.output
    done = CliRunner().invoke(app, ["doctor", "--hub", "--config", str(tmp_path / "none.yaml")])
    assert done.exit_code == 1 and "There is no" in done.output


def test_without_a_course_yaml_the_machine_alone_is_looked_at():
    found = list(findings())
    assert any("--config course.yaml" in words for _, words in found) and not any(
        "roster" in words for _, words in found
    )


def test_the_page_on_gpus_knows_every_policy_and_the_names_that_the_code_has():
    from ampkit import gpu
    from autograder.hub.config import GPU_POLICIES

    page = (Path(doctor.__file__).resolve().parents[2] / "hub" / "GPU.md").read_text(encoding="utf-8")
    assert all(f"`{policy}`" in page for policy in GPU_POLICIES)
    assert gpu.SAID in page and "ampkit.release_gpu()" in page
    words = gpu.not_to_be_trusted("Another process computes on this GPU: pid 4711, 1,204 MiB.")
    assert words in page
