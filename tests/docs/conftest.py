"""What the tests of the documents share: a shell for the commands under one heading, and the way to a browser."""

import os
from pathlib import Path

import pytest
from commands import Command, Shell, read


def pytest_configure(config):
    config.addinivalue_line("markers", "commands(file, heading): runs all commands under this heading, in order")


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """Where commands are typed whose files later commands need."""
    return tmp_path_factory.mktemp("typed")


@pytest.fixture
def shell(request, root, folder, home):
    """The commands under the heading that the test is marked with. A test that leaves one of them out fails."""
    if os.name != "posix":
        pytest.skip("requires a POSIX shell")
    file, heading = request.node.get_closest_marker("commands").args
    found: list[Command] = [command for command in read(root / file) if command.heading == heading]
    assert found, f"{file} has no commands under {heading!r}"
    shell = Shell(found, folder, home)
    yield shell
    if not getattr(request.node, "failed_or_skipped", False):
        assert not shell.left, f"{file}: no test ran {[command.text for command in shell.left]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and not report.passed:
        item.failed_or_skipped = True
    return report
