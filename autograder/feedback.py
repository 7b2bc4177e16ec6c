"""Feedback for a student: one self-contained HTML page, in which everything that came from the student is text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograder.atomic import write_atomically
from autograder.course import Course
from autograder.errors import CourseError
from autograder.gradebook import gradebook
from autograder.room import answer_cells

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{ record.assignment }}: {{ record.student }}</title>
<style>
 :root { color-scheme: light dark; --paper: #fff; --ink: #1b1b1b; --code: #f1f1f1; --line: #c4c4c4; --link: #00549e; }
 @media (prefers-color-scheme: dark) { :root { --paper: #17191c; --ink: #e8e8e8; --code: #24282d; --line: #4a4f55;
   --link: #8cc4ff; } }
 body { font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem;
   background: var(--paper); color: var(--ink); overflow-wrap: break-word; }
 a { color: var(--link); } a:focus-visible, summary:focus-visible, pre:focus-visible { outline: 3px solid var(--link); }
 h1 { font-size: 1.5rem; line-height: 1.25; }
 h2 { font-size: 1.15rem; margin: 2rem 0 .3rem; border-top: 1px solid var(--line); padding-top: 1rem; }
 table { border-collapse: collapse; } th, td { text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0; }
 caption { text-align: left; padding: .25rem 0; } tbody th { font-weight: 500; }
 td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
 pre { background: var(--code); padding: .7rem 1rem; overflow-x: auto; font-size: .85rem; }
 .word { font-weight: 600; } .said { margin: .3rem 0; max-width: 40rem; } summary { cursor: pointer; }
 .comment { border-left: 4px solid var(--link); padding-left: 1rem; white-space: pre-line; }
 @media print { pre { white-space: pre-wrap; overflow: visible; } h2 { break-after: avoid; } }
</style>
</head>
<body>
<main>
<h1>{{ record.assignment }}: {{ "%g"|format(total) }} of {{ "%g"|format(max_score) }} points</h1>
<p><bdi>{{ record.student }}</bdi>.
{% if record.status != "graded" %} <span class="word">Status: {{ record.status }}.</span>{% endif %}
{% if record.message %} {{ record.message }}.{% endif %}
{% if late %} A late penalty of {{ "%g"|format(late) }} points is taken off.{% endif %}</p>
<table>
<caption>Points by exercise; each name leads to what is said of it</caption>
<thead><tr><th scope="col">exercise</th><th scope="col" class="n">points</th><th scope="col">result</th></tr></thead>
<tbody>
{% for name, exercise in record.exercises.items() %}
<tr><th scope="row"><a href="#{{ name }}">{{ name }}</a></th>
<td class="n">{{ "%g"|format(points.get(name, exercise.score)) }} of {{ "%g"|format(exercise.max_score) }}</td>
<td>{{ "right" if exercise.passed else exercise.diagnosis|replace("_", " ") }}</td></tr>
{% endfor %}
{% for name, (score, most, words) in by_hand.items() %}
<tr><th scope="row"><a href="#{{ name }}">{{ name }}</a></th>
<td class="n">{{ "–" if score is none else "%g"|format(score) }} of {{ "%g"|format(most) }}</td>
<td>{{ words }}</td></tr>
{% endfor %}
</tbody>
</table>
{% macro remarks(name) %}
{% for comment in comments.get(name, []) %}<p class="said comment">Your instructor: <bdi>{{ comment }}</bdi></p>
{% endfor %}
{% if name in answers %}<details><summary>your answer to {{ name }}</summary><pre tabindex="0" role="region"
 aria-label="your answer to {{ name }}"><code>{{ answers[name] }}</code></pre></details>{% endif %}
{% endmacro %}
{% for name, exercise in record.exercises.items() %}
{% set score = points.get(name, exercise.score) %}
<h2 id="{{ name }}">{{ name }}: {{ "%g"|format(score) }} of {{ "%g"|format(exercise.max_score) }} points</h2>
{% if exercise.passed %}<p class="said">Right on every input.</p>{% else %}
{% if exercise.diagnosis not in ("wrong_result", "raises", "not_attempted", "timeout") %}
<p class="said word">{{ exercise.diagnosis|replace("_", " ") }}</p>{% endif %}
{% for paragraph in exercise.message.split("\\n\\n") %}<p class="said" dir="auto">{{ paragraph }}</p>
{% endfor %}{% endif %}
{{ remarks(name) }}
{% endfor %}
{% for name, (score, most, words) in by_hand.items() %}
<h2 id="{{ name }}">{{ name }}: {{ words if score is none else "%g of %g points"|format(score, most) }}</h2>
{{ remarks(name) }}
{% endfor %}
</main>
</body>
</html>
"""


# What may stand in no page: control characters but for white space, and what Unicode says is no character.
NO_TEXT = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")


def encoded(html: str) -> bytes:
    """A page as bytes. What no page or no file can hold, as half a character of a student's, is replaced."""
    return NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", html).encode("utf-8", "replace")


@dataclass
class Booked:
    """What nbgrader's gradebook has for a submission, grades by hand included.

    `total` is after the late penalty, comments and points are by exercise. `by_hand` is what only an instructor grades, by
    cell: points (None where there are none yet), most points, and the state in words.
    """

    total: float
    max_score: float
    late: float = 0.0
    comments: dict[str, list[str]] = field(default_factory=dict)
    points: dict[str, float] = field(default_factory=dict)
    by_hand: dict[str, tuple[float | None, float, str]] = field(default_factory=dict)


def page(record: dict, answers: dict[str, str], booked: Booked) -> str:
    """The page of one result record. Whatever a student wrote is escaped; nothing in it can run or load."""
    from jinja2 import Environment

    template = Environment(autoescape=True, trim_blocks=True).from_string(PAGE)
    return template.render(record=record, answers=answers, **vars(booked))


def write(course: Course, assignment: str) -> list[Path]:
    """Write feedback/STUDENT/ASSIGNMENT/ASSIGNMENT.html for every graded submission.

    CourseError, when all others are written, where one cannot be.
    """
    records = course.results(assignment)
    if not records:
        raise CourseError(f"Nothing of {assignment} is graded yet; run `autograder grade {assignment}` first.")
    written, failed = [], {}
    with gradebook(course.directory.db_url, course.directory.course_id) as book:
        for record in records:
            student = record["student"]
            booked = from_gradebook(book, student, assignment, record)
            path = course.path("feedback", student, assignment) / f"{assignment}.html"
            try:
                answers = _answers(course.path("autograded", student, assignment) / f"{assignment}.ipynb")
                write_atomically(path, encoded(page(record, answers, booked)), 0o644)
            except (OSError, CourseError) as error:  # the others are not to suffer
                failed[student] = str(error)
            else:
                written.append(path)
    if failed:
        said = "".join(f"\n  {student}: {why}" for student, why in sorted(failed.items()))
        raise CourseError(
            f"{len(failed)} of {len(records)} pages could not be written; the others are there.{said}\nMend what is named here "
            "and run the same command again."
        )
    return written


def _answers(graded: Path) -> dict[str, str]:
    """The answers in a graded notebook, which session.py or nbgrader has written; none where it is not there."""
    if not graded.is_file():
        return {}
    try:
        notebook = nbformat.reads(graded.read_text(encoding="utf-8"), as_version=nbformat.NO_CONVERT)
        return {name: cell.source for name, cell in answer_cells(notebook).items()}
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise CourseError(f"{graded} is damaged; `autograder grade` makes it anew") from error


def from_gradebook(book, student: str, assignment: str, record: dict) -> Booked:
    """What nbgrader's Gradebook has for a submission; where it does not know it, what the record says."""
    from nbgrader.api import MissingEntry

    try:
        submission = book.find_submission(assignment, student)
    except MissingEntry:
        return Booked(record["score"], record["max_score"])
    late = submission.late_submission_penalty or 0.0
    booked = Booked(submission.score - late, submission.max_score, late)
    for notebook in submission.notebooks:
        for comment in notebook.comments:
            if comment.manual_comment:
                booked.comments.setdefault(_place(comment.cell.name, record), []).append(comment.manual_comment)
        for grade in notebook.grades:
            name = _place(grade.cell.name, record)
            if name in record["exercises"]:
                booked.points[name] = booked.points.get(name, 0.0) + grade.score
            else:
                booked.by_hand[name] = _by_hand(grade)
    return booked


def _by_hand(grade) -> tuple[float | None, float, str]:
    if grade.manual_score is not None:
        return grade.score, grade.max_score, "graded by your instructor"
    if grade.auto_score is not None:  # nbgrader's 0 for a cell as it was released
        return grade.score, grade.max_score, "not answered"
    return None, grade.max_score, "not graded yet"


def _place(cell: str, record: dict) -> str:
    """The exercise that a cell belongs to; of a cell that belongs to none its own name."""
    exercise = cell.rpartition("-")[0]
    return exercise if exercise in record["exercises"] else cell
