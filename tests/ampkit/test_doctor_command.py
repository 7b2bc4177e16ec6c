"""ampkit doctor, typed right and typed wrong; and what the package shows."""

import doctest
import importlib
import json
import math
import pkgutil

import pytest
import torch
from typer.testing import CliRunner

import ampkit.doctor
from ampkit import StepReport, models, write_reports
from ampkit.cli import app

BROKEN = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(16, 16)
        nn.init.constant_(self.q.weight, 40.0)
    def forward(self, x):
        q = self.q(x)
        return (q @ q.transpose(-1, -2)).softmax(-1) @ x

def make():
    return nn.Sequential(Attention(), nn.Linear(16, 2))
"""


def doctor(*arguments):
    return CliRunner().invoke(app, ["doctor", *map(str, arguments)])


@pytest.fixture
def log(tmp_path):
    def write(changes=lambda number: {}, count=40):
        values = dict(grad_norm=1.0, scale=65536.0, skipped=False, samples=8, seconds=0.1, peak_bytes=None)
        steps = [StepReport(step=k, **{"loss": 2 - k / 50, **values, **changes(k)}) for k in range(count)]
        list(write_reports(steps, tmp_path / "run.jsonl"))
        return tmp_path / "run.jsonl"

    return write


def test_without_an_argument_the_machine_is_looked_at():
    result = doctor()
    assert result.exit_code in (0, 3)
    assert f"PyTorch {torch.__version__}" in result.stdout and "this machine:" in result.stdout.splitlines()[-1]


def test_a_healthy_log_exits_with_0_and_a_sick_one_with_3(log, tmp_path):
    result = doctor(log())
    assert result.exit_code == 0 and "settled" in result.stdout
    out = tmp_path / "found.json"
    spoilt = log(lambda k: {"grad_norm": 0.0, "scale": None})
    result = doctor(spoilt, "--json", out)
    assert result.exit_code == 3
    assert "underflowing" in result.stdout and "40 of 40 steps" in result.stdout
    record = json.loads(out.read_text())
    assert record["state"] == "underflowing" and record["findings"][0]["evidence"]["zero"] == 40


def test_options_of_a_log_reach_it(log):
    path = log(lambda k: {"grad_norm": 70.0})
    assert doctor(path).exit_code == 0
    result = doctor(path, "--max-norm", 1)
    assert result.exit_code == 3 and "clipping_everything" in result.stdout


def test_a_registered_model_is_healthy():
    result = doctor("mlp", "--device", "cpu", "--batch-size", 4)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("mlp: healthy in fp16-mixed.")


def test_a_model_of_ones_own_is_examined_by_its_path(tmp_path):
    file, out = tmp_path / "mine.py", tmp_path / "found.json"
    file.write_text(BROKEN)
    result = doctor(f"{file}:make", "--input", "f32[2,5,16]", "--device", "cpu", "--json", out)
    assert result.exit_code == 3, result.output
    assert "attention_overflow" in result.stdout and "bmm in 0" in result.stdout
    record = json.loads(out.read_text())
    assert (record["findings"][0]["op"], record["findings"][0]["module"]) == ("bmm", "0")
    other = doctor(f"{file}:make", "--input", "f32[2,5,16]", "--device", "cpu", "--precision", "bf16-mixed")
    assert other.exit_code == 0, other.output


@pytest.mark.parametrize("wrap", [lambda state: state, lambda state: {"model": state, "step": 3}])
@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod."])
def test_weights_of_a_checkpoint_are_loaded_and_found_broken(tmp_path, wrap, prefix):
    state = models.build("mlp").state_dict()
    state["3.weight"][0, 0] = math.nan
    file = tmp_path / "weights.pt"
    torch.save(wrap({prefix + name: value for name, value in state.items()}), file)
    result = doctor("mlp", "--weights", file, "--device", "cpu", "--eval")
    assert result.exit_code == 3
    assert "weights_nonfinite" in result.stdout and "the parameter 3.weight" in result.stdout


def test_weights_that_do_not_fit_are_an_error(tmp_path):
    file = tmp_path / "weights.pt"
    torch.save(models.build("cnn").state_dict(), file)
    result = doctor("mlp", "--weights", file)
    assert result.exit_code == 1 and "are not of this model" in result.stderr and "Traceback" not in result.output
    file.write_text("no checkpoint")
    result = doctor("mlp", "--weights", file)
    assert result.exit_code == 1 and "is no checkpoint" in result.stderr
    result = doctor("mlp", "--weights", tmp_path / "none.pt")
    assert result.exit_code == 1 and "cannot be read" in result.stderr
    torch.save(torch.ones(3), file)
    result = doctor("mlp", "--weights", file)
    assert result.exit_code == 1 and "no state_dict" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["nlp"], 1, "Did you mean mlp?"),
        (["none.jsonl"], 1, "cannot be read"),
        (["mlp", "--growth-interval", 3], 2, "--growth-interval is for a log"),
        (["--precision", "fp32"], 2, "--precision is for a model"),
        (["none.jsonl", "--eval"], 2, "--eval is for a model"),
        (["mlp", "--precision", "fp61"], 1, "There is no precision 'fp61'"),
        (["mlp", "--scale", -1, "--device", "cpu"], 1, "greater than 0"),
        (["mlp", "--device", "tpu"], 1, "tpu"),
        (["torch.nn:Identity"], 1, "--input"),
        (["mlp", "--json", "no/such/folder.json", "--device", "cpu"], 2, "there is no folder"),
    ],
)
def test_what_is_typed_wrong_is_answered_by_a_sentence(arguments, status, words):
    result = doctor(*arguments)
    assert result.exit_code == status, result.output
    assert words in " ".join(result.stderr.replace("│", " ").split()) and "Traceback" not in result.output


def test_every_public_name_exists_and_every_example_in_the_docstrings_holds():
    assert sorted(ampkit.doctor.__all__) == ampkit.doctor.__all__
    for name in ampkit.doctor.__all__:
        assert getattr(ampkit.doctor, name).__doc__ and name in dir(ampkit.doctor)
    with pytest.raises(AttributeError, match="no attribute 'heal'"):
        ampkit.doctor.heal  # noqa: B018
    examples = 0
    for module in pkgutil.iter_modules(ampkit.doctor.__path__):
        failed, tried = doctest.testmod(importlib.import_module(f"ampkit.doctor.{module.name}"))
        assert failed == 0, module.name
        examples += tried
    assert examples >= 6
