"""course.yaml: what is wrong is said before anything starts, each key with its value, the reason and what to do."""

import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.errors import HubError
from autograder.hub import config

SMALLEST = """
course: {id: amp}
instructors: [grace]
roster: roster.csv
"""


@pytest.fixture
def written(tmp_path):
    """A function that writes a course.yaml (and a roster beside it) and gives its path."""

    def write(text: str):
        (tmp_path / "roster.csv").write_text("username,first_name,last_name,email\nada,,,\n", encoding="utf-8")
        path = tmp_path / "course.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def refused(written):
    """A function that gives the lines that a course.yaml is refused with, without the first."""

    def refuse(text: str) -> list[str]:
        with pytest.raises(HubError) as error:
            config.read(written(text))
        first, *lines = str(error.value).split("\n")
        assert "nothing was started" in first
        return [line.strip() for line in lines]

    return refuse


def test_three_keys_are_enough_and_everything_lies_in_one_folder(written, tmp_path):
    read = config.read(written(SMALLEST))
    assert (read.course_id, read.instructors, read.roster) == ("amp", ("grace",), tmp_path / "roster.csv")
    assert {read.course, read.homes, read.logs, read.run, read.database.parent / "course"} <= {
        tmp_path / "state" / name for name in ("course", "homes", "logs", "run")
    }
    assert read.exchange == tmp_path / "state" / "exchange"
    assert (read.grader, read.students_group, read.graders_group) == ("grader-amp", "nbgrader-amp", "formgrade-amp")
    assert read.url == "http://127.0.0.1:8000"


def test_the_example_is_valid_and_shows_the_defaults(root, tmp_path, written):
    text = (root / "hub" / "course.example.yaml").read_text(encoding="utf-8")
    shown, smallest = config.read(written(text)), config.read(written(SMALLEST))
    assert shown.title == "Mixed precision in PyTorch"
    for name in config.HubConfig.__dataclass_fields__:
        if name != "title":
            assert getattr(shown, name) == getattr(smallest, name), name
    commented = set(re.findall(r"^[# ]*([a-z_]+):", text, re.MULTILINE))
    sections = {"course": ("id", "title"), "limits": config.Limits.__dataclass_fields__, "gpu": ("policy", "devices")}
    for section, keys in sections.items():
        assert commented >= {section, *keys}
    assert commented >= {"gradebook", "exchange", "tls", "certificate", "key", "first_uid", "address", "port"}


def test_every_mistake_is_told_at_once(refused):
    lines = refused("course: {id: Amp 1}\ninstructors: []\nroster: none.csv\nport: 80000\ntimezone: Mars\nlimits: 3\n")
    assert [line.partition(":")[0] for line in lines] == [
        *("course.id", "instructors", "roster", "timezone", "limits", "port")
    ]


@pytest.mark.parametrize(
    ("added", "says"),
    [
        ("instructor: [ada]", "instructor: there is no such key; did you mean `instructors`?"),
        ("limits: {cell_second: 3}", "limits.cell_second: there is no such key; did you mean `limits.cell_seconds`?"),
        ("xyzzy: 1", "xyzzy: there is no such key; the keys here are course,"),
        ("port: '8000'", "port: '8000': it is a whole number from 1 to 65535, without quotes"),
        ("port: 80.5", "port: 80.5: it is a whole number"),
        ("port: true", "port: True: it is a whole number"),
        ("limits: {cpus: .nan}", "limits.cpus: nan: it is a number from 0.1"),
        ("limits: {submission_mb: 0}", "limits.submission_mb: 0: it is a number from 0.1"),
        ("timezone: CEST+2", "timezone: 'CEST+2': it is a name such as Europe/Zurich"),
        ("timezone: ../../etc/passwd", "timezone: '../../etc/passwd': it is a name such as"),
        ("spawner: box", "spawner.name: 'box': did you mean 'boxed'? It is one of boxed,"),
        ("spawner: {name: boxed, option: {}}", "spawner.option: there is no such key; did you mean `spawner.options`?"),
        ("authenticator: {name: oauth, options: [1]}", "authenticator.options: the list [1]: it is keys with values"),
        ("authenticator: dummy", "authenticator.name: 'dummy': It is one of passwords,"),
        ("gradebook: mysql://x", "gradebook: 'mysql://x': it is a database URL"),
        ("gpu: {policy: shared}", "gpu.policy: 'shared': It is one of none, whole, mig"),
        ("gpu: {policy: whole}", "gpu.devices: nothing: the policy whole needs the devices"),
        ("gpu: {policy: none, devices: [0]}", "gpu.devices: the list [0]: the policy is none"),
        ("gpu: {policy: mig, devices: [0]}", "gpu.devices: 0: with the policy mig it is MIG-…"),
        ("gpu: {policy: whole, devices: [0, 0]}", "gpu.devices: the list [0, 0]: a device stands there twice"),
        ("address: localhost", "address: 'localhost': it is the IP address to listen on"),
        ("address: 0.0.0.0", "address: '0.0.0.0': passwords would cross the network in the clear"),
        ("tls: {certificate: no.pem, key: no.key}", "tls.certificate: 'no.pem': there is no file"),
        ("tls: maybe", "tls: 'maybe': it has the keys certificate and key"),
        ("first_uid: 0", "first_uid: 0: it is a whole number at least 1000"),
    ],
)
def test_a_bad_value_is_refused_with_its_key_the_value_and_the_reason(refused, added, says):
    (line,) = [line for line in refused(SMALLEST + added) if line.startswith(says)]
    assert line


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Grace", "write 'grace'"),
        ("grader-amp", "accounts that courses' graders run as"),
        ("a+b", "a user name has"),
        ("../x", "a user name has"),
        ("a b", "a user name has"),
        ("a..b", "no '..'"),
        ("", "a user name has"),
    ],
)
def test_a_user_name_that_the_hub_or_the_exchange_could_not_use_is_refused(refused, name, says):
    (line,) = refused(f"course: {{id: amp}}\nroster: roster.csv\ninstructors: [{name!r}]\n")
    assert line.startswith(f"instructors: {name!r}: ") and says in line


def test_a_user_name_of_digits_has_to_be_text(refused):
    (line,) = refused("course: {id: amp}\nroster: roster.csv\ninstructors: [4711]\n")
    assert line == "instructors: 4711: a user name is text; write it in quotes: '4711'"


def test_a_key_that_stands_twice_is_refused_where_yaml_would_take_the_last(written):
    with pytest.raises(HubError, match=r"course\.yaml:6: the key `port` stands there twice"):
        config.read(written(SMALLEST + "port: 8000\nport: 8001\n"))


@pytest.mark.parametrize(
    "text", ["course: [", "a: b: c", "\tcourse: 1", "- 1", "", "42", "? [a]\n: 1", "course: !!python/object:os.x 1"]
)
def test_what_is_not_yaml_or_no_keys_is_refused_in_a_sentence(written, text):
    with pytest.raises(HubError, match="nothing was started"):
        config.read(written(text))


def test_a_file_that_is_missing_names_the_example_and_the_demo(tmp_path):
    with pytest.raises(HubError, match=r"hub/course\.example\.yaml.*autograder hub --demo"):
        config.read(tmp_path / "course.yaml")


def test_a_password_in_a_bad_gradebook_url_is_not_repeated(refused):
    (line,) = refused(SMALLEST + "gradebook: mysql://grader:geheim@host/db\n")
    assert "geheim" not in line and "***" in line


def test_a_network_address_is_taken_with_a_certificate_or_a_proxy_in_front(written, tmp_path):
    (tmp_path / "cert.pem").touch()
    files = "tls: {certificate: cert.pem, key: cert.pem}"
    assert config.read(written(f"{SMALLEST}address: 0.0.0.0\n{files}\n")).url == "https://127.0.0.1:8000"
    assert config.read(written(f"{SMALLEST}address: '::'\ntls: elsewhere\n")).url == "http://[::1]:8000"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(["boxed", "whole"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = [*yaml.safe_load(SMALLEST), "limits", "gpu", "spawner", "authenticator", "tls", "port", "address", "timezone"]
KEYS += ["folder", "exchange", "gradebook", "first_uid"]


@settings(max_examples=150, deadline=None)
@given(data=st.dictionaries(st.sampled_from(KEYS), values))
def test_whatever_stands_there_is_taken_or_refused_and_never_a_traceback(tmp_path_factory, data):
    try:
        read = config.parse(data, tmp_path_factory.getbasetemp() / "course.yaml")
    except HubError as error:
        assert str(error).count("\n  ") >= 1
    else:
        assert read.instructors and read.course_id


def test_the_graders_terminal_knows_a_gradebook_that_is_not_the_courses_own(tmp_path):
    from dataclasses import replace

    from autograder.hub.start import grader_environment

    hub = config.HubConfig("amp", "AMP", ("grace",), None, tmp_path, tmp_path / "exchange")
    assert "AUTOGRADER_DB" not in grader_environment(hub)
    url = "postgresql+psycopg://grader@localhost/amp"
    assert grader_environment(replace(hub, gradebook=url))["AUTOGRADER_DB"] == url
