"""What importing costs, and what is public."""

import ast
import inspect
import pkgutil
import subprocess
import sys

import pytest

import ampkit

HEAVY = ["IPython", "ipykernel", "ipywidgets", "jupyterlab", "matplotlib", "nbgrader", "sklearn", "tqdm", "typer"]


def imported_by(code):
    """The top-level modules that a fresh Python has after running the code."""
    report = f"{code}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    command = [sys.executable, "-c", report]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_ampkit_and_its_public_names_import_torch_and_nothing_heavier():
    modules = imported_by("import ampkit\nfor name in ampkit.__all__: getattr(ampkit, name)\nimport ampkit.loops.fp16")
    assert "torch" in modules
    brought_by_torch = imported_by("import torch") & set(HEAVY)  # torch.hub imports tqdm
    assert brought_by_torch < {"tqdm", "typer"}
    assert modules & set(HEAVY) == brought_by_torch


def test_the_command_line_is_there_before_torch_is():
    modules = imported_by("import ampkit.cli, ampkit.lab, ampkit.loops")
    assert "typer" in modules and "torch" not in modules


def test_every_public_name_exists_and_is_listed():
    assert sorted(ampkit.__all__) == ampkit.__all__
    for name in ampkit.__all__:
        assert getattr(ampkit, name).__doc__
        assert name in dir(ampkit)


def test_a_type_checker_reads_the_same_names_from_the_same_places():
    for package in (ampkit, ampkit.doctor):
        (block,) = [node for node in ast.parse(inspect.getsource(package)).body if isinstance(node, ast.If)]
        assert ast.unparse(block.test) == "TYPE_CHECKING"
        imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
        read = {alias.name: node.module for node in imports for alias in node.names}
        assert read == {name: f"{package.__name__}.{home}" for name, home in package._HOME.items()}
        assert sorted(read) == package.__all__


def test_no_public_name_is_the_name_of_a_module_too():
    # importing ampkit.x sets the attribute x of ampkit, whatever it was
    modules = {found.name for found in pkgutil.iter_modules(ampkit.__path__)}
    assert len(modules) >= 15
    assert modules & set(ampkit.__all__) == set()


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'autocast'"):
        ampkit.autocast  # noqa: B018


def test_every_error_is_an_ampkit_error_and_is_in_the_tree_of_its_docstring():
    errors = [getattr(ampkit, name) for name in ampkit.__all__ if name.endswith("Error")]
    assert {error.__name__ for error in errors} == {name for name in vars(ampkit.errors) if name.endswith("Error")}
    for error in errors:
        assert issubclass(error, ampkit.AmpkitError)
        assert error.__name__ in ampkit.AmpkitError.__doc__
        assert str(error("What happened.")) == "What happened."
