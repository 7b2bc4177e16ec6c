"""A report on a whole class: one self-contained HTML page and one CSV file, for the instructor.

It lies in COURSE/report/, which is none of nbgrader's folders. The words of a mistake are taken from what the students were
told, so that a report on last year's class does not depend on the mistakes that an assignment has now.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from autograder.atomic import write_atomically
from autograder.course import Course
from autograder.errors import CourseError
from autograder.feedback import encoded
from autograder.gradebook import gradebook
from autograder.journal import STATUSES

# A submission of another status was not run to its end, and its diagnoses say nothing about its answers.
RAN = ("graded", "timeout")
# What these say differs from student to student, so it stands beside each of them.
OWN_WORDS = {"raises": "The answer stopped with an error.", "wrong_result": ""}
LONGEST = 1000  # characters of a message: a submission with two thousand bad cells has as many remarks

PAGE = """\
{% macro who(student) %}
{% if student in links %}<a href="{{ links[student] }}"><bdi>{{ student }}</bdi></a>{% else %}
<bdi>{{ student }}</bdi>{% endif %}
{% endmacro %}
{% macro many(n, word) %}{{ n }} {{ word }}{{ "" if n == 1 else "s" }}{% endmacro %}
{% macro named(students) %}
{% for one in students %}<bdi>{{ one }}</bdi>{{ "" if loop.last else ", " }}{% endfor %}
{%- endmacro %}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{ report.assignment }}: report on the class</title>
<style>
 :root { color-scheme: light dark; --paper: #fff; --ink: #1b1b1b; --soft: #565656; --line: #d4d4d4; --stripe: #f5f5f5;
   --link: #00549e; --right: #00866a; --partly: #2f86b8; --wrong: #c05300; --none: #868686; }
 @media (prefers-color-scheme: dark) { :root { --paper: #17191c; --ink: #e8e8e8; --soft: #b4b4b4; --line: #41454a;
   --stripe: #1f2226; --link: #8cc4ff; --right: #21b28f; --partly: #78bfe8; --wrong: #e8823a; --none: #7d848c; } }
 body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem;
   background: var(--paper); color: var(--ink); overflow-wrap: break-word; }
 a { color: var(--link); } a:focus-visible, summary:focus-visible, .wide:focus-visible { outline: 3px solid var(--link); }
 h1 { font-size: 1.6rem; line-height: 1.25; margin-bottom: .5rem; }
 h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; border-top: 1px solid var(--line); padding-top: 1.25rem; }
 h3 { font-size: 1.05rem; margin: 2rem 0 0; }
 p { max-width: 44rem; margin: .5rem 0; }
 nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.25rem; }
 table { border-collapse: collapse; margin: .25rem 0 1rem; }
 caption { text-align: left; color: var(--soft); font-size: .9rem; padding: .25rem 0; max-width: 44rem; }
 th, td { text-align: left; vertical-align: top; padding: .3rem 1.25rem .3rem 0; border-bottom: 1px solid var(--line); }
 thead th { font-size: .9rem; vertical-align: bottom; } tbody th { font-weight: 500; }
 th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; } th.n, td.n, .bands th { white-space: nowrap; }
 .wide { overflow-x: auto; } .students { width: 100%; }
 .students th, .students td { padding: .2rem .6rem; } .students thead th { font-weight: 500; font-size: .8rem; }
 .students tbody tr:nth-child(even) { background: var(--stripe); }
 .students tbody th { min-width: 5rem; overflow-wrap: anywhere; }
 .what { width: 100%; min-width: 46rem; table-layout: fixed; overflow-wrap: anywhere; }
 .what th:first-child { width: 14rem; } .what th.n { width: 4rem; } .what th:last-child { width: 15rem; }
 .what ul { margin: .3rem 0; padding-left: 1.1rem; } summary { cursor: pointer; }
 code { font-size: .92em; } .late { color: var(--soft); font-size: .85rem; }
 .named { width: 100%; min-width: 30rem; overflow-wrap: anywhere; } .named th { min-width: 7rem; }
 .named td:nth-child(2) { min-width: 6rem; }
 .bar { display: flex; height: .8rem; width: min(16rem, 25vw); margin-top: .35rem; }
 .bar i { display: block; background: var(--partly); }
 .key::before { content: ""; display: inline-block; width: .65rem; height: .65rem; margin-right: .35rem; background: var(--c); }
 .bar i.right { background: var(--right); } .bar i.wrong { background: var(--wrong); } .bar i.none { background: var(--none); }
 .split { width: 9rem; } .split i + i { border-left: 1px solid var(--paper); }
 @media print { nav { display: none; } .wide { overflow: visible; } .what, .named { min-width: 0; }
   .bar i { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
   h2, h3, caption { break-after: avoid; } tr { break-inside: avoid; } }
</style>
</head>
<body>
<main>
<h1>{{ report.assignment }}: report on the class</h1>
<p>{{ many(report.rows|length, "submission") }}: mean {{ report.mean|round(1)|points }}, median
{{ report.median|round(1)|points }} of {{ report.max_score|points }} points.
{% if report.waiting %} Not graded yet: {{ named(report.waiting) }}.{% endif %}
{% if report.unsandboxed %} Graded without a sandbox: {{ named(report.unsandboxed) }}.{% endif %}</p>
{% if report.frequent %}<p>Most frequent: {% for exercise, what in report.frequent[:3] %}
<code>{{ what.diagnosis }}</code> in {{ exercise }} ({{ many(what.count, "student") }}){{ "." if loop.last else ", " }}
{%- endfor %}</p>{% endif %}
<nav aria-label="Parts of the report"><ul>
<li><a href="#submissions">Submissions</a></li> <li><a href="#scores">Scores</a></li>
<li><a href="#exercises">Exercises</a></li> <li><a href="#mistakes">Mistakes</a></li>
<li><a href="#look">To look at</a></li> <li><a href="#students">Students</a></li>
</ul></nav>

<h2 id="submissions">Submissions</h2>
<table>
<caption>Submissions by status</caption>
<thead><tr><th scope="col">status</th><th scope="col" class="n">submissions</th></tr></thead>
<tbody>
{% for status, count in report.statuses.items() %}
<tr><th scope="row">{{ status }}</th><td class="n">{{ count }}</td></tr>
{% endfor %}
</tbody>
</table>

<h2 id="scores">Scores</h2>
<table class="bands">
<caption>How many submissions have how many points, with grades by hand and late penalties</caption>
<thead><tr><th scope="col">points</th><th scope="col" class="n">submissions</th><td></td></tr></thead>
<tbody>
{% for label, count in report.bands %}
<tr><th scope="row">{{ label }}</th><td class="n">{{ count }}</td>
<td><div class="bar" aria-hidden="true"><i style="width: {{ (100 * count / most)|round(1)|points }}%"></i></div></td></tr>
{% endfor %}
</tbody>
</table>

<h2 id="exercises">Exercises</h2>
{% for words, names in (("Nobody solved", report.nobody), ("Everybody solved", report.everybody)) if names %}
<p><strong>{{ words }}:</strong> {{ names|join(", ") }}.</p>
{% endfor %}
<div class="wide" role="region" aria-labelledby="per-exercise" tabindex="0">
<table>
<caption id="per-exercise">How {{ many(report.ran, "submission") }} did in each exercise
{%- if report.ran < report.rows|length %}. Left out here
and under Mistakes: {{ report.rows|length - report.ran }} that could not be run to the end{% endif %}</caption>
<thead><tr><th scope="col">exercise</th><td></td>
<th scope="col" class="n"><span class="key" style="--c: var(--right)">right</span></th>
<th scope="col" class="n"><span class="key" style="--c: var(--partly)">partly right</span></th>
<th scope="col" class="n"><span class="key" style="--c: var(--wrong)">wrong</span></th>
<th scope="col" class="n"><span class="key" style="--c: var(--none)">not attempted</span></th>
<th scope="col" class="n">mean points</th></tr></thead>
<tbody>
{% for item in report.items %}
<tr><th scope="row">{% if item.mistakes %}<a href="#mistakes-{{ loop.index }}">{{ item.name|breakable }}</a>{% else %}
{{ item.name|breakable }}{% endif %}</th>
<td><div class="bar split" aria-hidden="true">
{%- for kind, count in (("right", item.right), ("partly", item.partly), ("wrong", item.wrong),
 ("none", item.not_attempted)) if count -%}
<i class="{{ kind }}" style="width: {{ (100 * count / item.answers)|round(1)|points }}%"></i>
{%- endfor %}</div></td>
<td class="n">{{ item.right }}</td><td class="n">{{ item.partly }}</td><td class="n">{{ item.wrong }}</td>
<td class="n">{{ item.not_attempted }}</td>
<td class="n">{{ "%.1f"|format(item.mean) }} of {{ item.max_score|points }}</td></tr>
{% endfor %}
</tbody>
</table>
</div>

<h2 id="mistakes">Mistakes</h2>
{% if not report.frequent %}<p>None.</p>{% endif %}
{% for item in report.items if item.mistakes %}
<h3 id="mistakes-{{ report.items.index(item) + 1 }}">{{ item.name }}</h3>
<div class="wide" role="region" aria-labelledby="caption-{{ loop.index }}" tabindex="0">
<table class="what">
<caption id="caption-{{ loop.index }}">{{ many(item.mistakes|sum(attribute="count"), "answer") }} of {{ item.answers }}
with a mistake, the most frequent first</caption>
<thead><tr><th scope="col">diagnosis</th><th scope="col" class="n">answers</th>
<th scope="col">what the students were told</th><th scope="col">who</th></tr></thead>
<tbody>
{% for what in item.mistakes %}
<tr><th scope="row"><code>{{ what.diagnosis }}</code></th><td class="n">{{ what.count }}</td><td>{{ what.words }}</td>
<td><details><summary>{{ many(what.count, "student") }}</summary><ul>
{% for student, detail in what.students %}<li>{{ who(student)|trim }}{% if detail %}: <bdi>{{ detail }}</bdi>{% endif %}</li>
{% endfor %}</ul></details></td></tr>
{% endfor %}
</tbody>
</table>
</div>
{% endfor %}

<h2 id="look">To look at</h2>
{% for rows, words, reason in ((report.refused, "Submissions that were not graded, or not to the end", "reason"),
 (report.repaired, "Submissions that were repaired from the released notebook, then graded", "what was repaired")) %}
{% if rows %}
<div class="wide" role="region" aria-labelledby="look-{{ loop.index }}" tabindex="0">
<table class="named">
<caption id="look-{{ loop.index }}">{{ words }}</caption>
<thead><tr><th scope="col">student</th><th scope="col">status</th><th scope="col">{{ reason }}</th></tr></thead>
<tbody>
{% for row in rows %}
<tr><th scope="row">{{ who(row.student)|trim }}</th><td>{{ row.status }}</td><td dir="auto">{{ row.message }}</td></tr>
{% endfor %}
</tbody>
</table>
</div>
{% endif %}
{% endfor %}
{% if not report.refused and not report.repaired %}<p>Nothing: every submission was graded as it was handed in.</p>{% endif %}

<h2 id="students">Students</h2>
<div class="wide" role="region" aria-labelledby="all" tabindex="0">
<table class="students">
<caption id="all">Every student's status and points, by id (the CSV file beside this page can be
sorted otherwise); a name that is a link leads to the student's feedback.
A dash stands for an exercise that was not attempted</caption>
<thead><tr><th scope="col">student</th><th scope="col">status</th><th scope="col" class="n">points</th>
{% for item in report.items %}<th scope="col">{{ item.name|breakable }}<br>of&nbsp;{{ item.max_score|points }}</th>
{% endfor %}</tr></thead>
<tbody>
{% for row in report.rows %}
<tr><th scope="row">{{ who(row.student)|trim }}</th><td>{{ row.status }}</td>
<td class="n">{{ row.total|points }}
{%- if row.late %} <span class="late">({{ row.late|points }} off: late)</span>{% endif %}</td>
{% for item in report.items %}<td>{% if item.name in row.points %}
{{ "–" if row.untouched(item.name) else row.points[item.name]|points }}{% endif %}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table>
</div>
</main>
</body>
</html>
"""


@dataclass
class Booked:
    """What nbgrader's gradebook has for a student: the sum of all grades, those by hand included, and the late penalty."""

    total: float
    late: float
    max_score: float
    points: dict[str, float]


@dataclass
class Row:
    """One student. `points` and `diagnoses` are by exercise; `total` is after the late penalty."""

    student: str
    status: str
    message: str
    total: float
    max_score: float
    late: float
    points: dict[str, float]
    diagnoses: dict[str, str | None]

    def untouched(self, exercise: str) -> bool:
        return self.diagnoses[exercise] == "not_attempted" and not self.points[exercise]


@dataclass
class Mistake:
    """A diagnosis in one exercise: what was said of it, and each student with what was said to nobody else."""

    diagnosis: str
    words: str
    students: list[tuple[str, str]]

    @property
    def count(self) -> int:
        return len(self.students)


@dataclass
class Item:
    """An exercise, over the submissions that were run."""

    name: str
    max_score: float
    right: int = 0
    partly: int = 0
    wrong: int = 0
    not_attempted: int = 0
    mean: float = 0.0
    mistakes: list[Mistake] = field(default_factory=list)

    @property
    def answers(self) -> int:
        return self.right + self.partly + self.wrong + self.not_attempted


@dataclass
class Summary:
    """All that a report says. `bands` counts submissions by their points."""

    assignment: str
    max_score: float
    rows: list[Row]
    items: list[Item]
    statuses: dict[str, int]
    bands: list[tuple[str, int]]
    ran: int
    waiting: list[str]
    unsandboxed: list[str]

    @property
    def mean(self) -> float:
        return statistics.fmean(row.total for row in self.rows)

    @property
    def median(self) -> float:
        return statistics.median(row.total for row in self.rows)

    @property
    def nobody(self) -> list[str]:
        return [item.name for item in self.items if item.answers and not item.right]

    @property
    def everybody(self) -> list[str]:
        return [item.name for item in self.items if item.answers and item.right == item.answers]

    @property
    def refused(self) -> list[Row]:
        return [row for row in self.rows if row.status != "graded"]

    @property
    def repaired(self) -> list[Row]:
        return [row for row in self.rows if row.status == "graded" and row.message]

    @property
    def frequent(self) -> list[tuple[str, Mistake]]:
        """Exercise and mistake, the most frequent first."""
        found = [(item.name, mistake) for item in self.items for mistake in item.mistakes]
        return sorted(found, key=lambda pair: -pair[1].count)


def summarise(records: list[dict], booked: dict[str, Booked], submitted: Sequence[str] = ()) -> Summary:
    """Result records of one assignment in figures. Where a student is in the gradebook, its points count.

    `submitted` are the students who handed in something; those without a record are still to be graded.
    """
    records = sorted(records, key=lambda record: record["student"])
    rows = [_row(record, booked.get(record["student"])) for record in records]
    ran = [(record, row) for record, row in zip(records, rows, strict=True) if row.status in RAN]
    top = max(row.max_score for row in rows)
    counts = Counter(row.status for row in rows)
    return Summary(
        assignment=records[0]["assignment"],
        max_score=top,
        rows=rows,
        items=[_item(name, records, ran) for name in dict.fromkeys(name for r in records for name in r["exercises"])],
        statuses={status: counts[status] for status in (*STATUSES, *sorted(counts.keys() - {*STATUSES}))},
        bands=_bands([row.total for row in rows], top),
        ran=len(ran),
        waiting=sorted({*submitted} - {row.student for row in rows}),
        unsandboxed=[record["student"] for record in records if not record.get("sandboxed", True)],
    )


def _row(record: dict, booked: Booked | None) -> Row:
    exercises = record["exercises"]
    points = {name: exercise["score"] for name, exercise in exercises.items()}
    book = booked or Booked(record["score"], 0.0, record["max_score"], points)
    return Row(
        student=record["student"],
        status=record["status"],
        message=_short(record["message"]),
        total=book.total - book.late,
        max_score=book.max_score,
        late=book.late,
        points={name: book.points.get(name, score) for name, score in points.items()},
        diagnoses={name: exercise["diagnosis"] for name, exercise in exercises.items()},
    )


def _item(name: str, records: list[dict], ran: list[tuple[dict, Row]]) -> Item:
    item = Item(name, max(r["exercises"][name]["max_score"] for r in records if name in r["exercises"]))
    answers = [(record["exercises"][name], row) for record, row in ran if name in record["exercises"]]
    for exercise, row in answers:
        if row.points[name] >= exercise["max_score"]:
            item.right += 1
        elif row.points[name] > 0:
            item.partly += 1
        elif row.untouched(name):
            item.not_attempted += 1
        else:
            item.wrong += 1
    if answers:
        item.mean = statistics.fmean(row.points[name] for _, row in answers)
    item.mistakes = _mistakes([(row.student, exercise) for exercise, row in answers])
    return item


def _mistakes(answers: list[tuple[str, dict]]) -> list[Mistake]:
    """The diagnoses of one exercise. Unnamed results with words of their own are mistakes of their own."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    told: dict[tuple[str, str], Counter] = {}
    for student, exercise in answers:
        diagnosis = exercise["diagnosis"]
        if diagnosis in (None, "not_attempted"):
            continue
        words, _, detail = exercise["message"].partition("\n\n")
        if diagnosis == "raises":
            words, detail = OWN_WORDS["raises"], exercise["message"]
        # The words of a named mistake may have been edited between two gradings; it is one mistake all the same.
        key = diagnosis, words if diagnosis in OWN_WORDS else ""
        found.setdefault(key, []).append((student, _short(detail) if diagnosis in OWN_WORDS else ""))
        told.setdefault(key, Counter())[words] += 1
    mistakes = [
        Mistake(key[0], _short(min(told[key], key=lambda words: (-told[key][words], words))), students)
        for key, students in found.items()
    ]
    return sorted(mistakes, key=lambda mistake: (-mistake.count, mistake.diagnosis, mistake.words))


def _bands(totals: list[float], top: float) -> list[tuple[str, int]]:
    """At most ten bands of points of a round width."""
    steps = (factor * 10.0**power for power in range(-1, 9) for factor in (1, 2, 5))
    step = next(step for step in steps if step >= 0.5 and top <= 10 * step)
    number = max(1, math.ceil(top / step))
    counts = Counter(min(max(int(total // step), 0), number - 1) for total in totals)
    labels = [f"{i * step:g} to under {(i + 1) * step:g}" for i in range(number - 1)]
    return [(label, counts[i]) for i, label in enumerate([*labels, f"{(number - 1) * step:g} to {top:g}"])]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"


def page(report: Summary, links: dict[str, str]) -> str:
    """The report as HTML. `links` are the relative addresses of feedback pages, by student."""
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["points"] = lambda number: f"{number:g}"
    environment.filters["breakable"] = lambda name: Markup("_<wbr>").join(name.split("_"))
    most = max(count for _, count in report.bands)
    return environment.from_string(PAGE).render(report=report, links=links, most=most).lstrip()


# What a spreadsheet would run: at the start of a cell, and where one that separates by semicolons starts a cell.
FORMULA = re.compile(r"(^|[;\t\r\n]\s*)(?=[=+\-@\t\r\n＝＋－＠])")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?")


def table(report: Summary) -> str:
    """The report as CSV, one row a student. A cell that would be a formula gets an apostrophe before it."""
    names = [item.name for item in report.items]
    rows = [
        [
            *("student", "status", "total", "max_score", "late_penalty"),
            *(f"{name} {what}" for name in names for what in ("points", "diagnosis")),
            "message",
        ]
    ]
    for row in report.rows:
        exercises = []
        for name in names:
            exercises += [f"{row.points[name]:g}" if name in row.points else "", row.diagnoses.get(name) or ""]
        figures = [f"{number:g}" for number in (row.total, row.max_score, row.late)]
        rows.append([row.student, row.status, *figures, *exercises, row.message])
    out = io.StringIO(newline="")
    csv.writer(out).writerows([_harmless(cell) for cell in row] for row in rows)
    return out.getvalue()


def _harmless(cell: str) -> str:
    return cell if NUMBER.fullmatch(cell) else FORMULA.sub(r"\1'", cell)


def from_gradebook(course: Course, assignment: str) -> dict[str, Booked]:
    """What the gradebook has for the assignment, by student."""
    from nbgrader import api

    submission = api.SubmittedAssignment
    with gradebook(course.directory.db_url, course.directory.course_id) as book:
        # One question for the class: asked student by student, a large class takes a minute.
        grades = (
            book.db.query(submission.student_id, api.BaseCell.name, api.Grade.score)
            .select_from(api.Grade)
            .join(api.BaseCell, api.Grade.cell_id == api.BaseCell.id)
            .join(api.SubmittedNotebook, api.Grade.notebook_id == api.SubmittedNotebook.id)
            .join(submission, api.SubmittedNotebook.assignment_id == submission.id)
            .join(api.Assignment, submission.assignment_id == api.Assignment.id)
            .filter(api.Assignment.name == assignment)
            .all()
        )
        totals = (
            book.db.query(submission.student_id, submission.max_score, submission.late_submission_penalty)
            .join(api.Assignment, submission.assignment_id == api.Assignment.id)
            .filter(api.Assignment.name == assignment)
            .all()
        )
    return _booked(grades, totals)


def _booked(grades: list, totals: list) -> dict[str, Booked]:
    scores: dict[str, dict[str, float]] = {}
    for student, cell, score in grades:
        scores.setdefault(student, {})[cell] = float(score)
    booked = {}
    for student, max_score, late in totals:
        if student in scores:
            points: dict[str, float] = {}
            for cell, score in scores[student].items():
                exercise = cell.rpartition("-")[0] or cell
                points[exercise] = points.get(exercise, 0.0) + score
            booked[student] = Booked(sum(scores[student].values()), float(late or 0.0), float(max_score), points)
    return booked


def write(course: Course, assignment: str) -> tuple[Summary, list[Path]]:
    """Write report/ASSIGNMENT.html and report/ASSIGNMENT.csv in the course."""
    records = course.results(assignment)
    if not records:
        raise CourseError(f"Nothing of {assignment} is graded yet; run `autograder grade {assignment}` first.")
    report = summarise(records, from_gradebook(course, assignment), course.students(assignment))
    folder = course.root / "report"
    links = {}
    for row in report.rows:
        feedback = course.path("feedback", row.student, assignment) / f"{assignment}.html"
        if feedback.is_file():
            links[row.student] = quote(os.fsencode(Path(os.path.relpath(feedback, folder)).as_posix()))
    written = []
    for name, data in (
        (f"{assignment}.html", encoded(page(report, links))),
        (f"{assignment}.csv", table(report).encode("utf-8", "replace")),  # a message may hold half a character
    ):
        write_atomically(folder / name, data)
        written.append(folder / name)
    return report, written
