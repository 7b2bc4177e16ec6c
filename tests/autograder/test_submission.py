"""Submissions are data: whatever a notebook is, it is read or refused with a reason, and only answers are taken from it."""

import copy
import json
import os
import socket

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.errors import SubmissionError
from autograder.submission import MAX_BYTES, MAX_SOURCE, parse, read, rebuild


def cells_of(room, answers=None):
    notebook = copy.deepcopy(room.released)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = (answers or {}).get(name, cell.source)
    return parse(nbformat.writes(notebook).encode(), "n.ipynb")


def place(cells, grade_id):
    return next(i for i, cell in enumerate(cells) if cell["grade_id"] == grade_id)


def test_an_untouched_submission_is_the_released_notebook(room):
    rebuilt = rebuild(room, cells_of(room))
    assert rebuilt.notes == [] and rebuilt.notebook == room.released


def test_an_answer_is_taken_and_nothing_else_of_the_released_cells(room):
    cells = cells_of(room, {"clipped_step": "mine", "clipped_step-norm": "pass", "setup": "evil"})
    rebuilt = rebuild(room, cells)
    sources = {cell["id"]: cell["source"] for cell in rebuilt.cells}
    assert sources["clipped_step"] == "mine"
    assert sources["clipped_step-norm"] == 'check("clipped_step", "norm")' and "import torch" in sources["setup"]
    assert len(rebuilt.notes) == 2 and all("was restored" in note for note in rebuilt.notes)


def test_a_deleted_check_cell_is_put_back_at_its_place(room):
    cells = cells_of(room)
    del cells[place(cells, "clipped_step-update")]
    rebuilt = rebuild(room, cells)
    assert rebuilt.notebook == room.released and rebuilt.notes == [
        "cell clipped_step-update was missing and was put back"
    ]


def test_a_reordered_notebook_is_put_in_order(room):
    rebuilt = rebuild(room, cells_of(room, {"LossScaler": "mine"})[::-1])
    ids = [cell["id"] for cell in rebuilt.cells]
    assert ids == [cell["id"] for cell in rebuild(room, cells_of(room)).cells]
    assert next(cell for cell in rebuilt.cells if cell["id"] == "LossScaler")["source"] == "mine"


def test_of_several_answer_cells_the_last_counts_and_the_others_still_run_before_it(room):
    cells = cells_of(room, {"clipped_step": "second"})
    cells.insert(
        place(cells, "clipped_step"), {"cell_type": "code", "source": "first", "grade_id": "clipped_step", "id": "x"}
    )
    rebuilt = rebuild(room, cells)
    code = [cell["source"] for cell in rebuilt.cells]
    assert code.index("first") == code.index("second") - 1
    assert rebuilt.notes == ["of several cells clipped_step the last one is the answer"]


def test_an_untouched_copy_behind_an_answer_does_not_undo_it(room):
    cells = cells_of(room, {"clipped_step": "mine"})
    stub = next(cell.source for cell in room.released.cells if cell.get("id") == "clipped_step")
    cells.append({"cell_type": "code", "source": stub, "grade_id": "clipped_step", "id": "x"})
    rebuilt = rebuild(room, cells)
    assert [cell["source"] for cell in rebuilt.cells].count(stub) == 0 and "mine" in [
        c["source"] for c in rebuilt.cells
    ]
    assert rebuilt.notes == ["a copy of cell clipped_step was left out"]


def test_an_answer_whose_cell_was_made_anew_is_not_undone_by_the_cell_that_is_put_back(room):
    cells = cells_of(room)
    at = place(cells, "clipped_step")
    cells[at] = {"cell_type": "code", "source": "def clipped_step(): pass", "grade_id": None, "id": "x"}
    rebuilt = rebuild(room, cells)
    sources = {cell["id"]: cell["source"] for cell in rebuilt.cells}
    assert sources["clipped_step"] == "" and "def clipped_step(): pass" in sources.values()
    assert rebuilt.notes == ["cell clipped_step was missing; its answer was looked for in the other cells"]
    nbformat.validate(rebuilt.notebook)


def test_a_notebook_in_utf_16_and_one_with_a_byte_order_mark_are_read(room):
    text = nbformat.writes(room.released)
    for encoding in ("utf-16", "utf-32", "utf-8-sig"):
        assert parse(text.encode(encoding), "n.ipynb") == cells_of(room)


def test_cells_of_the_students_own_keep_their_place(room):
    cells = cells_of(room)
    own = {"cell_type": "code", "source": "def my_norm(): pass", "grade_id": None, "id": "x"}
    cells.insert(place(cells, "clipped_step"), own)
    cells.append({"cell_type": "markdown", "source": "a note", "grade_id": None, "id": "y"})
    rebuilt = rebuild(room, cells)
    ids = [cell.metadata.get("nbgrader", {}).get("grade_id") or cell.source for cell in rebuilt.notebook.cells]
    assert (ids.index("def my_norm(): pass") < ids.index("clipped_step") and ids[-1] == "a note") or "a note" in ids
    nbformat.validate(rebuilt.notebook)


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe\x00", "not valid JSON"),
        (b"[1]", "no list of cells"),
        (b'{"cells": 5}', "no list of cells"),
        (b"null", "no list of cells"),
        (b'{"worksheets": []}', "old format"),
        (b"[" * 100_000, "not valid JSON"),
        (json.dumps({"cells": [{}] * 3000}).encode(), "more than"),
    ],
)
def test_what_is_no_notebook_is_refused_with_the_reason(data, reason):
    with pytest.raises(SubmissionError, match=reason):
        parse(data, "n.ipynb")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cell_type", "source", "metadata", "nbgrader", "grade_id", "id", "x"]), inner, max_size=5
        )
    ),
    max_leaves=15,
)


@given(cells=st.lists(json_values, max_size=5), kind=st.sampled_from(["code", "markdown", "raw", "other"]))
@settings(max_examples=150, deadline=None)
def test_cells_of_any_shape_are_read_and_rebuilt(room, cells, kind):
    for cell in cells:
        if isinstance(cell, dict):
            cell["cell_type"] = kind
    rebuilt = rebuild(room, parse(json.dumps({"cells": cells}).encode(), "n.ipynb"))
    nbformat.validate(rebuilt.notebook)
    graded = [cell.metadata.nbgrader.grade_id for cell in rebuilt.notebook.cells if "nbgrader" in cell.metadata]
    assert graded == [cell.metadata.nbgrader.grade_id for cell in room.released.cells if "nbgrader" in cell.metadata]


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def test_what_is_no_plain_file_is_refused(tmp_path):
    target = tmp_path / "secret"
    target.write_text('{"cells": []}')
    for name, make in {
        "link": lambda p: p.symlink_to(target),
        "folder": lambda p: p.mkdir(),
        "fifo": os.mkfifo,
        "socket": make_socket,
        "to a device": lambda p: p.symlink_to("/dev/zero"),
        "dangling": lambda p: p.symlink_to("/nowhere"),
        "none": lambda p: None,
    }.items():
        make(tmp_path / name)
        with pytest.raises(SubmissionError):
            read(tmp_path / name)


def test_a_huge_file_is_refused_without_being_read(tmp_path):
    with open(tmp_path / "n.ipynb", "wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(SubmissionError, match="clear its outputs"):
        read(tmp_path / "n.ipynb")


def test_a_folder_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "n.ipynb").write_text('{"cells": []}')
    (tmp_path / "bob").symlink_to("ada")
    assert read(tmp_path / "ada" / "n.ipynb") == []
    with pytest.raises(SubmissionError, match="its folder is a link"):
        read(tmp_path / "bob" / "n.ipynb")


@pytest.mark.parametrize("change", ["grow", "shrink", "rewrite"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch, change):
    path = tmp_path / "n.ipynb"
    path.write_text('{"cells": []}   ')
    fstat, calls = os.fstat, []

    def slow(descriptor):
        calls.append(fstat(descriptor))
        if len(calls) == 1:
            path.write_text({"grow": '{"cells": [{}]}' * 9, "shrink": "{}", "rewrite": '{"cells": [5]}  '}[change])
            os.utime(path, ns=(0, calls[0].st_mtime_ns + 1))
        return calls[-1]

    monkeypatch.setattr(os, "fstat", slow)
    with pytest.raises(SubmissionError, match="was written to while it was read"):
        read(path)


def test_an_answer_that_is_cut_off_is_said_to_be(room):
    cells = cells_of(room, {"clipped_step": "# " + "x" * MAX_SOURCE + "\ndef clipped_step(): pass"})
    rebuilt = rebuild(room, cells)
    assert rebuilt.notes == [f"cell clipped_step is longer than {MAX_SOURCE} characters, and what follows was cut off"]


def test_an_id_of_any_depth_is_no_trouble():
    deep = "[" * 900 + "]" * 900
    cells = parse(b'{"cells": [{"cell_type": "code", "id": %s}]}' % deep.encode(), "n.ipynb")
    assert cells[0]["id"] == ""
