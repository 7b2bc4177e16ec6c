"""The report on a class: its figures, and that nothing in a record can run in a browser or in a spreadsheet."""

import csv
import io
import itertools
import json
import re
import shutil
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from autograder import feedback
from autograder import report as reports
from autograder.cli import app
from autograder.errors import CourseError
from autograder.report import Booked, page, summarise, table

A = "03_gradscaler"
EVIL = "</td></summary><script>alert(1)</script><img src=x onerror=alert(2)>"
POINTS = {"clipped_step": 3.0, "simulate_scale": 2.0}
CLIP = "You clip between 2 and 3."
UNTOUCHED = "This answer cell is as it was released."


def exercise(name: str, diagnosis: str | None = None, message: str = "", score: float = 0.0) -> dict:
    score = POINTS[name] if diagnosis is None else score
    passed = diagnosis is None
    return {"score": score, "max_score": POINTS[name], "passed": passed, "diagnosis": diagnosis, "message": message}


def record(student: str, clipped: tuple = (), simulated: tuple = (), status="graded", message="") -> dict:
    exercises = {
        "clipped_step": exercise("clipped_step", *clipped),
        "simulate_scale": exercise("simulate_scale", *simulated),
    }
    return {
        "student": student,
        "assignment": A,
        "score": sum(each["score"] for each in exercises.values()),
        "max_score": 5.0,
        "status": status,
        "message": message,
        "exercises": exercises,
    }


NOTHING = ("not_attempted", UNTOUCHED)
RECORDS = [
    record("ada"),
    record("ben", ("clip_before_unscale", f"{CLIP}\n\nGiven scale 4: the norm.", 1.0)),
    record("cleo", ("clip_before_unscale", f"{CLIP}\n\nGiven scale 8: the norm."), message="cell x was put back"),
    record("dan", NOTHING, NOTHING, "unreadable", "it is not a notebook"),
    record("eve", ("a_slug_of_last_year", "Words of last year."), NOTHING),
    record("finn", ("raises", "Given scale 4: your code raised NameError: nrom."), ("timeout", "Too long."), "timeout"),
]


@pytest.fixture
def report():
    return summarise(RECORDS, {}, ["ada", "gus"])


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


def rows(text: str) -> list[dict]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_submissions_are_counted_by_status_and_by_points(report):
    assert report.statuses == {"graded": 4, "unreadable": 1, "timeout": 1, "killed": 0, "tampered": 0}
    assert sum(count for _, count in report.bands) == 6 and report.bands[-1] == ("4.5 to 5", 1)
    assert (report.mean, report.median) == (pytest.approx((5 + 3 + 2) / 6), 1.0)
    assert report.waiting == ["gus"] and report.unsandboxed == []


def test_an_exercise_counts_the_answers_that_were_run(report):
    clipped, simulated = report.items
    assert (clipped.right, clipped.partly, clipped.wrong, clipped.not_attempted) == (1, 1, 3, 0)
    assert (simulated.right, simulated.partly, simulated.wrong, simulated.not_attempted) == (3, 0, 1, 1)
    assert report.ran == 5 and clipped.mean == pytest.approx(4 / 5)


def test_mistakes_are_ranked_with_the_words_that_were_said_whether_or_not_the_room_still_has_them(report):
    found = [(mistake.diagnosis, mistake.count, mistake.words) for mistake in report.items[0].mistakes]
    assert found == [
        ("clip_before_unscale", 2, CLIP),
        ("a_slug_of_last_year", 1, "Words of last year."),
        ("raises", 1, "The answer stopped with an error."),
    ]
    assert report.items[0].mistakes[0].students == [("ben", ""), ("cleo", "")]
    assert report.items[0].mistakes[2].students == [("finn", RECORDS[5]["exercises"]["clipped_step"]["message"])]
    assert [mistake.diagnosis for mistake in report.items[1].mistakes] == ["timeout"], "nothing is no mistake"
    assert [mistake.diagnosis for _, mistake in report.frequent[:1]] == ["clip_before_unscale"]


def test_edited_words_leave_a_named_mistake_one_and_unnamed_ones_are_told_apart():
    given = [("slug", "New words."), ("slug", "Old words."), ("slug", "New words.")]
    given += [("wrong_result", "One way.\n\nGiven 1."), ("wrong_result", "Another way.\n\nGiven 2.")]
    report = summarise([record(f"s{i}", one) for i, one in enumerate(given)], {})
    found = [(mistake.diagnosis, mistake.count, mistake.words) for mistake in report.items[0].mistakes]
    assert found == [("slug", 3, "New words."), ("wrong_result", 1, "Another way."), ("wrong_result", 1, "One way.")]
    assert report.items[0].mistakes[1].students == [("s4", "Given 2.")]


def test_what_nobody_and_what_everybody_solves_is_pointed_out():
    report = summarise([record("ada", ("slug", "Words."), ()), record("ben", NOTHING, ())], {})
    assert (report.nobody, report.everybody) == (["clipped_step"], ["simulate_scale"])
    text = read(page(report, {})).text
    assert "Nobody solved: clipped_step." in text and "Everybody solved: simulate_scale." in text
    report = summarise([record("dan", NOTHING, NOTHING, "unreadable", "why")], {})
    assert (report.nobody, report.everybody) == ([], []), "nobody was there to solve it"


def test_the_gradebooks_points_count_and_a_student_who_is_not_in_it_appears():
    booked = {"cleo": Booked(4.5, 0.5, 5.0, {"clipped_step": 2.5, "simulate_scale": 2.0})}
    report = summarise(RECORDS, booked)
    found = {row.student: (row.total, row.late, row.points["clipped_step"]) for row in report.rows}
    assert found["cleo"] == (4.0, 0.5, 2.5) and found["ben"] == (3.0, 0.0, 1.0) and len(found) == 6
    assert (report.items[0].partly, report.items[0].wrong) == (2, 2)
    assert "(0.5 off: late)" in page(report, {})
    assert next(row for row in rows(table(report)) if row["student"] == "cleo")["late_penalty"] == "0.5"


def test_an_exercise_that_only_some_records_have_is_counted_where_it_is():
    short = record("zoe")
    del short["exercises"]["simulate_scale"]
    report = summarise([*RECORDS, short], {})
    assert [item.answers for item in report.items] == [6, 5]
    assert rows(table(report))[-1]["simulate_scale points"] == "" and "zoe" in page(report, {})


@pytest.mark.parametrize("top", [0.0, 0.5, 1.0, 5.0, 19.0, 20.0, 100.0, 1234.0])
def test_every_score_has_one_band_of_at_most_ten(top):
    bands = reports._bands([-1.0, 0.0, top / 3, top, top + 1], top)
    assert 1 <= len(bands) <= 10 and sum(count for _, count in bands) == 5
    assert bands[-1][0].endswith(f" to {top:g}") and bands[-1][1] >= 2


def test_nothing_that_came_from_outside_is_markup():
    evil = record(EVIL, (EVIL, f"{EVIL}\n\n{EVIL}"), ("raises", EVIL), "tampered", EVIL)
    again = record(f"b{EVIL}", (EVIL, EVIL), ("raises", EVIL), "graded", EVIL)
    html = page(summarise([evil, again], {}, [f"w{EVIL}"]), {EVIL: '../"onclick="x'})
    reader = read(html)
    assert not {tag for tag, _ in reader.tags} & {"script", "img", "iframe", "object", "link", "svg", "form"}
    assert not [name for _, attrs in reader.tags for name in attrs if name.startswith("on")]
    assert reader.text.count("alert(1)") > 8 and "<script" not in html


def test_the_page_loads_nothing_runs_nothing_and_links_only_within_the_course(report):
    reader = read(page(report, {"ada": "../feedback/ada/a.html"}))
    policy = next(
        attrs["content"] for tag, attrs in reader.tags if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert not [tag for tag, attrs in reader.tags if tag == "script" or "src" in attrs]
    links = [attrs["href"] for _, attrs in reader.tags if "href" in attrs]
    assert [link for link in links if not link.startswith("#")] == ["../feedback/ada/a.html"]
    targets = {attrs["id"] for _, attrs in reader.tags if "id" in attrs}
    assert len(links) > 6 and {link[1:] for link in links if link.startswith("#")} <= targets


def test_the_page_can_be_read_aloud(report):
    html = page(report, {})
    reader = read(html)
    tags = [tag for tag, _ in reader.tags]
    assert html.startswith("<!DOCTYPE html>") and dict(reader.tags[0][1])["lang"] == "en"
    heads = [attrs for tag, attrs in reader.tags if tag == "th"]
    assert len(heads) > 30 and all(attrs["scope"] in ("row", "col") for attrs in heads)
    assert tags.count("caption") == tags.count("table") > 5
    levels = [int(tag[1]) for tag in tags if tag in ("h1", "h2", "h3")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    ids = [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    labels = {attrs["aria-labelledby"] for _, attrs in reader.tags if "aria-labelledby" in attrs}
    assert labels and labels <= set(ids)


def luminance(colour: str) -> float:
    """The relative luminance of #rgb or #rrggbb (WCAG 2.2)."""
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_computed_as_wcag_does():
    assert contrast("#000", "#ffffff") == pytest.approx(21) and contrast("#777", "#fff") == pytest.approx(
        4.48, abs=0.01
    )


@pytest.mark.parametrize("template", [reports.PAGE, feedback.PAGE], ids=["report", "feedback"])
@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_and_bars_stand_out_from_what_is_behind_them(template, scheme):
    """4.5 for text, 3 for what is drawn (WCAG 2.2, 1.4.3 and 1.4.11)."""
    blocks = [dict(re.findall(r"--(\w+): (#\w+)", block)) for block in re.findall(r":root \{[^}]*\}", template)]
    colours = blocks[scheme]
    assert len(blocks) == 2 and blocks[0].keys() == blocks[1].keys()
    texts, behind = {"ink", "soft", "link"} & {*colours}, {"paper", "stripe", "code"} & {*colours}
    drawn = {"right", "partly", "wrong", "none"} & {*colours}
    assert {*colours} == texts | behind | drawn | {"line"}, "each colour is one of these"
    found = {(a, b): contrast(colours[a], colours[b]) for a in texts for b in behind}
    assert len(found) >= 4 and min(found.values()) >= 4.5, found
    bars = {a: contrast(colours[a], colours["paper"]) for a in drawn}
    assert min(bars.values(), default=3) >= 3, bars
    # Nothing has a colour that is not one of these.
    style = re.sub(r":root \{[^}]*\}", "", template[template.index("<style>") : template.index("</style>")])
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|rgb|hsl", style)


def test_a_name_that_is_written_from_right_to_left_turns_nothing_else_around():
    name = "\u05d3\u05d5\u05d3 \u202eabc"
    html = page(summarise([record(name), record("ben", ("raises", name))], {}, [f"w{name}"]), {})
    reader = read(html)
    inside, depth = [], 0
    for part in re.split(r"(</?bdi>|<t[dh][^>]*dir=\"auto\"[^>]*>)", html):
        depth += {"<bdi>": 1, "</bdi>": -1}.get(part, 0)
        if name in part:
            inside.append(depth)
    assert html.count(name) == 3 and inside == [1, 1, 1] and reader.text.count(name) == 3


def test_what_scrolls_can_be_scrolled_from_the_keyboard_and_has_a_name(report):
    scrolling = [attrs for _, attrs in read(page(report, {})).tags if attrs.get("class") == "wide"]
    assert len(scrolling) > 3
    assert all(attrs["tabindex"] == "0" and attrs["role"] == "region" for attrs in scrolling)
    bars = [attrs for _, attrs in read(page(report, {})).tags if attrs.get("class", "").startswith("bar")]
    assert len(bars) > 3 and all(attrs["aria-hidden"] == "true" for attrs in bars), (
        "figures beside them say what they show"
    )


def test_a_thousand_students_make_a_page_of_less_than_a_megabyte():
    answers = (
        (),
        ("clip_before_unscale", f"{CLIP}\n\nGiven scale 4: the norm."),
        ("raises", "NameError: nrom."),
        NOTHING,
    )
    crowd = summarise([record(f"student{i:04}", answers[i % 4]) for i in range(1000)], {})
    html = page(crowd, {f"student{i:04}": f"../feedback/student{i:04}/{A}/{A}.html" for i in range(1000)})
    assert len(crowd.rows) == 1000 == len(rows(table(crowd))) and html.count('<a href="../feedback') > 1000
    assert len(html) < 1_000_000 and [mistake.count for mistake in crowd.items[0].mistakes] == [250, 250]


def test_what_was_not_graded_and_what_was_repaired_stands_there_with_the_reason(report):
    text = read(page(report, {})).text
    assert [row.student for row in report.refused] == ["dan", "finn"] and "it is not a notebook" in text
    assert [row.student for row in report.repaired] == ["cleo"] and "cell x was put back" in text
    assert "Not graded yet: gus." in text
    assert "every submission was graded as it was handed in" in page(summarise([record("ada")], {}), {})


def test_the_csv_has_a_row_a_student_and_two_columns_an_exercise(report):
    found = rows(table(report))
    assert [row["student"] for row in found] == ["ada", "ben", "cleo", "dan", "eve", "finn"]
    assert found[1] == {
        "student": "ben",
        "status": "graded",
        "total": "3",
        "max_score": "5",
        "late_penalty": "0",
        "clipped_step points": "1",
        "clipped_step diagnosis": "clip_before_unscale",
        "simulate_scale points": "2",
        "simulate_scale diagnosis": "",
        "message": "",
    }
    assert found[3]["message"] == "it is not a notebook"


@pytest.mark.parametrize(
    "cell, written",
    [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-x", "'-x"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t'=1"),
        ("\r=1", "'\r'=1"),
        ("ada;=1+1", "ada;'=1+1"),
        ("ada\n=1+1", "ada\n'=1+1"),
        ("-1.5", "-1.5"),
        ("+49", "+49"),
        ("-1+1", "'-1+1"),
        ("maria-magdalena, a=b", "maria-magdalena, a=b"),
    ],
)
def test_a_cell_that_a_spreadsheet_would_run_is_text(cell, written):
    found = rows(table(summarise([record(cell, (cell, "Words."), message=cell)], {})))
    assert (found[0]["student"], found[0]["clipped_step diagnosis"], found[0]["message"]) == (written,) * 3


def test_a_very_long_message_is_cut():
    report = summarise([record("ada", ("raises", "x" * 5000), message="y" * 5000)], {})
    assert len(report.rows[0].message) < 1100 and len(report.items[0].mistakes[0].students[0][1]) < 1100


def test_the_same_records_give_the_same_bytes_in_any_order(report):
    again = summarise(RECORDS[::-1], {}, ["gus", "ada"])
    assert again == report and page(again, {}) == page(report, {}) and table(again) == table(report)


# In a course


@pytest.fixture
def course(tmp_path, room):
    """A course folder with the released notebook's room and nobody graded."""
    root = tmp_path / "course"
    (root / ".autograder" / "results" / A).mkdir(parents=True)
    (root / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.course_id = 'amp'\n")
    shutil.copytree(room.path, root / "exercises" / A, ignore=shutil.ignore_patterns("mistakes", "also_right"))
    return root


def put(course, records: list[dict]) -> None:
    for number, each in enumerate(records):
        (course / ".autograder" / "results" / A / f"{number}.json").write_text(json.dumps(each))


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_class_of_which_nothing_is_graded_has_no_report(course):
    done = run("report", A, "--course", course)
    assert done.exit_code == 1 and f"run `autograder grade {A}` first" in done.output
    assert not (course / "report").exists()
    nothing = SimpleNamespace(results=lambda assignment: [])
    with pytest.raises(CourseError, match="Nothing of"):
        reports.write(nothing, A)
    assert "There is no assignment" in run("report", "03_gradscalar", "--course", course).output
    assert "not a course" in run("report", A, "--course", course.parent).output


def test_the_report_is_written_beside_nbgraders_folders_and_links_to_the_feedback_that_is_there(course):
    strange = "ada lovelace #1?"
    put(course, [record(strange), *RECORDS[1:], record("half\ud800", ("raises", "\ud800"))])
    hers = course / "feedback" / strange / A / f"{A}.html"
    hers.parent.mkdir(parents=True)
    hers.write_text("hers")
    done = run("report", A, "--course", course)
    assert done.exit_code == 0, done.output
    html, text = course / "report" / f"{A}.html", course / "report" / f"{A}.csv"
    assert str(html) in done.output and str(text) in done.output
    assert "Most frequent: clip_before_unscale in clipped_step (2 students), raises in clipped_step (2" in done.output
    assert sorted(path.name for path in (course / "report").iterdir()) == [text.name, html.name]
    links = [attrs["href"] for tag, attrs in read(html.read_text()).tags if tag == "a" and attrs["href"][0] != "#"]
    assert set(links) == {f"../feedback/ada%20lovelace%20%231%3F/{A}/{A}.html"}
    assert len(rows(text.read_bytes().decode())) == 7
    before = html.read_bytes(), text.read_bytes()
    assert run("report", A, "--course", course).exit_code == 0
    assert (html.read_bytes(), text.read_bytes()) == before


def test_points_by_hand_extra_points_and_late_penalties_come_from_nbgraders_gradebook(course):
    from nbgrader.api import Gradebook

    from autograder.course import Course, prepare_nbgrader

    prepare_nbgrader()
    opened = Course(course)
    cells = {"clipped_step-update": 2, "clipped_step-norm": 1, "simulate_scale-trace": 2}
    with Gradebook(opened.directory.db_url, "amp") as gradebook:
        for assignment in (A, "another"):
            gradebook.add_assignment(assignment)
            gradebook.add_notebook(assignment, assignment)
            for name, points in cells.items():
                gradebook.add_grade_cell(name, assignment, assignment, max_score=points, cell_type="code")
            for student in ("ben", "cleo"):
                gradebook.update_or_create_student(student)
                gradebook.add_submission(assignment, student)
                notebook = gradebook.find_submission_notebook(assignment, assignment, student)
                notebook.late_submission_penalty = 0.5 if student == "cleo" else None
                for name in cells:
                    gradebook.find_grade(name, assignment, assignment, student).auto_score = 1.0
        grade = gradebook.find_grade("clipped_step-update", A, A, "ben")
        grade.manual_score, grade.extra_credit = 2.0, 0.25
        gradebook.db.commit()
    booked = reports.from_gradebook(opened, A)
    assert booked == {
        "ben": Booked(4.25, 0.0, 5.0, {"clipped_step": 3.25, "simulate_scale": 1.0}),
        "cleo": Booked(3.0, 0.5, 5.0, {"clipped_step": 2.0, "simulate_scale": 1.0}),
    }
    assert reports.from_gradebook(opened, "unknown") == {}
