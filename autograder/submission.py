"""A submitted notebook as data: read without trust, and rebuilt from the released one with only the student's own parts."""

from __future__ import annotations

import copy
import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograder.errors import SubmissionError
from autograder.room import Room, code_cells

MAX_BYTES = 16 << 20
MAX_CELLS = 2_000
MAX_SOURCE = 1 << 20


@dataclass
class Rebuilt:
    """The released notebook with a student's answers and own cells in it.

    `notebook` is what graders and nbgrader see, `cells` what the runner runs, `notes` what had to be repaired.
    """

    notebook: nbformat.NotebookNode
    cells: list[dict]
    notes: list[str] = field(default_factory=list)


def read(path: Path) -> list[dict]:
    """The cells of a submitted notebook: {"cell_type", "source", "grade_id"}. SubmissionError says why it can't be read."""
    try:
        # A FIFO would block, a link would lead out of the submission.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise SubmissionError(f"{path.name} is not a file")
            if info.st_size > MAX_BYTES:
                raise SubmissionError(
                    f"{path.name} is larger than {MAX_BYTES >> 20} MiB; clear its outputs and submit it again"
                )
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise SubmissionError(f"there is no {path.name} in the submission") from error
    except OSError as error:
        raise SubmissionError(f"{path.name} cannot be read: {error.strerror}") from error
    return parse(data, path.name)


def parse(data: bytes, name: str) -> list[dict]:
    """As `read`, from the bytes of a notebook."""
    if not data.strip():
        raise SubmissionError(f"{name} is empty")
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise SubmissionError(f"{name} is not a notebook: it is not valid JSON ({str(error)[:120]})") from error
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells", notebook.get("worksheets")), list):
        raise SubmissionError(f"{name} is not a notebook: it has no list of cells")
    if "cells" not in notebook:
        raise SubmissionError(
            f"{name} is a notebook of an old format; open it in JupyterLab, save it and submit it again"
        )
    if len(notebook["cells"]) > MAX_CELLS:
        raise SubmissionError(f"{name} has more than {MAX_CELLS} cells")
    cells = []
    for cell in notebook["cells"]:
        if not isinstance(cell, dict) or cell.get("cell_type") not in ("code", "markdown", "raw"):
            continue
        source = cell.get("source", "")
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str):
            continue
        # A lone surrogate cannot be written to any file.
        source = source.encode("utf-8", "replace").decode("utf-8")[:MAX_SOURCE]
        metadata = cell.get("metadata")
        nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
        cells.append(
            {
                "cell_type": cell["cell_type"],
                "source": source,
                "grade_id": grade_id if isinstance(grade_id, str) else None,
                "id": str(cell.get("id", "")),
            }
        )
    return cells


def rebuild(room: Room, submitted: list[dict]) -> Rebuilt:
    """The released notebook of `room` with what is the student's in `submitted`.

    From a known answer cell its source is taken, of copies the last one (the earlier ones are kept as the student's own
    cells: splitting a cell in JupyterLab copies its metadata). Check cells and other locked cells come from the release.
    Cells that the release does not know are the student's own; they keep their place behind the known cell they followed.
    """
    released = {cell.metadata.nbgrader.grade_id: cell for cell in room.released.cells if "nbgrader" in cell.metadata}
    answers = {grade_id for grade_id, cell in released.items() if cell.metadata.nbgrader.solution}
    texts = {cell.source for cell in room.released.cells if "nbgrader" not in cell.metadata}
    last = {cell["grade_id"]: i for i, cell in enumerate(submitted) if cell["grade_id"] in released}
    notes, sources, own = [], {}, {None: []}
    place = None
    for i, cell in enumerate(submitted):
        grade_id = cell["grade_id"]
        if last.get(grade_id) == i:
            place = grade_id
            if grade_id in answers:
                sources[grade_id] = cell["source"]
            elif cell["source"] != released[grade_id].source:
                notes.append(f"cell {grade_id} had been changed and was restored")
        elif grade_id in released and grade_id not in answers:
            notes.append(f"a copy of cell {grade_id} was left out")
        elif cell["source"].strip() and not (cell["cell_type"] != "code" and cell["source"] in texts):
            if grade_id in answers:
                notes.append(f"of several cells {grade_id} the last one is the answer")
            own.setdefault(place, []).append(cell)
    notes += [f"cell {grade_id} was missing and was put back" for grade_id in released if grade_id not in last]
    notebook = copy.deepcopy(room.released)
    cells = [*_own_cells(own[None], 0)]
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in sources:
            cell.source = sources[grade_id]
        cells.append(cell)
        if grade_id:
            cells += _own_cells(own.get(grade_id, []), len(cells))
    notebook.cells = cells
    return Rebuilt(notebook, code_cells(notebook, room.exercises, {}), notes)


def _own_cells(cells: list[dict], start: int) -> list[nbformat.NotebookNode]:
    make = {
        "code": nbformat.v4.new_code_cell,
        "markdown": nbformat.v4.new_markdown_cell,
        "raw": nbformat.v4.new_raw_cell,
    }
    made = []
    for number, cell in enumerate(cells):
        new = make[cell["cell_type"]](cell["source"])
        new.id = f"own-{start}-{number}"
        made.append(new)
    return made
