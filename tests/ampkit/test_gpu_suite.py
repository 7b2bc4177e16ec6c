"""`pytest -m gpu` and the headline bench run on a machine with a GPU, torch and little else."""

import subprocess
import sys

BARE = """
import sys
class Absent:
    names = set(
        "IPython ipykernel ipywidgets jupyterlab nbclient nbformat nbgrader playwright tornado traitlets".split()
    )
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}: it is absent on a bare machine", name=name)
sys.meta_path.insert(0, Absent())
"""


def bare(code: str, root) -> str:
    """The output of a fresh Python that has what a bare GPU machine has."""
    done = subprocess.run([sys.executable, "-c", BARE + code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_gpu_tests_are_collected_without_jupyter(root):
    plugins = (
        "'-p', 'no:cacheprovider', '-p', 'no:xdist', '-p', 'no:anyio', '-p', 'no:playwright', '-p', 'no:jaxtyping'"
    )
    said = bare(f"import pytest; sys.exit(pytest.main(['-m', 'gpu', '--collect-only', '-q', {plugins}]))", root)
    tests = [line for line in said.splitlines() if "::" in line]
    assert len(tests) >= 8
    assert {line.partition("::")[0] for line in tests} >= {"tests/ampkit/test_loops.py", "tests/ampkit/test_bench.py"}


def test_the_bench_and_its_plot_import_without_jupyter(root):
    said = bare(
        "from ampkit.bench import SUITES, run, table, plot\n"
        "from ampkit.cli import app\n"
        "print(sorted(SUITES), 'ipywidgets' in sys.modules)",
        root,
    )
    assert said.strip() == "['headline', 'quick'] False"
