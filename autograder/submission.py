"""A submitted notebook as data: read without trust, and rebuilt from the released one with only the student's own parts."""

from __future__ import annotations

import copy
import json
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograder.errors import SubmissionError
from autograder.room import Room, code_cells

MAX_BYTES = 16 << 20
MAX_CELLS = 2_000
MAX_SOURCE = 1 << 20
# Numbers, lists and objects of JSON, outside its texts: a million takes 100 MiB to read, and two bytes each to write.
MAX_VALUES = 1_000_000
# A text of JSON; one that nobody ends goes to the end, so that no second look is taken at any byte.
TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)


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
        data = _bytes(path)
    except FileNotFoundError as error:
        raise SubmissionError(f"there is no {path.name} in the submission") from error
    except OSError as error:
        raise SubmissionError(f"{path.name} cannot be read: {error.strerror}") from error
    return parse(data, path.name)


def _bytes(path: Path) -> bytes:
    # A link would lead out of the submission, a FIFO would block; opening a device may do more than that.
    if path.parent.is_symlink():
        raise SubmissionError(f"{path.name} cannot be read: its folder is a link")
    if not stat.S_ISREG(path.lstat().st_mode):
        raise SubmissionError(f"{path.name} is not a file")
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        before = os.fstat(file.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise SubmissionError(f"{path.name} is not a file")
        if before.st_size > MAX_BYTES:
            raise SubmissionError(
                f"{path.name} is larger than {MAX_BYTES >> 20} MiB; clear its outputs and submit it again"
            )
        data = file.read(MAX_BYTES + 1)
        after = os.fstat(file.fileno())
    if len(data) != before.st_size or after.st_mtime_ns != before.st_mtime_ns:
        raise SubmissionError(f"{path.name} was written to while it was read; grade it again")
    return data


def parse(data: bytes, name: str) -> list[dict]:
    """As `read`, from the bytes of a notebook: UTF-8, or UTF-16 and 32, which some editors on Windows write."""
    if not data.strip():
        raise SubmissionError(f"{name} is empty")
    try:
        text = data.decode(json.detect_encoding(data), "surrogatepass")
        if _values(text) > MAX_VALUES:
            raise SubmissionError(f"{name} holds more than {MAX_VALUES} values; clear its outputs and submit it again")
        notebook = json.loads(text)
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
                "id": cell["id"] if isinstance(cell.get("id"), str) else "",
            }
        )
    return cells


def _values(text: str) -> int:
    if text.count(",") + text.count("[") + text.count("{") <= MAX_VALUES:
        return 0
    outside = TEXT.sub("", text)
    return outside.count(",") + outside.count("[") + outside.count("{")


def rebuild(room: Room, submitted: list[dict]) -> Rebuilt:
    """The released notebook of `room` with what is the student's in `submitted`.

    From a known answer cell its source is taken; of copies the last one that is not as it was released. Earlier ones are kept
    as the student's own cells, because splitting a cell in JupyterLab copies its metadata. An answer cell that is missing is
    put back, empty where a cell of the student's own names the exercise. Check cells and other locked cells come from the
    release. Cells that the release does not know are the student's own; they keep their place behind the known cell they
    followed.
    """
    released = {cell.metadata.nbgrader.grade_id: cell for cell in room.released.cells if "nbgrader" in cell.metadata}
    answers = {grade_id for grade_id, cell in released.items() if cell.metadata.nbgrader.solution}
    texts = {cell.source for cell in room.released.cells if "nbgrader" not in cell.metadata}
    known = [(i, cell["grade_id"], cell["source"]) for i, cell in enumerate(submitted) if cell["grade_id"] in released]
    untouched = {i for i, grade_id, source in known if grade_id in answers and source == released[grade_id].source}
    last = {grade_id: i for i, grade_id, _ in known}
    last |= {grade_id: i for i, grade_id, _ in known if i not in untouched}
    notes, sources, own = [], {}, {None: []}
    place = None
    for i, cell in enumerate(submitted):
        grade_id = cell["grade_id"]
        if last.get(grade_id) == i:
            place = grade_id
            if grade_id in answers:
                sources[grade_id] = cell["source"]
                if len(cell["source"]) == MAX_SOURCE:
                    notes.append(
                        f"cell {grade_id} is longer than {MAX_SOURCE} characters, and what follows was cut off"
                    )
            elif cell["source"] != released[grade_id].source:
                notes.append(f"cell {grade_id} had been changed and was restored")
        elif grade_id in released and (grade_id not in answers or i in untouched):
            notes.append(f"a copy of cell {grade_id} was left out")
        elif cell["source"].strip() and not (cell["cell_type"] != "code" and cell["source"] in texts):
            if grade_id in answers:
                notes.append(f"of several cells {grade_id} the last one is the answer")
            own.setdefault(place, []).append(cell)
    written = "\n".join(cell["source"] for cells in own.values() for cell in cells if cell["cell_type"] == "code")
    for grade_id in (grade_id for grade_id in released if grade_id not in last):
        if grade_id in answers and re.search(rf"\b{re.escape(grade_id)}\b", written):
            sources[grade_id] = ""
            notes.append(f"cell {grade_id} was missing; its answer was looked for in the other cells")
        else:
            notes.append(f"cell {grade_id} was missing and was put back")
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
    return Rebuilt(notebook, code_cells(notebook, room.exercises, {}), list(dict.fromkeys(notes)))


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
