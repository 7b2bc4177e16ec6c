"""What saves memory changes no gradient, and says what it costs."""

import copy
import doctest
import importlib.util

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import ampkit.lowvram
from ampkit.errors import LowVramError
from ampkit.ledger.recipe import EightBitState
from ampkit.lowvram import checkpoint_blocks, eight_bit_adamw, micro_batches, offload, price, repeated_blocks
from ampkit.models import build

has_torchao = importlib.util.find_spec("torchao") is not None
has_8bit = has_torchao or importlib.util.find_spec("bitsandbytes") is not None


class Block(nn.Module):
    def __init__(self, width=16, drop=0.2):
        super().__init__()
        self.up, self.down, self.drop = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(drop)

    def forward(self, x):
        return x + self.drop(self.down(torch.nn.functional.gelu(self.up(x))))


def stack(count=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), *[Block() for _ in range(count)], nn.Linear(16, 4))


def gradients(model, step, seed=1):
    torch.manual_seed(seed)
    model.zero_grad()
    step(model).backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def same(first, second):
    return len(first) == len(second) > 0 and all(map(torch.equal, first, second))


def test_the_examples_in_the_docstrings_hold():
    result = doctest.testmod(ampkit.lowvram)
    assert result.failed == 0 and result.attempted >= 6


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 4), st.integers(1, 9), st.sampled_from([None, torch.bfloat16]))
def test_checkpointed_gradients_are_the_plain_ones_to_the_bit_with_dropout_and_under_autocast(count, batch, dtype):
    x = torch.randn(batch, 8, generator=torch.Generator().manual_seed(0))

    def step(model):
        with torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            return model(x).float().square().mean()

    plain, checkpointed = stack(count), stack(count)
    assert checkpoint_blocks(checkpointed) == [str(index) for index in range(1, count + 1)]
    assert list(plain.state_dict()) == list(checkpointed.state_dict())
    assert same(gradients(plain, step), gradients(checkpointed, step))


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 9), st.sampled_from([0, 600, 2**20]))
def test_offloaded_gradients_are_the_plain_ones_to_the_bit(batch, at_least):
    x = torch.randn(batch, 8, generator=torch.Generator().manual_seed(0))
    moved = []

    def offloaded(model):
        with offload(model, at_least=at_least) as count:
            loss = model(x).square().mean()
        moved.append(count)
        return loss

    model = stack()
    assert same(gradients(model, lambda model: model(x).square().mean()), gradients(model, offloaded))
    assert (moved[0].bytes > 0) is (at_least == 0 or batch * 64 * 4 >= at_least)
    assert moved[0].bytes >= at_least * moved[0].tensors


def test_checkpointing_calls_each_block_twice_in_training_and_once_in_evaluation():
    model, calls = stack(), []
    for block in model[1:4]:
        block.up.register_forward_hook(lambda *_: calls.append(1))
    checkpoint_blocks(model)
    model(torch.ones(2, 8)).sum().backward()
    assert len(calls) == 6
    calls.clear()
    model.eval()(torch.ones(2, 8)).sum().backward()
    assert len(calls) == 3
    assert type(copy.deepcopy(model)[1]) is type(model[1])


def test_the_price_of_checkpointing_is_measured_and_printed():
    plain, checkpointed = stack(), stack()
    checkpoint_blocks(checkpointed)
    x = torch.randn(64, 8)
    paid = price(lambda model: model(x).square().mean(), plain, checkpointed, repeats=1)
    hidden = 64 * 64 * 4
    assert paid.kept_before - paid.kept_after > 3 * hidden
    assert paid.seconds_before > 0 and paid.seconds_after > 0
    assert "kept for backward" in str(paid) and "ms" in str(paid)
    assert all(parameter.grad is None for parameter in [*plain.parameters(), *checkpointed.parameters()])


def test_repeated_blocks_are_found_in_models_by_name_and_nowhere_where_there_are_none():
    with torch.device("meta"):
        assert len(repeated_blocks(build("resnet50"))) == 3 + 4 + 6 + 3
        assert repeated_blocks(build("bert_tiny")) == ["blocks.0", "blocks.1"]
        assert repeated_blocks(build("mlp")) == []
    with pytest.raises(LowVramError, match="no repeated blocks"):
        checkpoint_blocks(build("mlp"))
    with pytest.raises(LowVramError, match="no module 'nope'"):
        checkpoint_blocks(build("mlp"), ["nope"])
    assert checkpoint_blocks(build("mlp"), ["1", "3"]) == ["1", "3"]


@given(st.integers(1, 5000), st.integers(1, 600))
def test_micro_batches_make_up_the_batch_fit_and_are_as_few_and_as_even_as_can_be(batch, fits):
    sizes = micro_batches(batch, fits)
    assert sum(sizes) == batch and max(sizes) <= fits
    assert len(sizes) == -(-batch // fits)
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("batch", "fits"), [(0, 1), (1, 0), (-3, 2)])
def test_a_batch_that_cannot_be_split_is_an_error(batch, fits):
    with pytest.raises(LowVramError, match="must be 1 or more"):
        micro_batches(batch, fits)


@pytest.mark.skipif(torch.cuda.is_available(), reason="requires a machine without a CUDA GPU")
def test_pinned_memory_without_cuda_is_an_error():
    with pytest.raises(LowVramError, match="needs CUDA"), offload(stack(), pin_memory=True):
        pass


@pytest.mark.skipif(has_8bit, reason="requires that neither torchao nor bitsandbytes is installed")
def test_an_eight_bit_optimizer_that_is_not_installed_says_how_to_install_one():
    with pytest.raises(LowVramError, match="pip install torchao, or pip install bitsandbytes"):
        eight_bit_adamw(stack().parameters())


@pytest.mark.skipif(not has_torchao, reason="requires torchao")
@pytest.mark.filterwarnings("ignore")  # torchao's own, on import
def test_the_ledger_counts_the_state_that_torchao_makes():
    from torchao.optim import AdamW8bit

    params = [nn.Parameter(torch.zeros(64, 128)), nn.Parameter(torch.zeros(100)), nn.Parameter(torch.zeros(63, 67))]
    real, counted = AdamW8bit(params), EightBitState(params)
    for parameter in params:
        parameter.grad = torch.zeros_like(parameter)
        for moment in (True, False):
            real.state[parameter][moment] = real._new_buffer(parameter, moment)
    counted.step()
    made = 0
    for parameter in params:
        for moment in (True, False):
            buffer = real.state[parameter][moment]
            parts = [buffer.codes, buffer.scale, buffer.qmap] if hasattr(buffer, "codes") else [buffer]
            made += sum(part.nbytes for part in parts)
    assert made == sum(v.nbytes for values in counted.state.values() for v in values.values())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="requires an NVIDIA GPU")
def test_offload_to_pinned_memory_gives_the_same_gradients_and_frees_the_gpu():
    model, x = stack().cuda(), torch.randn(4096, 8, device="cuda")

    def kept(context):
        model.zero_grad()
        torch.manual_seed(0)
        before = torch.cuda.memory_allocated()
        with context:
            loss = model(x).square().mean()
        held = torch.cuda.memory_allocated() - before
        loss.backward()
        return held, [parameter.grad.clone() for parameter in model.parameters()]

    kept(offload(model, at_least=2**40))  # makes the workspaces
    plain, expected = kept(offload(model, at_least=2**40))
    moved, found = kept(offload(model, pin_memory=True, at_least=0))
    assert same(expected, found)
    assert moved < plain / 2
