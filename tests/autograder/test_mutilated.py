"""Two hundred mutilations of a notebook: each is repaired or refused with a reason, and the others get their grades."""

import copy
import json
import random

import nbformat
import pytest

from autograder.errors import SubmissionError
from autograder.grading import grade_file
from autograder.journal import STATUSES
from autograder.submission import MAX_BYTES, MAX_VALUES, parse, read, rebuild

ANSWER = "def choose_init_scale(*args, **kwargs):\n    return 65536.0\n"
NUMBER = 200


def meta(cell):
    return cell.setdefault("metadata", {}).setdefault("nbgrader", {})


def some(notebook, rng):
    """A random cell, as deep as it still has one."""
    return rng.choice(
        [cell for cell in notebook["cells"] if isinstance(cell, dict) and isinstance(cell.get("metadata"), dict)]
    )


WRONG = [None, 5, -1.5, True, [], {}, "text", [None], {"a": 1}, "\ud800", "x" * 5000, 10**30]


def delete(nb, rng):
    nb["cells"].remove(rng.choice(nb["cells"]))


def delete_many(nb, rng):
    nb["cells"] = [cell for cell in nb["cells"] if rng.random() < 0.5]


def duplicate(nb, rng):
    nb["cells"].insert(rng.randrange(len(nb["cells"]) + 1), copy.deepcopy(rng.choice(nb["cells"])))


def shuffle(nb, rng):
    rng.shuffle(nb["cells"])


def swap_ids(nb, rng):
    a, b = meta(some(nb, rng)), meta(some(nb, rng))
    a["grade_id"], b["grade_id"] = b.get("grade_id"), a.get("grade_id")


def repoint_a_check(nb, rng):
    meta(some(nb, rng))["grade_id"] = rng.choice(["clipped_step-update", "choose_init_scale", "nothing", "../x", ""])


def points(nb, rng):
    meta(some(nb, rng))["points"] = rng.choice([100, -5, 1e300, "all", None, float("nan"), float("inf")])


def flags(nb, rng):
    meta(some(nb, rng)).update(
        {key: rng.choice([True, False, None, 1, "no"]) for key in ("grade", "solution", "locked", "task")}
    )


def schema(nb, rng):
    meta(some(nb, rng))["schema_version"] = rng.choice([0, 1, 2, 99, "3", None])


def extra_key(nb, rng):
    meta(some(nb, rng))[rng.choice(["x", "checksum", "cell_type", "\u0000"])] = rng.choice(WRONG)


def no_metadata(nb, rng):
    some(nb, rng).pop("metadata")


def metadata_of_another_type(nb, rng):
    some(nb, rng)["metadata"] = rng.choice(WRONG)


def nbgrader_of_another_type(nb, rng):
    some(nb, rng)["metadata"]["nbgrader"] = rng.choice(WRONG)


def grade_id_of_another_type(nb, rng):
    meta(some(nb, rng))["grade_id"] = rng.choice(WRONG)


def source_of_another_type(nb, rng):
    some(nb, rng)["source"] = rng.choice([*WRONG, ["a\n", 5], [["a"]]])


def source_as_lines(nb, rng):
    cell = some(nb, rng)
    if isinstance(cell["source"], str):
        cell["source"] = cell["source"].splitlines(keepends=True)


def no_source(nb, rng):
    some(nb, rng).pop("source", None)


def edited_check(nb, rng):
    some(nb, rng)["source"] = "pass  # \u202e \U0001f600"


def cell_type(nb, rng):
    some(nb, rng)["cell_type"] = rng.choice(["markdown", "raw", "heading", None, 5, "code"])


def cell_of_another_type(nb, rng):
    nb["cells"][rng.randrange(len(nb["cells"]))] = rng.choice(WRONG)


def ids(nb, rng):
    value = rng.choice([*WRONG, nb["cells"][0].get("id")])
    some(nb, rng)["id"] = value


def outputs(nb, rng):
    some(nb, rng)["outputs"] = rng.choice(
        [*WRONG, [{"output_type": "display_data", "data": {"text/html": "<script>x</script>" * 100}}]]
    )


def kernel(nb, rng):
    nb["metadata"] = rng.choice(
        [*WRONG, {"kernelspec": {"name": "evil; rm -rf /", "argv": ["sh"]}}, {"language_info": 5}]
    )


def version(nb, rng):
    nb["nbformat"], nb["nbformat_minor"] = rng.choice(
        [(3, 0), (4, 0), (4, 2), (4, 5), (5, 0), ("4", "5"), (None, -1), (10**30, 0)]
    )


def worksheets(nb, rng):
    nb["worksheets"] = [{"cells": nb.pop("cells")}]


def cells_of_another_type(nb, rng):
    nb["cells"] = rng.choice(WRONG)


def many_cells(nb, rng):
    nb["cells"] += [{"cell_type": rng.choice(["code", "raw"]), "source": "", "metadata": {}}] * rng.choice([500, 5000])


IN_THE_NOTEBOOK = [
    delete, delete_many, duplicate, shuffle, swap_ids, repoint_a_check, points, flags, schema, extra_key, no_metadata,
    metadata_of_another_type, nbgrader_of_another_type, grade_id_of_another_type, source_of_another_type, source_as_lines,
    no_source, edited_check, cell_type, cell_of_another_type, ids, outputs, kernel, version, worksheets,
    cells_of_another_type, many_cells,
]  # fmt: skip
IN_THE_BYTES = [
    lambda data, rng: data[: rng.randrange(len(data))],
    lambda data, rng: data[rng.randrange(len(data)) :],
    lambda data, rng: b"\xef\xbb\xbf" + data,
    lambda data, rng: data.decode().encode(rng.choice(["utf-16", "utf-32", "utf-16-le", "utf-16-be"])),
    lambda data, rng: data.decode().encode("utf-16")[:-1],
    lambda data, rng: (i := rng.randrange(len(data))) and data[:i] + bytes([rng.randrange(256)]) + data[i + 1 :],
    lambda data, rng: (i := rng.randrange(len(data))) and data[:i] + b"\0" * rng.choice([1, 1000]) + data[i:],
    lambda data, rng: data.replace(b'"cells"', b'"cells": [], "cells"', 1),
    lambda data, rng: data.replace(b'"source": ', b'"source": ' + b"[" * rng.choice([50, 5000, 10**5]), 1),
    lambda data, rng: data.replace(b'"nbformat": 4', b'"nbformat": ' + b"9" * rng.choice([20, 5000])),
    lambda data, rng: data + data,
    lambda data, rng: b"\x80\x04" + data,
    lambda data, rng: data.replace(b"\n", b"\r\n"),
]


def mutilated(room, number):
    """The bytes of the submission of number `number`, and what was done to it."""
    rng = random.Random(number)
    notebook = json.loads(nbformat.writes(room.released))
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "choose_init_scale":
            cell["source"] = ANSWER
    done = []
    if number % 3:
        # Each in its turn, and one or two more, as far as there is still something to do it to.
        for change in [IN_THE_NOTEBOOK[number % len(IN_THE_NOTEBOOK)], *rng.sample(IN_THE_NOTEBOOK, rng.randrange(3))]:
            try:
                change(notebook, rng)
                done.append(change.__name__)
            except (AttributeError, IndexError, KeyError, TypeError):
                continue
        return json.dumps(notebook).encode(), done
    change = IN_THE_BYTES[number // 3 % len(IN_THE_BYTES)]
    return change(json.dumps(notebook, indent=1).encode(), rng), [f"bytes {number // 3 % len(IN_THE_BYTES)}"]


def test_two_hundred_mutilated_notebooks_are_repaired_or_refused_with_a_reason(room, tmp_path):
    wanted = [(cell.metadata.nbgrader, cell.source) for cell in room.released.cells if "nbgrader" in cell.metadata]
    answers = set(room.exercises)
    repaired, refused, same = 0, [], 0
    for number in range(NUMBER):
        data, done = mutilated(room, number)
        path = tmp_path / f"{number}.ipynb"
        path.write_bytes(data)
        try:
            rebuilt = rebuild(room, read(path))
        except SubmissionError as error:
            assert str(error).startswith(path.name) and len(str(error)) < 300
            str(error).encode()
            refused.append(done)
            continue
        repaired += 1
        nbformat.validate(rebuilt.notebook)
        nbformat.writes(rebuilt.notebook).encode()
        got = [(cell.metadata.nbgrader, cell.source) for cell in rebuilt.notebook.cells if "nbgrader" in cell.metadata]
        # Whatever was done to it: the same graded cells in the same order with the same points, and only answers differ.
        assert [a for a, _ in got] == [a for a, _ in wanted], done
        assert all(a == b for (info, a), (_, b) in zip(got, wanted, strict=True) if info.grade_id not in answers), done
        assert all(isinstance(note, str) for note in rebuilt.notes) and len(rebuilt.notes) < 200
        same += any(source == ANSWER for _, source in got)
    assert repaired + len(refused) == NUMBER and repaired > 100 and len(refused) > 40
    assert same > 80, "the answer survives most of what is done to the cells around it"


def test_a_class_with_mutilated_notebooks_gets_its_grades(boxed, room, reference, tmp_path):
    whole = json.loads(nbformat.writes(room.released))
    for cell in whole["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "choose_init_scale":
            cell["source"] = room.solutions["choose_init_scale"]
    submissions = {"ada": json.dumps(whole).encode()}
    submissions |= {f"m{number}": mutilated(room, number)[0] for number in range(0, NUMBER, 8)}
    submissions |= {"zoe": submissions["ada"]}
    grades = {}
    for name, data in submissions.items():
        path = tmp_path / name / "03_gradscaler.ipynb"
        path.parent.mkdir()
        path.write_bytes(data)
        grades[name] = grade_file(reference, path)
    full = sum(room.exercises["choose_init_scale"].parts.values())
    assert grades["ada"].score == grades["zoe"].score == full
    assert all(grade.status in STATUSES and grade.max_score == grades["ada"].max_score for grade in grades.values())
    assert all(grade.message for grade in grades.values() if grade.status != "graded")
    assert len({grade.status for grade in grades.values()}) == 2, "graded, unreadable"


@pytest.mark.parametrize("step", range(1, 40, 3))
def test_a_notebook_that_ends_anywhere_is_refused(room, step):
    data = nbformat.writes(room.released).encode()
    with pytest.raises(SubmissionError, match="not valid JSON"):
        parse(data[: len(data) * step // 40], "n.ipynb")


@pytest.mark.parametrize("filling", [b"[],", b"{},", b"0,", b'"\\"[",'], ids=["lists", "objects", "numbers", "texts"])
def test_a_notebook_of_many_small_values_is_refused_before_it_is_made_into_objects(filling, monkeypatch):
    data = b'{"cells": [], "x": [' + filling * ((MAX_BYTES - 40) // len(filling)) + b"0]}"
    made = []
    monkeypatch.setattr(json, "loads", lambda text: made.append(text))
    with pytest.raises(SubmissionError, match=f"more than {MAX_VALUES} values"):
        parse(data, "n.ipynb")
    assert not made


def test_text_is_no_value_however_many_commas_are_in_it():
    data = json.dumps({"cells": [{"cell_type": "raw", "source": "1,[" * 10**6 + '"\\'}]}).encode()
    assert len(parse(data, "n.ipynb")) == 1


@pytest.mark.parametrize("end", [b"", b"\\", b'\\"'], ids=["open", "backslash", "quote"])
def test_a_text_that_nobody_ends_is_looked_at_once(end):
    # With a second look from each of its quotes this would take hours.
    data = b'{"cells": [' + b"0," * MAX_VALUES + b'"' + b'\\"' * (MAX_BYTES // 2 - 2 * MAX_VALUES) + end
    with pytest.raises(SubmissionError, match=r"not valid JSON|more than"):
        parse(data, "n.ipynb")
