"""The command `ampkit`, typed right and typed wrong."""

import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from ampkit import read_reports
from ampkit.cli import app
from ampkit.loops import LADDER


def ampkit(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_train_shows_a_bar_writes_the_log_and_says_how_it_ended(tmp_path):
    log = tmp_path / "run.jsonl"
    result = ampkit("train", "fp16", "--device", "cpu", "--steps", 4, "--batch-size", 16, "--log", log)
    assert result.exit_code == 0
    assert "4/4" in result.stderr and "scale=65536" in result.stderr
    assert result.stdout.startswith("fp16: loss 2.3") and "test accuracy" in result.stdout
    assert [(record.step, record.samples) for record in read_reports(log)] == [(step, 16) for step in range(4)]


def test_a_loop_run_as_a_module_is_the_same_command():
    command = [sys.executable, "-W", "error", "-m", "ampkit.loops.fp16", "--steps", "2", "--device", "cpu"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("fp16: loss 2.3")


def test_a_loop_that_does_not_exist_exits_with_2_the_list_and_the_closest_name():
    result = ampkit("train", "fp61")
    assert result.exit_code == 2
    assert "Did you mean fp16?" in result.stderr and "fp32, tf32, bf16, fp16_no_scaler, fp16, clipped" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fp32", "--init-scale", 2], "has no init_scale"),
        (["fp16", "--lr", 0], "--lr must be a finite number"),
        (["fp16", "--lr", "nan"], "--lr must be a finite number"),
        (["clipped", "--max-norm", "-1"], "--max-norm must be a finite number"),
        (["fp16", "--steps", 0], "--steps"),
        (["fp16", "--batch-size", 1401], "--batch-size"),
        (["fp16", "--log", "no/such/folder/run.jsonl"], "there is no folder"),
        (["fp16", "--checkpoint", "no/such/folder/run.pt"], "there is no folder"),
        (["fp16", "--accumulate", 2], "fp16 has no accumulate; leave it out, or train one that has it: accumulated"),
        (["fp16", "--precision", "fp32"], "train one that has it: complete"),
        (["clipped", "--backend", "eager"], "train one that has it: compiled"),
        (["accumulated", "--accumulate", 0], "--accumulate"),
        (["compiled", "--device", "cpu", "--backend", "nvcc"], "torch.compile cannot compile this model here: Invalid"),
    ],
)
def test_an_option_that_makes_no_sense_exits_with_2_and_a_sentence(arguments, words):
    result = ampkit("train", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr and "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fp16", "--model", "mpl"], "There is no model 'mpl'. Did you mean mlp?"),
        (["fp16", "--data", "text"], "mlp does not take text. Data that fit mlp: digits, synthetic."),
        (["fp16", "--model", "resnet18"], "CIFAR-10 is wanted, and no folder was named"),
        (["fp16", "--model", "nowhere.py:make"], "There is no file 'nowhere.py'"),
        (["fp16", "--input", "f32[8,3]"], "Leave --input out"),
        (["complete", "--precision", "bf16-mixed", "--init-scale", 8], "bf16-mixed needs no GradScaler"),
        (["complete", "--precision", "tf32", "--device", "cpu"], "TF32 is a mode of NVIDIA's tensor cores"),
        (["tf32", "--device", "cpu"], "TF32 is a mode of NVIDIA's tensor cores"),
    ],
)
def test_what_cannot_be_trained_exits_with_1_and_a_sentence_that_says_what_can(arguments, words):
    result = ampkit("train", *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ") and words in result.stderr and "Traceback" not in result.output


def test_somebodys_own_model_trains_on_the_digits_and_on_what_its_user_describes(tmp_path):
    file = tmp_path / "net.py"
    file.write_text("from torch import nn\ndef make(): return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n")
    common = ["--model", f"{file}:make", "--device", "cpu", "--steps", 3, "--batch-size", 8]
    result = ampkit("train", "bf16", *common)
    assert result.exit_code == 0 and "test accuracy" in result.stdout
    result = ampkit("train", "bf16", *common, "--input", "f32[16,4,16]")
    assert result.exit_code == 0 and "test accuracy" not in result.stdout  # random data hold nothing out
    result = ampkit("train", "accumulated", *common[:-2], "--input", "f32[16,4,16]")
    assert result.exit_code == 0  # a batch of as many as there are
    result = ampkit("train", "bf16", *common, "--input", "f32[16,4,15]")
    assert result.exit_code == 1 and "does not take inputs of shape (2, 4, 15)" in result.stderr


def test_the_same_command_goes_on_where_it_was_and_appends_to_its_log(tmp_path):
    run, log = tmp_path / "run.pt", tmp_path / "run.jsonl"
    common = ["train", "clipped", "--device", "cpu", "--batch-size", 16, "--checkpoint", run, "--log", log]
    result = ampkit(*common, "--steps", 4)
    assert result.exit_code == 0 and "in 4 steps" in result.stdout
    result = ampkit(*common, "--steps", 6)
    assert result.exit_code == 0 and "in 2 steps" in result.stdout and "from step 4 on" in result.stdout
    assert "6/6" in result.stderr
    assert [record.step for record in read_reports(log)] == list(range(6))
    result = ampkit(*common, "--steps", 6)
    assert result.exit_code == 0 and "has all of the 6 steps already" in result.stdout
    assert len(read_reports(log)) == 6
    result = ampkit(*common, "--steps", 8, "--lr", 0.5)
    assert result.exit_code == 1 and "was saved by another run: lr was" in result.stderr


def test_a_log_that_is_a_folder_exits_with_2_and_a_sentence(tmp_path):
    result = ampkit("train", "fp16", "--device", "cpu", "--steps", 1, "--log", tmp_path)
    assert result.exit_code == 2
    assert f"--log {tmp_path} cannot be written" in result.stderr and "Traceback" not in result.output


@pytest.mark.skipif(torch.cuda.is_available(), reason="requires a machine without a CUDA GPU")
def test_a_device_that_is_not_there_exits_with_1_and_a_sentence():
    result = ampkit("train", "fp16", "--device", "cuda")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: CUDA was asked for") and "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)


def test_help_on_train_names_every_loop_and_every_default():
    shown = " ".join(ampkit("train", "--help").stdout.replace("│", " ").split())
    assert [loop.name for loop in LADDER if loop.name not in shown] == []
    for default in ("cuda if there is one", "the model's", "2**-20 on the digits", "65536", "inductor"):
        assert default in shown


def test_help_names_the_commands():
    result = ampkit("--help")
    assert result.exit_code == 0
    assert "train" in result.stdout and "lab" in result.stdout
