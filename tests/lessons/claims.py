"""Builds lessons/claims.md, the errata of the two documents, from the lessons' own metadata: python tests/lessons/claims.py"""

from __future__ import annotations

from lesson_reading import FOLDER, LESSONS, Lesson, read

PAGE = FOLDER / "claims.md"
OPENING = """\
# What the two documents say, and what PyTorch does

The course follows two Chinese documents on mixed precision, a long one and a short one. Each of their claims that is wrong,
outdated, half true or contradicted elsewhere in them is put to you as a question in a lesson, and decided by the cell behind
it, which asserts what is said here. This page is built from the lessons: `python tests/lessons/claims.py`.
"""


def rows(lessons: list[Lesson]) -> list[tuple[str, ...]]:
    """(source, claim, verdict, instead, where) of every claim of the lessons, in the order of the documents."""
    found = [
        (claim["source"], int(claim["id"].removeprefix("F")), lesson, lesson.cells[place].id, claim)
        for lesson in lessons
        for place, claim in lesson.claims()
    ]
    return [
        (
            f"{claim['id']}, {source}",
            claim["says"],
            claim["verdict"],
            claim["instead"],
            f"[{lesson.name}]({lesson.name}.ipynb), cell `{cell}`",
        )
        for source, _, lesson, cell, claim in sorted(found, key=lambda row: (row[0], row[1]))
    ]


def page() -> str:
    """The whole page."""
    table = rows([read(path) for path in LESSONS])
    counts = {verdict: sum(row[2] == verdict for row in table) for verdict in dict.fromkeys(row[2] for row in table)}
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items(), key=lambda pair: -pair[1]))
    lines = ["| Claim | The document says | Verdict | Instead | Decided in |", "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table]
    return f"{OPENING}\n{len(table)} claims so far: {said}.\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
