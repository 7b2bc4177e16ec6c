"""On a GPU the allocator's count stands beside the prediction; without one there is an error and no number."""

import json

import pytest
import torch

from ampkit.errors import LedgerError
from ampkit.ledger import Recipe, Subject, plan
from ampkit.ledger.measure import comparison_text, measured_run, measured_step

GIB = 2**30
gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="requires an NVIDIA GPU")


@pytest.mark.skipif(torch.cuda.is_available(), reason="requires a machine without a CUDA GPU")
def test_without_a_gpu_nothing_is_measured():
    with pytest.raises(LedgerError, match="needs a CUDA GPU"):
        measured_step(Subject.of("mlp"), Recipe(8))


def test_a_comparison_shows_what_was_predicted_beside_what_was_measured():
    stamp = {
        "gpu": "GPU X",
        "driver": "1",
        "torch": "2.14",
        "date": "2026-01-01",
        "commit": "c",
        "cpu": "",
        "threads": 1,
    }
    row = {"predicted": {"weights": 90 * 2**20}, "measured": {"weights": 100 * 2**20, "workspaces": 2**25}}
    text = comparison_text({"kind": "ledger", **stamp, "results": [row]})
    weights, workspaces = text.splitlines()[1:3]
    assert weights.split() == ["weights", "90.0", "100.0", "-10.0%"]
    assert workspaces.split() == ["workspaces", "32.0"]
    assert "GPU X" in text


@pytest.mark.gpu
@gpu
@pytest.mark.parametrize(
    ("model", "recipe"),
    [
        ("mlp", Recipe(512, "fp32", "momentum")),
        ("cnn", Recipe(512, "fp16-mixed", "adamw")),
        ("gpt_tiny", Recipe(64, "bf16-mixed", "adamw")),
        ("gpt_tiny", Recipe(64, "bf16-true", "adamw", master_weights=True)),
        ("bert_tiny", Recipe(64, "fp16-mixed", "adamw-fused", accumulate=2)),
        ("resnet18", Recipe(16, "fp16-mixed", "momentum", checkpointing=True)),
    ],
    ids=str,
)
def test_the_allocators_count_is_near_the_prediction(model, recipe):
    subject = Subject.of(model)
    run = measured_run(subject, plan(subject, recipe, 80 * GIB))
    (row,) = json.loads(json.dumps(run))["results"]
    predicted, measured = row["predicted"], row["measured"]
    for term in ("gradients", "optimizer state"):  # bytes of tensors: no rounding, no choice of a kernel
        assert measured[term] == predicted[term], term
    assert predicted["weights"] <= measured["weights"]  # in blocks of 512
    workspaces = measured["workspaces"] + 2**20
    assert predicted["peak"] * 0.9 - workspaces <= measured["peak"] <= predicted["peak"] * 1.25 + workspaces
    assert run["kind"] == "ledger" and run["gpu"] and measured["context"] > 0
    print(comparison_text(run))


@pytest.mark.gpu
@gpu
def test_a_step_that_does_not_fit_the_gpu_is_an_error_and_leaves_the_memory_free():
    before = torch.cuda.memory_allocated()
    with pytest.raises(LedgerError, match="does not fit this GPU"):
        measured_step(Subject.of("resnet50"), Recipe(2**20, accumulate=2))
    assert torch.cuda.memory_allocated() == before
