"""The loops: each trains for real, the broken one breaks for the reason that it teaches, each is a small step away."""

import ast
import math
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from ampkit import DeviceError, LoopError, Precision, PrecisionError, data, loops, models
from ampkit.data import Dataset, batches, digits
from ampkit.loops import LADDER, diff, rung, source, tf32
from ampkit.loops.run import accuracy, reports
from ampkit.precision import PRECISIONS

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="requires an NVIDIA GPU")

NAMES = [rung.name for rung in LADDER]
SCALED = ["fp16", "clipped", "accumulated", "scheduled", "resumable", "ddp", "compiled", "complete"]
HERE = [name for name in NAMES if name != "tf32"]  # what a CPU can compute
SMALL_LOSS = ["fp16", "clipped", "accumulated", "scheduled", "resumable", "ddp", "compiled"]  # have a loss_weight
# Lines that a learner must change to get from the neighbour to this rung: removed and added ones, counted as in a diff.
CHANGED = {
    "tf32": 4,
    "bf16": 3,
    "fp16_no_scaler": 2,
    "fp16": 15,
    "clipped": 3,
    "accumulated": 21,
    "scheduled": 11,
    "resumable": 38,
    "ddp": 26,
    "compiled": 9,
    "explicit_casts": 7,
    "complete": 32,
}
ORDER = ["fp32", *CHANGED]


def trained(name, *, steps=120, model=None, device="cpu", **options):
    torch.manual_seed(0)
    model = models.mlp() if model is None else model()
    if name == "compiled":
        options.setdefault("backend", "aot_eager")  # all of torch.compile but the compiler of C++ or Triton
    return list(reports(name, model, device=device, steps=steps, **options)), model


def weights(model):
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach().clone()


# The ladder


def test_the_ladder_has_thirteen_rungs_and_each_is_a_file_that_leads_back_to_fp32():
    assert NAMES == ORDER and len(NAMES) == 13
    files = {path.stem for path in Path(loops.__file__).parent.glob("*.py")}
    assert files == {*NAMES, "__init__", "run"}
    assert LADDER[0].neighbour is None
    for place, step in enumerate(LADDER[1:], start=1):
        assert step.neighbour in NAMES[:place]
    for name in NAMES:
        assert source(name).startswith(f'"""{name}: ')


def test_the_loops_are_flat():
    """One function, one page: no class, no callback, no **kwargs; a with or a for at most four deep."""
    looked = 0
    for name in NAMES:
        tree = ast.parse(source(name))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        assert [node.name for node in functions if node.name != "forward"] == ["train"]
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        assert not any(node.args.kwarg or node.args.vararg for node in functions)
        assert len(source(name).splitlines()) <= 115
        looked += 1
    assert looked == 13


def test_each_rung_is_a_few_lines_away_from_its_neighbour():
    counted = {}
    for step in LADDER[1:]:
        lines = diff(step.neighbour, step.name).splitlines()
        assert lines[:2] == [f"--- {step.neighbour}.py", f"+++ {step.name}.py"]
        counted[step.name] = sum(line[0] in "+-" for line in lines[2:])
    assert counted == CHANGED


def test_a_diff_leaves_the_docstrings_out_and_is_empty_from_a_rung_to_itself():
    for name in NAMES:
        assert diff(name, name) == ""
        first = ast.get_docstring(ast.parse(source(name))).splitlines()[0]
        assert first not in diff("fp32" if name != "fp32" else "clipped", name)


@pytest.mark.parametrize("name", SCALED)
def test_the_amp_lines_are_literal_and_numbered_in_their_order(name):
    text = source(name)
    forward = {
        "compiled": "loss = loss_weight * loss_fn(compiled(inputs).float(), targets)  # 1 forward",
        "complete": "with precision.autocast(device):  # 1 forward",
    }
    marks = [
        forward.get(name, "with torch.autocast(device, dtype=torch.float16):  # 1 forward"),
        "scaler.scale(loss).backward()  # 2 scaled backward",
        "scaler.unscale_(optimizer)  # 3 unscale",
        "scaler.step(optimizer)  # 4 step and update",
        "scaler.update()",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    if "max_norm" in text:
        assert places[2] < text.index("clip_grad_norm_") < places[3]


def test_a_loop_that_does_not_exist_is_an_error_with_the_closest_name():
    with pytest.raises(
        LoopError, match=r"'fp61'.*Did you mean fp16\?.*fp32, tf32, bf16, fp16_no_scaler, fp16, clipped"
    ):
        rung("fp61")


# What each rung does


@pytest.mark.parametrize("name", [name for name in HERE if name != "fp16_no_scaler"])
def test_the_loop_learns_the_digits(name):
    decays = rung(name).scheduled  # and so learns less in the same number of steps
    records, model = trained(name)
    assert [record.step for record in records] == list(range(120))
    assert records[-1].loss < records[0].loss / (2 if decays else 4)
    assert accuracy(model) > (0.7 if decays else 0.85)
    assert all(p.dtype is torch.float32 for p in model.parameters())
    assert [record.scale for record in records[:2]] == ([65536.0] * 2 if name in SCALED else [None] * 2)
    assert records[0].samples == (512 if name in ("accumulated", "ddp") else 128)
    assert records[0].seconds > 0 and records[0].peak_bytes is None
    assert (records[0].lr is None) == (not decays)


# A refactoring is proven by the same bits: what a rung adds, switched off, leaves the training as it was.


@pytest.mark.parametrize(
    ("one", "options", "other", "more"),
    [
        ("clipped", {}, "accumulated", {"accumulate": 1}),
        ("accumulated", {}, "ddp", {}),  # one rank
        ("scheduled", {}, "resumable", {}),
        ("resumable", {"loss_weight": 1.0}, "complete", {}),
        ("accumulated", {"loss_weight": 1.0}, "complete", {"accumulate": 4}),  # but for the schedule: the first step
        ("fp16", {}, "compiled", {}),
        ("bf16", {}, "explicit_casts", {}),
        ("fp32", {"loss_weight": 1.0}, "complete", {"precision": "fp32"}),  # but for the clip and the schedule
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_two_rungs_that_should_compute_the_same_do_so_bit_for_bit(one, options, other, more):
    steps = 1 if other == "complete" and one != "resumable" else 10
    mine, model = trained(one, steps=steps, **options)
    theirs, same = trained(other, steps=steps, **more)
    assert [(r.loss, r.grad_norm, r.samples) for r in mine] == [(r.loss, r.grad_norm, r.samples) for r in theirs]
    assert torch.equal(weights(model), weights(same))


def test_fp16_without_a_scaler_learns_nothing_because_every_gradient_underflows_to_zero():
    torch.manual_seed(0)
    start = [p.detach().clone() for p in models.mlp().parameters()]
    records, model = trained("fp16_no_scaler", steps=40)
    assert all(record.grad_norm == 0 for record in records)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), start, strict=True))
    assert accuracy(model) < 0.25

    # the same weights and batch in FP32: the gradient is there, and its parts that flow back are below half of the
    # smallest FP16 number, 2**-25
    (fp32,), _ = trained("fp32", steps=1)
    assert 1e-8 < fp32.grad_norm < 1e-6


def test_fp16_without_a_scaler_learns_when_the_loss_has_no_small_weight():
    records, _ = trained("fp16_no_scaler", loss_weight=1.0)
    assert records[-1].loss < records[0].loss / 4


@pytest.mark.parametrize("exponent", [-10, -20, -40])
def test_in_fp32_a_loss_weight_that_is_a_power_of_two_changes_no_bit_of_the_training(exponent):
    plain, model = trained("fp32", steps=30, loss_weight=1.0)
    small, other = trained("fp32", steps=30, loss_weight=2.0**exponent)
    assert [record.loss for record in small] == [record.loss for record in plain]
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("name", SCALED)
def test_an_overflow_skips_the_step_and_halves_the_scale(name):
    high = 2.0**44 if name in SMALL_LOSS else 2.0**24
    records, _ = trained(name, steps=12, init_scale=high)
    skipped = [record.skipped for record in records]
    count = sum(skipped)
    assert 1 <= count < 12 and skipped == [True] * count + [False] * (12 - count)
    for before, after in pairwise(records[: count + 1]):
        assert not math.isfinite(before.grad_norm)
        assert after.scale == before.scale / 2
        assert after.step == before.step + 1
    assert all(math.isfinite(record.loss) for record in records)  # the loss that is printed is not the scaled one


def test_a_skipped_step_leaves_the_weights_as_they_were():
    torch.manual_seed(0)
    start = [p.detach().clone() for p in models.mlp().parameters()]
    (record,), model = trained("fp16", steps=1, init_scale=2.0**60)
    assert record.skipped
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), start, strict=True))


@pytest.mark.parametrize("name", SCALED)
def test_the_gradient_norm_in_the_record_is_the_true_one(name):
    weight = {} if name in SMALL_LOSS else {"loss_weight": 1.0}
    one = {"accumulate": 1} if name in ("accumulated", "ddp") else {}
    (fp32,), _ = trained("fp32", steps=1, **weight)
    (fp16,), _ = trained(name, steps=1, **one)
    eps = torch.finfo(torch.float16).eps
    assert fp16.grad_norm == pytest.approx(fp32.grad_norm, rel=4 * eps)


def test_clipping_bounds_the_step_that_the_true_gradient_makes():
    torch.manual_seed(0)
    start = torch.nn.utils.parameters_to_vector(models.mlp().parameters()).detach().clone()
    max_norm, lr = 0.01, 0.1
    (record,), model = trained("clipped", steps=1, loss_weight=1.0, max_norm=max_norm, lr=lr)
    moved = torch.nn.utils.parameters_to_vector(model.parameters()).detach() - start
    assert record.grad_norm > 2 * max_norm
    assert moved.norm().item() == pytest.approx(lr * max_norm, rel=1e-3)


def test_the_same_seed_gives_the_same_run():
    first, _ = trained("fp16", steps=5, seed=3)
    again, _ = trained("fp16", steps=5, seed=3)
    other, _ = trained("fp16", steps=5, seed=4)
    assert [r.loss for r in first] == [r.loss for r in again] != [r.loss for r in other]


def test_the_convolutional_model_with_batchnorm_trains_as_well():
    records, model = trained("fp16", steps=40, model=models.cnn, batch_size=32)
    assert records[-1].loss < records[0].loss / 2
    assert accuracy(model) > 0.7


# Accumulation


def ragged(name, count, **options):
    """One step from a window of 5 and count - 5 examples: the record, and the gradient that the step went along."""
    generator = torch.Generator().manual_seed(1)
    inputs, targets = torch.randn(count, 12, generator=generator), torch.arange(count) % 3
    torch.manual_seed(0)
    model = torch.nn.Linear(12, 3)
    before = weights(model)
    held_out = inputs[:0], targets[:0]
    options |= dict(
        device="cpu", steps=1, batch_size=5, lr=1.0, max_norm=1e9, dataset=Dataset(inputs, targets, *held_out)
    )
    (record,) = reports(name, model, **options)
    whole = torch.nn.Linear(12, 3)
    torch.nn.utils.vector_to_parameters(before, whole.parameters())
    models.cross_entropy(whole(inputs), targets).backward()
    gradient = torch.cat([p.grad.flatten() for p in whole.parameters()])
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))  # as data.Batches draws it
    means = torch.zeros_like(gradient)
    for rows in order.split(5):
        whole.zero_grad()
        models.cross_entropy(whole(inputs[rows]), targets[rows]).backward()
        means += torch.cat([p.grad.flatten() for p in whole.parameters()]) / 2
    return record, before - weights(model), gradient, means


@pytest.mark.parametrize("name", ["accumulated", "ddp", "complete"])
def test_in_a_short_window_each_sample_weighs_the_same(name):
    record, moved, gradient, mean_of_means = ragged(name, 7, accumulate=3)
    assert record.samples == 7
    eps = torch.finfo(torch.float16).eps
    assert (moved - gradient).norm() < 4 * eps * gradient.norm()
    assert (mean_of_means - gradient).norm() > 100 * eps * gradient.norm()  # what the check would notice


def test_windows_end_with_the_epoch_and_each_is_one_step():
    records, _ = trained("accumulated", steps=9)
    # 1400 images: ten micro-batches of 128 and one of 120, in windows of four
    assert [record.samples for record in records] == [512, 512, 376] * 3


# The schedule


@pytest.mark.parametrize(("name", "high"), [("scheduled", 2.0**44), ("resumable", 2.0**44), ("complete", 2.0**24)])
def test_a_skipped_step_does_not_move_the_schedule(name, high):
    records, _ = trained(name, steps=14, init_scale=high)
    skipped = sum(record.skipped for record in records)
    assert 1 <= skipped < 10
    rates = [record.lr for record in records]
    assert len(set(rates[: skipped + 1])) == 1  # the first step that is taken still has the first rate
    assert all(before > after for before, after in pairwise(rates[skipped:]))
    plain, _ = trained(name, steps=14)
    assert rates[skipped:] == [record.lr for record in plain][: 14 - skipped]


# torch.compile, casts, precisions


class Island(torch.nn.Module):
    """A layer under autocast and one that is kept out of it."""

    def __init__(self):
        super().__init__()
        self.low, self.high = torch.nn.Linear(64, 64), torch.nn.Linear(64, 10)

    def forward(self, x):
        h = self.low(x.flatten(1))
        with torch.autocast("cpu", enabled=False):
            return self.high(h.float())


def test_compiled_keeps_the_backward_of_an_fp32_island_which_autocast_around_it_does_not():
    options = dict(steps=1, loss_weight=1.0)
    eager, model = trained("fp16", model=Island, **options)
    compiled, same = trained("compiled", model=Island, **options)
    assert compiled[0].grad_norm == eager[0].grad_norm and torch.equal(weights(model), weights(same))

    torch.manual_seed(0)
    around = Island()
    inputs, targets = next(batches(*digits()[:2], 128))
    outside = torch.compile(around, backend="aot_eager")
    scaler = torch.amp.GradScaler("cpu")
    with torch.autocast("cpu", dtype=torch.float16):
        outputs = outside(inputs)
    scaler.scale(models.cross_entropy(outputs.float(), targets)).backward()
    gradient = torch.cat([p.grad.flatten() / 65536 for p in around.parameters()])
    torch.manual_seed(0)
    moved = (weights(Island()) - weights(model)) / 0.1
    torch.testing.assert_close(gradient, moved, rtol=1e-2, atol=1e-4)  # the same, but for FP16's rounding
    assert (gradient - moved).abs().max() > 1e-6


@pytest.mark.slow
def test_the_compiled_loop_learns_with_the_default_compiler():
    pytest.importorskip("torch._inductor", reason="requires PyTorch's inductor")
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("requires a C++ compiler")
    records, _ = trained("compiled", steps=30, backend="inductor")
    assert records[-1].loss < records[0].loss / 2


@pytest.mark.parametrize("name", ["fp32", "bf16-mixed", "fp16-mixed", "bf16-true", "fp16-true"])
def test_complete_trains_in_every_precision_of_the_cpu(name):
    records, model = trained("complete", precision=name, lr=0.2)
    assert records[-1].loss < records[0].loss / 2
    assert {p.dtype for p in model.parameters()} == {Precision(name).param_dtype}
    assert [record.scale for record in records[:2]] == ([65536.0] * 2 if name == "fp16-mixed" else [None] * 2)
    assert accuracy(model) > 0.7


def test_a_decoder_learns_pythons_own_text():
    text = data.text(64)
    text = Dataset(*text[:2], text.test_inputs[:50], text.test_targets[:50])
    options = dict(dataset=text, batch_size=16, lr=models.MODELS["gpt_tiny"].lr, precision="bf16-mixed")
    records, model = trained("complete", steps=12, model=lambda: models.build("gpt_tiny"), **options)
    assert records[0].loss == pytest.approx(math.log(256), abs=0.2)  # it begins with every byte as likely
    assert records[-1].loss < 0.75 * records[0].loss
    assert accuracy(model, text) > 0.1


@pytest.mark.slow
def test_an_encoder_learns_to_tell_english_from_code():
    text = data.text(64, next_token=False)
    text = Dataset(*text[:2], text.test_inputs[:400], text.test_targets[:400])
    options = dict(dataset=text, batch_size=32, lr=models.MODELS["bert_tiny"].lr)
    records, model = trained(
        "complete", precision="fp32", steps=120, model=lambda: models.build("bert_tiny"), **options
    )
    assert sum(record.loss for record in records[-10:]) < 0.9 * 10 * math.log(2)
    assert accuracy(model, text) > 0.7


# What a loop refuses


def test_an_option_that_a_loop_does_not_have_is_an_error_that_names_the_loops_that_do():
    with pytest.raises(LoopError, match=r"fp32 has no init_scale.*fp16, clipped"):
        trained("fp32", init_scale=2.0)
    with pytest.raises(LoopError, match=r"fp16 has no max_norm.*clipped, accumulated"):
        trained("fp16", max_norm=1.0)
    with pytest.raises(LoopError, match=r"bf16 has no accumulate.*one that has it: accumulated, ddp, complete\."):
        trained("bf16", accumulate=2)
    with pytest.raises(LoopError, match=r"fp16 has no precision.*one that has it: complete\."):
        trained("fp16", precision="bf16-mixed")
    with pytest.raises(LoopError, match=r"complete has no loss_weight"):
        trained("complete", loss_weight=1.0)
    with pytest.raises(LoopError, match=r"--batch-size: batch_size is 1401; .*between 1 and .*1400"):
        trained("fp16", batch_size=1401)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"precision": "bf16-mixed", "init_scale": 8.0}, PrecisionError, "bf16-mixed needs no GradScaler.*fp16-mixed"),
        ({"precision": "fp16-true", "init_scale": 8.0}, PrecisionError, "Train in fp16-mixed"),
        ({"precision": "fp8"}, PrecisionError, "no precision 'fp8'. Choose one of: fp32"),
        ({"precision": "tf32"}, DeviceError, "the CPU has none.*fp32, bf16-mixed, fp16-mixed"),
    ],
)
def test_a_precision_that_cannot_be_is_an_error_that_names_what_can(options, error, words):
    with pytest.raises(error, match=words):
        trained("complete", **options)


def test_tf32_on_a_cpu_is_an_error_and_never_fp32_in_its_place():
    with pytest.raises(DeviceError, match=r"TF32 is a mode of NVIDIA's tensor cores; the CPU has none\..*fp32"):
        trained("tf32")
    train = tf32.train(models.mlp(), batches(*digits()[:2], 8), device="cpu", steps=1, lr=0.1)
    with pytest.raises(DeviceError, match="the CPU has none"):
        next(train)


@pytest.mark.skipif(torch.cuda.is_available(), reason="requires a machine without a CUDA GPU")
@pytest.mark.parametrize("name", NAMES)
def test_cuda_where_there_is_none_is_an_error_in_every_loop(name):
    with pytest.raises(DeviceError, match="CUDA was asked for, and PyTorch sees no CUDA GPU here"):
        reports(name, models.mlp(), device="cuda")


# On a GPU


@pytest.mark.gpu
@GPU
@pytest.mark.parametrize("name", NAMES)
def test_the_loop_does_on_a_gpu_what_it_does_on_the_cpu(name):
    flags = torch.backends.cuda.matmul.fp32_precision, torch.backends.cudnn.conv.fp32_precision
    records, model = trained(name, device="cuda")
    assert (torch.backends.cuda.matmul.fp32_precision, torch.backends.cudnn.conv.fp32_precision) == flags
    assert records[-1].peak_bytes > 0
    assert [record.scale for record in records[:2]] == ([65536.0] * 2 if name in SCALED else [None] * 2)
    if name == "fp16_no_scaler":
        assert all(record.grad_norm == 0 for record in records)
        return
    assert records[-1].loss < records[0].loss / (2 if rung(name).scheduled else 4)
    assert accuracy(model) > 0.7
    here = "fp32" if name == "tf32" else name
    (cpu,), _ = trained(here, steps=1)
    assert records[0].loss == pytest.approx(cpu.loss, rel=1e-2)
    assert records[0].grad_norm == pytest.approx(cpu.grad_norm, rel=2e-2)


@pytest.mark.gpu
@GPU
@pytest.mark.parametrize("name", SCALED)
def test_on_a_gpu_an_overflow_skips_the_step_and_halves_the_scale(name):
    high = 2.0**44 if name in SMALL_LOSS else 2.0**24
    records, _ = trained(name, steps=12, device="cuda", init_scale=high)
    count = sum(record.skipped for record in records)
    assert 1 <= count < 12 and all(record.skipped for record in records[:count])
    assert records[count].scale == high / 2**count


@pytest.mark.gpu
@GPU
@pytest.mark.parametrize("name", PRECISIONS)
def test_complete_trains_on_a_gpu_in_every_precision_that_it_has(name):
    try:
        Precision(name).check("cuda")
    except DeviceError as error:
        pytest.skip(f"requires a GPU that computes in {name}: {error}")
    records, model = trained("complete", precision=name, lr=0.2, device="cuda")
    assert records[-1].loss < records[0].loss / 2
    assert {p.dtype for p in model.parameters()} == {Precision(name).param_dtype}


@pytest.mark.gpu
@GPU
@pytest.mark.slow
def test_the_compiled_loop_learns_on_a_gpu_with_the_default_compiler():
    records, _ = trained("compiled", steps=30, backend="inductor", device="cuda")
    assert records[-1].loss < records[0].loss / 2
