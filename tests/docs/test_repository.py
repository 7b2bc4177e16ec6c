"""What is true of the repository as a whole: what is committed, what it is called, how its tests are kept."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest

MIB = 1 << 20


@pytest.fixture(scope="module")
def tracked(root) -> list[Path]:
    """Every file in git."""
    if shutil.which("git") is None or not (root / ".git").exists():
        pytest.skip("requires git and a clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    files = [root / name for name in listed.split("\0") if name]
    assert len(files) > 100
    return [path for path in files if path.exists()]


def names(paths, root) -> list[str]:
    return [path.relative_to(root).as_posix() for path in paths]


def test_no_committed_notebook_has_outputs_or_execution_counts(tracked, root):
    notebooks = [path for path in tracked if path.suffix == ".ipynb"]
    assert len(notebooks) >= 2
    for path in notebooks:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        ran = [cell.id for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")]
        assert not ran, f"{path.relative_to(root)}: cells with outputs: {ran}"


def test_there_are_no_lock_files_and_nothing_is_large(tracked, root):
    locks = [path for path in tracked if path.suffix == ".lock" or re.search(r"-lock\.(json|ya?ml)$", path.name)]
    assert names(locks, root) == []
    assert [name for path, name in zip(tracked, names(tracked, root), strict=True) if path.stat().st_size > MIB] == []


def test_no_file_names_a_folder_of_somebodys_machine(tracked, root):
    # Put together here, so that this file does not hold what it looks for.
    # Images and boxes have homes of their own: jovyan is Jupyter's usual account in a container, ada the tests' student.
    inside = r"(?!(?:jovyan|grader|ada)\b)"
    homes = "|".join([f"home/{inside}\\w", "root/", "work/", "Users/\\w"])
    somebodys = re.compile(rf"(?<![\w.~])/(?:{homes})|[A-Z]:\\\\?Users")
    assert somebodys.search("cd /ho" + "me/somebody") and not somebodys.search("tests/wo" + "rk/x, ~/ro" + "ot/")
    found, looked = [], 0
    for path in tracked:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        looked += 1
        found += [f"{path.relative_to(root)}: {match[0]}" for match in somebodys.finditer(text)]
    assert looked > 100 and found == []


def test_ci_names_no_package_host(root):
    script = (root / ".ci" / "run").read_text(encoding="utf-8")
    assert not re.search(r"://|\.(org|com|io)\b|index-url", script)


def test_the_licence_is_mit_everywhere(root):
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "MIT" and project["license-files"] == ["LICENSE"]
    assert (root / "LICENSE").read_text(encoding="utf-8").startswith("MIT License\n")
    assert "[MIT](LICENSE)" in (root / "README.md").read_text(encoding="utf-8")


def test_the_packages_have_their_names_and_python_its_bound(root):
    whole = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert whole["project"]["name"] == "amp-course"
    assert whole["project"]["requires-python"] == ">=3.11"
    assert set(whole["project"]["scripts"]) == {"ampkit", "autograder"}
    packages = whole["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert packages == ["ampkit", "autograder"] and all((root / name / "__init__.py").is_file() for name in packages)
    assert "Python 3.11 or later" in (root / "README.md").read_text(encoding="utf-8")
    version = whole["project"]["version"]
    assert f"## {version}\n" in (root / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_linter_has_nothing_to_say(root):
    said = subprocess.run([sys.executable, "-m", "ruff", "check"], cwd=root, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout[-3000:] + said.stderr


def test_every_folder_of_tests_mirrors_a_folder_of_the_tree(tracked, root):
    folders = {path.relative_to(root).parts[1] for path in tracked if path.relative_to(root).parts[0] == "tests"}
    folders = {name for name in folders if (root / "tests" / name).is_dir()} - {"bench"}  # measured, not tested
    assert len(folders) >= 4
    assert [name for name in sorted(folders) if not (root / name).is_dir()] == []


# Skips


def skips(path: Path):
    """(line, reason or None) of every pytest.skip, skipif, skip mark and importorskip; of an f-string its start."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.skip":
                yield node.lineno, None
            continue
        name = ast.unparse(node.func)
        if name not in ("pytest.skip", "pytest.mark.skipif", "pytest.mark.skip", "pytest.importorskip"):
            continue
        given = next((keyword.value for keyword in node.keywords if keyword.arg == "reason"), None)
        if given is None and name == "pytest.skip" and node.args:
            given = node.args[0]
        if isinstance(given, ast.JoinedStr) and given.values:
            given = given.values[0]
        yield node.lineno, given.value if isinstance(given, ast.Constant) else None


def test_every_skip_says_what_is_required(root):
    count, silent = 0, []
    for path in sorted((root / "tests").rglob("*.py")):
        for line, reason in skips(path):
            count += 1
            if not isinstance(reason, str) or not reason.startswith("requires "):
                silent.append(f"{path.relative_to(root)}:{line}: {reason!r}")
    assert count >= 5 and silent == []
