"""examine: seeded failures are found at their op and module with their cause; healthy models are called healthy."""

import copy
import json
import math

import pytest
import torch
import torch.utils.checkpoint
from torch import nn
from torch.nn import functional as F

from ampkit import DeviceError, DoctorError, PrecisionError, models
from ampkit.doctor import examine

HALF = torch.float16


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def cross_entropy(output, targets):
    return F.cross_entropy(output.float().flatten(0, -2), targets.flatten())


def mean_square(output):
    return output.float().square().mean()


def on_cpu(model, *args, **options):
    return examine(model, *args, device="cpu", **options)


def only(diagnosis):
    """The one finding."""
    assert len(diagnosis.findings) == 1, str(diagnosis)
    return diagnosis.findings[0]


class Does(nn.Module):
    """A module that does what the function says."""

    def __init__(self, function, *children):
        super().__init__()
        self.function = function
        for number, child in enumerate(children):
            self.add_module(f"part{number}", child)

    def forward(self, *args, **kwargs):
        return self.function(self, *args, **kwargs)


class Attention(nn.Module):
    """Attention by hand; mask is added to the scores, or fills them, as the function says."""

    def __init__(self, width, mask=None, before=1.0):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.mask, self.before, self.width = mask, before, width

    def forward(self, x):
        q, k, v = self.q(x) * self.before, self.k(x), self.v(x)
        scores = q @ k.transpose(-1, -2)
        if self.mask is not None:
            scores = self.mask(scores)
        return scores.softmax(-1).to(v.dtype) @ v


class Block(nn.Module):
    def __init__(self, attention, width=16, classes=4):
        super().__init__()
        self.attention = attention
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(x + self.attention(x))


def wide(attention, factor):
    """Weights so large that the scores leave FP16."""
    with torch.no_grad():
        attention.q.weight.fill_(factor)
        attention.k.weight.fill_(factor)
    return attention


def tokens(size=16):
    return torch.randn(2, 5, size), torch.zeros(2, 5, dtype=torch.int64)


# Range in the forward pass


def test_queries_times_keys_beyond_65504_are_an_attention_overflow():
    x, y = tokens()
    model = Block(wide(Attention(16), 8.0))
    found = only(on_cpu(model, x.abs(), y, cross_entropy))
    assert (found.cause, found.op, found.module, found.dtype) == (
        "attention_overflow",
        "bmm",
        "attention",
        "torch.float16",
    )
    assert found.evidence["infs"] > 40
    assert found.evidence["largest_in_fp32"] > 65504 > found.evidence["largest_input"]
    assert (
        f"{found.evidence['infs']} inf in 50 results" in found.what
        and "It turns to nan in _softmax of attention" in found.what
    )
    assert "65504" in found.why and "scaled_dot_product_attention" in found.cure
    assert on_cpu(model, x.abs(), y, cross_entropy, precision="bf16-mixed").healthy
    assert on_cpu(model, x.abs(), y, cross_entropy, precision="fp32").healthy


def test_the_cure_of_an_attention_overflow_cures_it():
    x, y = tokens()
    assert on_cpu(Block(wide(Attention(16, before=1 / 64), 8.0)), x.abs(), y, cross_entropy).healthy


def test_an_activation_beyond_65504_names_its_layer_and_what_fp32_holds():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    with torch.no_grad():
        model[2].weight.fill_(3000.0)
        model[0].weight.fill_(1.0)
    found = only(on_cpu(model, torch.ones(4, 8), torch.zeros(4, dtype=torch.int64), cross_entropy))
    assert (found.cause, found.op, found.module) == ("activation_overflow", "addmm", "2")
    assert "FP32 the same op gives |x| up to 1" in found.what and "bf16-mixed" in found.cure
    assert found.evidence["largest_in_fp32"] == pytest.approx(8 * 8 * 3000, rel=0.1)


def test_a_square_by_hand_overflows_where_rms_norm_does_not():
    class Rms(nn.Module):
        def forward(self, x):
            return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)

    x = torch.full((2, 8), 2000.0)
    found = only(on_cpu(nn.Sequential(nn.Linear(8, 8), Rms()), x, loss_fn=mean_square))
    assert (found.cause, found.op, found.module) == ("square_overflow", "mul", "1")
    assert "256" in found.why and found.evidence["largest_input"] > 256
    norm = nn.RMSNorm(8, elementwise_affine=False)  # with a weight, 2.11 warns of two dtypes
    assert on_cpu(nn.Sequential(nn.Linear(8, 8), norm), x, loss_fn=mean_square).healthy


def test_a_sum_in_fp16_is_a_reduction_overflow_though_each_number_and_the_mean_fit():
    model = Does(lambda m, x: m.part0(x).sum(0, dtype=HALF) / len(x), nn.Linear(4, 4))
    with torch.no_grad():
        model.part0.weight.fill_(0.25)
    x = torch.full((2048, 4), 100.0)
    found = only(on_cpu(model, x, loss_fn=mean_square))
    assert (found.cause, found.op, found.module) == ("reduction_overflow", "sum", "")
    assert "torch.float32" in found.cure
    cured = Does(lambda m, x: m.part0(x).sum(0) / len(x), model.part0)
    assert on_cpu(cured, x, loss_fn=mean_square).healthy


def test_exp_that_is_cast_to_fp16_is_an_exp_overflow():
    model = nn.Sequential(nn.Linear(4, 4), Does(lambda m, x: m.part0(x.exp()), nn.Linear(4, 4)))
    with torch.no_grad():
        model[0].weight.fill_(4.0)
    found = only(on_cpu(model, torch.ones(2, 4), loss_fn=mean_square))
    assert (found.cause, found.module) == ("exp_overflow", "1.part0")
    assert "11.09" in found.why


def test_a_softmax_by_hand_overflows_in_fp32_as_well_and_says_so():
    softmax = Does(lambda m, x: x.exp() / x.exp().sum(-1, keepdim=True))
    found = only(on_cpu(nn.Sequential(nn.Linear(4, 4), softmax), 400 * torch.ones(2, 4), loss_fn=mean_square))
    assert (found.cause, found.op, found.module, found.dtype) == ("exp_overflow", "exp", "1", "torch.float32")
    assert "The whole model in FP32 has it too" in found.what


# Masks


@pytest.mark.parametrize(
    "mask",
    [
        lambda scores: scores.masked_fill(torch.ones(5, 5).tril() == 0, -torch.inf),
        lambda scores: scores + torch.full((5, 5), -torch.inf).triu(1),
        lambda scores: torch.where(torch.ones(5, 5).tril() == 0, -torch.inf, scores),
        lambda scores: scores + torch.full((5, 5), torch.finfo(HALF).min, dtype=HALF).triu(1),
        lambda scores: scores + (1 - torch.ones(5, 5, dtype=HALF).tril()) * -1e9,
    ],
)
def test_a_mask_of_minus_inf_that_softmax_handles_is_healthy(mask):
    x, y = tokens()
    assert on_cpu(Block(Attention(16, mask)), x, y, cross_entropy).healthy


def test_an_overflow_beside_a_mask_is_found_and_the_mask_is_not_blamed():
    x, y = tokens()
    mask = lambda scores: scores + torch.full((5, 5), -torch.inf).triu(1)  # noqa: E731
    found = only(on_cpu(Block(wide(Attention(16, mask), 8.0)), x.abs(), y, cross_entropy))
    assert (found.cause, found.op, found.module) == ("attention_overflow", "bmm", "attention")


def test_a_fill_that_fp16_does_not_have_is_an_error_with_its_place():
    x, y = tokens()
    mask = lambda scores: scores.masked_fill(torch.ones(5, 5).tril() == 0, -1e9)  # noqa: E731
    found = only(on_cpu(Block(Attention(16, mask)), x, y, cross_entropy))
    assert (found.cause, found.op, found.module) == ("mask_overflow", "masked_fill", "attention")
    assert "without overflow" in found.what and "torch.finfo(scores.dtype).min" in found.cure


@pytest.mark.parametrize(
    "mask",
    [
        lambda scores: scores + torch.ones(5, 5, dtype=HALF) * -1e9,
        lambda scores: scores + torch.full((5, 5), -1e9).to(scores.dtype),
    ],
)
def test_a_row_masked_with_a_number_that_becomes_minus_inf_in_fp16_is_a_mask_overflow(mask):
    x, y = tokens()
    diagnosis = on_cpu(Block(Attention(16, mask)), x, y, cross_entropy)
    found = only(diagnosis)
    assert found.cause == "mask_overflow" and found.module == "attention" and found.op in ("mul", "_to_copy")
    assert "-inf" in found.what and "It turns to nan in _softmax" in found.what


def test_a_row_that_is_masked_altogether_is_nan_in_every_precision():
    x, y = tokens()
    mask = lambda scores: scores.masked_fill(torch.ones(5, 5) == 1, -torch.inf)  # noqa: E731
    for precision in ("fp16-mixed", "bf16-mixed", "fp32"):
        found = only(on_cpu(Block(Attention(16, mask)), x, y, cross_entropy, precision=precision))
        assert (found.cause, found.op, found.module) == ("all_masked_row", "masked_fill", "attention")
        assert "no precision cures it" in found.why


# Zeros and what is divided by them


def test_an_eps_that_fp16_rounds_to_0_is_an_eps_underflow():
    normalize = Does(lambda m, x: x / ((x * x).amax(-1, keepdim=True) + 1e-8))
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.ReLU(), normalize)
    x = torch.randn(4, 4)
    x[0] = 0
    found = only(on_cpu(model, x, loss_fn=mean_square))
    assert (found.cause, found.op, found.module, found.dtype) == ("eps_underflow", "div", "2", "torch.float16")
    assert "1e-8 protects nothing" in found.why and "The whole model in FP32 is finite there" in found.what
    assert on_cpu(model, x, loss_fn=mean_square, precision="bf16-mixed").healthy


def test_a_divisor_that_underflows_is_told_from_one_that_is_0():
    small = Does(lambda m, x: x / (m.part0(x) * 1e-5), nn.Linear(4, 4))
    with torch.no_grad():
        small.part0.weight.fill_(1e-4)
        small.part0.bias.fill_(0)
    found = only(on_cpu(small, torch.ones(2, 4), loss_fn=mean_square))
    assert found.cause in ("divisor_underflow", "eps_underflow") and found.op == "div"
    zero = nn.Sequential(nn.Linear(4, 4), Does(lambda m, x: x / (x - x)))
    found = only(on_cpu(zero, torch.ones(2, 4), loss_fn=mean_square))
    assert (found.cause, found.op, found.module) == ("division_by_zero", "div", "1")
    assert "has it too" in found.what


def test_the_logarithm_of_a_sigmoid_that_fp16_rounds_to_1_is_a_log_of_zero():
    bce = lambda p, y: -(y * p.log() + (1 - y) * (1 - p).log()).mean()  # noqa: E731
    model = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
    with torch.no_grad():
        model[0].weight.fill_(2.5)
    x, y = torch.ones(4, 4), torch.zeros(4, 1)
    found = only(on_cpu(model, x, y, bce))
    assert (found.cause, found.op, found.module) == ("log_of_zero", "log", "loss")
    assert "binary_cross_entropy_with_logits" in found.cure and "in FP32 is finite" in found.what
    assert on_cpu(model, x, y, bce, precision="fp32").healthy


def test_the_root_of_a_variance_that_rounding_made_negative_is_a_negative_root():
    def by_hand(m, x):
        h = m.part0(x)
        return ((h * h).mean(-1) - h.mean(-1) * h.mean(-1)).sqrt()

    model = Does(by_hand, nn.Linear(4, 64))
    with torch.no_grad():
        model.part0.weight.mul_(0.1)
        model.part0.bias.fill_(100.0)
    found = only(on_cpu(model, torch.randn(64, 4), loss_fn=mean_square))
    assert (found.cause, found.op, found.module) == ("negative_root", "sqrt", "")
    assert "torch.var" in found.cure


def test_dividing_by_the_standard_deviation_of_a_constant_is_a_zero_variance():
    model = nn.Sequential(nn.Linear(4, 4), Does(lambda m, x: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)))
    with torch.no_grad():
        model[0].weight.fill_(1)
        model[0].bias.fill_(0)
    found = only(on_cpu(model, torch.ones(2, 4), loss_fn=mean_square))
    assert (found.cause, found.op, found.module) == ("zero_variance", "div", "1")


def test_numbers_that_fp16_has_not_at_all_are_an_activation_underflow():
    model = nn.Sequential(nn.Linear(16, 16, bias=False), nn.Linear(16, 4))
    found = only(on_cpu(model, 1e-9 * torch.randn(4, 16), torch.zeros(4, dtype=torch.int64), cross_entropy))
    assert (found.cause, found.op, found.module) == ("activation_underflow", "_to_copy", "0")
    assert found.evidence["largest_in_fp32"] < 2**-25


# What was broken before


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_broken_data_are_named_as_such(value):
    model = models.mlp()
    (x,), y = models.example("mlp", 4)
    x[1, 0, 3, 3] = value
    found = only(on_cpu(model, x, y, cross_entropy))
    assert (found.cause, found.op) == ("data_nonfinite", None)
    assert found.where == "the input inputs" and "1 " in found.what and "isfinite" in found.cure


def test_broken_weights_are_named():
    model = models.mlp()
    with torch.no_grad():
        model[3].weight[2, 2] = math.nan
    (x,), y = models.example("mlp", 4)
    found = only(on_cpu(model, x, y, cross_entropy))
    assert (found.cause, found.where, found.module) == ("weights_nonfinite", "the parameter 3.weight", "3")
    assert "last good checkpoint" in found.cure


def test_running_statistics_that_an_overflow_poisoned_are_found_in_train_and_in_eval_mode():
    model = models.cnn()
    (x,), y = models.example("cnn", 8)
    model[1].running_mean[0] = math.inf
    model[1].running_var[0] = math.nan
    found = only(on_cpu(model.train(), x, y, cross_entropy))
    assert (found.cause, found.where, found.module) == ("batchnorm_poisoned", "the buffer 1.running_mean", "1")
    assert "evaluation is nan" in found.why and "reset_running_stats" in found.cure
    assert "batchnorm_poisoned" in {finding.cause for finding in on_cpu(model.eval(), x, y, cross_entropy).findings}


def test_an_overflow_that_poisons_batchnorm_is_found_with_its_consequence():
    model = models.cnn()
    with torch.no_grad():
        model[0].weight.fill_(20000.0)
    (x,), y = models.example("cnn", 8)
    diagnosis = on_cpu(model.train(), x, y, cross_entropy)
    assert [(found.cause, found.module) for found in diagnosis.findings] == [
        ("activation_overflow", "0"),
        ("batchnorm_poisoned", "1"),
    ]
    assert model[1].running_mean.isfinite().all()  # only the examination's own pass was poisoned


def test_a_trainable_half_parameter_is_what_a_scaler_refuses():
    model = models.mlp()
    model[3].half()
    (x,), y = models.example("mlp", 4)
    found = on_cpu(model, x, y, cross_entropy).findings[0]
    assert (found.cause, found.module) == ("fp16_parameters", "3")
    assert found.evidence["parameters"] == ["3.weight", "3.bias"] and "Attempting to unscale" in found.why
    for p in model[3].parameters():
        p.requires_grad_(False)
    assert on_cpu(model, x, y, cross_entropy).healthy


# Errors


def test_bce_of_probabilities_is_reported_as_banned_and_not_raised():
    model = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
    x, y = torch.randn(4, 4), torch.ones(4, 1)
    found = only(on_cpu(model, x, y, lambda p, y: F.binary_cross_entropy(p, y)))
    assert (found.cause, found.op, found.module) == ("bce_banned", "binary_cross_entropy", "loss")
    assert "binary_cross_entropy_with_logits" in found.cure
    assert on_cpu(model, x, y, lambda p, y: F.binary_cross_entropy(p.float(), y), policy="cpu").healthy
    assert on_cpu(model[0], x, y, lambda z, y: F.binary_cross_entropy_with_logits(z, y)).healthy


def test_a_custom_function_without_custom_fwd_is_a_dtype_mismatch_with_its_module():
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return torch.ops.aten.mm.default(a, b)

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad @ b.t(), a.t() @ grad

    layer = Does(lambda m, x: Product.apply(x, m.part0.weight), nn.Linear(8, 8))

    def unet(m, x):
        down = m.part0(x)
        with torch.autocast("cuda", enabled=False):
            middle = m.part1(down)
        return m.part2(torch.cat([down, middle], dim=-1))

    model = Does(unet, nn.Linear(8, 8), layer, nn.Linear(16, 2))
    found = only(on_cpu(model, torch.randn(4, 8), torch.zeros(4, dtype=torch.int64), cross_entropy))
    assert (found.cause, found.op, found.module) == ("dtype_mismatch", "mm", "part1")
    assert "custom_fwd" in found.cure


def test_a_model_that_does_not_run_in_fp32_either_is_no_matter_of_precision():
    with pytest.raises(DoctorError, match=r"does not run in FP32 either: RuntimeError in 0: mat1 and mat2"):
        on_cpu(nn.Sequential(nn.Linear(3, 3)), torch.ones(2, 4))


# Backward


def test_fp16_without_a_scaler_loses_the_gradients_of_a_small_loss():
    model = models.mlp()
    (x,), y = models.example("mlp", 8)
    loss = lambda output, y: 2**-20 * cross_entropy(output, y)  # noqa: E731
    found = only(on_cpu(model, x, y, loss, scale=1.0))
    assert (found.cause, found.op, found.module) == ("gradient_underflow", "_to_copy", "loss")
    assert found.evidence["lost"]["1.weight"] == 1.0 and "scale 1" in found.what
    suggested = found.evidence["suggested_scale"]
    assert math.log2(suggested).is_integer() and "GradScaler" in found.cure
    assert on_cpu(model, x, y, loss, scale=suggested).healthy
    assert on_cpu(model, x, y, loss).healthy  # GradScaler's own 65536
    assert on_cpu(model, x, y, loss, precision="bf16-mixed").healthy


def test_a_scale_that_is_too_large_is_calibrating_and_no_finding():
    model = models.mlp()
    (x,), y = models.example("mlp", 8)
    diagnosis = on_cpu(model, x, y, cross_entropy, scale=2.0**30)
    assert diagnosis.healthy and diagnosis.scale < 2.0**22
    skips = round(math.log2(2.0**30 / diagnosis.scale))
    assert any("That is healthy" in note and f"skips {skips} steps" in note for note in diagnosis.notes)


def test_a_gradient_beyond_65504_at_scale_1_is_a_gradient_overflow():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    found = only(on_cpu(model, torch.randn(8, 4), loss_fn=lambda z: 1e7 * z.float().sum()))
    assert (found.cause, found.module) == ("gradient_overflow", "loss") and found.op == "_to_copy"
    assert found.evidence["finite_at_scale"] < 1 and "up to 1e+07 unscaled" in found.what
    assert on_cpu(model, torch.randn(8, 4), loss_fn=lambda z: 1e3 * z.float().sum()).healthy


def test_the_gradient_of_a_distance_of_0_is_found_in_backward_at_its_module():
    distance = Does(lambda m, x: (x - x.detach()).float().square().sum(-1).sqrt())
    model = nn.Sequential(nn.Linear(4, 4), distance)
    found = only(on_cpu(model, torch.randn(2, 4), loss_fn=lambda d: d.mean()))
    assert (found.cause, found.module) == ("gradient_at_zero", "1")
    assert found.where.startswith("backward") and "SqrtBackward0" in found.where
    assert "The whole model in FP32 has it too" in found.what


def test_where_hides_the_bad_branch_in_forward_only():
    safe = Does(lambda m, x: torch.where(x > 0, x.float().log(), 0.0))
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), safe)
    found = only(on_cpu(model, torch.randn(8, 4), loss_fn=lambda z: z.mean()))
    assert (found.cause, found.module) == ("where_trap", "2") and found.op in ("log", "div")
    assert "0 × inf" in found.why


def test_a_nan_in_a_branch_that_no_gradient_comes_from_is_healthy():
    unused = Does(lambda m, x: torch.where(x.detach() > 0, x, x.detach().float().log().to(x.dtype)))
    good = Does(lambda m, x: torch.where(x < 1e4, x, x.detach() / 0))
    for layer in (good, unused):
        x = torch.randn(8, 4)
        model = nn.Sequential(nn.Linear(4, 4), nn.Softplus(), layer)
        assert on_cpu(model, x, loss_fn=lambda z: z.float().mean()).healthy


def test_an_unreduced_fp16_loss_times_the_scale_overflows():
    model = nn.Linear(4, 1)
    with torch.no_grad():
        model.weight.fill_(1.0)
    found = only(on_cpu(model, torch.ones(8, 4), loss_fn=lambda z: z.squeeze(1)))
    assert (found.cause, found.op, found.module) == ("loss_unreduced", "mul", "loss")
    assert "8 of them are inf" in found.what
    assert on_cpu(model, torch.ones(8, 4), loss_fn=lambda z: z.mean()).healthy


# Healthy models


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 32, 4, stride=4)
        self.position = nn.Parameter(torch.randn(1, 4, 32) * 0.02)
        self.blocks = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True, norm_first=True),
            2,
            enable_nested_tensor=False,
        )
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.blocks(x)).mean(1))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(50, 16), nn.LSTM(16, 16, 2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(32, 5)

    def forward(self, ids):
        return self.head(self.rnn(self.embedding(ids))[0])


class Swish(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grad * (s + x * s * (1 - s))


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.norm, self.up = nn.BatchNorm2d(8), nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.head = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        skip = Swish.apply(self.norm(self.down(x)))
        x = F.interpolate(self.up(Swish.apply(self.middle(F.max_pool2d(skip, 2)))), size=skip.shape[-2:])
        return self.head(torch.cat([skip, x.to(skip.dtype)], 1))


class TakesAnything(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.GRUCell(4, 4)

    def forward(self, x, state=None, labels=None):
        state = self.b(self.a(x), state)
        return {"loss": F.mse_loss(state, labels), "state": state}


HEALTHY = {
    "lstm": (Tagger, lambda: torch.randint(0, 50, (3, 7)), lambda: torch.zeros(3, 7, dtype=torch.int64), cross_entropy),
    "vit": (Vit, lambda: torch.randn(4, 3, 8, 8), lambda: torch.zeros(4, dtype=torch.int64), cross_entropy),
    "unet": (
        Unet,
        lambda: torch.randn(2, 1, 8, 8),
        lambda: torch.ones(2, 1, 8, 8),
        lambda z, y: F.binary_cross_entropy_with_logits(z, y),
    ),
    "dict": (
        TakesAnything,
        lambda: {"x": torch.randn(3, 4), "labels": torch.zeros(3, 4)},
        lambda: None,
        lambda output: output["loss"],
    ),
}
HEALTHY |= {
    name: (
        lambda name=name: models.build(name),
        lambda name=name: models.example(name, 4)[0],
        lambda name=name: models.example(name, 4)[1],
        cross_entropy,
    )
    for name in ("mlp", "cnn", "bert_tiny", "gpt_tiny")
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_model_is_called_healthy(name):
    make, inputs, targets, loss_fn = HEALTHY[name]
    model = make()
    for precision in ("fp16-mixed", "bf16-mixed"):
        diagnosis = on_cpu(model, inputs(), targets(), loss_fn, precision=precision)
        assert diagnosis.healthy, str(diagnosis)
        assert len({op.phase for op in diagnosis.ops}) == 2  # backward was looked at too
        assert any(op.dtype is torch.float16 or op.dtype is torch.bfloat16 for op in diagnosis.ops)


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)), nn.Linear(8, 2)
        self.reentrant = reentrant

    def forward(self, x):
        return self.head(torch.utils.checkpoint.checkpoint(self.body, x, use_reentrant=self.reentrant))


class Held:
    """What a model returns that is no container."""

    def __init__(self, logits):
        self.logits = logits


def penalty(m, x):
    x = x.requires_grad_()
    score = m.part0(x).float().sum()
    (gradient,) = torch.autograd.grad(score, x, create_graph=True)
    return score + (gradient.norm(2, dim=1) - 1).square().mean()


def tied():
    embedding = nn.Embedding(20, 8)
    model = nn.Sequential(embedding, nn.Linear(8, 20, bias=False))
    model[1].weight = embedding.weight
    return model


FOREIGN = {
    "checkpointed": (lambda: Checkpointed(False), torch.randn(4, 8)),
    "checkpointed by re-entry": (lambda: Checkpointed(True), torch.randn(4, 8, requires_grad=True)),
    "tied weights": (tied, torch.randint(0, 20, (4, 3))),
    "sparse gradients": (
        lambda: nn.Sequential(nn.Embedding(9, 8, sparse=True), nn.Linear(8, 2)),
        torch.ones(4, 3).long(),
    ),
    "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)), torch.randn(4, 8)),
    "gradient penalty": (
        lambda: Does(penalty, nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))),
        torch.randn(4, 8),
    ),
    "compiled inside": (
        lambda: nn.Sequential(nn.Linear(8, 8), torch.compile(nn.Linear(8, 8), backend="eager")),
        torch.randn(4, 8),
    ),
    "frozen half": (
        lambda: Does(
            lambda m, x: m.part0(x) + m.part1(x), nn.Linear(8, 8).half().requires_grad_(False), nn.Linear(8, 8)
        ),
        torch.randn(4, 8),
    ),
    "fft in fp32": (
        lambda: Does(lambda m, x: torch.fft.rfft(m.part0(x).float()).abs(), nn.Linear(8, 8)),
        torch.randn(4, 8),
    ),
    "no fp16 kernel": (
        lambda: nn.Sequential(nn.Conv3d(1, 2, 3, padding=1), nn.AvgPool3d(2)),
        torch.randn(1, 1, 4, 4, 4),
    ),
    "double": (lambda: nn.Linear(8, 8).double(), torch.randn(4, 8).double()),
    "empty batch": (lambda: nn.Linear(8, 8), torch.randn(0, 8)),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_model_of_an_unusual_kind_is_examined_and_healthy(name):
    make, inputs = FOREIGN[name]
    loss_fn = lambda output: output.float().square().sum() / max(1, output.numel())  # noqa: E731
    diagnosis = on_cpu(make(), inputs, loss_fn=loss_fn)
    assert diagnosis.healthy, str(diagnosis)
    assert {op.phase for op in diagnosis.ops} == {"forward", "backward"}
    said = any("no FP16 kernel for avg_pool3d" in note for note in diagnosis.notes)
    assert said is (name == "no fp16 kernel")


def test_an_overflow_under_checkpointing_is_found_in_its_module():
    model = Checkpointed(False)
    with torch.no_grad():
        model.body[2].weight.fill_(60000.0)
    found = only(on_cpu(model, torch.randn(4, 8).abs() * 100, loss_fn=mean_square))
    assert (found.cause, found.op, found.module) == ("activation_overflow", "addmm", "body.2")


def test_an_fft_of_fp16_is_told_from_a_mismatch():
    found = only(on_cpu(Does(lambda m, x: torch.fft.rfft(m.part0(x)).abs(), nn.Linear(8, 8)), torch.randn(4, 8)))
    assert (found.cause, found.module) == ("fft_half", "") and "powers of two" in found.why


def test_a_division_by_the_number_0_and_an_output_that_is_no_container():
    found = only(on_cpu(Does(lambda m, x: Held(m.part0(x) / 0), nn.Linear(8, 2)), torch.randn(4, 8)))
    assert (found.cause, found.op) == ("division_by_zero", "div")


# The instrument


def test_a_model_is_left_as_it_was():
    model = models.cnn()
    model(torch.randn(4, 1, 8, 8)).sum().backward()
    before, gradients = copy.deepcopy(model.state_dict()), [p.grad.clone() for p in model.parameters()]
    state = torch.get_rng_state()
    (x,), y = models.example("cnn", 8)
    given = x.clone()
    for precision in ("fp16-mixed", "fp16-true"):
        on_cpu(model, x, y, cross_entropy, precision=precision)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), gradients, strict=True))
    assert torch.equal(torch.get_rng_state(), state) and torch.equal(x, given)


def test_no_hook_is_left_behind_by_success_or_failure():
    for model in (nn.Sequential(nn.Linear(4, 4)), nn.Sequential(nn.Linear(3, 3))):
        try:
            assert on_cpu(model, torch.ones(2, 4)).healthy
        except DoctorError:
            assert model[0].in_features == 3
        for module in model.modules():
            assert not module._forward_hooks and not module._forward_pre_hooks


def test_the_cpus_own_policy_computes_softmax_lower_than_cudas():
    x, y = tokens()
    seen = {}
    for policy in ("cuda", "cpu"):
        diagnosis = on_cpu(Block(Attention(16)), x, y, cross_entropy, policy=policy)
        assert diagnosis.healthy
        seen[policy] = next(op.output.dtype for op in diagnosis.ops if op.name == "_softmax")
    assert seen == {"cuda": torch.float32, "cpu": torch.float16}


def test_memory_that_nothing_was_written_to_is_nobodys_number():
    def fills(m, x):
        junk = torch.full((1 << 14,), math.nan).half()
        del junk  # the next tensor of this size is likely to lie there
        return m.part0(x) + torch.empty(1 << 14, dtype=HALF).zero_()[:4]

    diagnosis = on_cpu(Does(fills, nn.Linear(4, 4)), torch.randn(2, 4), loss_fn=mean_square)
    assert diagnosis.healthy and not any("empty" in op.name for op in diagnosis.ops)


def test_a_healthy_pass_says_how_much_room_it_has():
    (note, *_) = on_cpu(models.mlp(), torch.randn(2, 1, 8, 8), torch.zeros(2, dtype=torch.int64), cross_entropy).notes
    assert note.startswith("The largest FP16 numbers, of 65504: forward") and "backward at scale 65536" in note


def test_without_a_loss_only_the_forward_pass_is_examined_and_that_is_said():
    diagnosis = on_cpu(models.mlp(), torch.randn(2, 1, 8, 8))
    assert diagnosis.healthy and {op.phase for op in diagnosis.ops} == {"forward"}
    assert any("only the forward pass" in note for note in diagnosis.notes)


def test_an_output_with_minus_inf_on_purpose_is_healthy_and_with_nan_is_not():
    masked = nn.Sequential(nn.Linear(4, 4), Does(lambda m, x: x.masked_fill(torch.arange(4) > 2, -torch.inf)))
    assert on_cpu(masked, torch.randn(2, 4)).healthy
    broken = nn.Sequential(nn.Linear(4, 4), Does(lambda m, x: x.float().log()))
    assert only(on_cpu(broken, torch.randn(8, 4))).cause == "log_of_negative"


def test_gradients_are_named_by_the_module_whose_forward_they_are_of():
    diagnosis = on_cpu(models.mlp(), torch.randn(4, 1, 8, 8), torch.zeros(4, dtype=torch.int64), cross_entropy)
    products = [op.module for op in diagnosis.ops if op.phase == "backward" and op.name == "mm"]
    assert products == ["11", "11", "9", "9", "7", "7", "5", "5", "3", "3", "1"]
    rows = {row["module"]: row for row in diagnosis.modules()}
    assert rows["11"]["forward"] > 0 and rows["11"]["backward"] > rows["1"]["backward"] > 0


def test_what_cannot_be_asked_is_an_error_that_says_what_can():
    model, x = models.mlp(), torch.randn(2, 1, 8, 8)
    with pytest.raises(PrecisionError, match="no precision 'fp8'"):
        on_cpu(model, x, precision="fp8")
    with pytest.raises(DeviceError, match="TF32"):
        on_cpu(model, x, precision="tf32")
    with pytest.raises(DoctorError, match="policy"):
        on_cpu(model, x, policy="mps")
    with pytest.raises(DoctorError, match="greater than 0"):
        on_cpu(model, x, scale=0.0)
    with pytest.raises(DoctorError, match="returned float"):
        on_cpu(model, x, loss_fn=lambda z: 1.0)


def test_a_diagnosis_is_strict_json_and_text_that_fits_the_width():
    x, y = tokens()
    diagnosis = on_cpu(Block(wide(Attention(16), 8.0)), x.abs(), y, cross_entropy)
    record = json.loads(diagnosis.to_json())
    assert record["healthy"] is False and record["precision"] == "fp16-mixed"
    assert record["findings"][0]["cause"] == "attention_overflow" and record["findings"][0]["op"] == "bmm"
    assert {row["module"] for row in record["modules"]} >= {"attention.q", "attention"}
    for width in (60, 80, 100):
        assert max(len(line) for line in diagnosis.text(width).splitlines()) <= width


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="requires an NVIDIA GPU")
def test_on_a_gpu_the_same_failure_has_the_same_place_and_dtype():
    x, y = tokens()
    for model, healthy in ((Block(wide(Attention(16), 8.0)), False), (Block(Attention(16)), True)):
        here = examine(model, x.abs(), y, cross_entropy, device="cuda")
        there = examine(model, x.abs(), y, cross_entropy, device="cpu")
        assert here.healthy is there.healthy is healthy, str(here)
        places = [
            [(found.cause, found.op, found.module, found.dtype) for found in one.findings] for one in (here, there)
        ]
        assert places[0] == places[1]
