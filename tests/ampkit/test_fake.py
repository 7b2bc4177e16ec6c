"""Fake CUDA casts as CUDA does, leaves nothing behind, and says what it cannot tell."""

import doctest
import functools
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor

import ampkit.fake
from ampkit.errors import FakeError
from ampkit.fake import fake_backward, fake_cuda, fake_cuda_limits

needs_cuda_build = pytest.mark.skipif(
    not torch.backends.cuda.is_built(), reason="requires a CUDA build of PyTorch (no GPU)"
)
HALVES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["fp16", "bf16"])


def test_the_examples_in_the_docstrings_run():
    result = doctest.testmod(ampkit.fake)
    assert result.attempted >= 1 and result.failed == 0


@HALVES
def test_the_real_casts_of_cuda_autocast_are_made(dtype):
    with fake_cuda(dtype) as fake:
        square = fake.empty(4, 4)
        assert square.device == torch.device("cuda:0")
        assert (square @ square).dtype is dtype
        assert torch.softmax((square @ square), 0).dtype is torch.float32
        assert torch.relu(square @ square).dtype is dtype
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            nn.functional.binary_cross_entropy(square, square)


def test_without_a_dtype_nothing_is_cast():
    with fake_cuda(None) as fake:
        assert not torch.is_autocast_enabled("cuda")
        assert (fake.empty(4, 4) @ fake.empty(4, 4)).dtype is torch.float32


def test_cpu_autocast_is_another_one():
    with fake_cuda(torch.float16, "cpu") as fake:
        square = fake.empty(4, 4)
        assert torch.softmax(square @ square, 0).dtype is torch.float16  # FP32 on CUDA


@HALVES
def test_autocast_inside_a_model_is_not_switched_off(dtype):
    with fake_cuda(None) as fake, warnings.catch_warnings():
        warnings.simplefilter("error")
        square = fake.empty(4, 4)
        with torch.autocast("cuda", dtype=dtype):
            assert (square @ square).dtype is dtype
            with torch.autocast("cuda", enabled=False):
                assert (square @ square).dtype is torch.float32


def state():
    return (
        torch.is_autocast_enabled("cuda"),
        torch.get_autocast_dtype("cuda"),
        torch.is_autocast_cache_enabled(),
        torch.cuda.amp.common.amp_definitely_not_available,
        torch.cuda.is_bf16_supported,
        torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE),
        torch.backends.cudnn.enabled,
        sorted(vars(torch._VF)),
        torch._C._dispatch_has_kernel_for_dispatch_key("aten::_thnn_fused_gru_cell", "Meta"),
        list(warnings.filters),
    )


def test_everything_is_as_before_afterwards_also_after_an_error():
    before = state()
    with fake_cuda(torch.bfloat16), fake_cuda(torch.float16):
        pass
    assert state() == before
    with pytest.raises(ZeroDivisionError), fake_cuda(torch.bfloat16):
        raise ZeroDivisionError
    assert state() == before
    weight = torch.ones(2, 2, requires_grad=True)  # autograd's engine still works for real tensors
    (weight @ weight).sum().backward()
    assert torch.equal(weight.grad, torch.full((2, 2), 4.0))


def test_a_fake_copy_keeps_ties_dtypes_and_modes_and_leaves_the_model_alone():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(10, 4)
            self.head = nn.Linear(4, 10, bias=False)
            self.head.weight = self.embedding.weight
            self.low = nn.Linear(4, 4).half().requires_grad_(False)
            self.norm = nn.BatchNorm1d(4)
            self.mask = torch.ones(3)  # neither parameter nor buffer: stays on the CPU, as with model.to("cuda")

    model = Tied().eval()
    with fake_cuda(torch.float16) as fake:
        copied = fake.module(model)
        assert copied.head.weight is copied.embedding.weight
        assert copied.low.weight.dtype is torch.float16 and not copied.low.weight.requires_grad
        assert not copied.training and copied.norm.running_mean.device.type == "cuda"
        assert copied.norm.num_batches_tracked.dtype is torch.int64
        assert copied.mask.device.type == "cpu"
        assert list(copied.state_dict()) == list(model.state_dict())
    assert not isinstance(model.head.weight, FakeTensor)


def test_inputs_keep_their_structure_strides_and_dtypes():
    columns = torch.arange(6.0).reshape(2, 3).T
    with fake_cuda(torch.float16) as fake:
        made = fake.tensors({"ids": torch.tensor([1, 2]), "list": [columns, "text", 3]})
        assert made["ids"].dtype is torch.int64 and made["ids"].device.type == "cuda"
        assert made["list"][0].stride() == columns.stride()
        assert made["list"][1:] == ["text", 3]


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
@needs_cuda_build
def test_recurrent_layers_run(layer):
    with fake_cuda(torch.float16) as fake:
        model = fake.build(lambda: layer(8, 6))
        output, _ = model(fake.empty(5, 2, 8))
        assert output.shape == (5, 2, 6) and output.dtype is torch.float16
        fake_backward(output.float().sum())
        assert {parameter.grad.dtype for parameter in model.parameters()} == {torch.float32}


@needs_cuda_build
def test_a_model_of_seven_billion_parameters_takes_no_memory():
    code = """
import resource, torch
from torch import nn
from ampkit.fake import fake_cuda
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with fake_cuda(torch.float16) as fake:
    block = lambda: nn.TransformerEncoderLayer(4096, 32, 16384, batch_first=True, norm_first=True)
    model = fake.build(lambda: nn.Sequential(nn.Embedding(50257, 4096), *[block() for _ in range(34)]))
    hidden = model(fake.empty(4, 512, dtype=torch.int64))
assert sum(p.numel() for p in model.parameters()) > 7e9 and hidden.requires_grad
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    pytest.importorskip("resource", reason="requires Unix, to read a process's memory")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(run.stdout) * unit < 2**30


def test_a_constructor_that_reads_a_value_is_told_to_be_made_outside():
    def make():
        rates = [rate.item() for rate in torch.linspace(0, 0.1, 3)]
        return nn.Sequential(*[nn.Dropout(rate) for rate in rates])

    with fake_cuda(torch.float16) as fake, pytest.raises(FakeError, match="pass it to module"):
        fake.build(make)
    model = make()
    with fake_cuda(torch.float16) as fake:
        assert len(fake.module(model)) == 3


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.unused = nn.Linear(2, 2)
        self.shift = nn.Parameter(torch.zeros(8, 1, 1))

    def forward(self, images):
        hidden = torch.relu(self.norm(self.conv(images))) + self.shift
        left, right = Double.apply(hidden).flatten(2).transpose(1, 2).chunk(2, dim=1)
        tokens = torch.cat([left, right * left.mean()], dim=1)
        return tokens + self.attention(tokens, tokens, tokens, need_weights=False)[0]


@needs_cuda_build
@pytest.mark.parametrize("dtype", [None, torch.float16, torch.bfloat16], ids=["fp32", "fp16", "bf16"])
def test_fake_backward_gives_gradients_of_the_dtypes_and_shapes_of_backward(dtype):
    """Fake backward on the fake CPU against autograd's own engine on real tensors; fake CUDA gives the same here."""
    torch.manual_seed(0)
    model, images = Everything(), torch.randn(2, 3, 8, 8, requires_grad=True)
    with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
        loss = model(images).float().square().mean()
    loss.backward()
    expected = {
        name: p.grad if p.grad is None else (p.grad.dtype, p.grad.shape) for name, p in model.named_parameters()
    }
    assert expected["unused.weight"] is None and expected["conv.weight"] == (torch.float32, (8, 3, 3, 3))
    for device in ("cpu", "cuda"):
        with fake_cuda(dtype, device) as fake:
            copied, inputs = fake.module(model), fake.tensors(images)
            fake_backward(copied(inputs).float().square().mean())
        found = {
            name: p.grad if p.grad is None else (p.grad.dtype, p.grad.shape) for name, p in copied.named_parameters()
        }
        assert found == expected
        assert inputs.grad.shape == images.shape


@needs_cuda_build
def test_fake_gradients_add_up_over_two_backward_passes():
    with fake_cuda(torch.float16) as fake:
        model = fake.build(lambda: nn.Linear(4, 4))
        fake_backward(model(fake.empty(2, 4)).float().sum())
        first = model.weight.grad
        fake_backward(model(fake.empty(2, 4)).sum(), fake.empty(dtype=torch.float32))
        assert model.weight.grad is first and first.shape == (4, 4)  # in place, as the engine adds


@needs_cuda_build
def test_fake_backward_runs_the_nodes_in_the_engines_order_and_tells_of_each():
    def order(model, inputs, backward, watch):
        ran = []
        loss = model(inputs).float().square().sum()
        nodes = watch(loss, ran)
        backward(loss, ran)
        return [name for name in ran if name in {type(node).__name__ for node in nodes}]

    def graph(loss, _):
        found = [loss.grad_fn]
        for node in found:
            found += [n for n, _ in node.next_functions if n is not None and n not in found]
        return [node for node in found if not hasattr(node, "variable")]

    def hooked(loss, ran):
        nodes = graph(loss, ran)
        for node in nodes:
            node.register_hook(functools.partial(lambda name, *_: ran.append(name), type(node).__name__))
        return nodes

    class TwoPaths(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            return torch.sigmoid(self.a(x)) * torch.tanh(self.b(x)) + self.a(x).relu()

    real = order(TwoPaths(), torch.ones(2, 4), lambda loss, _: loss.backward(), hooked)
    with fake_cuda(None) as fake:
        model = fake.module(TwoPaths())
        told = order(
            model,
            fake.empty(2, 4),
            lambda loss, ran: fake_backward(loss, after=lambda node: ran.append(type(node).__name__)),
            graph,
        )
    assert len(real) >= 8
    assert told == real


def test_fake_backward_says_what_it_is_not_for():
    with pytest.raises(FakeError, match=r"has loss\.backward"):
        fake_backward(torch.zeros((), requires_grad=True) * 2)
    with fake_cuda(None, "cpu") as fake:
        with pytest.raises(FakeError, match="no graph"):
            fake_backward(fake.empty())
        weight = nn.Parameter(fake.empty(3))
        with pytest.raises(FakeError, match="reduce it to a scalar"):
            fake_backward(weight * 2)


@pytest.mark.parametrize(
    ("arguments", "words"), [((torch.float16, "tpu"), "not for 'tpu'"), ((torch.float32,), "not in torch.float32")]
)
def test_what_there_is_no_autocast_for_is_an_error(arguments, words):
    with pytest.raises(FakeError, match=words), fake_cuda(*arguments):
        pass


def test_the_limits_of_this_build_are_tried_out_and_explained():
    limits = fake_cuda_limits()
    assert limits.can("autocast") and limits.can("embedding")
    if torch.backends.cuda.is_built():
        assert limits.can("batch_norm") and limits.can("attention") and limits.can("grad")
        assert limits.can("fake_backward")
    else:
        assert limits.build == "CPU-only build" and not limits.can("batch_norm") and not limits.can("grad")
    if not torch.cuda.is_available():
        assert not limits.can("backward")
    assert str(limits).count("\n  yes") + str(limits).count("\n  no ") == 8
    with pytest.raises(FakeError, match="Ask for one of: autocast"):
        limits.can("fly")


def test_a_trial_that_kills_its_process_is_a_finding_and_the_next_ones_are_still_tried(monkeypatch):
    trials = {
        "autocast": ampkit.fake._TRIALS["autocast"],
        "crash": ("a crash", "import os; os.abort()"),
        "error": ("an error", "raise ValueError('no')"),
    }
    monkeypatch.setattr(ampkit.fake, "_TRIALS", trials)
    limits = ampkit.fake.fake_cuda_limits.__wrapped__()
    assert limits.failures == {"crash": "aborts the process", "error": "ValueError: no"}
