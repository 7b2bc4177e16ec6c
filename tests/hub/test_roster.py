"""The roster: what is read of it, what is refused, and that taking it over again changes nothing."""

import re

import pytest

from autograder import course as courses
from autograder.errors import HubError
from autograder.gradebook import gradebook
from autograder.hub import config, roster
from autograder.hub.roster import Student


@pytest.fixture
def written(tmp_path):
    def write(text: str | bytes):
        path = tmp_path / "roster.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def hub(tmp_path, written):
    """A hub's configuration with an empty course, made by hand: real assignments take a while and are not asked for here."""
    courses.prepare_nbgrader()
    written("username\n")
    path = tmp_path / "course.yaml"
    path.write_text("course: {id: amp}\ninstructors: [grace]\nroster: roster.csv\n", encoding="utf-8")
    made = config.read(path)
    (made.course / ".autograder").mkdir(parents=True)
    (made.course / "nbgrader_config.py").write_text(courses.CONFIG.format(course_id="amp"), encoding="utf-8")
    return made


def test_names_and_addresses_are_read_in_order(written):
    path = written("username,first_name,last_name,email\nzoe,Zoë,Ångström,z@x.org\nada,,,\n\n")
    assert roster.read(path) == [Student("zoe", "Zoë", "Ångström", "z@x.org"), Student("ada")]


@pytest.mark.parametrize(
    "text",
    [
        "username;last_name\nada;Lovelace\n",  # as spreadsheets write it where the comma is for decimals
        "username\tlast_name\nada\tLovelace\n",
        "\ufeffUsername, Last_Name \r\n ada , Lovelace \r\n",
        "matriculation,username,group,last_name\n4711,ada,b,Lovelace\n",
        'last_name,username\n"Lovelace",ada\n',
    ],
)
def test_what_spreadsheets_make_of_it_reads_the_same(written, text):
    assert roster.read(written(text)) == [Student("ada", "", "Lovelace", "")]


def test_a_comma_in_a_quoted_name_is_part_of_it(written):
    assert roster.read(written('username,last_name\nada,"King, Countess of Lovelace"\n'))[0].last_name.startswith(
        "King, "
    )


def test_an_empty_class_is_a_class(written):
    assert roster.read(written("username,first_name,last_name,email\n")) == []


def test_every_bad_line_is_told_with_its_number(written):
    path = written("username\nada\nAda\na+b\nada\ngrace\ngrader-amp\n,\n")
    with pytest.raises(HubError, match="nothing was changed") as error:
        roster.read(path, ("grace",))
    said = str(error.value)
    assert re.findall(r"line (\d+)", said) == ["2", "3", "4", "5", "6", "7"]
    for words in ("it stands there 2 times", "write 'ada'", "an instructor cannot be a student", "graders run as"):
        assert words in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name\nada\n", "no column `username`: its first line is 'name'"),
        ("", "no column `username`"),
        ("username\nJos\xe9\n".encode("latin-1"), "is not UTF-8 (byte 12)"),
        ('username\n"ada\x00"\n', "'ada"),
    ],
)
def test_a_file_that_is_no_roster_is_refused_in_a_sentence(written, text, says):
    with pytest.raises(HubError, match=re.escape(says)):
        roster.read(written(text))


def in_gradebook(hub) -> dict[str, tuple]:
    with gradebook(courses.Course(hub.course).directory.db_url, "amp") as book:
        return {one.id: (one.first_name, one.last_name, one.email) for one in book.students}


def test_taking_a_roster_over_twice_changes_nothing_the_second_time(hub):
    wanted = [Student("ada", "Ada", "Lovelace", "a@x.org"), Student("emmy")]
    first = roster.into_gradebook(hub, wanted)
    assert (first.added, first.changed, first.unlisted) == (["ada", "emmy"], [], [])
    before = in_gradebook(hub)
    assert before == {"ada": ("Ada", "Lovelace", "a@x.org"), "emmy": (None, None, None)}
    again = roster.into_gradebook(hub, wanted)
    assert (again.added, again.changed, again.unlisted) == ([], [], []) and in_gradebook(hub) == before


def test_a_new_name_is_entered_and_who_is_gone_from_the_roster_keeps_their_grades(hub):
    roster.into_gradebook(hub, [Student("ada"), Student("emmy")])
    done = roster.into_gradebook(hub, [Student("emmy", "Emmy", "Noether")])
    assert (done.added, done.changed, done.unlisted) == ([], ["emmy"], ["ada"])
    assert set(in_gradebook(hub)) == {"ada", "emmy"}
    assert str(done) == "0 new, 1 changed, 1 in the gradebook and no longer on it (ada)"


def test_the_hubs_groups_lose_who_is_gone_from_the_roster(hub):
    orm = pytest.importorskip("jupyterhub.orm", reason="requires jupyterhub")
    session = orm.new_session_factory(f"sqlite:///{hub.database}")()
    users = {name: orm.User(name=name) for name in ("ada", "emmy", "grace", "mallory", "grader-amp")}
    groups = {name: orm.Group(name=name) for name in ("nbgrader-amp", "formgrade-amp", "nbgrader-other")}
    session.add_all([*users.values(), *groups.values()])
    groups["nbgrader-amp"].users += [users["ada"], users["emmy"], users["grace"]]
    groups["formgrade-amp"].users += [users["grace"], users["emmy"], users["grader-amp"]]
    groups["nbgrader-other"].users += [users["mallory"]]
    session.commit()
    assert roster.prune(hub, [Student("emmy"), Student("new")]) == ["ada", "mallory"]
    session.expire_all()
    members = {name: {user.name for user in group.users} for name, group in groups.items()}
    session.close()
    session.get_bind().dispose()
    assert members == {
        "nbgrader-amp": {"emmy"},
        "formgrade-amp": {"grace", "grader-amp"},
        "nbgrader-other": {"mallory"},  # another course's group is none of ours
    }


def test_a_hub_that_was_never_started_has_nothing_to_prune_and_a_broken_database_is_said(hub):
    assert roster.prune(hub, []) == []
    hub.database.write_bytes(b"no database" * 100)
    with pytest.raises(HubError, match=r"hub\.sqlite cannot be read.*backup"):
        roster.prune(hub, [])
