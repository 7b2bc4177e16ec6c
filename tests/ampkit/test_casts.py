"""Layers that cast by themselves compute what autocast computes, with FP32 weights and without autocast."""

import pytest
import torch
from torch import nn

from ampkit import ModelError, models
from ampkit.models.casts import cast_per_op

LOW = [torch.bfloat16, torch.float16]


def grown(module):
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module


def run(module, inputs, weights):
    """Outputs and the gradients of the parameters, of a sum that is weighted so that no gradient is zero."""
    outputs = module(inputs)
    (outputs.float() * weights).sum().backward()
    return outputs, [p.grad for p in module.parameters()]


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.Linear(12, 5), (7, 12)),
        (lambda: nn.Linear(12, 5, bias=False), (7, 12)),
        (lambda: nn.Conv2d(3, 4, 3, padding=1), (2, 3, 6, 6)),
        (lambda: nn.Conv2d(4, 4, 3, groups=2, padding=1, padding_mode="reflect"), (2, 4, 6, 6)),
    ],
)
def test_a_matrix_product_or_convolution_is_autocasts_bit_for_bit(make, shape, dtype):
    inputs = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    casting, plain = grown(make()), grown(make())
    cast_per_op(casting, dtype)
    with torch.autocast("cpu", dtype=dtype):
        weights = torch.rand(plain(inputs).shape, generator=torch.Generator().manual_seed(2))
        theirs, their_grads = run(plain, inputs, weights)
    ours, our_grads = run(casting, inputs.to(dtype), weights)
    assert ours.dtype is dtype and torch.equal(ours, theirs)
    for mine, other in zip(our_grads, their_grads, strict=True):
        assert mine.dtype is torch.float32 and torch.equal(mine, other)


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("make", [lambda: nn.LayerNorm(12), lambda: nn.BatchNorm2d(3)], ids=["layer", "batch"])
def test_a_norm_computes_in_fp32_and_gives_back_what_came_in(make, dtype):
    module, plain = grown(make()), grown(make())
    shape = (4, 12) if isinstance(module, nn.LayerNorm) else (4, 3, 5, 5)
    # a mean of 200 with a spread of 1: in FP16 the squares overflow, in BF16 the spread is lost
    inputs = (200 + torch.randn(shape, generator=torch.Generator().manual_seed(1))).to(dtype)
    cast_per_op(module, dtype)
    outputs = module(inputs)
    assert outputs.dtype is dtype and torch.equal(outputs, plain(inputs.float()).to(dtype))
    for mine, other in zip(module.buffers(), plain.buffers(), strict=True):
        assert torch.equal(mine, other)


def test_the_parameters_stay_fp32_and_keep_their_names():
    model = models.build("gpt_tiny")
    before = {name: p for name, p in model.named_parameters()}
    cast_per_op(model)
    after = dict(model.named_parameters())
    assert after.keys() == before.keys() and all(after[name] is before[name] for name in after)
    assert {p.dtype for p in after.values()} == {torch.float32}
    cast_per_op(model)  # a second time changes nothing
    assert dict(model.named_parameters()).keys() == before.keys()


@pytest.mark.parametrize("name", ["bert_tiny", "gpt_tiny", "cnn", "resnet18"])
def test_a_whole_model_is_bf16_between_its_layers_and_near_its_fp32_self(name):
    torch.manual_seed(0)
    model = models.build(name).eval()
    if name == "resnet18":
        inputs = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    else:
        (inputs,), _ = models.example(name, 2)
    with torch.no_grad():
        exact = model(inputs)
        cast_per_op(model)
        seen = set()
        for module in model.modules():
            if not list(module.children()):
                module.register_forward_hook(lambda module, _, out: seen.add(out.dtype))
        low = model(inputs.bfloat16() if inputs.is_floating_point() else inputs)
    assert seen == {torch.bfloat16} and low.dtype is torch.bfloat16
    eps = torch.finfo(torch.bfloat16).eps
    assert 0 < (low.float() - exact).norm() < 8 * eps * exact.norm()


def test_a_layer_without_a_casting_forward_is_an_error_before_anything_is_changed():
    model = nn.Sequential(nn.Linear(4, 4), nn.LSTM(4, 4))
    with pytest.raises(ModelError, match=r"do not cast their weights.*: 1 \(LSTM\)\. .*Linear, Conv2d.*loop bf16"):
        cast_per_op(model)
    assert type(model[0]) is nn.Linear
