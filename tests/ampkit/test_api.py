"""What ampkit's docstrings and types promise: every public name has both, the examples run, and a checker agrees."""

import ast
import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import ampkit
from ampkit.loops import LADDER

LOOPS = {f"ampkit.loops.{rung.name}" for rung in LADDER}


def imported():
    """Every module of ampkit."""
    names = ["ampkit", *(found.name for found in pkgutil.walk_packages(ampkit.__path__, "ampkit."))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a dependency warns of at its first import is not ours
        return [importlib.import_module(name) for name in names]


def exported():
    """(name with its module, object): every function and class in the __all__ of the module that defines it."""
    for module in imported():
        for name in getattr(module, "__all__", ()):
            thing = inspect.unwrap(getattr(module, name))
            if (inspect.isfunction(thing) or inspect.isclass(thing)) and thing.__module__ == module.__name__:
                yield f"{module.__name__}.{name}", thing


def methods(cls):
    """(name, function): the public methods and properties that the class itself defines, and an __init__ that is written."""
    for name, value in vars(cls).items():
        value = value.fget if isinstance(value, property) else inspect.unwrap(getattr(value, "__func__", value))
        written = name == "__init__" and not dataclasses.is_dataclass(cls)
        if inspect.isfunction(value) and (written or not name.startswith("_")):
            yield name, value


def functions():
    """(name with its module, function): what a user of ampkit can call; of a loop, its train."""
    for where, thing in exported():
        if inspect.isclass(thing):
            yield from ((f"{where}.{name}", method) for name, method in methods(thing))
        else:
            yield where, inspect.unwrap(thing)
    yield from ((f"{name}.train", importlib.import_module(name).train) for name in sorted(LOOPS))


def parsed(module):
    return ast.parse(Path(module.__file__).read_text(encoding="utf-8"))


def test_every_module_says_in_its_first_line_what_lives_there():
    found = imported()
    first = {module.__name__: (module.__doc__ or "").strip().partition("\n")[0] for module in found}
    assert len(first) >= 70
    assert {name: line for name, line in first.items() if not 20 < len(line) <= 128} == {}


def test_every_module_lists_what_is_public():
    # but for the loops: each is a page to read, and what it has is train
    bare = {module.__name__ for module in imported() if not hasattr(module, "__all__")}
    assert bare == LOOPS
    for name in LOOPS:
        body = parsed(importlib.import_module(name)).body
        assert [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)] == ["train"]


def test_every_name_that_is_listed_is_there_once():
    for module in imported():
        names = getattr(module, "__all__", [])
        assert len(set(names)) == len(names), module.__name__
        assert [name for name in names if not hasattr(module, name)] == [], module.__name__


def test_what_one_module_of_ampkit_imports_of_another_is_public_there():
    hidden, count = [], 0
    known = {module.__name__: module for module in imported()}
    for module in known.values():
        for node in ast.walk(parsed(module)):
            if not isinstance(node, ast.ImportFrom) or node.module not in known.keys() - LOOPS:
                continue
            for name in (alias.name for alias in node.names):
                if f"{node.module}.{name}" in known:
                    continue
                count += 1
                if name not in known[node.module].__all__:
                    hidden.append(f"{module.__name__} imports {name} of {node.module}")
    assert count >= 200
    assert hidden == []


def test_every_public_name_is_documented(report):
    names = dict(exported())
    inside = {
        f"{where}.{name}": method
        for where, cls in names.items()
        if inspect.isclass(cls)
        for name, method in methods(cls)
        if name != "__init__"  # the class's docstring is its documentation
    }
    assert len(names) >= 150 and len(inside) >= 100
    assert [where for where, thing in {**names, **inside}.items() if not inspect.getdoc(thing)] == []
    report(f"ampkit: {len(names)} public functions and classes and {len(inside)} methods, all documented")


def test_every_public_function_says_the_types_of_its_arguments_and_of_its_result(report):
    missing, count = [], 0
    for where, function in functions():
        count += 1
        signature = inspect.signature(function)
        bare = [name for name, parameter in signature.parameters.items() if parameter.annotation is parameter.empty]
        untyped = [name for name in bare if name not in ("self", "cls")]
        if signature.return_annotation is signature.empty and function.__name__ != "__init__":
            untyped.append("its result")
        if untyped:
            missing.append(f"{where}: {', '.join(untyped)}")
    assert count >= 200
    assert missing == []
    report(f"ampkit: {count} public functions and methods, all typed")


def test_the_examples_in_docstrings_run(report):
    failed, count = [], 0
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for module in imported():
        for test in doctest.DocTestFinder(exclude_empty=True).find(module, module.__name__):
            said: list[str] = []
            count += len(test.examples)
            if runner.run(test, out=said.append).failed:
                failed.append("".join(said))
    assert count >= 50
    assert not failed, "\n".join(failed)
    report(f"ampkit: {count} examples in docstrings run")


@pytest.mark.slow
def test_the_types_hold(root):
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "ampkit"]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout[-5000:] + said.stderr[-2000:]


@pytest.mark.slow
def test_a_type_checker_knows_ampkits_names_and_their_types(root, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import ampkit\n"
        "from ampkit import Precision, diagnoze\n"  # misspelled
        "Precision(16)\n"
        "dtype: int = ampkit.StepReport.from_json('').loss\n"
    )
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--config-file", root / "pyproject.toml"]
    said = subprocess.run([*command, tmp_path / "mine.py"], cwd=root, capture_output=True, text=True)
    assert said.returncode == 1, said.stdout + said.stderr
    codes = [line.rpartition("[")[2].rstrip("]") for line in said.stdout.splitlines()]
    assert codes == ["attr-defined", "arg-type", "assignment"], said.stdout
