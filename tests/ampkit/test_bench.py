"""The bench: what it does is real training, what it cannot do it says, and no number goes out without its stamp."""

import json
import math
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from ampkit import BenchError, DeviceError
from ampkit.bench import SUITES, Setting, Suite, Workload, own_suite, plot, run, stamp, suite, table
from ampkit.bench.measure import Trial
from ampkit.cli import app

SMALL = Suite(
    "small",
    "cpu",
    (Workload("mlp", 16, optimizer="sgd", lr=0.05),),
    (
        Setting("FP32", "fp32"),
        Setting("TF32", "tf32"),
        Setting("AMP FP16", "fp16-mixed"),
        Setting("AMP BF16, larger batch", "bf16-mixed", larger_batch=True),
    ),
    warmup=1,
    blocks=3,
    steps=2,
    rounds=2,
)


@pytest.fixture(scope="module")
def result():
    said = []
    found = run(SMALL, say=said.append)
    assert sum("round 2 of 2" in words for words in said) == 3
    return found


def test_each_setting_is_measured_and_what_the_cpu_cannot_do_is_left_out_with_the_reason(result):
    assert [row["setting"] for row in result["rows"]] == ["FP32", "AMP FP16", "AMP BF16, larger batch"]
    (left,) = result["left_out"]
    assert left["setting"] == "TF32" and "TF32 is a mode of NVIDIA's tensor cores" in left["reason"]
    for row in result["rows"]:
        assert len(row["block_seconds"]) == SMALL.blocks * SMALL.rounds and min(row["block_seconds"]) > 0
        low, high = row["samples_per_s_quartiles"]
        assert low <= row["samples_per_s"] <= high
        assert row["steps_trained"] == 1 + 3 * 2 and row["peak_allocated_bytes"] is None
    assert [row["batch_size"] for row in result["rows"]] == [16, 16, 32]


def test_every_setting_starts_from_the_same_weights_and_learns(result):
    fp32, fp16, _ = result["rows"]
    assert fp32["loss_before"] == fp16["loss_before"]
    for row in result["rows"]:
        assert row["loss_after"] < row["loss_before"] - row["skipped"]
    assert fp16["loss_after"] == pytest.approx(fp32["loss_after"], rel=0.02)


def test_the_result_carries_its_stamp_and_is_strict_json(result):
    assert {"gpu", "driver", "torch", "date", "commit", "cpu", "threads"} <= set(result)
    assert result["torch"] == torch.__version__ and result["commit"]
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    text = table(result)
    assert result["commit"] in text and "left out: mlp, TF32" in text
    assert [line.split()[0] for line in text.splitlines()[:4]] == ["model", "mlp", "mlp", "mlp"]


def test_the_plot_names_the_fastest_setting_and_prints_the_stamp(result):
    shown = plot(result)
    fastest = max(result["rows"], key=lambda row: row["samples_per_s"])
    assert fastest["setting"] in shown.alt and shown.png.startswith(b"\x89PNG")
    assert result["commit"] in shown.figure.get_supxlabel()
    (axis,) = shown.figure.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == [
        "FP32 (16)",
        "AMP FP16 (16)",
        "AMP BF16, larger batch (32)",
    ]


def test_a_setting_trains_in_the_precision_that_it_is_named_after():
    seen = {}
    for precision in ("fp32", "fp16-mixed", "bf16-mixed"):
        trial = Trial(SMALL.workloads[0], Setting(precision, precision), "cpu", 4)
        layer = next(module for module in trial.model.modules() if isinstance(module, torch.nn.Linear))
        layer.register_forward_hook(lambda module, inputs, output, p=precision: seen.update({p: output.dtype}))
        trial.step()
        assert (trial.scaler is not None) == (precision == "fp16-mixed")
        assert all(p.dtype is torch.float32 for p in trial.model.parameters())
    assert seen == {"fp32": torch.float32, "fp16-mixed": torch.float16, "bf16-mixed": torch.bfloat16}


def test_reading_the_quality_changes_neither_the_batchnorm_statistics_nor_the_mode():
    trial = Trial(Workload("cnn", 8), Setting("FP32", "fp32"), "cpu", 8)
    trial.step()
    before = {name: value.clone() for name, value in trial.model.state_dict().items()}
    loss = trial.quality()
    assert math.isfinite(loss) and trial.quality() == loss
    assert trial.model.training
    assert all(torch.equal(value, before[name]) for name, value in trial.model.state_dict().items())


def test_the_suites_say_what_they_measure():
    assert set(SUITES) == {"quick", "headline"}
    headline = SUITES["headline"]
    assert [workload.model for workload in headline.workloads] == ["bert_base", "resnet50", "gpt2"]
    assert [setting.precision for setting in headline.settings[:4]] == ["fp32", "tf32", "fp16-mixed", "bf16-mixed"]
    assert headline.settings[4].larger_batch and headline.settings[5].compiled
    assert own_suite("mlp", 4, "cpu").workloads == (Workload("mlp", 4),)
    with pytest.raises(BenchError, match=r"no suite 'headlines'. Did you mean headline\?.*quick, headline"):
        suite("headlines")


@pytest.mark.skipif(torch.cuda.is_available(), reason="requires a machine without a CUDA GPU")
def test_the_gpu_suite_is_refused_where_there_is_no_gpu():
    with pytest.raises(DeviceError, match="PyTorch sees no CUDA GPU here"):
        run(SUITES["headline"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--suite", "quik"], "There is no suite 'quik'. Did you mean quick?"),
        (["--suite", "quick", "--model", "mlp"], "goes with neither"),
        (["--device", "cpu", "--suite", "quick"], "--device goes with --model"),
        (["--suite", "quick", "--input", "f32[1]"], "goes with --model"),
        (["--model", "torch.nn:Identity", "--device", "cpu"], "Describe it with --input"),
        (["--model", "mpl", "--device", "cpu"], "Did you mean mlp?"),
        (["--model", "mlp", "--device", "cpu", "--json", "no/such/folder/x.json"], "there is no folder"),
    ],
)
def test_what_does_not_go_together_is_said_before_anything_is_measured(arguments, words):
    done = CliRunner().invoke(app, ["bench", *arguments])
    assert done.exit_code in (1, 2) and words in " ".join(done.output.split())


def test_the_command_measures_prints_and_writes(tmp_path, monkeypatch):
    monkeypatch.setitem(SUITES, "quick", replace(SMALL, rounds=1, blocks=1, settings=SMALL.settings[:1]))
    files = ["--json", str(tmp_path / "b.json"), "--plot", str(tmp_path / "b.png")]
    done = CliRunner().invoke(app, ["bench", "--suite", "quick", *files])
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "b.json").read_text())
    assert written["suite"] == "small" and len(written["rows"]) == 1
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.json", "b.png"]


def test_a_model_of_ones_own_is_measured_on_inputs_of_the_shape_that_is_described(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import torch\ndef make(): return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))\n"
    )
    mine = own_suite(f"{tmp_path / 'mine.py'}:make", 6, "cpu", input="f32[1,3,4]")
    result = run(replace(mine, settings=mine.settings[:1], rounds=1))
    (row,) = result["rows"]
    assert row["batch_size"] == 6 and row["loss_before"] == pytest.approx(math.log(3), abs=0.7)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="requires an NVIDIA GPU")
def test_on_a_gpu_memory_is_the_allocators_peak_and_the_larger_batch_stays_below_that_of_fp32():
    settings = tuple(setting for setting in SUITES["headline"].settings if not setting.compiled)
    small = replace(SMALL, device="cuda", workloads=(Workload("resnet18", 16),), settings=settings)
    rows = {row["setting"]: row for row in run(small)["rows"]}
    fp32 = rows["FP32 strict"]["peak_allocated_bytes"]
    assert 0 < rows["AMP FP16"]["peak_allocated_bytes"] < fp32
    larger = rows["AMP BF16, larger batch"]
    assert larger["batch_size"] > 16 and larger["peak_allocated_bytes"] < 1.05 * fp32


def test_a_shared_gpu_is_in_the_stamp_the_table_and_the_plot(result, monkeypatch):
    seen = iter(["Another process computes on this GPU: pid 7.", None])  # it left while we measured
    monkeypatch.setattr("ampkit.gpu.sharing", lambda device="cuda": next(seen))
    shared = run(replace(SMALL, settings=SMALL.settings[:1], rounds=1))
    assert shared["shared"] == "Another process computes on this GPU: pid 7."
    words = "Measured on a shared GPU: not to be trusted. Another process computes on this GPU: pid 7."
    assert words in table(shared) and words in plot(shared).alt
    assert words in plot(shared).figure.get_supxlabel().replace("\n", " ")
    assert "not to be trusted" not in table(result) and "not to be trusted" not in plot(result).alt
    before = {name: value for name, value in result.items() if name != "shared"}  # stored by an older version
    assert table(before) == table({**before, "shared": None})


def test_who_comes_while_we_measure_is_in_the_stamp_too(monkeypatch):
    seen = iter([None, "Another process computes on this GPU: pid 7."])
    monkeypatch.setattr("ampkit.gpu.sharing", lambda device="cuda": next(seen))
    assert "pid 7" in run(replace(SMALL, settings=SMALL.settings[:1], rounds=1))["shared"]


def test_a_stamp_says_none_where_there_is_no_gpu():
    found = stamp()
    assert (found["gpu"] is None) == (not torch.cuda.is_available())
