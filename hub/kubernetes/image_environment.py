"""The environment of an image: environment.yml without what only the tests need, and with JupyterHub's single-user server.

    python hub/kubernetes/image_environment.py CHECKOUT > image.yml

It runs in the build of an image, under a bare Python 3.11 or later.
"""

import re
import sys
import tomllib
from pathlib import Path

# The chart's hub is a 5.x: the server in a pod is to be of the hub's own major version.
ADDED = ["jupyterhub-singleuser>=5.2,<6"]
# The gradebook of a class is on PostgreSQL, `autograder grade --cluster` is Dask: extras that are tested, and used.
KEPT = {"dask", "psycopg"}


def image_environment(environment: str, project: dict) -> str:
    """environment.yml's text, less the lines of pyproject's extra `test` and the installation of the checkout."""
    tested = {re.match(r"[A-Za-z0-9_.-]+", line)[0] for line in project["optional-dependencies"]["test"]} - KEPT
    lines, dropped = [], set()
    for line in environment.splitlines():
        package = re.match(r"  - ([A-Za-z0-9_.-]+)", line)
        if line.startswith("  - pip:"):
            break
        if package and package[1] in tested:
            dropped.add(package[1])
        elif not line.startswith("#"):
            lines.append(line)
    if len(dropped) < 3 or not any("pytorch" in line for line in lines):
        raise SystemExit("environment.yml is not written as expected: image_environment.py has to be brought in step.")
    return "\n".join([*lines, *(f"  - {line}" for line in ADDED)]) + "\n"


if __name__ == "__main__":
    root = Path(sys.argv[1])
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    print(image_environment((root / "environment.yml").read_text(encoding="utf-8"), project), end="")
