"""A room whose files contradict each other is refused with the place and the reason."""

import shutil
from pathlib import Path

import nbformat
import pytest

import ampkit
import autograder.room
from autograder.errors import RoomError
from autograder.room import BEGIN, Room, defined_names, find_room


@pytest.fixture
def copy(room, tmp_path):
    """A copy of assignment 3 that a test may spoil: change(edit) applies `edit` to its notebook."""
    folder = tmp_path / room.name
    shutil.copytree(room.path, folder)
    path = folder / f"{room.name}.ipynb"

    def change(edit):
        notebook = nbformat.read(path, as_version=4)
        edit(
            {cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells if "nbgrader" in cell.metadata}, notebook
        )
        nbformat.write(notebook, path)

    return folder, change


@pytest.mark.parametrize(
    "edit, said",
    [
        (
            lambda cells, nb: cells["clipped_step-norm"].metadata.nbgrader.update(points=2),
            "clipped_step-norm gives 2 points",
        ),
        (lambda cells, nb: cells["clipped_step-norm"].metadata.nbgrader.update(grade_id="LossScaler"), "used twice"),
        (
            lambda cells, nb: nb.cells.remove(cells["clipped_step-norm"]),
            "part 'norm' of clipped_step has no check cell",
        ),
        (lambda cells, nb: nb.cells.remove(cells["LossScaler"]), "exercise LossScaler has no answer cell"),
        (lambda cells, nb: cells["clipped_step"].update(source=f"{BEGIN}\npass"), "without its"),
        (lambda cells, nb: cells["clipped_step"].update(source="pass"), "without a solution"),
        (lambda cells, nb: cells["setup"].metadata.pop("nbgrader"), "code cell without nbgrader metadata"),
        (
            lambda cells, nb: cells["clipped_step"].metadata.nbgrader.update(grade_id="clip"),
            "no exercise 'clip'|no answer cell",
        ),
    ],
    ids=["points", "duplicate", "no check", "no answer", "unclosed", "no solution", "no metadata", "unknown"],
)
def test_a_contradiction_in_the_notebook_is_named(copy, edit, said):
    folder, change = copy
    change(edit)
    with pytest.raises(RoomError, match=said):
        Room(folder)


@pytest.mark.parametrize(
    "file, text, said",
    [
        ("mistakes/clipped_step/no_words.py", "def clipped_step():\n    pass\n", "this one has none"),
        ("mistakes/clipped_step/bad.py", '"""Words."""\ndef clipped_step(:\n', "bad.py:2"),
        ("mistakes/clipped_step/other.py", '"""Words."""\ndef another():\n    pass\n', "does not define clipped_step"),
        ("mistakes/clip/other.py", '"""Words."""\n', "no exercise 'clip'"),
        ("mistakes/clipped_step/lone__2.py", '"""."""\ndef clipped_step():\n    pass\n', "no file of lone has words"),
    ],
)
def test_a_bad_mistake_file_is_named(copy, file, text, said):
    folder, _ = copy
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(text)
    with pytest.raises(RoomError, match=said):
        _ = Room(folder).mistakes


def test_a_variant_without_words_says_what_the_file_says_that_it_varies(copy):
    folder, _ = copy
    wrong = folder / "mistakes" / "clipped_step"
    for name, words in (
        ("wrong_result__a", "A."),
        ("wrong_result__b", "B."),
        ("wrong_result__b__2", "."),
        ("b__7", "."),
    ):
        (wrong / f"{name}.py").write_text(f'"""{words}"""\ndef clipped_step():\n    pass\n')
    (wrong / "b.py").write_text('"""b."""\ndef clipped_step():\n    pass\n')
    (wrong / "wrong_result__c__2.py").write_text('"""."""\ndef clipped_step():\n    pass\n')
    words = {mistake.name: mistake.message for mistake in Room(folder).mistakes["clipped_step"]}
    assert (words["wrong_result__b__2"], words["b__7"], words["wrong_result__c__2"]) == ("B.", "b.", "A.")


def test_an_unknown_assignment_is_answered_with_those_there_are():
    with pytest.raises(RoomError, match="03_gradscaler"):
        find_room("03_gradscalar")


def test_the_released_notebook_holds_no_solution(room):
    released = nbformat.writes(room.released)
    assert BEGIN not in released and "raise NotImplementedError" in released
    for source in room.solutions.values():
        assert source not in released
    assert all(cell.metadata.nbgrader.get("checksum") for cell in room.released.cells if "nbgrader" in cell.metadata)


def test_check_cells_show_nothing_that_nbgrader_would_take_for_a_score(room):
    for cell in room.notebook.cells:
        meta = cell.metadata.get("nbgrader", {})
        if meta.get("grade"):
            assert cell.source.count("\n") == 0 and cell.source.startswith("check(")


@pytest.mark.parametrize(
    "source, names",
    [
        ("def f(): pass\nclass C: pass\nx = 1\ny: int = 2\na, b = 1, 2", {"f", "C", "x", "y", "a", "b"}),
        ("try:\n    import g as f\nexcept ImportError:\n    f = None", {"f"}),
        ("if True:\n    def f(): pass\nelse:\n    h = 1", {"f", "h"}),
        ("def f(:\n  pass\nclass C\nx = 1", {"f", "C", "x"}),
        ("from m import f, g as h\nimport a.b", {"f", "h", "a"}),
        ("", set()),
    ],
)
def test_the_names_that_an_answers_file_defines(source, names):
    assert names <= defined_names(source)


def test_an_exercise_of_two_functions_is_answered_by_a_file_that_defines_them():
    from autograder.room import answered

    room = find_room("04_training_loop")
    assert room.exercises["checkpoint"].defines == ("save_checkpoint", "load_checkpoint")
    assert answered(room, "def save_checkpoint(path): ...\ndef load_checkpoint(path): ...") == {"checkpoint"}
    assert answered(room, "def load_checkpoint(path): ...\ndef helper(): ...\nema_step = helper") == {
        "checkpoint",
        "ema_step",
    }
    assert answered(room, "checkpoint = 1") == set()


def test_a_room_is_another_when_what_it_takes_from_ampkit_is_another(copy, tmp_path, monkeypatch):
    folder, _ = copy
    installed = tmp_path / "site"
    for path in (Path(autograder.room.__file__).parent, Path(ampkit.__file__).parent):
        shutil.copytree(path, installed / path.name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(autograder.room, "__file__", str(installed / "autograder" / "room.py"))
    checks = folder / "checks.py"
    checks.write_text(
        "from ampkit.formats import FP16  # noqa\n" + checks.read_text(encoding="utf-8"), encoding="utf-8"
    )
    before = Room(folder).fingerprint
    with open(installed / "ampkit" / "lab.py", "a") as other:
        other.write("# not taken\n")
    assert Room(folder).fingerprint == before
    with open(installed / "ampkit" / "formats.py", "a") as taken:
        taken.write("# taken\n")
    assert Room(folder).fingerprint != before
