"""`autograder hub`: make the course and its folders, take over the roster, start JupyterHub, and end all that it started."""

from __future__ import annotations

import ctypes
import fcntl
import importlib.metadata
import importlib.util
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autograder.errors import HubError
from autograder.hub import config as configs
from autograder.hub import ports, server
from autograder.hub.config import HubConfig
from autograder.hub.server import ROOT, command

JUPYTER = "/opt/course/jupyter"
JUPYTERHUB_FROM, JUPYTERHUB_BELOW = (5, 2), (7,)
NPM = "npm install --global --prefix {prefix} configurable-http-proxy"
DEMO_ASSIGNMENT = "03_gradscaler"
DEMO_INSTRUCTOR = "grace"
DEMO_ROSTER = """\
username,first_name,last_name,email
ada,Ada,Lovelace,ada@example.org
alan,Alan,Turing,alan@example.org
emmy,Emmy,Noether,emmy@example.org
"""
DEMO_CONFIG = """\
course:
  id: amp
  title: Mixed precision in PyTorch (a demo)
instructors: [{instructor}]
roster: roster.csv
folder: .
port: {port}
"""

Say = Callable[[str], None]


# What has to be there


def require(config: HubConfig) -> None:
    """HubError with the first thing that is missing here, before anything is made or started."""
    from autograder.hub import plugins, roster

    if not sys.platform.startswith("linux"):
        raise HubError(f"A hub needs Linux; this is {sys.platform}. In WSL2 or a virtual machine it works.")
    _require_jupyterhub()
    proxy_command()
    plugins.authenticator(config)
    plugins.spawner(config)
    roster.students(config)
    if (config.course / "nbgrader_config.py").exists():
        _same_course(config)
    ports.require(config.address, config.port)


def _require_jupyterhub() -> None:
    for module, package in (("jupyterhub", "jupyterhub"), ("jupyterhub_idle_culler", "jupyterhub-idle-culler")):
        if importlib.util.find_spec(module) is None:
            raise HubError(
                f"{package} is not installed in {sys.prefix}; nothing was started. In the checkout: "
                f"{sys.executable} -m pip install -e '.[hub]'"
            )
    version = importlib.metadata.version("jupyterhub")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if not JUPYTERHUB_FROM <= numbers < JUPYTERHUB_BELOW:
        raise HubError(
            f"JupyterHub {version} is installed, and this hub is made for 5.2 to 6; nothing was started. "
            f"{sys.executable} -m pip install 'jupyterhub>=5.2,<7'"
        )


def proxy_command(tied: bool = True) -> list[str]:
    """The command that runs configurable-http-proxy. HubError where it, or the node that runs it, is not there."""
    path = os.pathsep.join([str(Path(sys.prefix) / "bin"), os.environ.get("PATH", os.defpath)])
    found = shutil.which("configurable-http-proxy", path=path)
    if not shutil.which("node", path=path):
        raise HubError(
            "Node.js is not installed (no `node` on the PATH), which JupyterHub's proxy runs on; nothing was started. Install "
            f"it with npm (apt install nodejs npm), then: {NPM.format(prefix=sys.prefix)}"
        )
    if not found:
        raise HubError(
            "JupyterHub's proxy is not installed (no `configurable-http-proxy` on the PATH); nothing was started. "
            f"It comes from npm: {NPM.format(prefix=sys.prefix)}"
        )
    # Tied, a hub that is killed leaves nothing in the way of the next.
    return command(server.tied(), then=[found]) if tied else [found]


def _same_course(config: HubConfig) -> None:
    from autograder.course import Course

    there = Course(config.course).directory.course_id
    if there != config.course_id:
        raise HubError(
            f"course.id: {config.course_id!r}: the course in {config.course} is called {there!r}; nothing was started. An id "
            "cannot change while there are submissions: name it as it was, or choose another folder."
        )


# The hub's folder


def prepare(config: HubConfig, say: Say) -> None:
    """Make what is missing of the course, the exchange, homes and configuration, and take over the roster.

    An assignment's source/ is made when it is released. May be done again at any time while the hub is not running.
    """
    from autograder import course as courses
    from autograder.hub import exchange, roster, settings, spawner

    # Others need to pass through to what is theirs, and to see nothing else.
    config.folder.mkdir(parents=True, exist_ok=True)
    os.chmod(config.folder, 0o711 if os.geteuid() == 0 else 0o700)
    for folder, mode in ((config.homes, 0o711), (config.logs, 0o700), (config.run, 0o711)):
        folder.mkdir(exist_ok=True)
        os.chmod(folder, mode)
    config.exchange.mkdir(parents=True, exist_ok=True)
    (config.run / "accounts").mkdir(mode=0o700, exist_ok=True)
    courses.prepare_nbgrader()
    if not (config.course / "nbgrader_config.py").is_file():
        say(f"Making the course {config.course_id} in {config.course} …")
        courses.init(config.course, config.course_id, source=())
        os.chmod(config.course, 0o700)
    enrol(config, say)
    students = [student.username for student in roster.students(config)]
    known = spawner.uids(config, [*students, *config.instructors])
    grader = known.get(config.grader)
    exchange.prepare(config.exchange, config.course_id, students, known, None if grader is None else (grader, grader))
    settings.write(config, "student", config.run / "student")
    settings.write(config, "grader", config.run / "grader")
    (config.homes / config.grader).mkdir(mode=0o700, exist_ok=True)
    if grader is not None:
        for tree in (config.course, config.run / "grader", config.homes / config.grader):
            _give(tree, grader)


def enrol(config: HubConfig, say: Say) -> None:
    """Take over the roster into the gradebook. Into the hub's groups it goes when the hub starts (jupyterhub_config.py)."""
    from autograder.hub import roster

    if not config.roster:
        return
    students = roster.students(config)
    say(f"The roster has {len(students)} students: {roster.into_gradebook(config, students)}.")


def give_passwords(config: HubConfig, say: Say) -> None:
    """Make a password for whoever has none yet, where the hub makes them, and add it to the list to hand out."""
    from autograder.hub import passwords, roster

    if config.authenticator.name != "passwords":
        return
    names = [*config.instructors, *(student.username for student in roster.students(config))]
    new = passwords.make(config.folder / "passwords.json", names)
    if new:
        passwords.hand_out(config.folder / "passwords.csv", new)
        say(
            f"Made {len(new)} passwords: {config.folder / 'passwords.csv'} (only you can read it; delete it once they are "
            "handed out)."
        )


def _give(tree: Path, uid: int) -> None:
    """Give what root has made in a tree (`autograder grade`, say) to the account that works there. Links are not followed."""
    for _, folders, files, fd in os.fwalk(tree, follow_symlinks=False):
        os.chown(fd, uid, uid)
        for name in [*folders, *files]:
            state = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISREG(state.st_mode) and state.st_nlink > 1:
                continue  # a hard link: the same file lies elsewhere, too, and may be anybody's
            if state.st_uid != uid:
                os.chown(name, uid, uid, dir_fd=fd, follow_symlinks=False)


@contextmanager
def alone(config: HubConfig) -> Iterator[None]:
    """One hub in one folder at a time."""
    config.run.mkdir(parents=True, exist_ok=True)
    with open(config.run / "lock", "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise HubError(
                f"A hub is running in {config.folder} already; nothing was started. Stop that one first; servers go on."
            ) from error
        yield


# What jupyterhub_config.py asks for


def bind_url(config: HubConfig) -> str:
    host = f"[{config.address}]" if ":" in config.address else config.address
    return f"{'https' if isinstance(config.tls, configs.Tls) else 'http'}://{host}:{config.port}"


def proxy_token(config: HubConfig) -> str:
    """What the hub shows to the proxy: kept, so that a hub that was killed finds its proxy again."""
    path = config.folder / "proxy_token"
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        token = secrets.token_hex(32)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(token + "\n")
        return token


def grader_command(config: HubConfig) -> list[str]:
    """The command of the grader service: not in a box, since it makes boxes for answers itself; as root, as its own user id."""
    from autograder.hub import spawner

    uid = spawner.uids(config, []).get(config.grader)
    options = [server.tied(), "--home", str(config.course)]
    then = [sys.executable, "-P", "-m", "jupyterhub.singleuser"]
    if uid is None:
        return command(*options, then=then)
    return [*_readable(config), *command("--uid", str(uid), *options, then=then)]


def _readable(config: HubConfig) -> list[str]:
    """Where this Python or the checkout is in a folder that only root may enter, a view of the machine in which others may."""
    from autograder import sandbox

    wanted = [*sandbox.prefixes(), str(ROOT), str(config.folder), str(config.exchange)]
    closed = []
    for path in map(Path, wanted):
        shut = [parent for parent in reversed(path.parents) if not parent.stat().st_mode & 0o001]
        if shut:
            closed.append((shut[0], path))
    if not closed:
        return []
    view = [
        sandbox.bwrap(),
        "--die-with-parent",
        "--dev-bind",
        "/",
        "/",
        "--cap-drop",
        "ALL",
        "--cap-add",
        "CAP_SETUID",
        "--cap-add",
        "CAP_SETGID",
    ]
    for folder in sorted({folder for folder, _ in closed}):
        view += ["--perms", "0755", "--tmpfs", str(folder)]
    for _, path in closed:
        for parent in reversed(path.parents[:-1]):
            view += ["--dir", str(parent)]
        view += ["--bind", str(path), str(path)]
    return [*view, "--"]


def grader_environment(config: HubConfig) -> dict[str, str]:
    return {
        "JUPYTERHUB_USER": config.grader,  # whom nbgrader asks the hub about
        # formgrader itself as the first page. In JupyterLab it is a frame, which the default Content-Security-Policy, rightly
        # kept, leaves blank.
        "JUPYTERHUB_DEFAULT_URL": "/formgrader",
        "JUPYTER_CONFIG_PATH": str(config.run / "grader"),
        "HOME": str(config.homes / config.grader),
        "USER": config.grader,
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "OMP_NUM_THREADS": "1",
        # For `autograder grade` in the grader's terminal; formgrader has it from its configuration.
        **({"AUTOGRADER_DB": config.gradebook} if config.gradebook else {}),
    }


# Running it


def run(config: HubConfig, say: Say) -> int:
    """Run a real hub until it is stopped (Ctrl-C, SIGTERM); its exit status. Students' servers go on without it."""
    with alone(config), _stoppable():
        prepare(config, say)
        give_passwords(config, say)
        require_box(config)
        say("Starting JupyterHub …")
        ports.claim(config, say)
        with running(config, tied=False) as hub:
            hub.wait_until_ready()
            say(f"The hub of {config.title} is at {config.url}\nIts log is {hub.log}. Ctrl-C stops it.")
            hub.wait()
        return 0


def require_box(config: HubConfig) -> None:
    if config.spawner.name == "boxed":
        from autograder.hub import spawner

        spawner.require(config)


@contextmanager
def running(config: HubConfig, *, tied: bool) -> Iterator[Hub]:
    """A hub, until the block ends or somebody wants to stop. With `tied`, nothing that it has started survives."""
    hub = None
    if tied:
        _adopt()
    try:
        hub = Hub(config, tied)
        yield hub
    except KeyboardInterrupt:
        pass  # that is how a hub is stopped
    finally:
        if hub:
            hub.stop(5 if tied else 30)
        if tied:
            _end_descendants()


class Hub:
    """A running JupyterHub, and all that it has started."""

    def __init__(self, config: HubConfig, tied: bool) -> None:
        self.config, self.log = config, config.logs / "hub.log"
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("JUPYTER", "CONFIGPROXY"))
        }
        environment["AUTOGRADER_COURSE_YAML"] = str(config.path)
        if tied:
            environment["AUTOGRADER_HUB_TIED"] = "1"
        then = [sys.executable, "-P", "-m", "jupyterhub", "-f", str(ROOT / "hub" / "jupyterhub_config.py")]
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.start_of_log = os.fstat(descriptor).st_size
        with open(descriptor, "ab") as file:
            self.process = subprocess.Popen(
                command(server.tied(), then=then) if tied else then,
                env=environment,
                cwd=config.run,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for this process, which ends the others in order
                umask=0o077,  # its database is nobody else's to read
            )

    def wait_until_ready(self, seconds: float = 120) -> None:
        """Until hub and grader answer. HubError with the log's last words where they do not."""
        import ssl
        import urllib.request

        # This machine's own address: not to be asked through a proxy, and its certificate is for another name.
        unverified = urllib.request.HTTPSHandler(context=ssl._create_unverified_context())
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), unverified)
        deadline = time.monotonic() + seconds
        # Themselves first: asked too early, the proxy fills the log with errors.
        paths = {"hub": "/hub/api/", "grader": f"/services/{self.config.course_id}/api"}
        direct = [f"http://127.0.0.1:{ports.of(self.config)[name]}{path}" for name, path in paths.items()]
        public = [self.config.url + path for path in paths.values()]
        for url in (*direct, *public):
            while True:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise HubError(f"The hub did not start. The end of its log, {self.log}:\n{self.last_words()}")
                try:
                    with opener.open(url, timeout=5):
                        break
                except OSError:  # nobody listens, or there is no route yet
                    time.sleep(0.1)

    def last_words(self) -> str:
        said = self.log.read_bytes()[self.start_of_log :].decode(errors="replace")
        records = re.split(r"^(?=\[[A-Z] \d|\d{4}-\d\d-\d\dT)", said, flags=re.MULTILINE)
        # What went well is of no help, unless there is nothing else.
        troubles = "".join(record for record in records if not re.match(r"\[[ID] ", record))
        lines = (troubles or said).splitlines()
        return "\n".join(f"  {line[:300]}" for line in lines[-12:])

    def wait(self) -> None:
        """For ever; HubError where the hub ends by itself."""
        while (status := self.process.poll()) is None:
            self._bury()
            time.sleep(0.5)
        raise HubError(
            f"The hub has ended by itself (status {status}). The end of its log, {self.log}:\n{self.last_words()}"
        )

    def _bury(self) -> None:
        """Take note of the end of what was adopted: until then it stays in the list of processes."""
        import psutil

        for child in psutil.Process().children():
            with suppress(psutil.Error, ChildProcessError):
                if child.pid != self.process.pid and child.status() == psutil.STATUS_ZOMBIE:
                    os.waitpid(child.pid, os.WNOHANG)

    def stop(self, seconds: float) -> None:
        """End it: asked first, and after so many seconds made to."""
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def _adopt() -> None:
    """Become the parent of every descendant whose own has ended: so all are found, and none is left behind."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_descendants() -> None:
    import psutil

    me = psutil.Process()
    for number, seconds in ((signal.SIGTERM, 1), (signal.SIGKILL, 10)):
        deadline = time.monotonic() + seconds
        while (left := me.children(recursive=True)) and time.monotonic() < deadline:
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(number)
            psutil.wait_procs(left, timeout=seconds / 2)


@contextmanager
def _stoppable() -> Iterator[None]:
    """A context that Ctrl-C, SIGTERM and a closed terminal end with KeyboardInterrupt, once: tidying up is left alone."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(*_) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# The demo


def demo(folder: Path | None, port: int | None, say: Say, *, only_first: bool = False) -> int:
    """A whole hub on loopback in one folder, gone when it is stopped unless the folder was given.

    One assignment is released before it starts, the others (without `only_first`) while it runs.
    """
    kept = folder is not None
    if folder is not None:
        folder = folder.resolve()
        if folder.exists() and any(folder.iterdir()) and not (folder / "course.yaml").is_file():
            raise HubError(
                f"{folder} is not empty and holds no earlier demo; nothing was started. Name a new folder, or none."
            )
    with _stoppable():
        made = folder or Path(tempfile.mkdtemp(prefix="autograder-hub-"))
        try:
            return _demo(made, port, kept, say, only_first)
        except KeyboardInterrupt:
            say("Stopped before the hub was there.")
            return 130
        finally:
            if not kept:
                shutil.rmtree(made, ignore_errors=True)


def _demo(folder: Path, port: int | None, kept: bool, say: Say, only_first: bool) -> int:
    from autograder.hub import passwords, roster

    folder.mkdir(parents=True, exist_ok=True)
    if port is None:
        (port,) = ports.free()
    (folder / "roster.csv").write_text(DEMO_ROSTER, encoding="utf-8")
    text = DEMO_CONFIG.format(instructor=DEMO_INSTRUCTOR, port=port)
    (folder / "course.yaml").write_text(text, encoding="utf-8")
    config = configs.read(folder / "course.yaml")
    require(config)
    with alone(config):
        prepare(config, say)
        require_box(config)
        names = [*config.instructors, *(student.username for student in roster.students(config))]
        new = passwords.make(folder / "passwords.json", names, anew=True)
        release(config, DEMO_ASSIGNMENT, say)
        say("Starting JupyterHub …")
        try:
            ports.claim(config, say)
            with running(config, tied=True) as hub:
                hub.wait_until_ready()
                say(banner(config, new, kept))
                if not only_first:
                    release_others(config, say)
                hub.wait()
        finally:
            say(f"Stopped; the folder is kept: {folder}" if kept else f"Stopped; {folder} is removed.")
    return 0


def release(config: HubConfig, assignment: str, say: Say) -> None:
    """Release an assignment and put it into the exchange, as formgrader's two buttons do; nothing where it is there."""
    from autograder.course import Course

    if (config.exchange / config.course_id / "outbound" / assignment).is_dir():
        return
    say(f"Releasing {assignment}: its checks are proved on right and wrong answers first, which takes some 20 s …")
    course = Course(config.course, config.gradebook)
    with course.alone(f"autograder release {assignment}"):
        course.release(assignment)
    into_exchange(config, assignment)


def release_others(config: HubConfig, say: Say) -> None:
    from autograder.course import Course

    for assignment in Course(config.course, config.gradebook).assignments():
        release(config, assignment, say)


def into_exchange(config: HubConfig, assignment: str) -> None:
    """What `nbgrader release_assignment` does: from release/ to where students' servers list it."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config, PyFileConfigLoader

    loaded = Config()
    for folder in (config.course, config.run / "grader"):
        loaded.merge(PyFileConfigLoader("nbgrader_config.py", path=str(folder)).load_config())
    loaded.CourseDirectory.root = str(config.course)
    # The hub is not there yet to be asked, and who releases is who started it.
    loaded.Authenticator.plugin_class = "nbgrader.auth.NoAuthPlugin"
    from nbgrader.auth import Authenticator
    from nbgrader.coursedir import CourseDirectory

    api = NbGraderAPI(CourseDirectory(config=loaded), Authenticator(config=loaded), config=loaded)
    said = api.release_assignment(assignment)
    if not said["success"]:
        raise HubError(f"{assignment} was not put into the exchange: {said.get('error') or said.get('log')}")
    if os.geteuid() == 0:
        from autograder.hub import spawner

        grader = spawner.uids(config, [])[config.grader]
        for tree in (config.course, config.exchange / config.course_id / "outbound"):
            _give(tree, grader)


def banner(config: HubConfig, passwords: dict[str, str], kept: bool) -> str:
    width = max(map(len, passwords))
    people = "\n".join(
        f"    {name:<{width}}  {password}   {'instructor' if name in config.instructors else 'student'}"
        for name, password in passwords.items()
    )
    separates = (
        "Each student's server runs as a user id of its own, in a box that shows one home and no solutions."
        if os.geteuid() == 0
        else "All servers run as you; what separates students is the box that each runs in: it shows one home and no\n"
        "  solutions. (Started as root, each student has a user id of their own as well.)"
    )
    return f"""
  The hub is at  {config.url}   (this machine only)

{people}

  Students find the lessons in their home, and {DEMO_ASSIGNMENT} in the menu Nbgrader > Assignment List.
  The instructor grades at  {config.url}/services/{config.course_id}/

  {separates}
  Everything is in {config.folder}: course/, exchange/, homes/, logs/.
  Ctrl-C stops the hub and all servers{"; the folder is kept." if kept else ", and removes the folder."}
"""


def main_config(path: Path, say: Say, *, roster_only: bool = False) -> int:
    """Run the hub of a course.yaml; with `roster_only`, only take over its roster."""
    from autograder import course as courses

    config = configs.read(path)
    if not roster_only:
        require(config)
        return run(config, say)
    if not (config.course / "nbgrader_config.py").is_file():
        raise HubError(
            f"There is no course in {config.course} yet; nothing was changed. The first start makes it: "
            f"autograder hub --config {path}"
        )
    courses.prepare_nbgrader()
    enrol(config, say)
    give_passwords(config, say)
    say(
        "The hub takes over its groups, and who may log in, when it is next started. Students' servers go on meanwhile."
    )
    return 0
