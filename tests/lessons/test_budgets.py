"""Every lesson keeps the contract on how a lesson reads: small cells, pictures, predictions, claims, a closing."""

from __future__ import annotations

import re
import statistics

import nbformat
import pytest
from lesson_reading import (
    CLAIMS,
    LESSONS,
    READABLE,
    VERDICTS,
    Lesson,
    is_picture,
    is_prediction,
    lines,
    read,
    words,
)

# What reads a clock or the memory in use; a GPU that is played by threads (ThreadPoolExecutor) has no neighbours.
MEASURES = re.compile(r"perf_counter|\.seconds\b|max_memory_|mem_get_info|bench\.run\(|\bwatch\(|timeit")
STAMPED = re.compile(r"show\.measured_on\(|bench\.table\(|bench\.plot\(|\bwatch\(")  # watch says so itself
CLOSING = ("What changed in the loop", "Symptom, cause, cure", "Exercises", "Sources")


def test_there_are_lessons_to_read():
    assert LESSONS, "lessons/ holds no notebook, so every other test here would prove nothing"
    assert {path.stem for path in LESSONS} >= set(CLAIMS)


@pytest.fixture(params=LESSONS, ids=lambda path: path.stem)
def lesson(request) -> Lesson:
    return read(request.param)


def test_a_committed_lesson_is_valid_and_has_no_outputs(lesson):
    nbformat.validate(lesson.notebook)
    assert lesson.notebook.metadata.kernelspec.name == "python3"
    for cell in lesson.code:
        assert cell.outputs == [], f"cell {cell.id} has outputs"
        assert cell.execution_count is None, f"cell {cell.id} has an execution count"


def test_cell_ids_are_readable_and_unique(lesson):
    ids = [cell.id for cell in lesson.cells]
    assert len(ids) == len(set(ids))
    unreadable = [name for name in ids if not READABLE.fullmatch(name) or len(name) > 40]
    assert not unreadable, f"name these cells in words, as in 'underflow-predict': {unreadable}"


def test_code_cells_are_small(lesson, report):
    sizes = {cell.id: lines(cell) for cell in lesson.code}
    middle = statistics.median(sizes.values())
    report(f"{lesson.name}: {len(sizes)} code cells, median {middle:g} lines, longest {max(sizes.values())}")
    assert middle <= 5
    assert not {name: size for name, size in sizes.items() if size > 20}


def test_markdown_cells_are_short(lesson, report):
    sizes = {cell.id: words(cell) for cell in lesson.prose}
    report(f"{lesson.name}: {len(sizes)} markdown cells, {sum(sizes.values())} words, longest {max(sizes.values())}")
    assert not {name: size for name, size in sizes.items() if size > 150}


def test_a_picture_table_or_widget_comes_every_eight_cells(lesson, report):
    places = [place for place, cell in enumerate(lesson.cells) if is_picture(cell)]
    gaps = [b - a - 1 for a, b in zip([-1, *places], [*places, len(lesson.cells)], strict=True)]
    report(
        f"{lesson.name}: {len(places)} pictures, tables and widgets in {len(lesson.cells)} cells, "
        f"longest gap {max(gaps)}"
    )
    assert max(gaps) <= 8, f"a gap of {max(gaps)} cells ends before {lesson.cells[places[gaps.index(max(gaps))]].id}"


def test_every_section_has_a_prediction_that_a_cell_decides_and_prose_explains(lesson, report):
    sections = lesson.sections()
    counts = {}
    for title, cells in sections.items():
        if title in ("opening", list(sections)[-1]):
            continue
        places = [place for place, cell in enumerate(cells) if is_prediction(cell)]
        counts[title] = len(places)
        for place in places:
            after = cells[place + 1 : place + 4]
            asked = cells[place].id
            assert after and after[0].cell_type == "code", f"{asked}: no cell to run after the question"
            assert not is_prediction(after[0]), f"{asked}: a question after a question"
            assert any(cell.cell_type == "markdown" for cell in after), f"{asked}: nothing explains what was seen"
    report(f"{lesson.name}: {sum(counts.values())} predictions in {len(counts)} sections: {list(counts.values())}")
    assert counts and min(counts.values()) >= 1, counts


def test_every_claim_is_decided_once_by_a_cell_that_asserts(lesson, report):
    found = lesson.claims()
    assert sorted(claim["id"] for _, claim in found) == sorted(CLAIMS[lesson.name])
    for place, claim in found:
        cell = lesson.cells[place]
        assert set(claim) == {"id", "source", "says", "verdict", "instead"}
        assert all(20 < len(claim[part]) < 220 and claim[part].endswith(".") for part in ("says", "instead")), claim
        assert claim["verdict"] in VERDICTS
        assert re.match(r"(long|short) document \d", claim["source"]), claim
        assert cell.cell_type == "code" and not is_prediction(cell)
        assert "assert " in cell.source, f"{cell.id} decides {claim['id']} without an assert"
        assert is_prediction(lesson.cells[place - 1]), f"{cell.id}: the cell before it asks nothing"
    report(f"{lesson.name}: {len(found)} claims, each decided once")


def test_facts_are_asserted_where_they_are_taught(lesson, report):
    sections = lesson.sections()
    taught = {title: sum(cell.source.count("assert ") for cell in cells) for title, cells in sections.items()}
    body = {title: count for title, count in taught.items() if title not in ("opening", list(sections)[-1])}
    report(f"{lesson.name}: {sum(taught.values())} asserts")
    assert all(body.values()), f"sections that assert nothing: {[title for title, n in body.items() if not n]}"


def test_a_lesson_opens_with_what_for_how_long_and_on_what_machine(lesson):
    opening = lesson.sections()["opening"]
    text = "\n".join(cell.source for cell in opening)
    assert opening[0].source.startswith("# ")
    assert "you will be able to" in text
    assert re.search(r"\d+ minutes", text)
    assert "show.machine()" in text


def test_a_lesson_closes_with_diff_cures_exercises_and_sources(lesson):
    closing = list(lesson.sections().values())[-1]
    text = "\n".join(cell.source for cell in closing)
    for part in CLOSING:
        assert f"### {part}" in text, f"the closing lacks '{part}'"
    assert "show.loop_diff(" in text
    assert re.search(r"\| *Symptom *\| *Cause *\| *Cure *\|", text)
    assert "section" in text.split("### Sources")[1].lower()


def test_a_lesson_ends_with_a_cell_that_frees_the_gpu_and_says_so(lesson):
    last = lesson.cells[-1]
    assert last.cell_type == "code" and last.source.endswith("print(release_gpu())")
    assert sum("release_gpu(" in cell.source for cell in lesson.code) == 1


def test_every_cell_that_measures_says_whether_others_share_the_gpu(lesson, report):
    measuring = [
        cell for cell in lesson.code if MEASURES.search(cell.source) and "ThreadPoolExecutor" not in cell.source
    ]
    silent = [cell.id for cell in measuring if not STAMPED.search(cell.source)]
    report(f"{lesson.name}: {len(measuring)} cells measure a time or a size: {', '.join(c.id for c in measuring)}")
    assert not silent, f"say where it was measured, with show.measured_on or bench.table: {silent}"


def test_the_lessons_measure_something():
    ids = {cell.id for path in LESSONS for cell in read(path).code if MEASURES.search(cell.source)}
    assert {"speed-run", "protocol-run", "bytes-run", "bench-run"} <= ids


def test_the_page_of_claims_is_built_from_the_lessons(report):
    """`python tests/lessons/claims.py` builds it."""
    from claims import PAGE, page, rows

    table = rows([read(path) for path in LESSONS])
    report(f"lessons/claims.md: {len(table)} claims of the two documents, each decided by a cell")
    assert len(table) == sum(map(len, CLAIMS.values()))
    assert PAGE.read_text(encoding="utf-8") == page()
