"""Every lesson runs from top to bottom in a fresh kernel, also where there is no browser to run it in."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from lab_server import chromium
from lesson_reading import FOLDER, LESSONS
from lesson_record import check_run


@pytest.mark.slow
@pytest.mark.skipif(
    chromium() is not None, reason="requires a machine without Chromium: with it, test_browser.py runs each lesson"
)
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs_from_top_to_bottom(path: Path, tmp_path, monkeypatch, report):
    nbclient = pytest.importorskip("nbclient", reason="requires nbclient to start a kernel")
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FOLDER.parent), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute()
    check_run(path.stem, notebook, report)
