"""What the grader's tests share: the room of assignment 3, its reference on fixed seeds, whether a sandbox is to be had."""

import pytest

from autograder import sandbox
from autograder.errors import SandboxError
from autograder.reference import Reference, compute
from autograder.room import Room, find_room

SECRET = b"a secret of the tests"


@pytest.fixture(scope="session")
def room() -> Room:
    return find_room("03_gradscaler")


@pytest.fixture(scope="session")
def reference(room, tmp_path_factory) -> Reference:
    return compute(room, SECRET, tmp_path_factory.mktemp("evidence"))


@pytest.fixture(scope="session")
def boxed() -> bool:
    """Skips where answers cannot be isolated."""
    try:
        sandbox.bwrap()
    except SandboxError as error:
        pytest.skip(f"requires a sandbox: {error}")
    return True
