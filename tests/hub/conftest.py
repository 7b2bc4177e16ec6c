"""What the hub's tests share."""

import importlib.util
import sys

import pytest


@pytest.fixture(scope="session")
def hub_can_run():
    """Skips where no hub can be started, and says what that takes."""
    if not sys.platform.startswith("linux"):
        pytest.skip("requires Linux")
    for module in ("jupyterhub", "jupyterhub_idle_culler"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"requires {module}")
    from autograder import sandbox
    from autograder.errors import HubError, SandboxError
    from autograder.hub import start

    try:
        start.proxy_command()
    except HubError:
        pytest.skip("requires configurable-http-proxy and node")
    try:
        sandbox.bwrap()
    except SandboxError:
        pytest.skip("requires bubblewrap with user namespaces")
