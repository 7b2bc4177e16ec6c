"""`ampkit ops`, typed right and typed wrong, and what it prints."""

import json

import pytest
import torch
from typer.testing import CliRunner

from ampkit.cli import app

needs_cuda_build = pytest.mark.skipif(
    not torch.backends.cuda.is_built(), reason="requires a CUDA build of PyTorch (no GPU)"
)


def ops(*arguments):
    return CliRunner().invoke(app, ["ops", *map(str, arguments)], env={"COLUMNS": "100"})


MODEL = """
import torch
from torch import nn

class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.rates = [rate.item() for rate in torch.linspace(0, 0.1, 3)]
        self.score, self.loss = nn.Linear(8, 1), nn.BCELoss()

    def forward(self, x):
        score = torch.sigmoid(self.score(x))
        return self.loss(score, torch.zeros_like(score))

class Chooser(nn.Module):
    def forward(self, x):
        return x.exp() if x.sum() > 0 else x
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "mine.py").write_text(MODEL, encoding="utf-8")
    return tmp_path / "mine.py"


def test_a_model_is_shown_module_by_module():
    result = ops("mlp")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("mlp under CUDA autocast to FP16, without data, PyTorch")
    assert "computes in" in result.stdout and "weights that the cache keeps" in result.stdout


@needs_cuda_build
def test_a_model_is_shown_op_by_op():
    result = ops("cnn", "--by", "op", "--dtype", "bf16", "--batch-size", 3)
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert [line.split()[2] for line in lines[3:12]] == [
        *("conv2d", "batch_norm", "relu", "max_pool2d"),
        *("conv2d", "batch_norm", "relu", "max_pool2d"),
        "linear",
    ]
    assert "9 ops: 9 in bf16." in result.stdout
    assert max(map(len, lines)) <= 100


@needs_cuda_build
def test_cuda_and_cpu_stand_side_by_side_and_differences_are_marked(own):
    (own.parent / "norm.py").write_text(
        "import torch\nfrom torch import nn\nmake = lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU())\n",
        encoding="utf-8",
    )
    result = ops(f"{own.parent / 'norm.py'}:make", "--input", "f32[2,8]", "--device", "both")
    assert result.exit_code == 0, result.output
    marked = [line for line in result.stdout.splitlines() if line.startswith("≠")]
    assert len(marked) == 2 and "layer_norm" in marked[0] and "gelu" in marked[1]
    assert "2 of 3 ops that run on both" in result.stdout


def test_a_ban_is_a_finding_of_a_model_whose_constructor_reads_values(own):
    result = ops(f"{own}:Scorer", "--input", "f32[2,8]", "--by", "op")
    assert result.exit_code == 0, result.output
    assert "BANNED: binary_cross_entropy in loss." in result.stdout
    assert "binary_cross_entropy_with_logits" in result.stdout


def test_what_depends_on_a_value_is_said_and_exits_with_1(own):
    result = ops(f"{own}:Chooser", "--input", "f32[2,8]")
    assert result.exit_code == 1
    assert "INCOMPLETE. Stopped in the model itself" in result.stdout and "--real" in result.stdout
    real = ops(f"{own}:Chooser", "--input", "f32[2,8]", "--real", "--device", "cpu", "--dtype", "bf16")
    assert real.exit_code == 0 and "run for real" in real.stdout


def test_the_json_says_all_that_was_found(tmp_path):
    result = ops("mlp", "--json", tmp_path / "ops.json")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "ops.json").read_text(encoding="utf-8"))
    assert (found["model"], found["dtype"], found["on"], found["stopped"]) == ("mlp", "float16", "fake cuda", None)
    linear = [op for op in found["ops"] if op["op"] == "linear"]
    assert len(linear) == 6 and {op["compute"] for op in linear} == {"float16"}
    assert linear[0]["inputs"][0] == {"dtype": "float32", "shape": [8, 64]}
    assert found["cast_bytes"] == sum(cast["bytes"] for op in found["ops"] for cast in op["casts"])
    both = ops("mlp", "--json", tmp_path / "both.json", "--device", "both")
    assert both.exit_code == 0 and set(json.loads((tmp_path / "both.json").read_text())) == {"model", "cuda", "cpu"}


@pytest.mark.parametrize("device", ["cuda", "cpu", "both", "mps", "xpu"])
def test_the_lists_are_shown_for_each_device(device):
    result = ops("--lists", "--device", device)
    assert result.exit_code == 0
    assert "lower precision (" in result.stdout and "unlisted: every other op" in result.stdout
    assert ("CUDA autocast of" in result.stdout) is (device in ("cuda", "both"))
    assert max(map(len, result.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "Name a MODEL"),
        (["mlp", "--lists"], 2, "one of the two"),
        (["resnet51"], 1, "Did you mean resnet50?"),
        (["mlp", "--dtype", "fp8"], 1, "fp16 or bf16"),
        (["mlp", "--device", "tpu"], 1, "Choose cuda, cpu or both"),
        (["mlp", "--by", "layer"], 1, "Choose op or module"),
        (["mlp", "--batch-size", 0], 2, "--batch-size"),
        (["mlp", "--input", "f32"], 1, "is no input"),
        (["mlp", "--json", "no/such/folder/x.json"], 2, "there is no folder"),
        (["--lists", "--device", "tpu"], 1, "Choose one of: cuda, cpu, mps, xpu"),
    ],
)
def test_a_typing_error_exits_with_a_sentence(arguments, status, words):
    result = ops(*arguments)
    assert result.exit_code == status
    assert words in result.output and "Traceback" not in result.output


@pytest.mark.skipif(torch.cuda.is_available(), reason="requires a machine without a CUDA GPU")
def test_a_real_run_on_a_gpu_that_is_not_there_is_an_error():
    result = ops("mlp", "--real")
    assert result.exit_code == 1 and "sees no CUDA GPU" in result.stderr and "Traceback" not in result.output
