"""The loops: each trains for real, the broken one breaks for the reason that it teaches, each is a small step away."""

import ast
import math
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from ampkit import DeviceError, LoopError, PrecisionError, loops, models
from ampkit.data import Dataset, batches, digits
from ampkit.loops import LADDER, diff, rung, source
from ampkit.loops.run import accuracy, reports

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
    "ddp": 27,
    "compiled": 9,
    "explicit_casts": 7,
    "complete": 32,
}
ORDER = ["fp32", *CHANGED]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """These models are too small for two threads to help, and on a busy machine two wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def trained(name, *, steps=120, model=None, **options):
    torch.manual_seed(0)
    model = models.mlp() if model is None else model()
    return list(reports(name, model, device="cpu", steps=steps, **options)), model


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
    marks = [
        "with torch.autocast(device, dtype=torch.float16):  # 1 forward",
        "scaler.scale(loss).backward()  # 2 scaled backward",
        "scaler.unscale_(optimizer)  # 3 unscale",
        "scaler.step(optimizer)  # 4 step and update",
        "scaler.update()",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    if name == "clipped":
        assert places[2] < text.index("clip_grad_norm_") < places[3]


def test_a_loop_that_does_not_exist_is_an_error_with_the_closest_name():
    with pytest.raises(LoopError, match=r"'fp61'.*Did you mean fp16\?.*fp32, tf32, bf16, fp16_no_scaler, fp16, clipped"):
        rung("fp61")


# What each rung does


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16", "clipped"])
def test_the_loop_learns_the_digits(name):
    records, model = trained(name)
    assert [record.step for record in records] == list(range(120))
    assert records[-1].loss < records[0].loss / 4
    assert accuracy(model) > 0.85
    assert all(p.dtype is torch.float32 for p in model.parameters())
    assert [record.scale for record in records[:2]] == ([65536.0] * 2 if name in SCALED else [None] * 2)
    assert records[0].samples == 128 and records[0].seconds > 0 and records[0].peak_bytes is None


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
    records, _ = trained(name, steps=12, init_scale=2.0**44)
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
    (fp32,), _ = trained("fp32", steps=1)
    (fp16,), _ = trained(name, steps=1)
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


def test_an_option_that_a_loop_does_not_have_is_an_error_that_names_the_loops_that_do():
    with pytest.raises(LoopError, match=r"fp32 has no init_scale.*fp16, clipped"):
        trained("fp32", init_scale=2.0)
    with pytest.raises(LoopError, match=r"fp16 has no max_norm.*clipped"):
        trained("fp16", max_norm=1.0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="requires an NVIDIA GPU")
@pytest.mark.parametrize("name", NAMES)
def test_the_loop_does_on_a_gpu_what_it_does_on_the_cpu(name):
    torch.manual_seed(0)
    records = list(reports(name, models.mlp(), device="cuda", steps=120))
    assert records[-1].peak_bytes > 0
    if name == "fp16_no_scaler":
        assert all(record.grad_norm == 0 for record in records)
    else:
        assert records[-1].loss < records[0].loss / 4
