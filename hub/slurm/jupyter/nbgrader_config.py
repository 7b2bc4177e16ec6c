# nbgrader in a student's job. Lines marked SITE are to be yours.
from pathlib import Path

from autograder.hub.exchange import configure

c = get_config()  # noqa: F821
# ~/.exchange holds links to the student's own part of the exchange; the job makes them (autograder.hub.slurm link).
configure(c, role="student", root=Path.home() / ".exchange", course_id="amp", timezone="UTC", submission_mb=20)  # SITE
c.Authenticator.plugin_class = "nbgrader.auth.JupyterHubAuthPlugin"
