"""Reads a lesson as a reader would: its cells, sections, pictures, predictions and claims."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

FOLDER = Path(__file__).resolve().parents[2] / "lessons"
LESSONS = sorted(FOLDER.glob("*.ipynb"))

# The claims of the two documents that each lesson decides, once each.
CLAIMS = {
    "01_fp16_range": {"F1", "F4", "F9", "F16"},
    "02_autocast": {"F6", "F7", "F8", "F12", "F13", "F15", "F25", "F72"},
    "03_gradscaler": {"F18", "F20", "F26", "F33", "F34", "F35", "F38", "F39"},
    "04_training_loop": {"F10", "F27", "F28", "F29", "F30", "F31", "F32", "F48", "F49"},
}
VERDICTS = {"wrong", "outdated", "half true", "contradiction"}

PICTURES = re.compile(
    r"\b(plots\.\w+|bench\.plot|show\.(table|diff|loop_diff)|scaler_machine|bit_flipper|number_line|op_policy|watch|dashboard)\("
)
TABLE = re.compile(r"^\|[\s:|-]+\|\s*$", re.MULTILINE)
PREDICT = re.compile(r"^predict\(", re.MULTILINE)
READABLE = re.compile(r"[a-z]+[a-z0-9]*(-[a-z0-9]+)+")


@dataclass(frozen=True)
class Lesson:
    """One lesson notebook."""

    name: str
    notebook: nbformat.NotebookNode

    @property
    def cells(self) -> list[nbformat.NotebookNode]:
        return self.notebook.cells

    @property
    def code(self) -> list[nbformat.NotebookNode]:
        return [cell for cell in self.cells if cell.cell_type == "code"]

    @property
    def prose(self) -> list[nbformat.NotebookNode]:
        return [cell for cell in self.cells if cell.cell_type == "markdown"]

    def sections(self) -> dict[str, list[nbformat.NotebookNode]]:
        """The cells under each second-level heading; what stands before the first one is the opening."""
        found: dict[str, list[nbformat.NotebookNode]] = {"opening": []}
        current = "opening"
        for cell in self.cells:
            heading = re.match(r"## (.+)", cell.source) if cell.cell_type == "markdown" else None
            if heading:
                current = heading.group(1).strip()
                found[current] = []
            found[current].append(cell)
        return found

    def claims(self) -> list[tuple[int, dict[str, str]]]:
        """Each claim with the position of the cell that decides it."""
        return [(place, cell.metadata["claim"]) for place, cell in enumerate(self.cells) if "claim" in cell.metadata]


def read(path: Path) -> Lesson:
    return Lesson(path.stem, nbformat.read(path, as_version=4))


def lines(cell: nbformat.NotebookNode) -> int:
    """Lines of code, blank ones left out."""
    return sum(bool(line.strip()) for line in cell.source.splitlines())


def words(cell: nbformat.NotebookNode) -> int:
    """Words of prose; table rules and list marks are no words."""
    return sum(bool(re.search(r"\w", token)) for token in cell.source.split())


def is_picture(cell: nbformat.NotebookNode) -> bool:
    """Whether the cell shows a picture, a table or a widget."""
    if cell.cell_type == "code":
        return bool(PICTURES.search(cell.source))
    return bool(TABLE.search(cell.source)) or "![" in cell.source


def is_prediction(cell: nbformat.NotebookNode) -> bool:
    return cell.cell_type == "code" and bool(PREDICT.search(cell.source))
