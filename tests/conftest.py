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
