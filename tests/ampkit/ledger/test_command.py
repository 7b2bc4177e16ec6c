"""The command `ampkit plan`, typed right and typed wrong; and a 7-billion-parameter model on a small machine."""

import json
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from ampkit.cli import app

needs_cuda_build = pytest.mark.skipif(
    not torch.backends.cuda.is_built(), reason="requires a CUDA build of PyTorch (it needs no GPU)"
)
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="requires a machine without a CUDA GPU")


def ampkit(*arguments):
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


@needs_cuda_build
def test_plan_prints_the_terms_the_verdict_and_the_first_change_and_writes_them(tmp_path):
    file = tmp_path / "plan.json"
    result = ampkit("cnn", "--vram", "600MiB", "--batch-size", 32768, "--optimizer", "momentum", "--json", file)
    assert result.exit_code == 0, result.output
    for words in ("saved activations", "estimate", "Does not fit", "First change", "not yet been", "rehearsed without"):
        assert words in result.stdout
    data = json.loads(file.read_text())
    assert data["model"] == "cnn" and data["recipe"]["optimizer"] == "momentum" and not data["fits"]
    assert data["changes"][0]["because"] in ("saved activations", "temporaries")
    assert f"Largest batch that fits, all else unchanged: {data['largest_batch']:,}" in " ".join(result.stdout.split())


@needs_cuda_build
def test_plan_takes_a_model_of_ones_own_with_all_options(tmp_path):
    (tmp_path / "own.py").write_text(
        "from torch import nn\n"
        "def make():\n"
        "    return nn.Sequential(*[nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(3)], nn.Linear(32, 5))\n"
    )
    options = ["--input", "f32[1,32]", "--loss", "cross_entropy", "--precision", "bf16-true", "--master-weights"]
    options += ["--checkpointing", "--accumulate", 2, "--batch-size", 64, "--vram", "1GiB"]
    result = ampkit(f"{tmp_path}/own.py:make", *options)
    assert result.exit_code == 0, result.output
    assert "master weights" in result.stdout and "Fits: " in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gpt_tinny", "--vram", "8GiB"], "Did you mean gpt_tiny?"),
        (["mlp", "--vram", "8G"], "'8G' is no size"),
        (["mlp", "--vram", "8GiB", "--optimizer", "lion"], "Choose one of: sgd"),
        (["mlp", "--vram", "8GiB", "--precision", "fp8"], "no precision 'fp8'"),
        (["mlp", "--vram", "8GiB", "--accumulate", 33], "each micro-batch needs an example"),
        (["mlp", "--vram", "8GiB", "--master-weights"], "they are the master weights"),
        (["torch.nn:Tanh", "--vram", "8GiB"], "Describe a batch"),
    ],
)
def test_what_makes_no_sense_exits_with_1_and_a_sentence(arguments, words):
    result = ampkit(*arguments)
    assert result.exit_code == 1
    assert words in result.stderr and "Traceback" not in result.output


@without_gpu
@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["mlp"], "Say it with --vram"), (["mlp", "--vram", "8GiB", "--measure"], "PyTorch sees no CUDA GPU here")],
)
def test_what_only_a_gpu_can_answer_is_an_error_without_one(arguments, words):
    result = ampkit(*arguments)
    assert result.exit_code == 1 and words in result.stderr


def test_on_a_cpu_only_build_the_plan_says_so_and_counts_nothing(monkeypatch):
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    monkeypatch.setattr("ampkit.ledger.rehearsal.fake_cuda_limits", lambda: "what works")
    result = ampkit("mlp", "--vram", "8GiB")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: This is a CPU-only build of PyTorch.") and "what works" in result.stderr


SEVEN_BILLION = """
import resource, time, torch
from ampkit.ledger import Ledger, Recipe, Rehearsals, Subject
from ampkit.models.transformers import Gpt

def batch(size):
    return (torch.empty(size, 2048, dtype=torch.int64, device="meta"),), None

def make():
    return Gpt(layers=34, width=4096, heads=32, vocabulary=32000, length=2048)

start = time.perf_counter()
loss = Subject.of("gpt2").loss
with Rehearsals(Subject("7b", make, batch, loss)) as stage:
    step = stage.run(Recipe(1, "bf16-mixed"))
    print(stage.parameters, Ledger(step).needs, step.peaks["step"].of("optimizer state"))
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@needs_cuda_build
@pytest.mark.skipif(sys.platform != "linux", reason="requires Linux, whose ru_maxrss is in KiB")
def test_seven_billion_parameters_are_planned_in_less_than_4_gib_of_this_machines_memory(record_property):
    run = subprocess.run([sys.executable, "-c", SEVEN_BILLION], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    (parameters, needs, state), (seconds, peak) = (line.split() for line in run.stdout.splitlines())
    assert int(parameters) > 6.9e9
    assert int(state) == 8 * int(parameters)
    assert int(needs) > 16 * int(parameters)
    assert int(peak) < 4 * 2**30
    record_property("seconds", float(seconds))
    print(f"planned {int(parameters):,} parameters in {float(seconds):.1f} s and {int(peak) / 2**30:.2f} GiB")
