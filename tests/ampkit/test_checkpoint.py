"""Checkpoints: a kill loses nothing, and every loop goes on from one as if it had never stopped, bit for bit."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

from ampkit import CheckpointError, checkpoint
from ampkit.data import Dataset
from ampkit.loops import LADDER
from ampkit.loops.run import reports

HERE = [rung.name for rung in LADDER if rung.name != "tf32"]  # what a CPU can compute
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="requires an NVIDIA GPU")


def same(a, b):
    """Equal, bit for bit, all the way down."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


# The file


def test_what_is_saved_is_loaded_and_the_one_before_is_kept(tmp_path):
    file = tmp_path / "run.pt"
    assert checkpoint.load(file) is None
    for step in range(3):
        checkpoint.save({"step": step, "weights": torch.full((3,), float(step))}, file)
    assert same(checkpoint.load(file), {"step": 2, "weights": torch.full((3,), 2.0)})
    assert checkpoint.load(checkpoint.previous(file))["step"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.pt", "run.pt.previous"]


def test_a_half_written_file_is_never_read_and_the_next_save_clears_it_away(tmp_path):
    file = tmp_path / "run.pt"
    checkpoint.save({"step": 1}, file)
    whole = file.read_bytes()
    for ending in (".tmp", ".link.tmp"):
        (tmp_path / f"run.pt{ending}").write_bytes(whole[: len(whole) // 2])
    assert checkpoint.load(file) == {"step": 1}
    checkpoint.save({"step": 2}, file)
    assert checkpoint.load(file) == {"step": 2}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.pt", "run.pt.previous"]


def test_a_kill_after_the_old_one_was_kept_and_before_the_new_one_came_loses_neither(tmp_path):
    file = tmp_path / "run.pt"
    checkpoint.save({"step": 1}, file)
    os.link(file, checkpoint.previous(file))  # as a kill between the two leaves it: two names of one file
    checkpoint.save({"step": 2}, file)
    assert checkpoint.load(file)["step"] == 2 and checkpoint.load(checkpoint.previous(file))["step"] == 1


def test_on_a_file_system_without_hard_links_a_kill_between_two_renames_loses_nothing(tmp_path, monkeypatch):
    def no_links(*_):
        raise PermissionError("no hard links here")

    monkeypatch.setattr(os, "link", no_links)
    file = tmp_path / "run.pt"
    for step in (1, 2):
        checkpoint.save({"step": step}, file)
    assert checkpoint.load(file)["step"] == 2 and checkpoint.load(checkpoint.previous(file))["step"] == 1
    file.unlink()  # what the kill leaves
    assert checkpoint.load(file)["step"] == 1


def test_a_file_that_cannot_be_written_is_an_error_and_the_old_one_stays(tmp_path, monkeypatch):
    file = tmp_path / "run.pt"
    checkpoint.save({"step": 1}, file)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match=r"cannot be written: No space left on device.*still there"):
        checkpoint.save({"step": 2}, file)
    assert checkpoint.load(file) == {"step": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["run.pt"]
    with pytest.raises(CheckpointError, match="No such file or directory"):
        checkpoint.save({"step": 2}, tmp_path / "none" / "run.pt")


@pytest.mark.parametrize("damage", ["empty", "half", "text", "pickle"])
def test_a_file_that_is_no_checkpoint_is_an_error_that_names_the_one_before(tmp_path, damage):
    file = tmp_path / "run.pt"
    for step in (1, 2):
        checkpoint.save({"step": step}, file)
    if damage == "pickle":
        torch.save({"step": Path("x")}, file)  # code to be run on loading
    else:
        whole = file.read_bytes()
        file.write_bytes({"empty": b"", "half": whole[: len(whole) // 2], "text": b"hello"}[damage])
    with pytest.raises(CheckpointError, match=r"run\.pt is no checkpoint that can be read.*run\.pt\.previous"):
        checkpoint.load(file)


def test_a_checkpoint_of_another_run_is_refused_with_what_differs(tmp_path):
    file = tmp_path / "run.pt"
    checkpoint.save({"step": 1, "settings": {"lr": 0.1, "seed": 0}}, file)
    assert checkpoint.load(file, {"lr": 0.1, "seed": 0})["step"] == 1
    with pytest.raises(CheckpointError, match=r"lr was 0\.1, and is 0\.2; max_norm was None, and is 1\.0\. Going on"):
        checkpoint.load(file, {"lr": 0.2, "seed": 0, "max_norm": 1.0})
    checkpoint.save({"step": 1}, file)
    with pytest.raises(CheckpointError, match="not a checkpoint of a training run"):
        checkpoint.load(file, {"lr": 0.2})


def test_all_generators_go_on_from_where_they_were(tmp_path):
    def draw():
        return torch.rand(3).tolist(), random.random(), numpy.random.rand(), numpy.random.standard_normal()

    draw()
    checkpoint.save(checkpoint.rng_state(), tmp_path / "rng.pt")
    drawn = draw()
    draw()
    checkpoint.set_rng_state(checkpoint.load(tmp_path / "rng.pt"))
    assert draw() == drawn


SAVER = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from ampkit import checkpoint

torch.set_num_threads(1)
file, rounds, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng, newest, killed_inside = random.Random(seed), 0, 0
for _ in range(rounds):
    said, saying = os.pipe()
    child = os.fork()  # a fork, because starting Python and torch takes longer than fifty saves
    if child == 0:
        n = newest
        while True:
            n += 1
            checkpoint.save({"step": n, "weights": torch.full((100_000,), n), "more": torch.full((7,), n)}, file)
            os.write(saying, n.to_bytes(4, "big"))
    os.close(saying)
    newest = int.from_bytes(os.read(said, 4), "big")  # it has begun
    time.sleep(rng.random() * 0.03)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while n := os.read(said, 4):
        newest = int.from_bytes(n, "big")
    os.close(said)
    killed_inside += file.with_name(file.name + ".tmp").exists()
    state = checkpoint.load(file)
    assert state["step"] in (newest, newest + 1), (state["step"], newest)
    assert (state["weights"] == state["step"]).all() and (state["more"] == state["step"]).all()
    before = checkpoint.load(checkpoint.previous(file))
    if before is not None:
        assert before["step"] in (state["step"] - 1, state["step"]) and (before["weights"] == before["step"]).all()
    newest = state["step"]
print(killed_inside, newest)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="requires fork")
def test_a_kill_at_any_moment_of_saving_loses_nothing(tmp_path):
    rounds = 60
    command = [sys.executable, "-c", SAVER, str(tmp_path / "run.pt"), str(rounds), "0"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, said.stderr
    killed_inside, saves = map(int, said.stdout.split())
    assert killed_inside >= 5, "too few kills came while a file was being written to prove anything"
    assert saves > rounds
    checkpoint.save({"step": 0}, tmp_path / "run.pt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.pt", "run.pt.previous"]


# The loops


def a_model(seed):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Flatten(), nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 5)
    )


def some_data():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(45, 12, generator=generator)
    targets = torch.randint(0, 5, (45,), generator=generator)
    return Dataset(inputs, targets, inputs[:0], targets[:0])


def a_run(name, file, *, model_seed=0, device="cpu", steps=9, save_every=4, **more):
    """Nine steps of batches of ten of 45 examples, so that the run crosses an epoch's ragged end twice."""
    options = {"dataset": some_data(), "batch_size": 10, "lr": 0.05}
    if name == "compiled":
        options["backend"] = "eager"
    if name in ("accumulated", "ddp", "complete"):
        options["accumulate"] = 2
    if name not in ("fp32", "tf32", "bf16", "fp16_no_scaler", "explicit_casts"):
        options["init_scale"] = 2.0**20  # overflows at first, so that the scale is not what it began with
    if name == "explicit_casts":
        model = nn.Sequential(nn.Linear(12, 16), nn.LayerNorm(16), nn.Dropout(0.3), nn.Linear(16, 5))
        torch.manual_seed(model_seed)
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.2)
    else:
        model = a_model(model_seed)
    stream = reports(name, model, device=device, steps=steps, checkpoint=file, save_every=save_every, **options, **more)
    return stream, model


def without_times(records):
    return [repr((r.step, r.loss, r.grad_norm, r.scale, r.skipped, r.samples, r.lr)) for r in records]  # nan is not nan


@pytest.mark.parametrize("name", HERE)
def test_a_loop_that_was_killed_and_goes_on_ends_bit_for_bit_where_it_would_have(name, tmp_path):
    stream, model = a_run(name, tmp_path / "never_stopped.pt")
    never_stopped = list(stream)

    stream, _ = a_run(name, tmp_path / "killed.pt")
    begun = [next(stream) for _ in range(7)]  # saved after step 4, killed after step 7
    stream.close()
    torch.manual_seed(12345)
    random.seed(12345)
    stream, other = a_run(name, tmp_path / "killed.pt", model_seed=77)
    gone_on = list(stream)

    assert [r.step for r in gone_on] == [4, 5, 6, 7, 8]
    assert without_times(begun[:4] + gone_on) == without_times(never_stopped)
    assert same(dict(model.state_dict()), dict(other.state_dict()))
    one, two = (checkpoint.load(tmp_path / file) for file in ("never_stopped.pt", "killed.pt"))
    assert one.keys() >= {"model", "optimizer", "batches", "rng", "settings", "step"} and one["step"] == 9
    assert same(one, two)
    if one.get("scaler"):
        assert one["scaler"]["scale"] < 2.0**20 and any(r.skipped for r in never_stopped[:4])
        assert not all(r.skipped for r in never_stopped)
    if any(rung.name == name and rung.scheduled for rung in LADDER):
        assert one["scheduler"]["last_epoch"] == 9 - sum(r.skipped for r in never_stopped)


@pytest.mark.parametrize("name", ["clipped", "resumable"])
def test_going_on_without_one_part_of_the_checkpoint_does_not_end_where_it_would_have(name, tmp_path):
    """The test above can fail: each part of the state is needed."""
    stream, model = a_run(name, tmp_path / "whole.pt")
    list(stream)
    stream, _ = a_run(name, tmp_path / "stopped.pt", save_every=4)
    for _ in range(5):
        next(stream)
    stream.close()
    whole, fresh = checkpoint.load(tmp_path / "stopped.pt"), {}
    stream, _ = a_run(name, tmp_path / "fresh.pt", save_every=1)
    next(stream), next(stream)
    stream.close()
    fresh = checkpoint.load(tmp_path / "fresh.pt")  # after one step
    parts = set(whole) - {"settings"} - ({"step"} if name == "clipped" else set())
    for part in sorted(parts):
        checkpoint.save({**whole, part: fresh[part]}, tmp_path / "part.pt")
        stream, other = a_run(name, tmp_path / "part.pt")
        records = list(stream)
        assert not same(dict(model.state_dict()), dict(other.state_dict())) or len(records) != 5, part


def test_a_run_that_is_at_its_end_does_nothing_and_a_longer_one_goes_on(tmp_path):
    stream, model = a_run("fp16", tmp_path / "run.pt", steps=6)
    assert len(list(stream)) == 6
    stream, same_model = a_run("fp16", tmp_path / "run.pt", steps=6, model_seed=5)
    assert list(stream) == [] and same(dict(model.state_dict()), dict(same_model.state_dict()))
    stream, _ = a_run("fp16", tmp_path / "run.pt", steps=8)
    assert [r.step for r in stream] == [6, 7]


@pytest.mark.parametrize("name", ["scheduled", "resumable", "complete"])
def test_a_schedule_that_has_begun_is_not_given_another_end(name, tmp_path):
    stream, _ = a_run(name, tmp_path / "run.pt", steps=6)
    list(stream)
    stream, _ = a_run(name, tmp_path / "run.pt", steps=8)
    with pytest.raises(CheckpointError, match="steps was 6, and is 8"):
        next(stream)


@pytest.mark.parametrize("name", ["fp16", "resumable"])
def test_a_loop_refuses_the_checkpoint_of_another_run(name, tmp_path):
    stream, _ = a_run(name, tmp_path / "run.pt", save_every=1, steps=2)
    list(stream)
    stream, _ = a_run(name, tmp_path / "run.pt", steps=2, seed=3)
    with pytest.raises(CheckpointError, match="seed was 0, and is 3"):
        next(stream)
    stream, _ = a_run("clipped", tmp_path / "run.pt", steps=2)
    with pytest.raises(CheckpointError, match=f"loop was {name}, and is clipped"):
        next(stream)


def test_a_checkpoint_of_another_model_is_an_error_that_says_so(tmp_path):
    stream, _ = a_run("fp16", tmp_path / "run.pt", steps=2)
    list(stream)
    options = {"dataset": some_data(), "batch_size": 10, "lr": 0.05, "init_scale": 2.0**20}
    stream = reports("fp16", nn.Linear(12, 5), device="cpu", steps=3, checkpoint=tmp_path / "run.pt", **options)
    with pytest.raises(CheckpointError, match=r"The model in .*run\.pt does not fit this run's"):
        next(stream)


KILLED = """
import sys
from ampkit.cli import app
app(["train", "scheduled", "--device", "cpu", "--steps", "100000", "--batch-size", "16",
     "--checkpoint", sys.argv[1], "--save-every", "3", "--log", sys.argv[2]])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="requires SIGKILL")
def test_a_training_run_that_is_killed_goes_on_and_its_log_is_whole(tmp_path):
    from ampkit import read_reports

    file, log = tmp_path / "run.pt", tmp_path / "run.jsonl"
    for _ in range(2):
        already = log.read_text().count("\n") if log.exists() else 0
        process = subprocess.Popen([sys.executable, "-c", KILLED, file, log], stderr=subprocess.DEVNULL)
        try:
            while process.poll() is None and (not log.exists() or log.read_text().count("\n") < already + 20):
                time.sleep(0.02)
        finally:
            process.kill()
            process.wait()
    state = checkpoint.load(file)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(line for line in lines if line.endswith(b"\n")))
    steps = [report.step for report in read_reports(log)]
    assert steps == list(range(len(steps))) and len(steps) >= state["step"] > 20


@pytest.mark.gpu
@GPU
@pytest.mark.parametrize("name", [name for name in HERE if name not in ("ddp",)])
def test_on_a_gpu_a_loop_goes_on_from_where_it_was(name, tmp_path):
    stream, model = a_run(name, None, device="cuda")
    never_stopped = list(stream)
    stream, _ = a_run(name, tmp_path / "killed.pt", device="cuda")
    for _ in range(5):
        next(stream)
    stream.close()
    stream, other = a_run(name, tmp_path / "killed.pt", device="cuda", model_seed=77)
    gone_on = list(stream)
    assert [r.step for r in gone_on] == [4, 5, 6, 7, 8]
    assert [r.scale for r in gone_on] == [r.scale for r in never_stopped[4:]]
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b)  # a GPU may add in another order
