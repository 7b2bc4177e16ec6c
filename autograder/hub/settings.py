"""What students' servers and the grader are told of Jupyter and nbgrader: hub/jupyter/ROLE with the course's own values.

They find it first on JUPYTER_CONFIG_PATH. So it holds for a role and not for a machine: a student's server has no formgrader,
whose addresses are then 404, and what an instructor needs is the grader's only.

No language servers are looked for: jupyter_lsp asks npm for them, in a thread that forks while the server tries its port, and
until npm has started that port is "in use" (jupyter_server 2.21).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from autograder.atomic import write_atomically
from autograder.hub.config import HubConfig
from autograder.hub.spawner import EXCHANGE

FOLDER = Path(__file__).resolve().parents[2] / "hub" / "jupyter"

NBGRADER = '''\
"""nbgrader's configuration for {who} of this hub, written at each start from course.yaml: change it there."""

from autograder.hub.exchange import configure

c = get_config()  # noqa: F821
configure(
    c,
    role={role!r},
    root={root!r},
    course_id={course_id!r},
    timezone={timezone!r},
    submission_mb={submission_mb!r},
    submission_files={submission_files!r},
)
# Who takes the course is known to the hub.
c.Authenticator.plugin_class = "nbgrader.auth.JupyterHubAuthPlugin"
c.Execute.timeout = {cell_seconds!r}  # nbgrader's own 30 s are too few for a cell that trains
c.KernelManager.transport = "ipc"  # as in jupyter_server_config.json, for the kernels that nbgrader starts
'''

GRADER = """\
c.CourseDirectory.root = {course!r}
c.HubFormgrader.roster = {roster!r}  # where its page of students sends whoever wants to add one
"""


def write(config: HubConfig, role: str, folder: Path, exchange: str | None = None) -> None:
    """Write the configuration of a "student" or the "grader" into a folder, for JUPYTER_CONFIG_PATH.

    `exchange` is where the exchange's root is for those servers: by default where a box has it, or the hub's own.
    """
    jupyter = json.loads((FOLDER / role / "jupyter_server_config.json").read_text(encoding="utf-8"))
    idle = config.limits.kernel_idle_minutes * 60
    # jupyter_server looks for idle kernels every cull_interval seconds: a fifth of the time is late by so much at most.
    jupyter["MappingKernelManager"] |= {"cull_idle_timeout": idle, "cull_interval": max(idle // 5, 5)}
    nbgrader = NBGRADER.format(
        who="students" if role == "student" else "the grader",
        role=role,
        root=exchange or (EXCHANGE if role == "student" else str(config.exchange)),
        course_id=config.course_id,
        timezone=config.timezone,
        submission_mb=config.limits.submission_mb,
        submission_files=config.limits.submission_files,
        cell_seconds=config.limits.cell_seconds,
    )
    if role == "grader":
        nbgrader += GRADER.format(
            course=str(config.course), roster=str(config.roster or "the learning platform's list")
        )
        if config.gradebook:
            nbgrader += f"c.CourseDirectory.db_url = {config.gradebook!r}\n"
    page = (FOLDER / role / "labconfig" / "page_config.json").read_bytes()
    # The grader's may hold the password of a database.
    file_mode, folder_mode = (0o644, 0o755) if role == "student" else (0o600, 0o700)
    for path in (folder, folder / "labconfig"):
        path.mkdir(parents=True, exist_ok=True)
        os.chmod(path, folder_mode)
    write_atomically(folder / "jupyter_server_config.json", json.dumps(jupyter, indent=1).encode() + b"\n", file_mode)
    write_atomically(folder / "nbgrader_config.py", nbgrader.encode(), file_mode)
    write_atomically(folder / "labconfig" / "page_config.json", page, file_mode)
