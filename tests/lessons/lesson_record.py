"""What a lesson that has run must be: without an error, without a traceback on stderr, and in time."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime

import nbformat
from lesson_reading import FOLDER

BUILD = FOLDER.parent / "build" / "lessons"
WHOLE_S, CELL_S = 90, 15


def seconds(cell) -> float:
    times = cell.metadata.get("execution", {})
    start = times.get("iopub.execute_input")
    end = times.get("shell.execute_reply")
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() if start and end else 0.0


def check_run(name: str, notebook: nbformat.NotebookNode, report: Callable[[str], None]) -> None:
    """Of a notebook whose execution was timed, write the times and the outputs to build/, and assert what a lesson promises."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    took = {cell.id: round(seconds(cell), 2) for cell in code}
    slowest = max(took, key=took.get)
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / f"{name}_seconds.json").write_text(json.dumps(took, indent=1), encoding="utf-8")
    nbformat.write(notebook, BUILD / f"{name}.ipynb")
    total = sum(took.values())
    report(
        f"{name}: {total:.1f} s in all (aim {WHOLE_S} s); slowest cell {slowest}: {took[slowest]} s (aim {CELL_S} s)"
    )
    assert all("iopub.execute_input" in cell.metadata.get("execution", {}) for cell in code), "not every cell was timed"
    # A busy machine must not fail this test, a lesson that outgrew its limits must: hence twice the contract's times.
    assert total < 2 * WHOLE_S
    assert took[slowest] < 2 * CELL_S
    for cell in code:
        for output in cell.get("outputs", []):
            assert output.output_type != "error", cell.id
            loud = output.get("name") == "stderr" and "Traceback" in output.get("text", "")
            assert not loud, f"{cell.id} wrote a traceback to stderr"
