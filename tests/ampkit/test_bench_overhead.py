"""The overhead: the contestants do the same work, and each is measured beside the others."""

import importlib.util
from itertools import islice

import pytest
import torch

from ampkit import BenchError, Precision, models
from ampkit.bench.overhead import CONTESTANTS, Repeated, overhead, overhead_table

INSTALLED = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            package is not None and importlib.util.find_spec(package) is None,
            reason=f"requires {package}, in the extra 'compare'",
        ),
    )
    for name, (_, package) in CONTESTANTS.items()
]


def after(name, steps, precision="bf16-mixed"):
    """The parameters and the last loss after some steps of a contestant, from the same start on the same batches."""
    torch.manual_seed(0)
    model = models.build("mlp")
    batches = [models.example("mlp", 8, seed=1 + i) for i in range(4)]
    repeated = Repeated([(inputs[0], targets) for inputs, targets in batches])
    run = CONTESTANTS[name][0](model, repeated, "cpu", Precision(precision), models.loss("mlp"))
    *_, last = islice(run, steps)
    loss = last.loss if hasattr(last, "loss") else last[0]
    return [p.detach().clone() for p in model.parameters()], loss


@pytest.mark.filterwarnings("ignore")  # what other libraries warn of is theirs
@pytest.mark.parametrize("name", INSTALLED)
def test_every_contestant_makes_the_same_steps_bit_for_bit(name):
    weights, loss = after(name, 6)
    expected, expected_loss = after("by hand", 6)
    assert loss == expected_loss
    assert all(torch.equal(a, b) for a, b in zip(weights, expected, strict=True))


def test_ours_scales_and_skips_as_the_loop_by_hand_does():
    weights, loss = after("ampkit complete", 4, "fp16-mixed")
    expected, expected_loss = after("by hand", 4, "fp16-mixed")
    assert loss == expected_loss and all(torch.equal(a, b) for a, b in zip(weights, expected, strict=True))


def test_the_result_has_a_ratio_for_each_loop_that_is_installed_and_names_the_others(monkeypatch):
    monkeypatch.setitem(CONTESTANTS, "Accelerate", (CONTESTANTS["Accelerate"][0], "no_such_package"))
    monkeypatch.delitem(CONTESTANTS, "Lightning Fabric")
    result = overhead("cpu", "mlp", 8, blocks=3, steps=2)
    assert [row["loop"] for row in result["rows"]] == ["by hand", "ampkit complete"]
    assert result["missing"] == ["Accelerate"]
    assert result["rows"][0]["ratio"] == 1.0
    assert all(len(row["seconds_per_step"]) == 3 for row in result["rows"])
    said = overhead_table(result)
    assert "ampkit complete" in said and "not installed: Accelerate" in said and result["commit"] in said


def test_no_blocks_is_an_error():
    with pytest.raises(BenchError, match="blocks and steps are 1 or more"):
        overhead("cpu", "mlp", 8, blocks=0)
