"""What all tests share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture
def report(record_property):
    """Say what a test counted or measured: the lines stand at the end of pytest's output, from parallel workers too."""
    return lambda *lines: [record_property("report", str(line)) for line in lines]


def pytest_ignore_collect(collection_path, config):
    """`-m gpu` runs where torch is and Jupyter is not: a file without such a test is not even imported."""
    if config.option.markexpr != "gpu":
        return None
    files = collection_path.rglob("test_*.py") if collection_path.is_dir() else [collection_path]
    return not any("mark.gpu" in file.read_text(encoding="utf-8") for file in files) or None


def pytest_terminal_summary(terminalreporter):
    lines = [
        value
        for outcome in terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", [])
        for name, value in outcome.user_properties
        if name == "report"
    ]
    if lines:
        terminalreporter.section("counted and measured")
        for line in dict.fromkeys(lines):
            terminalreporter.write_line(line)
