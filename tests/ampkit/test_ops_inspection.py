"""The inspector sees what runs: models as other people write them, against what PyTorch really executes."""

import collections
import dataclasses
import doctest
import json
from collections import Counter

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import ampkit.ops.inspection
from ampkit.errors import DeviceError, OpsError
from ampkit.ops import cast_lists, inspect
from ampkit.ops.watch import SAME_DTYPE

HALF, FULL = torch.float16, torch.float32
needs_cuda_build = pytest.mark.skipif(
    not torch.backends.cuda.is_built(), reason="requires a CUDA build of PyTorch (no GPU)"
)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


# Models as other people write them


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))


class SqueezeExcite(nn.Module):
    """A block as in timm: depthwise convolution, squeeze and excitation, stochastic depth, activations in place."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, bias=False), nn.BatchNorm2d(8), nn.SiLU(inplace=True))
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.reduce, self.expand = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)
        self.head = nn.Linear(8, 4)

    def forward(self, images):
        hidden = self.stem(images)
        gate = self.expand(F.relu(self.reduce(hidden.mean((2, 3), keepdim=True)), inplace=True)).sigmoid()
        hidden = hidden + self.depthwise(hidden) * gate
        hidden += 1
        return self.head(F.adaptive_avg_pool2d(hidden, 1).flatten(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(12, 6, batch_first=True)
        self.cell = nn.GRUCell(6, 6)

    def forward(self, tokens):
        hidden, _ = self.gru(self.lstm(self.tokens(tokens))[0])
        return self.cell(hidden[:, 0], hidden[:, -1])


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, stride=4)
        self.cls = nn.Parameter(torch.zeros(1, 1, 16))
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(16, 2, 32, 0.0, activation="gelu", batch_first=True, norm_first=True),
            num_layers=2,
            enable_nested_tensor=False,
        )
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, images):
        tokens = self.patches(images).flatten(2).mT
        tokens = torch.cat([self.cls.expand(len(tokens), -1, -1), tokens], dim=1)
        tokens = self.encoder(tokens)
        return self.head(self.attention(tokens, tokens, tokens)[0][:, 0])


class Exp(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, x):
        ctx.save_for_backward(x.exp())
        return x.exp()

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0]


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.out = nn.Conv2d(16, 1, 1)

    def forward(self, images):
        first = F.relu(self.down(images))
        low = Exp.apply(self.norm(self.middle(F.max_pool2d(first, 2))))
        high = F.interpolate(self.up(low), size=first.shape[2:], mode="bilinear")
        return self.out(torch.cat([first, high], dim=1))


class Classified(nn.Module):
    """BCELoss on probabilities: banned under CUDA autocast."""

    def __init__(self):
        super().__init__()
        self.score, self.loss, self.after = nn.Linear(8, 1), nn.BCELoss(), nn.Linear(1, 1)

    def forward(self, x):
        probability = torch.sigmoid(self.score(x))
        return self.after(self.loss(probability, torch.zeros_like(probability)).view(1, 1))


class Embedded(nn.Module):
    """Embeddings as in Hugging Face's BERT, a tied decoder, a dictionary of an own type out."""

    def __init__(self):
        super().__init__()
        self.word_embeddings, self.position_embeddings = nn.Embedding(30, 8, padding_idx=0), nn.Embedding(16, 8)
        self.register_buffer("position_ids", torch.arange(16).expand((1, -1)), persistent=False)
        self.norm = nn.LayerNorm(8)
        self.decoder = nn.Linear(8, 30, bias=False)
        self.decoder.weight = self.word_embeddings.weight

    def forward(self, tokens):
        hidden = self.word_embeddings(tokens) + self.position_embeddings(self.position_ids[:, : tokens.shape[1]])
        logits = self.decoder(self.norm(hidden))
        loss = F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
        return Named(loss=loss, logits=logits, more={"hidden": self.decoder(hidden)})


class Named(collections.OrderedDict):
    """A dictionary of a type of its own, as Hugging Face's models return it."""


@dataclasses.dataclass
class Output:
    values: torch.Tensor
    norms: torch.Tensor


class Spectral(nn.Module):
    """Complex numbers, scatter, in-place ops; a dataclass out."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, x):
        spectrum = torch.fft.rfft(self.mix(x).float())
        hidden = torch.fft.irfft(spectrum * torch.polar(spectrum.abs(), spectrum.angle()), n=8)
        hidden = hidden.exp_().clamp_(max=10).sqrt_()
        index = torch.zeros(x.shape, dtype=torch.int64, device=x.device)
        summed = torch.zeros_like(hidden).scatter_add(1, index, hidden.half().float())
        return Output(summed.cumsum(0), hidden.norm(dim=-1))


IMAGES, TOKENS, ROWS = torch.zeros(2, 3, 16, 16), torch.zeros(2, 6, dtype=torch.int64), torch.zeros(3, 8)
ZOO = {
    "mlp": (Mlp, ROWS),
    "squeeze_excite": (SqueezeExcite, IMAGES),
    "recurrent": (Recurrent, TOKENS),
    "vit": (Vit, IMAGES),
    "unet": (Unet, IMAGES),
    "classified": (Classified, ROWS),
    "embedded": (Embedded, TOKENS),
    "spectral": (Spectral, ROWS),
}
EVERY_MODEL = pytest.mark.parametrize("name", ZOO)


def zoo(name):
    make, inputs = ZOO[name]
    return make(), inputs


# Against what PyTorch really executes


class Executed(TorchDispatchMode):
    """Every op that reaches the dispatcher below autocast, with the dtypes of its tensors."""

    def __init__(self):
        super().__init__()
        self.ops = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        dtypes = [
            tuple(t.dtype for t in tree_leaves(x) if isinstance(t, torch.Tensor)) for x in ((args, kwargs), result)
        ]
        self.ops[func._schema.name.removeprefix("aten::"), *dtypes] += 1
        return result


# What computes nothing that has a precision; written down here apart from the inspector's own idea of it.
WITHOUT_ARITHMETIC = {
    "view",
    "_unsafe_view",
    "t",
    "transpose",
    "permute",
    "expand",
    "unsqueeze",
    "squeeze",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "unbind",
    "alias",
    "as_strided",
    "detach",
    "clone",
    "copy_",
    "empty_like",
    "zeros_like",
    "ones_like",
    "full_like",
    "new_zeros",
    "new_empty",
    "zeros",
    "ones",
    "empty",
    "full",
    "arange",
    "fill_",
    "zero_",
    "lift_fresh",
    "chunk",
    "empty_strided",
    "reshape",
    "_reshape_alias",
    "view_as_real",
}


@EVERY_MODEL
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_the_dtypes_are_those_of_a_real_run_under_cpu_autocast(name, dtype):
    model, inputs = zoo(name)
    model.eval()
    if name == "recurrent" and dtype is torch.float16 and not torch.ops.mkldnn._is_mkldnn_fp16_supported():
        pytest.skip("requires a CPU whose oneDNN has FP16 LSTM kernels")
    with torch.autocast("cpu", dtype), Executed() as executed:
        model(inputs)
    found = inspect(model, inputs, device_type="cpu", dtype=dtype, real=True)
    assert found.stopped is None
    kernels = Counter((k.name, k.inputs, k.outputs) for record in found.records for k in record.kernels)
    inserted = Counter(("_to_copy", (c.source,), (c.target,)) for c in found.casts if c.cache != "hit")
    rest = executed.ops - kernels - inserted
    assert kernels + inserted - executed.ops == Counter()
    on_integers = {op for op in rest if not any(d.is_floating_point or d.is_complex for d in op[1])}
    assert {op[0] for op in rest if op not in on_integers} <= WITHOUT_ARITHMETIC
    assert sum(kernels.values()) >= 4


@EVERY_MODEL
def test_without_data_the_same_is_found_as_in_a_real_run(name):
    model, inputs = zoo(name)
    model.eval()
    real = inspect(model, inputs, device_type="cpu", dtype=torch.bfloat16, real=True)
    fake = inspect(model, inputs, device_type="cpu", dtype=torch.bfloat16)
    assert (real.on, fake.on) == ("cpu", "fake cpu")
    assert seen(fake) == seen(real) and len(real.records) >= 3
    assert fake.outputs == real.outputs and fake.cast_bytes == real.cast_bytes
    assert fake.cached_weight_bytes == real.cached_weight_bytes


def seen(inspection):
    """All but the workspaces of kernels, whose size no fake kernel knows."""
    return [
        (
            *(record.module, record.op, record.category, record.inputs, record.compute, record.casts),
            [info for info in record.outputs if info.dtype is not torch.uint8],
        )
        for record in inspection.records
    ]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="requires an NVIDIA GPU")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["fp16", "bf16"])
@pytest.mark.parametrize("name", [name for name in ZOO if name != "recurrent"])  # cuDNN computes an LSTM as one op
def test_a_gpu_computes_in_what_was_said_without_it(name, dtype):
    model, inputs = zoo(name)
    fake = inspect(model, inputs, dtype=dtype)
    real = inspect(model.cuda(), inputs.cuda(), dtype=dtype, real=True)
    assert seen(fake) == seen(real) and len(real.records) >= 3
    assert fake.outputs == real.outputs and fake.cast_bytes == real.cast_bytes


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="requires an NVIDIA GPU")
def test_recurrent_layers_come_out_of_a_gpu_in_the_dtype_that_was_said():
    model, inputs = zoo("recurrent")
    fake = inspect(model, inputs)
    real = inspect(model.cuda(), inputs.cuda(), real=True)
    assert fake.outputs == real.outputs
    assert fake.module("lstm").outputs[0] == real.module("lstm").outputs[0]


# On CUDA, without one


def by_op(inspection):
    return {record.op: record for record in inspection.records}


@EVERY_MODEL
@needs_cuda_build
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["fp16", "bf16"])
def test_every_model_is_followed_to_its_end_on_fake_cuda(name, dtype):
    model, inputs = zoo(name)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    found = inspect(model, inputs, dtype=dtype)
    assert found.stopped is None and found.outputs
    assert {record.compute for record in found.records} & {dtype}
    json.dumps(found.to_dict(), allow_nan=False)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


@needs_cuda_build
def test_batch_norm_mean_and_sigmoid_stay_in_fp16_and_depthwise_convolutions_are_lower():
    found = inspect(*zoo("squeeze_excite"))
    ops = by_op(found)
    assert {ops[op].category for op in ("batch_norm", "mean", "sigmoid", "silu_")} == {"unlisted"}
    assert {ops[op].compute for op in ("batch_norm", "mean", "sigmoid", "silu_", "conv2d", "add_")} == {HALF}
    assert found.module("stem.1").compute == {HALF: 1} and found.module("stem.1").type_name == "BatchNorm2d"


@needs_cuda_build
def test_a_transformer_alternates_between_the_precisions():
    found = inspect(*zoo("vit"))
    ops = by_op(found)
    assert (ops["layer_norm"].compute, ops["layer_norm"].category) == (FULL, "fp32")
    assert ops["scaled_dot_product_attention"].compute is HALF
    assert (ops["softmax"].compute, ops["softmax"].category) == (FULL, "fp32 result")  # of MultiheadAttention's weights
    assert ops["gelu"].compute is HALF
    assert found.module("head").outputs[0].dtype is HALF
    assert "chosen on the GPU" in " ".join(found.notes) or torch.cuda.is_available()


def test_a_ban_is_a_finding_and_the_rest_is_seen():
    found = inspect(*zoo("classified"))
    (record,) = found.banned
    assert record.op == "binary_cross_entropy" and record.module == "loss" and record.category == "banned"
    assert "unsafe to autocast" in record.banned and record.compute is FULL
    assert found.stopped is None and found.records[-1].module == "after"
    on_cpu = inspect(*zoo("classified"), device_type="cpu", dtype=torch.bfloat16)
    assert on_cpu.banned == () and by_op(on_cpu)["binary_cross_entropy"].category == "fp32"


def test_an_op_that_is_asked_about_for_the_first_time_while_watching_is_answered_the_same():
    cast_lists._probed.cache_clear()
    assert [record.op for record in inspect(*zoo("classified")).banned] == ["binary_cross_entropy"]
    cast_lists._probed.cache_clear()
    assert cast_lists.policy("binary_cross_entropy").category == "banned"


@needs_cuda_build
def test_a_custom_function_computes_in_what_custom_fwd_says():
    found = inspect(*zoo("unet"))
    exps = [record for record in found.records if record.op == "exp"]
    assert [record.compute for record in exps] == [FULL, FULL]
    assert {record.category for record in exps} == {"unlisted"}  # custom_fwd switches autocast off inside
    assert by_op(found)["upsample_bilinear2d"].compute is FULL
    assert by_op(found)["conv_transpose2d"].compute is HALF


@needs_cuda_build
def test_a_tied_weight_is_cast_once_and_found_in_the_cache_the_second_time():
    found = inspect(*zoo("embedded"))
    decoded = [record for record in found.records if record.op == "linear"]
    assert [record.casts[-1].argument for record in decoded] == ["weight", "weight"]
    assert [record.casts[-1].cache for record in decoded] == ["made", "hit"]
    assert found.cached_weight_bytes == 30 * 8 * 2
    assert len(found.outputs) == 3
    embeddings = [record for record in found.records if record.op == "embedding"]
    assert {record.compute for record in embeddings} == {FULL}


def test_cross_entropy_of_fp16_logits_rounds_its_log_softmax_to_fp16():
    """Its own code asks log_softmax for the dtype of the logits (LossNLL.cpp), and autocast respects what is asked for."""

    class Loss(nn.Module):
        def forward(self, logits, targets):
            return F.cross_entropy(logits, targets), F.log_softmax(logits, -1)

    found = inspect(Loss(), torch.zeros(4, 8, dtype=HALF), torch.zeros(4, dtype=torch.int64))
    inside, nll, alone = found.records
    assert (inside.op, inside.compute, inside.outputs[0].dtype) == ("log_softmax", HALF, HALF)
    assert (nll.op, nll.compute, nll.casts[0].target) == ("nll_loss", FULL, FULL)
    assert (alone.op, alone.compute, alone.outputs[0].dtype) == ("log_softmax", FULL, FULL)


@needs_cuda_build
def test_weights_that_need_no_gradient_are_cast_at_each_use():
    model, inputs = zoo("embedded")
    found = inspect(model.requires_grad_(False), inputs)
    decoded = [record for record in found.records if record.op == "linear"]
    assert [record.casts[-1].cache for record in decoded] == ["", ""]
    assert found.cached_weight_bytes == 0
    sizes = [cast.bytes for cast in found.casts]
    assert sizes.count(30 * 8 * 2) == 2 and found.cast_bytes == sum(sizes)


def test_complex_numbers_and_ops_in_place_are_left_alone():
    found = inspect(*zoo("spectral"))
    ops = by_op(found)
    assert (
        ops["_fft_r2c"].compute is torch.complex64 if "_fft_r2c" in ops else ops["fft_rfft"].compute is torch.complex64
    )
    assert (ops["exp_"].category, ops["exp_"].compute) == ("unlisted", FULL)
    assert (ops["scatter_add"].category, ops["cumsum"].category) == ("promote", "fp32 result")
    assert [(record.inputs[0].dtype, record.outputs[0].dtype) for record in found.records if record.op == "to"] == [
        (HALF, FULL),
        (FULL, HALF),
        (HALF, FULL),
    ]
    assert len(found.outputs) == 2  # of a dataclass


def test_without_autocast_nothing_is_cast():
    found = inspect(*zoo("embedded"), dtype=None)
    assert found.casts == () and set(found.compute_counts()) == {FULL}
    assert {record.category for record in found.records} == {"unlisted"}


def test_an_island_inside_the_model_is_seen():
    class Island(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside, self.outside = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            with torch.autocast(x.device.type, enabled=False):
                x = self.inside(x.float())
            return self.outside(x)

    found = inspect(Island(), torch.zeros(2, 4))
    assert [(record.module, record.compute, record.category) for record in found.records] == [
        ("inside", FULL, "unlisted"),
        ("outside", HALF, "lower precision"),
    ]


def test_the_fast_path_of_a_transformer_layer_is_not_switched_off_by_looking():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    with torch.no_grad():
        found = inspect(layer, torch.zeros(2, 5, 16), device_type="cpu", dtype=None, real=True)
        with Executed() as executed:
            layer(torch.zeros(2, 5, 16))
    fast = "_transformer_encoder_layer_fwd"
    assert any(op[0] == fast for op in executed.ops) and fast in by_op(found)


# What cannot be said


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        x = self.first(x)
        return self.second(x) if x.sum() > 0 else x


class Masking(Branching):
    def forward(self, x):
        x = self.first(x)
        return self.second(x[x[:, 0] > 0])


@pytest.mark.parametrize("model", [Branching, pytest.param(Masking, marks=needs_cuda_build)])
def test_a_way_that_depends_on_a_value_ends_the_inspection_with_a_reason(model):
    found = inspect(model(), ROWS)
    assert found.records[0].module == "first" and found.records[0].compute is HALF
    assert "depends on a value" in str(found.stopped) and "real=True" in str(found.stopped)
    real = inspect(model(), ROWS, device_type="cpu", dtype=torch.bfloat16, real=True)
    assert real.stopped is None


@pytest.mark.skipif(torch.backends.cuda.is_built(), reason="requires a CPU-only build of PyTorch")
def test_a_cpu_only_build_says_that_another_build_can_do_more_without_a_gpu():
    found = inspect(*zoo("squeeze_excite"))
    assert "CUDA build of PyTorch" in str(found.stopped)


def test_an_error_of_the_model_itself_is_said_with_its_place():
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(9, 8))
    found = inspect(model, ROWS)
    assert found.stopped.module == "1" and found.stopped.op == "linear"
    assert len(found.records) == 1


def test_a_real_run_needs_its_device():
    if not torch.cuda.is_available():
        with pytest.raises(DeviceError, match="no CUDA GPU"):
            inspect(Mlp(), ROWS, real=True)
    with pytest.raises(OpsError, match="Move it there first"):
        inspect(Mlp().to("meta"), ROWS, device_type="cpu", dtype=torch.bfloat16, real=True)


def test_a_module_that_ran_nothing_is_an_error_with_those_that_did():
    with pytest.raises(OpsError, match="Those that did"):
        inspect(Mlp(), ROWS).module("encoder")


H, S = torch.zeros(4, 4, dtype=HALF), torch.zeros(4, 4)
FIRST = torch.zeros(4, dtype=torch.int64)
MIXED = {
    "mm": lambda: torch.mm(S, H),
    "addmm": lambda: torch.addmm(S, S, H),
    "mv": lambda: torch.mv(S, H[0]),
    "addmv": lambda: torch.addmv(S[0], S, H[0]),
    "convolution": lambda: F.conv2d(S.view(1, 1, 4, 4), H.view(1, 1, 4, 4)),
    "index_add": lambda: torch.index_add(S, 0, FIRST, H),
    "index_add_": lambda: S.clone().index_add_(0, FIRST, H),
    "index_copy": lambda: torch.index_copy(S, 0, FIRST, H),
    "index_copy_": lambda: S.clone().index_copy_(0, FIRST, H),
    "index_put": lambda: torch.index_put(S, (FIRST,), H),
    "index_put_": lambda: S.clone().index_put_((FIRST,), H),
    "grid_sampler_2d": lambda: F.grid_sample(S.view(1, 1, 4, 4), H.view(1, 2, 4, 2), align_corners=False),
    "_prelu_kernel": lambda: torch.ops.aten._prelu_kernel(S, H[:1, 0]),
    "linalg_cross": lambda: torch.linalg.cross(S[:3], H[:3], dim=0),
    "binary_cross_entropy": lambda: F.binary_cross_entropy(S, H),
}


@pytest.mark.parametrize("kernel", sorted(SAME_DTYPE))
def test_a_kernel_that_is_said_to_refuse_mixed_dtypes_does_so_on_real_tensors(kernel):
    with pytest.raises((RuntimeError, ValueError)):
        MIXED[kernel]()


@needs_cuda_build
def test_mixed_dtypes_that_only_fake_tensors_let_pass_are_a_finding():
    class Double(nn.Module):
        def forward(self, x):
            return torch.relu(x.double() @ x)

    found = inspect(Double(), torch.zeros(4, 4))
    (record,) = found.mismatched
    assert record.op == "matmul" and "torch.float64 and torch.float16" in record.mismatch
    assert inspect(Mlp(), ROWS).mismatched == ()


# Leaving no trace


def test_nothing_is_watched_afterwards_and_results_are_bitwise_the_same():
    from ampkit.ops import watch

    model, rows = Mlp().eval(), torch.randn(3, 8)
    before = model(rows)
    hooks = torch.nn.modules.module._global_forward_hooks, torch.nn.modules.module._global_forward_pre_hooks
    assert not any(hooks)
    inspect(model, rows)
    assert not any(hooks) and watch._watching.watch is None
    assert torch.equal(model(rows), before)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = model(rows)
    inspect(model, rows, device_type="cpu", dtype=torch.bfloat16, real=True)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(model(rows), mixed)


def test_gradients_flow_through_a_watched_run():
    model = Mlp()
    from ampkit.ops.watch import Watch

    with torch.autocast("cpu", torch.bfloat16), Watch("cpu", torch.bfloat16):
        loss = model(torch.randn(3, 8)).float().square().mean()
    loss.backward()
    assert all(parameter.grad.dtype is FULL for parameter in model.parameters())


@needs_cuda_build
def test_a_model_that_a_function_makes_takes_no_memory():
    def make():
        return nn.Sequential(*[nn.Linear(40_000, 40_000, bias=False) for _ in range(4)])  # 24 GiB in FP32

    found = inspect(make, torch.empty(1, 40_000, device="meta"))
    assert found.cached_weight_bytes == 4 * 40_000**2 * 2


def test_the_examples_in_the_docstrings_run():
    result = doctest.testmod(ampkit.ops.inspection)
    assert result.attempted >= 2 and result.failed == 0
