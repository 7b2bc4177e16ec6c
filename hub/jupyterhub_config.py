"""JupyterHub for one course. `autograder hub` starts it, the demo as well as a real one, with what course.yaml says.

Keys are valid in JupyterHub 5.2 to 6. What is not set here has JupyterHub's default.
"""

import os
import sys
from functools import partial
from pathlib import Path

from jupyterhub.services.service import Service

from autograder.hub import config, plugins, ports, roster, server, start

c = get_config()  # noqa: F821

hub = config.read(Path(os.environ["AUTOGRADER_COURSE_YAML"]))
tied = "AUTOGRADER_HUB_TIED" in os.environ  # the demo: everything ends with the hub
chosen = ports.of(hub)
students = [student.username for student in roster.students(hub)]
course, grader = hub.course_id, hub.grader

# --- Where it listens. Browsers meet the proxy and nothing else; what hub, proxy and servers say to each other stays here.

c.JupyterHub.bind_url = start.bind_url(hub)
c.JupyterHub.hub_bind_url = (
    f"http://127.0.0.1:{chosen['hub']}"  # the same at each start: servers that run go on using it
)
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{chosen['proxy']}"
c.ConfigurableHTTPProxy.command = start.proxy_command()
c.ConfigurableHTTPProxy.pid_file = str(hub.run / "proxy.pid")
if isinstance(hub.tls, config.Tls):
    c.JupyterHub.ssl_cert, c.JupyterHub.ssl_key = str(hub.tls.certificate), str(hub.tls.key)

# --- What it keeps.

c.JupyterHub.db_url = f"sqlite:///{hub.database}"
c.JupyterHub.upgrade_db = True  # after an upgrade of JupyterHub; SQLite's file is copied first
c.JupyterHub.cookie_secret_file = str(hub.folder / "cookie_secret")
# Students go on working while the hub restarts, and stay logged in.
c.JupyterHub.cleanup_servers = tied
c.ConfigurableHTTPProxy.auth_token = start.proxy_token(hub)

# --- Who may come in, and how they show who they are.

kind, options = plugins.authenticator(hub)
c.JupyterHub.authenticator_class = kind.path
for name, value in options.items():
    c[kind.name][name] = value
managed = bool(options.get("manage_groups"))  # then a learning platform says who is in which group, and nobody else
if not managed:
    # The roster decides: a student who is gone from it is not let in because the hub has met them before.
    c.Authenticator.allowed_users = {*students, *hub.instructors}
    c.Authenticator.allow_existing_users = False
    c.Authenticator.blocked_users = set(roster.prune(hub, roster.students(hub)))
    c.JupyterHub.load_groups = {
        hub.students_group: {"users": students},
        # With the grader's account, which is what makes it a user of the hub: nbgrader asks the hub who it is.
        hub.graders_group: {"users": [*hub.instructors, grader]},
    }
if kind.name == "NativeAuthenticator":
    import nativeauthenticator

    c.JupyterHub.template_paths = [str(Path(nativeauthenticator.__file__).parent / "templates")]

# --- Students' servers.

kind, options = plugins.spawner(hub)
c.JupyterHub.spawner_class = kind.path
for name, value in options.items():
    c[kind.name][name] = value
if kind.name == "BoxedSpawner":
    c.BoxedSpawner.tied = tied
    c.BoxedSpawner.cmd = [sys.executable, "-P", "-m", "jupyterhub.singleuser"]
    c.Spawner.notebook_dir = "~"
    # Nothing of the caller's environment, such as an instructor's tokens.
    c.Spawner.env_keep = ["LANG", "LC_ALL", "LD_LIBRARY_PATH"]
elif kind.name in ("DockerSpawner", "SystemdSpawner"):
    c.Spawner.pre_spawn_hook = partial(plugins.mounts, hub)
    c.Spawner.environment = {"JUPYTER_CONFIG_PATH": start.JUPYTER}
c.Spawner.default_url = "/lab"
# A file in the home cannot turn on what the role has turned off.
c.Spawner.disable_user_config = True
c.Spawner.http_timeout = 120  # the first import of PyTorch's neighbours from a cold disk
c.JupyterHub.allow_named_servers = False  # a second server is a second GPU
c.JupyterHub.concurrent_spawn_limit = 12
c.Spawner.consecutive_failure_limit = 0

# --- The grader: formgrader, for instructors only, as an account of its own.

c.JupyterHub.services = [
    {
        "name": course,  # nbgrader looks for a service with the course's name
        "url": f"http://127.0.0.1:{chosen['grader']}",
        "command": start.grader_command(hub),
        "cwd": str(hub.course),
        "environment": start.grader_environment(hub),
        "oauth_no_confirm": True,  # who has logged in is not asked again
        # JupyterHub ends where a service is not there in time: 30 s in 6, 10 s in 5, which cannot be told.
        **({"timeout": 120} if "timeout" in Service.class_traits() else {}),
    },
    {
        "name": "idle-culler",
        "command": server.command(
            server.tied(),
            then=[sys.executable, "-P", "-m", "jupyterhub_idle_culler", f"--timeout={hub.limits.idle_minutes * 60}"],
        ),
    },
]

# --- What each may ask of the hub: the least with which everything works.

c.JupyterHub.load_roles = [
    {
        # A student's server, and with it any code in a notebook. JupyterHub intersects this with what its owner may do.
        "name": "server",
        "scopes": [
            "users:activity!user",
            "access:servers!server",
            # nbgrader asks whose server it is and which courses they take.
            "read:users:name!user",
            "read:users:groups!user",
            "list:services",
            "read:services",
        ],
    },
    {
        "name": hub.graders_group,
        "groups": [hub.graders_group],
        "scopes": [f"access:services!service={course}", "list:services", f"read:services!service={course}"],
    },
    {
        # The grader itself: who it is, who takes the course, and who else is to. Without these formgrader's pages are a 500.
        "name": grader,
        "services": [course],
        "scopes": [
            f"read:users:name!user={grader}",
            f"read:users:groups!user={grader}",
            f"list:groups!group={hub.students_group}",
            f"groups!group={hub.students_group}",
        ],
    },
    {
        "name": "idle-culler",
        "services": ["idle-culler"],
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
    },
]
