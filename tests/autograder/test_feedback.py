"""Feedback pages: everything that a student wrote is text, and the page needs nothing but itself."""

from html.parser import HTMLParser

import pytest

from autograder.course import Course
from autograder.errors import CourseError
from autograder.feedback import Booked, encoded, page, write

EVIL = "</code></pre><script>alert(1)</script><img src=x onerror=alert(2)>"
RECORD = {
    "student": f"ada{EVIL}",
    "assignment": "03_gradscaler",
    "score": 2.0,
    "max_score": 5.0,
    "status": "graded",
    "message": EVIL,
    "exercises": {
        "clipped_step": {"score": 0.0, "max_score": 3.0, "passed": False, "diagnosis": "raises", "message": EVIL},
        "simulate_scale": {"score": 2.0, "max_score": 2.0, "passed": True, "diagnosis": None, "message": ""},
    },
}


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def read():
    reader = Reader()
    reader.feed(page(RECORD, {"clipped_step": EVIL}, Booked(1.5, 5.0, 0.5, {"clipped_step": [EVIL]})))
    return reader


def test_nothing_that_a_student_wrote_is_markup(read):
    tags = {tag for tag, _ in read.tags}
    assert not tags & {"script", "img", "iframe", "object", "link", "svg", "form"}
    assert not [name for _, attrs in read.tags for name in attrs if name.startswith("on")]
    assert (
        read.text.count("alert(1)") == 6
    )  # in the title, the name, the message, the exercise, the comment, the answer


def test_what_no_page_may_hold_is_replaced():
    answer = "\x00 \x07 \x1b[31m \x85 \ufffe \ud800 \t\n\x0c \u00e9 \U0001f600"
    html = encoded(page(RECORD, {"clipped_step": answer}, Booked(1.5, 5.0))).decode()
    assert "\ufffd \ufffd \ufffd[31m \ufffd \ufffd ? \t\n\x0c \u00e9 \U0001f600" in html


def test_what_an_instructor_grades_and_says_of_any_cell_is_on_the_page(small_class, grade_here):
    from nbgrader.api import Gradebook

    grade_here(small_class, ["ada", "bob", "gus"])
    with Gradebook(f"sqlite:///{small_class / 'gradebook.db'}", "amp") as book:
        book.find_grade("reflect", "tiny", "tiny", "gus").manual_score = 3.5
        book.find_comment("reflect", "tiny", "tiny", "gus").manual_comment = "Well said."
        book.find_grade("double-value", "tiny", "tiny", "bob").manual_score = 1.5
        book.db.commit()
    grade_here(small_class, ["ada", "bob", "gus"], force=True)
    write(Course(small_class), "tiny")
    said = {}
    for path in (small_class / "feedback").glob("*/*/*.html"):
        reader = Reader()
        reader.feed(path.read_text())
        said[path.parts[-3]] = " ".join(reader.text.replace("your answer", " your answer").split())
    assert "tiny: 7.5 of 9 points" in said["gus"] and "reflect 3.5 of 5 graded by your instructor" in said["gus"]
    assert "reflect: 3.5 of 5 points Your instructor: Well said. your answer to reflectMuch." in said["gus"]
    assert "tiny: 4 of 9 points" in said["ada"] and "reflect 0 of 5 not answered" in said["ada"]
    assert "tiny: 2.5 of 9 points" in said["bob"] and "double: 1.5 of 3 points" in said["bob"]


def test_a_page_that_cannot_be_written_keeps_nobody_elses_back(small_class, grade_here):
    grade_here(small_class, ["ada", "bob", "flo"])
    (small_class / "feedback" / "ada").parent.mkdir()
    (small_class / "feedback" / "ada").write_text("in the way")
    graded = small_class / "autograded" / "bob" / "tiny" / "tiny.ipynb"
    for rubbish in ('{"half', "{}", "[]", '{"cells": [5], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}'):
        graded.write_text(rubbish)
        with pytest.raises(CourseError) as raised:
            write(Course(small_class), "tiny")
        assert str(raised.value).startswith("2 of 3 pages could not be written; the others are there.\n  ada: ")
        assert f"\n  bob: {graded} is damaged" in str(raised.value)
    assert [path.parts[-3] for path in (small_class / "feedback").glob("*/*/*.html")] == ["flo"]


def test_the_page_loads_nothing_and_forbids_it(read):
    policy = next(attrs["content"] for tag, attrs in read.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert not [
        attrs for tag, attrs in read.tags if "src" in attrs or (tag == "a" and not attrs["href"].startswith("#"))
    ]


def test_the_page_says_the_total_the_points_and_the_penalty(read):
    assert "1.5 of 5 points" in read.text and "late penalty of 0.5 points" in read.text
    assert "0 of 3" in read.text and "Right on every input." in read.text
    assert dict(read.tags[0][1])["lang"] == "en" and any(tag == "th" and attrs.get("scope") for tag, attrs in read.tags)


def test_the_page_can_be_read_aloud_and_used_from_the_keyboard(read):
    tags = [tag for tag, _ in read.tags]
    assert tags.count("main") == 1 and tags.count("h1") == 1 and tags.count("caption") == tags.count("table") == 1
    heads = [attrs for tag, attrs in read.tags if tag == "th"]
    assert len(heads) == 5 and all(attrs["scope"] in ("row", "col") for attrs in heads)
    [answer] = [attrs for tag, attrs in read.tags if tag == "pre"]
    assert answer["tabindex"] == "0" and answer["aria-label"] == "your answer to clipped_step"
    assert tags.count("bdi") >= 2, "a name or comment in another direction turns nothing else around"
