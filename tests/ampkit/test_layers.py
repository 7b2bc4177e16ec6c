"""Layers in another precision keep their names and their results, and overflow stays out of BatchNorm's statistics."""

import copy
import doctest
import inspect

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import ampkit.layers
from ampkit.errors import LayerError
from ampkit.layers import NORMS, fp32_island, guard_batchnorm, half_except_norms, recalibrate_batchnorm

LAYERS = [
    lambda: nn.Linear(8, 8),
    lambda: nn.LayerNorm(8),
    lambda: nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)),
    lambda: nn.Tanh(),
]


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(ampkit.layers).failed == 0
    assert doctest.testmod(ampkit.layers).attempted >= 10


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(range(len(LAYERS))), min_size=1, max_size=5), st.data())
def test_islands_keep_the_names_of_the_state_dict_and_every_value(kinds, data):
    torch.manual_seed(0)
    model = nn.Sequential(*[LAYERS[kind]() for kind in kinds])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    plain = copy.deepcopy(model)
    chosen = data.draw(st.sets(st.sampled_from(range(len(kinds)))))
    for index in chosen:
        assert fp32_island(model[index]) is model[index]
        assert isinstance(model[index], type(plain[index]))
    after = model.state_dict()
    assert list(after) == list(before) and all(torch.equal(after[name], before[name]) for name in before)
    plain.load_state_dict(after, strict=True)
    x = torch.randn(4, 8)
    assert torch.equal(model(x), plain(x))  # without autocast an island changes nothing


def test_an_island_computes_in_fp32_whatever_comes_in():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64))
    seen = []
    model[1].register_forward_hook(lambda module, inputs, output: seen.append((inputs[0].dtype, output.dtype)))
    exact = copy.deepcopy(model[1])
    fp32_island(model[1])
    x = torch.randn(4, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = model[0](x)
        inside = model[1](hidden)
        assert model(x).dtype is torch.bfloat16
    assert seen[-1] == (torch.bfloat16, torch.float32)
    assert torch.equal(inside, exact(hidden.float()))


def test_an_island_takes_nested_arguments_and_leaves_whole_numbers_alone():
    class Picks(nn.Module):
        def forward(self, pair, *, index):
            return pair["x"][index], index.dtype, pair["x"].dtype

    island = fp32_island(Picks())
    value, index, x = island({"x": torch.ones(3, dtype=torch.float16)}, index=torch.tensor([1]))
    assert (value.dtype, index, x) == (torch.float32, torch.int64, torch.float32)


def test_an_island_of_half_weights_is_refused_and_a_second_time_changes_nothing():
    with pytest.raises(LayerError, match=r"weight is torch\.float16"):
        fp32_island(nn.Linear(2, 2).half())
    layer = fp32_island(nn.Linear(2, 2))
    kind = type(layer)
    assert type(fp32_island(layer)) is kind
    assert type(copy.deepcopy(layer)) is kind


def test_a_half_model_keeps_its_norms_in_fp32_and_computes_what_fp32_does_to_half_precision():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.GroupNorm(2, 8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4)
    ).eval()
    x = torch.randn(2, 3, 8, 8)
    exact = model(x)
    keys = list(model.state_dict())
    report = half_except_norms(model, torch.bfloat16)
    assert list(model.state_dict()) == keys
    assert report.fp32_modules == ("1", "2")
    halves = {name for name, value in model.state_dict().items() if value.dtype is torch.bfloat16}
    assert halves == {"0.weight", "0.bias", "5.weight", "5.bias"}
    assert report.bytes_before - report.bytes_after == 2 * sum(model.state_dict()[name].numel() for name in halves)
    out = model(x.bfloat16())
    assert out.dtype is torch.bfloat16
    assert torch.allclose(out.float(), exact, atol=8 * torch.finfo(torch.bfloat16).eps * exact.abs().max().item())
    assert "norm(s) in FP32" in str(report)
    with pytest.raises(LayerError, match="float64"):
        half_except_norms(model, torch.float64)


def test_every_norm_of_torch_nn_is_a_norm_here():
    named = [kind for name, kind in vars(nn).items() if inspect.isclass(kind) and name.endswith("Norm")]
    named += [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d]
    others = {nn.LocalResponseNorm, nn.CrossMapLRN2d}  # no parameters, no statistics
    assert len(named) >= 9
    for kind in named:
        assert issubclass(kind, NORMS) or kind in others, kind


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["fine", "inf", "nan"]), min_size=1, max_size=8))
def test_a_guarded_batchnorm_has_the_statistics_of_the_finite_batches_alone(kinds):
    torch.manual_seed(0)
    guarded, expected = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    assert guard_batchnorm(guarded) == [""]
    for kind in kinds:
        batch = torch.randn(8, 3)
        if kind == "fine":
            assert torch.equal(guarded(batch), expected(batch))
        else:
            batch[2, 1] = float(kind)
            assert not guarded(batch).isfinite().all()  # the loss must still show it
    for name, value in expected.state_dict().items():
        assert torch.equal(guarded.state_dict()[name], value)


def test_without_the_guard_one_overflow_makes_evaluation_nan_for_ever():
    def evaluated(norm):
        norm(torch.full((4, 2), torch.inf))
        for _ in range(3):
            norm(torch.randn(4, 2))
        return norm.eval()(torch.zeros(1, 2))

    plain, guarded = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    guard_batchnorm(guarded)
    assert evaluated(plain).isnan().all()
    assert evaluated(guarded).isfinite().all()


def test_recalibration_gives_the_mean_over_the_batches_and_touches_nothing_else():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, momentum=0.3), nn.Dropout(0.5))
    model[1].running_mean.fill_(torch.nan)
    model.train()
    model[2].eval()
    weights = model[0].weight.clone()
    batches = [torch.randn(8, 3) for _ in range(5)]
    assert recalibrate_batchnorm(model, [(batch, None) for batch in batches]) == 5
    with torch.no_grad():
        hidden = [model[0](batch) for batch in batches]
    mean = torch.stack([h.mean(0) for h in hidden]).mean(0)
    variance = torch.stack([h.var(0) for h in hidden]).mean(0)
    assert torch.allclose(model[1].running_mean, mean, atol=1e-6)
    assert torch.allclose(model[1].running_var, variance, atol=1e-6)
    assert model[1].momentum == 0.3 and model.training and model[1].training and not model[2].training
    assert torch.equal(model[0].weight, weights)


@pytest.mark.parametrize(
    ("model", "batches", "words"),
    [
        (nn.Linear(2, 2), [torch.ones(4, 2)], "nothing to recalibrate"),
        (nn.BatchNorm1d(2), [], "No batch came"),
        (nn.BatchNorm1d(2), [torch.full((4, 2), torch.inf)], "not finite in FP32 either"),
    ],
)
def test_a_recalibration_that_cannot_be_is_an_error(model, batches, words):
    with pytest.raises(LayerError, match=words):
        recalibrate_batchnorm(model, batches)


def test_a_guard_without_batchnorm_is_an_error():
    with pytest.raises(LayerError, match="nothing to guard"):
        guard_batchnorm(nn.BatchNorm1d(2, track_running_stats=False))
