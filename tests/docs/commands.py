"""Reads the commands out of a Markdown file, by the heading that they stand under, and runs them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

RUNNABLE = ("sh", "bat", "python")


@dataclass(frozen=True)
class Command:
    """A line of a `sh` or `bat` block, or a whole `python` block."""

    heading: str
    language: str
    text: str
    line: int


def read(path: Path) -> list[Command]:
    """All commands of the file, in order. ValueError for a code block that does not say what it is in."""
    found, heading, language, block, start = [], "", None, [], 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = re.match(r"\s*```\s*(\w*)\s*$", line)
        if language is None and fence:
            language, block, start = fence[1], [], number + 1
            if not language:
                raise ValueError(f"{path.name}:{number}: a code block without a language")
        elif language is not None and fence:
            if language == "python":
                found.append(Command(heading, language, "\n".join(block), start))
            elif language in RUNNABLE:
                found += [Command(heading, language, text, start + i) for i, text in enumerate(block) if text.strip()]
            language = None
        elif language is not None:
            block.append(line)
        elif line.startswith("#"):
            heading = line.lstrip("#").strip()
    return found


def inline(path: Path) -> list[str]:
    """What stands in backticks within the prose."""
    prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.findall(r"`([^`\n]+)`", prose)


class Shell:
    """Runs the commands of one heading, in order, as somebody would who types them; `cd` is remembered."""

    def __init__(self, commands: list[Command], folder: Path, home: Path) -> None:
        self.commands, self.folder, self.left = commands, folder, list(commands)
        # A person's home would bring a person's settings of Jupyter; nbgrader's exchange and caches lie there as well.
        own = {
            "HOME": str(home),
            "JUPYTER_CONFIG_DIR": str(home / "config"),
            "JUPYTER_DATA_DIR": str(home / "data"),
            "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
            "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
            "IPYTHONDIR": str(home / "ipython"),
            "PATH": str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"],
        }
        self.environment = {name: value for name, value in os.environ.items() if name != "AMPKIT_COURSE_DIR"} | own

    def next(self, start: str) -> str:
        """The next command, which has to start like this, so that a changed README changes the test."""
        assert self.left, f"the heading has no more commands, and one is expected that starts with {start!r}"
        command = self.left.pop(0)
        assert command.text.startswith(start), f"line {command.line}: expected {start!r}, found {command.text!r}"
        return command.text

    def run(self, start: str, *, status: int = 0, seconds: float = 300, add: str = "") -> str:
        """Run the next command; what it printed. `add` is put behind it."""
        command = self.left[0] if self.left else None
        text = self.next(start)
        if text.startswith("cd "):
            self.folder = self.folder / text.removeprefix("cd ")
            assert self.folder.is_dir()
            return ""
        arguments = [sys.executable, "-W", "error", "-c", text] if command.language == "python" else None
        done = subprocess.run(
            arguments or f"{text} {add}".strip(),
            shell=arguments is None,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == status, f"$ {text}\nended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, f"$ {text}\n{done.stderr}"
        return done.stdout

    @contextmanager
    def serving(self, command: str):
        """Start a JupyterLab with this command; yields its address with the token, and ends it."""
        log = self.folder / "jupyterlab.log"
        with log.open("w") as output:
            server = subprocess.Popen(
                shlex.split(command),
                cwd=self.folder,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
            try:
                yield _address(server, log)
            finally:
                server.terminate()
                try:
                    server.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    server.kill()
                    server.wait()


def _address(server: subprocess.Popen, log: Path) -> tuple[str, str]:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and server.poll() is None:
        found = re.search(r"(http://(?:localhost|127\.0\.0\.1):\d+)/\S*token=(\w+)", log.read_text())
        if found:
            return found[1], found[2]
        time.sleep(0.3)
    raise AssertionError(f"JupyterLab did not say where it is:\n{log.read_text()[-3000:]}")


# Commands within a sentence

BELONG_INTO_A_BLOCK = ("apt", "apt-get", "bash", "conda", "git", "jupyter", "pip", "py", "pytest", "python", "python3")
OF_OTHERS = {"--security-opt"}  # Docker's


def options_exist(texts: list[str]) -> int:
    """Whether commands of ours that stand in prose exist, with all of their options; how many there were."""
    import typer

    from ampkit.cli import app as ampkit
    from autograder.cli import app as autograder

    programs = {"ampkit": typer.main.get_command(ampkit), "autograder": typer.main.get_command(autograder)}
    options = {
        (program, name): {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        for program, group in programs.items()
        for name, command in group.commands.items()
    }
    every = set().union(*options.values())
    checked = 0
    for text in texts:
        words = text.split()
        asked = {word.partition("=")[0] for word in words if re.match(r"--\w", word)}
        if words[0] in programs and len(words) > 1:
            key = words[0], words[1]
            assert key in options, f"`{text}`: there is no such command"
            assert asked <= options[key], f"`{text}`: no option {asked - options[key]}"
            checked += 1
        elif words[0].startswith("--"):
            assert asked <= every | OF_OTHERS, f"`{text}`: no option {asked - every}"
            checked += 1
        else:
            assert len(words) == 1 or words[0] not in BELONG_INTO_A_BLOCK, f"`{text}` is a command that no test runs"
    return checked
