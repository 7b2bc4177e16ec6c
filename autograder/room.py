"""An assignment's room: its notebook, checks, mistakes and other right answers, read and checked for consistency.

    exercises/03_gradscaler/03_gradscaler.ipynb        the source notebook, with nbgrader's metadata and markers
                            checks.py                  how an answer is probed (probes.py)
                            mistakes/EXERCISE/SLUG.py  a wrong answer; its docstring is what the student is told
                            mistakes/EXERCISE/SLUG__2.py  another way to make the same mistake
                            mistakes/EXERCISE/wrong_result__NAME.py  a mistake without a slug of its own, with its own words
                            also_right/EXERCISE/NAME.py   another right answer

In the notebook an exercise is an answer cell whose grade_id is the exercise's name, and for each of its parts a check cell
with the grade_id EXERCISE-PART and the part's points.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat

from autograder.errors import RoomError

if TYPE_CHECKING:
    from autograder.probes import Exercise

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ROOT / "exercises"
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


@dataclass(frozen=True)
class Mistake:
    """A known wrong answer. `slug` is the diagnosis, `message` what the student is told."""

    exercise: str
    slug: str
    name: str
    message: str
    source: str


@dataclass
class Room:
    """One assignment, as far as it stands in its folder. Loading it raises RoomError with the place and the reason."""

    path: Path
    notebook: nbformat.NotebookNode = field(init=False, repr=False)
    checks: str = field(init=False, repr=False)
    exercises: dict[str, Exercise] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        from autograder.probes import load_checks  # and with it PyTorch, which nothing else here needs

        self.path = Path(self.path)
        source = self.path / f"{self.name}.ipynb"
        if not source.is_file():
            raise RoomError(f"There is no assignment in {self.path}: {source.name} is missing.")
        try:
            self.notebook = nbformat.read(source, as_version=4)
        except Exception as error:
            raise RoomError(f"{source} is not a notebook: {error}") from error
        self.checks = self._text("checks.py")
        self.exercises = load_checks(self.checks, self.name)
        self._check_notebook()

    @property
    def name(self) -> str:
        return self.path.name

    def _text(self, name: str) -> str:
        try:
            return (self.path / name).read_text(encoding="utf-8")
        except OSError as error:
            raise RoomError(f"{self.path / name} cannot be read: {error.strerror}") from error

    def _check_notebook(self) -> None:
        seen: dict[str, dict] = {}
        for number, cell in enumerate(self.notebook.cells):
            meta, place = (
                cell.metadata.get("nbgrader"),
                f"{self.path / self.name}.ipynb, cell {number} ({cell.get('id')})",
            )
            if meta is None:
                if cell.cell_type == "code":
                    raise RoomError(
                        f"{place}: a code cell without nbgrader metadata would not be graded as it stands; "
                        "make it read-only, an answer or a check"
                    )
                continue
            if meta["grade_id"] in seen:
                raise RoomError(f"{place}: the grade_id {meta['grade_id']!r} is used twice")
            seen[meta["grade_id"]] = meta
            if cell.source.count(BEGIN) != cell.source.count(END):
                raise RoomError(f"{place}: a '{BEGIN}' without its '{END}', or the other way round")
            if meta["solution"] and not meta["grade"] and BEGIN not in cell.source:
                raise RoomError(f"{place}: an answer cell without a solution between '{BEGIN}' and '{END}'")
        for exercise in self.exercises.values():
            if not seen.get(exercise.name, {}).get("solution"):
                raise RoomError(f"{self.path.name}: exercise {exercise.name} has no answer cell with this grade_id")
            for part, points in exercise.parts.items():
                check = seen.get(f"{exercise.name}-{part}")
                if not check or not check["grade"] or check["solution"]:
                    raise RoomError(
                        f"{self.path.name}: part {part!r} of {exercise.name} has no check cell with the grade_id "
                        f"'{exercise.name}-{part}'"
                    )
                if check["points"] != points:
                    raise RoomError(
                        f"{self.path.name}: the check cell {exercise.name}-{part} gives {check['points']} points, "
                        f"checks.py gives {points}"
                    )
        checks = {f"{exercise.name}-{part}" for exercise in self.exercises.values() for part in exercise.parts}
        for grade_id, meta in seen.items():
            if meta["solution"] and not meta["grade"] and grade_id not in self.exercises:
                raise RoomError(
                    f"{self.path.name}: checks.py has no exercise {grade_id!r}, which the notebook asks for"
                )
            if meta["grade"] and not meta["solution"] and grade_id not in checks:
                raise RoomError(
                    f"{self.path.name}: the check cell {grade_id!r} belongs to no exercise and part of checks.py"
                )

    @property
    def resources(self) -> dict[str, float]:
        """What a cluster's worker must have to run answers: {"GPU": 1} where the notebook's metadata has
        "autograder": {"resources": {"GPU": 1}}."""
        return dict(self.notebook.metadata.get("autograder", {}).get("resources", {}))

    @cached_property
    def released(self) -> nbformat.NotebookNode:
        """The notebook as nbgrader releases it: solutions cleared, cells locked, checksums computed, no outputs."""
        from nbgrader.preprocessors import CheckCellMetadata, ClearOutput, ClearSolutions, ComputeChecksums, LockCells

        notebook = copy.deepcopy(self.notebook)
        for preprocessor in (LockCells, ClearSolutions, ClearOutput, CheckCellMetadata, ComputeChecksums):
            notebook, _ = preprocessor().preprocess(notebook, {})
        return notebook

    @cached_property
    def stubs(self) -> dict[str, str]:
        """For each exercise the source of its answer cell as released."""
        return {name: cell.source for name, cell in answer_cells(self.released).items() if name in self.exercises}

    @cached_property
    def solutions(self) -> dict[str, str]:
        """For each exercise the source of its answer cell, solution included."""
        return {
            name: "\n".join(line for line in cell.source.split("\n") if line.strip() not in (BEGIN, END))
            for name, cell in answer_cells(self.notebook).items()
            if name in self.exercises
        }

    @cached_property
    def mistakes(self) -> dict[str, list[Mistake]]:
        found: dict[str, list[Mistake]] = {name: [] for name in self.exercises}
        for name, path, source in self._answers("mistakes"):
            message = ast.get_docstring(ast.parse(source))
            if not message:
                raise RoomError(f"{path}: a mistake's docstring is what the student is told; this one has none")
            slug = path.stem.partition("__")[0]
            found[name].append(Mistake(name, slug, path.stem, re.sub(r"\s*\n\s*", " ", message), source))
        return self._worded(found)

    @staticmethod
    def _worded(found: dict[str, list[Mistake]]) -> dict[str, list[Mistake]]:
        """A variant NAME__2 whose docstring is '.' says what NAME says; if there is none, what its slug's first says."""
        for mistakes in found.values():
            said = [mistake for mistake in mistakes if mistake.message != "."]
            by_slug = {mistake.slug: mistake.message for mistake in reversed(said)}
            by_name = {mistake.name: mistake.message for mistake in said}
            for i, mistake in enumerate(mistakes):
                if mistake.message == ".":
                    words = by_name.get(re.sub(r"__\d+$", "", mistake.name), by_slug.get(mistake.slug))
                    if words is None:
                        raise RoomError(
                            f"mistakes/{mistake.exercise}/{mistake.name}.py: no file of {mistake.slug} has words"
                        )
                    mistakes[i] = replace(mistake, message=words)
        return found

    @cached_property
    def also_right(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {name: {} for name in self.exercises}
        for name, path, source in self._answers("also_right"):
            found[name][path.stem] = source
        return found

    def _answers(self, folder: str):
        for path in sorted((self.path / folder).glob("*/*.py"), key=lambda path: (path.parent.name, path.stem)):
            name = path.parent.name
            if name not in self.exercises:
                raise RoomError(f"{path}: checks.py has no exercise {name!r}")
            source = path.read_text(encoding="utf-8")
            try:
                tree = ast.parse(source)
            except SyntaxError as error:
                raise RoomError(f"{path}:{error.lineno}: {error.msg}") from error
            missing = set(self.exercises[name].defines) - _defined(tree)
            if missing:
                raise RoomError(f"{path}: does not define {', '.join(sorted(missing))}")
            yield name, path, source

    @cached_property
    def fingerprint(self) -> str:
        """Changes whenever a file of the room, the code that probes, what the room takes from ampkit, or PyTorch changes."""
        import torch

        digest = hashlib.sha256(torch.__version__.encode())
        own = sorted(path for path in self.path.rglob("*") if path.suffix in (".py", ".ipynb"))
        taken = sorted({name for path in own for name in re.findall(rb"\bampkit\.(\w+)", path.read_bytes())})
        ampkit = Path(__file__).parents[1] / "ampkit"
        code = [
            Path(__file__).with_name(name)
            for name in ("evidence.py", "probes.py", "trace.py", "runner.py", "watch.py", "bundle.py")
        ]
        for name in map(bytes.decode, taken):
            code += [*ampkit.glob(f"{name}.py"), *sorted((ampkit / name).glob("*.py"))]
        for path in own + code:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()

    def cells(self, answers: dict[str, str]) -> list[dict]:
        """The released notebook's code cells for the runner, with these sources in the answer cells; the answer cells of
        other exercises are left out."""
        cells = code_cells(self.released, self.exercises, answers)
        return [cell for cell in cells if not cell["exercise"] or cell["exercise"] in answers]


def is_of_checkout(room: Room) -> bool:
    """Whether a room is one of this checkout's, and as it is there: a course's own copy may have been edited."""
    try:
        return find_room(room.name).fingerprint == room.fingerprint
    except RoomError:
        return False


def answer_cells(notebook: nbformat.NotebookNode) -> dict[str, nbformat.NotebookNode]:
    return {
        cell.metadata.nbgrader.grade_id: cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }


def code_cells(notebook: nbformat.NotebookNode, exercises: dict[str, Exercise], answers: dict[str, str]) -> list[dict]:
    """A notebook's code cells as the runner takes them: which exercise a cell answers, which it checks."""
    checks = {f"{exercise.name}-{part}": exercise.name for exercise in exercises.values() for part in exercise.parts}
    cells = []
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        exercise = grade_id if grade_id in exercises else None
        cells.append(
            {
                "id": grade_id or f"extra-{number}",
                "source": answers.get(exercise, cell.source),
                "exercise": exercise,
                "check": checks.get(grade_id),
            }
        )
    return cells


def _defined(tree: ast.Module) -> set[str]:
    """The names that a module's top level defines, by whatever statement."""
    names: set[str] = set()

    def visit(body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
            else:
                names.update(
                    child.id
                    for child in ast.walk(node)
                    if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
                )
                for inner in ("body", "orelse", "finalbody", "handlers"):
                    visit(getattr(node, inner, []))

    visit(tree.body)
    return names


def defined_names(source: str) -> set[str]:
    """The top-level names of an answers file; where it does not parse, those that its text seems to define."""
    try:
        return _defined(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError):
        found = re.findall(r"^(?:async\s+def|def|class)\s+(\w+)|^(\w+)\s*[:=]", source, re.MULTILINE)
        return {a or b for a, b in found}


def answered(room: Room, source: str) -> set[str]:
    """The exercises of the room that an answers file answers: it defines their name, or one of their names, at the top."""
    mine = defined_names(source)
    return {name for name, exercise in room.exercises.items() if mine & set(exercise.defines)}


def find_room(assignment: str, rooms: Path = ROOMS) -> Room:
    """The room of an assignment by name. RoomError names what there is."""
    if not (rooms / assignment / f"{assignment}.ipynb").is_file():
        there = sorted(path.parent.name for path in rooms.glob("*/*.ipynb") if path.stem == path.parent.name)
        raise RoomError(f"There is no assignment {assignment!r}. In {rooms} there is: {', '.join(there) or 'none'}.")
    return Room(rooms / assignment)
