"""How the answers of assignment 4 are probed.

Every forward pass is in FP16 where the answer makes it so: layers with one input feature, whose outputs and gradients are
single products, so that no sum is taken in FP16 and the evidence is the same bits on every machine. Weights, losses and
learning rates lie on grids of powers of two: whether an answer divides before or after `backward` shows nowhere.
"""

import builtins
import contextlib
import copy
import io
import os
import pickle
import sys
import tempfile
import threading
from pathlib import Path

import torch
from torch import nn
from torch.optim import lr_scheduler

from autograder import trace
from autograder.probes import Exercise


def power(scale):
    return f"2**{scale.hex().partition('p')[2].lstrip('+')}"


def flat(tensors):
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def clear(optimizer):
    optimizer.zero_grad(set_to_none=True)


def note(words):
    """Write into the record of calls, which tells apart in words what leaves the same numbers."""
    trace.recorded(words, lambda: None)()


def mode_of(module):
    return "training mode" if module.training else "evaluation mode"


def on_grid(p, *shape):
    """Numbers between -1 and 1 that FP16 holds exactly."""
    return torch.randint(-64, 65, shape, generator=p.torch) / 64


# ---------------------------------------------------------------------------------------------------------------- 1

train = Exercise(
    "train",
    parts={"accumulate": 2, "tail": 1, "clip": 1, "skip": 1, "losses": 1},
    keys={"returned": "losses", "loss": "losses", "mode": "losses"},
    labels={
        "returned": "the returned losses",
        "loss": "the loss was computed",
        "parameters": "the parameters at the end",
        "scale": "the scale at the end",
        "lr": "the learning rate at the end",
        "outputs": "the model's outputs, as loss_fn got them",
        "mode": "the model computed in",
        "steps": "the windows whose gradients are as long as max_norm when the optimizer steps",
    },
    ulps=32,
)
WIDTH = 8
SPOILT = 2.0**30  # the weight of a sample whose gradient overflows FP16, whatever it is divided by
FAR = 64.0  # an aim that no output reaches: the gradient's sign never changes


class Two(nn.Module):
    """Two layers beside each other, (N, 1) -> (N, WIDTH)."""

    def __init__(self, p):
        super().__init__()
        self.left, self.right = (nn.Linear(1, WIDTH // 2, bias=False) for _ in range(2))
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(on_grid(p, *weight.shape))
        self.modes = []

    def forward(self, x):
        self.modes.append(mode_of(self))
        return torch.cat([self.left(x), self.right(x)], -1)


class Distance:
    """The mean of weight * |output - aim|, for a target (N, WIDTH, 2) of aims and weights. In FP64, where the order of
    additions does not show. Keeps the outputs that it is called with, whether a loss of PyTorch's would compute in FP32
    there (autocast sees to it in its region, and FP32 outputs do anywhere), and what comes backward to it."""

    def __init__(self):
        self.outputs, self.precise, self.gradients = [], True, []

    def __call__(self, output, target):
        self.outputs.append(output.detach().float())
        self.precise &= torch.is_autocast_enabled("cpu") or output.dtype != torch.float16
        aim, weight = target.unbind(-1)
        loss = ((output.double() - aim).abs() * weight).mean().float()
        if loss.requires_grad:
            loss.register_hook(lambda gradient: self.gradients.append(float(gradient)))
        return loss


def far_batch(p, weight=2.0**-3):
    """One micro-batch of one or two samples with far aims, so that its gradient does not depend on the weights."""
    n = p.random.choice([1, 2])
    x = torch.tensor([[p.random.choice([-2.0, -1.0, 1.0, 2.0])] for _ in range(n)])
    aims = (torch.randint(0, 2, (n, WIDTH), generator=p.torch) * 2 - 1) * FAR
    # multiples of 3: a third of one is exact too
    weights = torch.randint(1, 20, (n, WIDTH), generator=p.torch) * 3 * weight
    return x, torch.stack([aims, weights], -1)


def near_batches(model, p, count, lr):
    """Equal micro-batches whose aims are so near that each step crosses them: the sign of each gradient depends on the
    weights that the forward pass used."""
    weights = torch.tensor([p.random.choice([2.0, 4.0]) for _ in range(WIDTH)])
    sides = torch.randint(0, 2, (WIDTH,), generator=p.torch) * 2 - 1
    # 11/32 of the first step: the steps are halved each time, and no sum of them is that, so no aim is ever met
    aims = flat(model.parameters()) + sides * 11 / 32 * lr * weights / WIDTH
    return [(torch.ones(1, 1), torch.stack([aims, weights], -1)[None]) for _ in range(count)]


def spoil(batch):
    batch[1][0, 3, 1] = SPOILT
    return batch


def words_of(overflows):
    where = ", ".join(str(i + 1) for i in overflows)
    return f"; the gradients of micro-batch {where} overflow FP16" if overflows else ""


def gradients_of(model):
    return [torch.zeros_like(w) if w.grad is None else w.grad for w in model.parameters()]


END = ("parameters", "scale", "lr")


def training(
    answer, p, count, accumulate, *, batches=far_batch, lr=0.5, interval=1000, scale=None, max_norm=None, overflows=(),
    momentum=0.0, defaults=False, see=(*END, "returned"),
):  # fmt: skip
    """Train once on `count` micro-batches and see how it ended."""
    scale = scale or 2.0 ** p.random.randint(5, 8)
    model, loss_fn = Two(p), Distance()
    optimizer = trace.watch(torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum))
    lengths = []
    optimizer.register_step_pre_hook(lambda *_: lengths.append(float(flat(gradients_of(model)).norm())))
    scheduler = trace.watch_scheduler(lr_scheduler.ExponentialLR(optimizer, gamma=0.5))
    scaler = trace.GradScaler(init_scale=scale, growth_interval=interval)
    batches = near_batches(model, p, count, lr) if batches is near_batches else [batches(p) for _ in range(count)]
    for i in overflows:
        spoil(batches[i])
    window = "" if defaults else f", accumulate {accumulate}"
    limit = "" if max_norm is None else f", max_norm {max_norm:g}"
    p.given(
        f"{count} micro-batches{window}{limit}, scale {power(scale)}, growth_interval {interval}{words_of(overflows)}"
    )
    arguments = {} if defaults else {"accumulate": accumulate, "max_norm": max_norm}
    returned = answer(model, batches, optimizer, scheduler, scaler, loss_fn, "cpu", **arguments)
    # a scale is at least 32 here, and a window has at most 8 micro-batches
    note("backward with the scale" if max(loss_fn.gradients, default=0) > 2 else "backward without the scale")
    seen = {
        "parameters": flat(model.parameters()),
        "scale": scaler.get_scale(),
        "lr": optimizer.param_groups[0]["lr"],
        "returned": returned,
        "outputs": loss_fn.outputs,
        "loss": "in the autocast region" if loss_fn.precise else "on FP16 outputs outside of the autocast region",
        "mode": ", ".join(sorted(set(model.modes))),
        "steps": "all" if all(0.99 <= length / (max_norm or 1.0) <= 1.01 for length in lengths) else "not all",
    }
    for key in see:
        p.see(key, seen[key])


@train.probe()
def one_micro_batch_each(answer, p):
    """accumulate 1, its default, and no max_norm"""
    training(answer, p, p.random.randint(3, 5), 1, defaults=True)


@train.probe()
def windows(answer, p):
    """windows of several micro-batches"""
    training(answer, p, 4 * p.random.randint(2, 3), 4)


@train.probe()
def windows_with_momentum(answer, p):
    """windows of several micro-batches, SGD with momentum"""
    training(answer, p, 8, 2, momentum=0.5, lr=0.25)


@train.probe()
def crossing_the_aim(answer, p):
    """gradients whose sign depends on the weights that the forward pass uses"""
    accumulate = p.random.choice([1, 2])
    training(answer, p, 4 * accumulate, accumulate, batches=near_batches, see=(*END, "returned", "outputs"))


@train.probe()
def precision_of_the_forward_pass(answer, p):
    """inputs that FP32, FP16 and BF16 hold with different precision"""

    def batch(p):
        _, target = far_batch(p)
        # FP16 rounds to 1 + k / 1024, BF16 to 1, and FP32 keeps it
        x = 1 + (p.random.choice([3, -3, -2]) + p.random.uniform(0.2, 0.4)) / 1024
        return torch.full((len(target), 1), x), target

    training(answer, p, 2, 1, batches=batch, see=("outputs", "loss", "mode"))


@train.probe()
def tiny_gradients(answer, p):
    """true gradients that FP16 loses when they are not scaled"""
    training(
        answer, p, 4, p.random.choice([1, 2]), batches=lambda p: far_batch(p, 2.0**-30), lr=2.0**24, scale=2.0**16,
        see=("parameters", "scale"),
    )  # fmt: skip


@train.probe("tail")
def last_window_of_one(answer, p):
    """a last window of a single micro-batch"""
    accumulate = p.random.choice([2, 4])
    training(answer, p, accumulate * p.random.randint(1, 2) + 1, accumulate)


@train.probe("tail")
def shorter_last_window(answer, p):
    """a last window that is shorter than accumulate"""
    accumulate, tail = p.random.choice([(4, 2), (8, 2), (8, 4)])
    training(answer, p, accumulate * p.random.randint(1, 2) + tail, accumulate)


@train.probe("tail")
def fewer_micro_batches_than_accumulate(answer, p):
    """fewer micro-batches than accumulate"""
    training(answer, p, p.random.choice([1, 2]), 4)


@train.probe("tail")
def last_window_of_three(answer, p):
    """a last window of three"""
    training(answer, p, 7, 4, see=END)


@train.probe("clip")
def above_max_norm(answer, p):
    """true gradients above max_norm"""
    accumulate = p.random.choice([2, 4])
    training(
        answer, p, 3 * accumulate, accumulate, max_norm=2.0 ** p.random.randint(-6, -4), lr=2.0,
        scale=2.0 ** p.random.randint(6, 8), see=END,
    )  # fmt: skip


@train.probe("clip")
def above_max_norm_each(answer, p):
    """true gradients above max_norm, accumulate 1"""
    training(answer, p, 3, 1, max_norm=2.0**-5, lr=2.0, scale=2.0**7, see=END)


@train.probe("clip")
def above_max_norm_in_a_shorter_last_window(answer, p):
    """true gradients above max_norm, and a last window that is shorter than accumulate"""
    # Only how long the steps are: whoever leaves out the last window has lost another part for that.
    accumulate = p.random.choice([2, 4])
    training(answer, p, 2 * accumulate + 1, accumulate, max_norm=2.0**-5, lr=2.0, scale=2.0**7, see=("steps",))


@train.probe("clip")
def below_max_norm(answer, p):
    """true gradients below max_norm, which are not to be clipped, although the scaled ones are above it"""
    training(answer, p, 6, 2, max_norm=30.0, scale=2.0**10, see=END)


@train.probe("clip")
def overflow_with_max_norm(answer, p):
    """an overflow, max_norm given"""
    training(answer, p, 8, 2, max_norm=2.0**-5, lr=2.0, overflows=[p.random.randint(0, 3)], see=END)


@train.probe("skip")
def overflow_of_a_single_micro_batch(answer, p):
    """an overflow, accumulate 1"""
    training(answer, p, 4, 1, overflows=[p.random.randint(0, 2)])


@train.probe("skip")
def overflow_in_a_window(answer, p):
    """an overflow in one micro-batch of a window"""
    accumulate = p.random.choice([2, 4])
    training(answer, p, 4 * accumulate, accumulate, overflows=[accumulate + p.random.randrange(accumulate)])


@train.probe("skip")
def overflow_at_once(answer, p):
    """overflows at the beginning and in the shorter last window"""
    training(answer, p, 9, 2, overflows=[p.random.choice([0, 1]), 8])


@train.probe("skip")
def growing_scale(answer, p):
    """a scale that grows"""
    training(answer, p, 8, 2, interval=p.random.choice([1, 2]))


@train.probe("skip")
def overflow_and_growth(answer, p):
    """an overflow, and a scale that grows at every step that lands"""
    training(answer, p, 8, 2, overflows=[p.random.choice([2, 3])], interval=1, momentum=0.5, lr=0.25)


def in_parts(exercise, failed):
    return {exercise.part_of(exercise.probes[c.probe], c.key) for c in failed}


def lr_of(failed, part):
    """Pairs of expected and got learning rates among what failed in the probes of a part."""
    return [(c.expected, c.got) for c in failed if c.key == "lr" and train.probes[c.probe].part == part]


@train.symptom("tail_dropped")
def fewer_steps_where_a_tail_is_left(failed):
    return "accumulate" not in in_parts(train, failed) and any(
        got > expected for expected, got in lr_of(failed, "tail")
    )


@train.symptom("tail_divided_by_full")
def another_step_for_the_tail(failed):
    found = in_parts(train, failed)
    return "accumulate" not in found and "tail" in found and not lr_of(failed, "tail")


@train.symptom("schedules_on_skip")
def smaller_learning_rate_after_a_skip(failed):
    return "accumulate" not in in_parts(train, failed) and any(
        got < expected for expected, got in lr_of(failed, "skip")
    )


# ---------------------------------------------------------------------------------------------------------------- 2

# FP16 rounds the gradient of a token before the sum, so that it shows whether it was divided by the number of tokens before
# that or after: in the last bits of FP16, which are 2**13 times FP32's, and more where micro-batches pull apart.
token_mean_step = Exercise(
    "token_mean_step",
    parts={"gradient": 2, "loss": 1},
    keys={"returned": "loss", "mode": "loss"},
    labels={
        "returned": "the returned loss",
        "mode": "the model computed in",
        "update": "the change of the parameters",
        "scale": "the scale",
        "precision": "the dtype of the forward pass",
    },
    ulps=2.0**17,
)


class Speller(nn.Module):
    """Logits (*, classes), FP32, for tokens x (*); notes the dtype that they were computed in."""

    def __init__(self, p, classes):
        super().__init__()
        self.layer = nn.Linear(1, classes, bias=False)
        self.computed_in, self.modes = set(), set()
        with torch.no_grad():
            self.layer.weight.copy_(on_grid(p, classes, 1))

    def forward(self, x):
        logits = self.layer(x[..., None])
        self.modes.add(mode_of(self))
        self.computed_in.add(str(logits.dtype).removeprefix("torch."))
        return logits.float()


def token_window(p, valid, classes, ignore_index, flip=1.0):
    """One micro-batch (x, y) for each number of valid tokens. Its tokens look alike, and different from those of the
    others, so that it matters how much each micro-batch counts."""
    window = []
    for number, count in enumerate(valid):
        rows, columns = p.random.choice([(2, 6), (3, 4), (1, 12)])
        x = torch.full((rows * columns,), [1.0, -1.0, 2.0, -2.0][number % 4] * flip)
        y = torch.full((rows * columns,), ignore_index)
        allowed = [c for c in range(classes) if c != ignore_index]
        usual = allowed[number % len(allowed)]
        places = torch.randperm(rows * columns, generator=p.torch)[:count]
        y[places] = torch.tensor(
            [usual if p.random.random() < 0.8 else p.random.choice(allowed) for _ in range(count)]
        ).long()
        window.append((x.reshape(rows, columns), y.reshape(rows, columns)))
    return window


def spelling(answer, p, windows, *, ignore_index=-100, scale=None, interval=1000, backoff=0.5, positional=False):
    """One call for each list of numbers of valid tokens."""
    scale = scale or 2.0 ** p.random.randint(5, 8)
    classes = p.random.choice([4, 5])
    model = Speller(p, classes)
    optimizer = trace.watch(torch.optim.SGD(model.parameters(), lr=1.0))
    scaler = trace.GradScaler(init_scale=scale, growth_interval=interval, backoff_factor=backoff)
    ignored = "" if ignore_index == -100 else f", ignore_index {ignore_index}"
    p.given(
        "; then ".join(f"micro-batches with {', '.join(map(str, valid))} valid tokens of 12" for valid in windows)
        + f"; scale {power(scale)}{ignored}"
    )
    for call, valid in enumerate(windows, 1):
        clear(optimizer)
        before = flat(model.parameters()).clone()
        window = token_window(p, valid, classes, ignore_index, flip=1.0 if call % 2 else -1.0)
        arguments = {} if ignore_index == -100 else {"ignore_index": ignore_index}
        returned = answer(model, window, optimizer, scaler, "cpu", **arguments)
        moved = flat(model.parameters()) - before
        note(f"moved {float(moved.norm()):.4g}")  # the order of calls alone says nothing of what was divided by what
        p.see(f"update in call {call}", moved)
        p.see(f"scale after call {call}", scaler.get_scale())
        p.see(f"precision in call {call}", ", ".join(sorted(model.computed_in)))
        p.see(f"returned in call {call}", returned)
    p.see("mode", ", ".join(sorted(model.modes)))


def unequal(p, count):
    """Numbers of valid tokens that differ much."""
    few = [p.random.randint(1, 3) for _ in range(count - 1)]
    valid = [*few, p.random.randint(8, 12)]
    p.random.shuffle(valid)
    return valid


@token_mean_step.probe(draws=3)
def unequal_micro_batches(answer, p):
    """micro-batches with different numbers of valid tokens"""
    count = p.random.choice([2, 3, 4])
    spelling(answer, p, [unequal(p, count), unequal(p, count)])


@token_mean_step.probe()
def no_padding(answer, p):
    """micro-batches without an ignored token"""
    spelling(answer, p, [[12, 12, 12]])


@token_mean_step.probe()
def one_micro_batch(answer, p):
    """a single micro-batch"""
    spelling(answer, p, [[p.random.randint(4, 9)], [p.random.randint(4, 9)]])


@token_mean_step.probe(draws=2)
def another_ignore_index(answer, p):
    """an ignore_index that is a class as well"""
    spelling(answer, p, [unequal(p, 3)], ignore_index=p.random.choice([0, 2]))


@token_mean_step.probe()
def negative_ignore_index(answer, p):
    """an ignore_index of -1"""
    spelling(answer, p, [unequal(p, 2)], ignore_index=-1)


@token_mean_step.probe()
def overflow_of_tokens(answer, p):
    """an overflow, whose step is skipped, then an ordinary step"""
    spelling(answer, p, [unequal(p, 2), unequal(p, 2)], scale=2.0**30, backoff=2.0**-23)


@token_mean_step.probe(draws=2)
def nothing_valid(answer, p):
    """a micro-batch without a valid token"""
    valid = [*unequal(p, 2), 0]
    p.random.shuffle(valid)
    spelling(answer, p, [valid])


@token_mean_step.probe()
def growing_token_scale(answer, p):
    """a scale that grows at every step"""
    spelling(answer, p, [unequal(p, 2), unequal(p, 3), unequal(p, 2)], interval=1)


# ---------------------------------------------------------------------------------------------------------------- 3

checkpoint = Exercise(
    "checkpoint",
    parts={"resume": 2, "atomic": 1, "safe": 1},
    names=("save_checkpoint", "load_checkpoint"),
    labels={
        "returned": "what load_checkpoint returned",
        "scale": "the scale after each step of the resumed run",
        "lr": "the learning rate before the resumed run and after each of its steps",
        "random": "the random numbers of the resumed run",
        "weights": "the weights at the end of the resumed run",
        "buffers": "the buffers at the end of the resumed run",
        "bitwise": "the resumed run ends with the same bits as the one that was not stopped",
        "undisturbed": "the run that saved and went on ends as if it had not saved",
        "file": "the file at path at that moment",
        "code": "the code in the file",
        "mode": "the model after saving, and the model after loading",
    },
    ulps=32,
)


INIT_SCALE = 2.0**10
LR = 0.25


def in_two_parts(optimizer, size):
    """A warm-up, then steps: two schedulers, each of which counts for itself."""
    warm_up = lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=size)
    steps = lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    return lr_scheduler.SequentialLR(optimizer, [warm_up, steps], milestones=[size - 1])


SCHEDULES = {
    "StepLR": lambda optimizer, size: lr_scheduler.StepLR(optimizer, size, gamma=0.5),
    "LambdaLR": lambda optimizer, size: lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step)),
    "SequentialLR": in_two_parts,
}


class Frozen(nn.Module):
    """A weight and two buffers."""

    def __init__(self, generator):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, generator=generator))
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("running", torch.zeros(6))


class Training:
    """A run whose gradients are random numbers; each is one FP16 product."""

    def __init__(self, seed, schedule="StepLR", interval=3, step_size=3):
        self.model = Frozen(torch.Generator().manual_seed(seed))
        self.optimizer = trace.watch(torch.optim.SGD(self.model.parameters(), lr=LR, momentum=0.5))
        self.scheduler = SCHEDULES[schedule](self.optimizer, step_size)
        self.scaler = trace.GradScaler(init_scale=INIT_SCALE, growth_interval=interval)
        self.random, self.scales, self.lrs = [], [], []

    def step(self, overflow=False):
        noise = torch.rand(6)
        self.random.append(noise)
        clear(self.optimizer)
        gradient = (noise * 2 - 1) * (2.0**30 if overflow else 1.0)
        loss = (self.model.weight.half().float() * gradient).sum()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        before = self.scaler.get_scale()
        self.scaler.update()
        if self.scaler.get_scale() >= before:
            self.scheduler.step()
        self.model.steps += 1
        self.model.running += noise
        self.scales.append(self.scaler.get_scale())
        self.lrs.append(self.optimizer.param_groups[0]["lr"])

    def parts(self):
        return self.model, self.optimizer, self.scheduler, self.scaler

    def buffers(self):
        return torch.cat([self.model.steps.reshape(1).float(), self.model.running])


@contextlib.contextmanager
def checkpoint_path(as_string=False):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pt"
        yield str(path) if as_string else path


def resuming(answer, p, schedule, *, as_string=False, overflow=False, saves=1):
    """Train, save, train on; then resume in fresh objects and train as long."""
    save, load = answer
    interval = p.random.randint(3, 5)
    # The scale has grown once, and the growth tracker stands between 1 and interval - 1. StepLR has made one step too, and
    # makes the next one sooner than a new StepLR would.
    done, more = interval + p.random.randint(1, interval - 1), interval + 2
    made_as = schedule, interval, done - 1
    seed, step = p.random.randrange(2**31), p.random.randint(100, 10_000)
    p.given(
        f"growth_interval {interval}, {schedule}, {done} steps, then save_checkpoint with step {step}"
        + (" as a str path" if as_string else "")
        + (" after an overflow" if overflow else "")
        + f", then {more} more steps"
    )
    torch.manual_seed(seed)
    unstopped = Training(seed, *made_as)
    for _ in range(done):
        unstopped.step()
    if overflow:
        unstopped.step(overflow=True)
    state = torch.get_rng_state()
    saved = copy.deepcopy([part.state_dict() for part in unstopped.parts()])
    for _ in range(more):
        unstopped.step()

    torch.set_rng_state(state)
    first = Training(seed, *made_as)
    for part, of_it in zip(first.parts(), saved, strict=True):
        part.load_state_dict(copy.deepcopy(of_it))
    with checkpoint_path(as_string) as path:
        for earlier in range(saves - 1, -1, -1):
            save(path, *first.parts(), step - earlier)
        modes = [mode_of(first.model)]
        for _ in range(more):
            first.step()
        torch.manual_seed(seed + 1)
        resumed = Training(seed + 1, *made_as)
        p.see("returned", load(path, *resumed.parts()))
        modes.append(mode_of(resumed.model))
        resumed.lrs.append(resumed.optimizer.param_groups[0]["lr"])
        for _ in range(more):
            resumed.step()
    p.see("scale", resumed.scales)
    p.see("lr", resumed.lrs)
    p.see("random", torch.stack(resumed.random))
    p.see("weights", resumed.model.weight)
    p.see("buffers", resumed.buffers())
    p.see("bitwise", torch.equal(resumed.model.weight, unstopped.model.weight))
    p.see("undisturbed", torch.equal(first.model.weight, unstopped.model.weight))
    p.see("mode", modes)


@checkpoint.probe(draws=2)
def stopped_and_resumed(answer, p):
    """a run that is stopped and resumed"""
    resuming(answer, p, "StepLR")


@checkpoint.probe()
def path_as_string(answer, p):
    """a path that is a str"""
    resuming(answer, p, "LambdaLR", as_string=True)


@checkpoint.probe()
def after_an_overflow(answer, p):
    """a checkpoint just after a skipped step"""
    resuming(answer, p, "StepLR", overflow=True)


@checkpoint.probe()
def saved_twice(answer, p):
    """a checkpoint that replaces an earlier one"""
    resuming(answer, p, "LambdaLR", saves=2)


@checkpoint.probe()
def schedule_in_two_parts(answer, p):
    """a scheduler that keeps more than one count"""
    resuming(answer, p, "SequentialLR")


class PowerCut(BaseException):
    """The end of the process, which nothing that handles ordinary errors gets to see."""


class Disk:
    """A disk whose power fails at the `at`-th thing that is done to it: a file is emptied, half written, removed or renamed.

    `left` is what stands at `path` at that moment: bytes, or None for nothing. What is done goes into the record of calls,
    which tells apart in words what leaves the same damage.
    """

    def __init__(self, path, at):
        self.path, self.at, self.count, self.cut, self.left = os.path.abspath(path), at, 0, False, None
        self.open, self.remove, self.replace, self.rename = io.open, os.remove, os.replace, os.rename
        self.thread = threading.get_ident()  # in a notebook others write files too

    def fails_now(self, what, file):
        if threading.get_ident() != self.thread:
            return False
        note(f"{what} {'path' if self.is_path(file) else 'another file'}")
        self.count += 1
        return self.count == self.at

    def is_path(self, file):
        return isinstance(file, (str, os.PathLike)) and os.path.abspath(file) == self.path

    def fail(self):
        self.cut = True
        try:
            with self.open(self.path, "rb") as file:
                self.left = file.read()
        except FileNotFoundError:
            self.left = None
        raise PowerCut

    def opened(self, file, mode="r", *arguments, **options):
        if threading.get_ident() != self.thread or not set(mode) & set("wax+"):
            return self.open(file, mode, *arguments, **options)
        raw = HalfWritten(file, mode.replace("b", "").replace("t", ""), self, options)
        if "b" not in mode:
            return io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
        return raw if 0 in arguments[:1] or options.get("buffering") == 0 else Buffered(raw)

    def removed(self, path, **options):
        fails = self.fails_now("remove", path)
        self.remove(path, **options)
        if fails:
            self.fail()

    def moved(self, move):
        def call(source, target, **options):
            if self.fails_now(
                "replace" if self.is_path(target) else "move away", target if self.is_path(target) else source
            ):
                self.fail()
            return move(source, target, **options)

        return call

    @contextlib.contextmanager
    def zip_writer(self, target):
        """What torch.save writes with: C++ that no Python sees is replaced by one write of all bytes."""
        buffer = io.BytesIO()
        with self.torch_writer(buffer) as writer:
            yield writer
        if isinstance(target, (str, os.PathLike)):
            with self.opened(target, "wb") as file:
                file.write(buffer.getvalue())
        else:  # the end of it apart, which stays in the file's buffer until that is flushed or closed
            target.write(buffer.getvalue()[:-64])
            target.write(buffer.getvalue()[-64:])

    @contextlib.contextmanager
    def in_use(self):
        serialization = torch.serialization
        self.torch_writer = serialization._open_zipfile_writer
        patches = [
            (builtins, "open", self.opened),
            (io, "open", self.opened),
            (os, "remove", self.removed),
            (os, "unlink", self.removed),
            (os, "replace", self.moved(self.replace)),
            (os, "rename", self.moved(self.rename)),
            (serialization, "_open_zipfile_writer", self.zip_writer),
        ]
        notebook = sys.modules.get("IPython.core.interactiveshell")
        if hasattr(notebook, "io_open"):  # what `open` is in a notebook's cells
            patches.append((notebook, "io_open", self.opened))
        kept = [(owner, name, getattr(owner, name)) for owner, name, _ in patches]
        try:
            for owner, name, patch in patches:
                setattr(owner, name, patch)
            yield
        except PowerCut:
            pass
        finally:
            for owner, name, original in kept:
                setattr(owner, name, original)


class HalfWritten(io.FileIO):
    """A file opened for writing on a Disk."""

    def __init__(self, file, mode, disk, options):
        super().__init__(file, mode, **{key: options[key] for key in ("closefd", "opener") if key in options})
        self.disk, self.file = disk, file
        if disk.fails_now("open", file):  # opening has emptied it
            self.close()
            disk.fail()

    def write(self, data):
        if self.disk.fails_now("write", self.file):
            super().write(bytes(data)[: len(data) // 2])
            self.disk.fail()
        return super().write(data)


class Buffered(io.BufferedWriter):
    """What open gives for a binary file that is written."""

    def __del__(self):
        with contextlib.suppress(PowerCut):  # nobody could see it, and it must not go to stderr
            self.close()


def state_of_file(load, left, earlier, again, fresh):
    """ "whole" where a file with these bytes is the earlier checkpoint or the new one."""
    if left is None:
        return "gone"
    with checkpoint_path() as path:
        path.write_bytes(left)
        try:
            return "whole" if load(path, *fresh.parts()) in (earlier, again) else "another one"
        except Exception:
            return "damaged"


@checkpoint.probe("atomic")
def power_cut_while_saving(answer, p):
    """a crash while a checkpoint replaces an earlier one"""
    save, load = answer
    seed, step = p.random.randrange(2**31), p.random.randint(100, 10_000)
    as_string = p.random.random() < 0.5
    p.given("a file with an earlier checkpoint at path, and a crash at any moment while the next one is saved")
    states = []
    for at in range(1, 20):
        run = Training(seed)
        with trace.recording():  # apart: only what is done to the disk counts here
            run.step()
        with checkpoint_path(as_string) as path:
            save(path, *run.parts(), step)
            with trace.recording():
                run.step()
            disk = Disk(path, at)
            with disk.in_use():
                save(path, *run.parts(), step + 1)
            if not disk.cut:
                break
            # what an exception leaves, after whatever the answer does on its way out
            out = Path(path).read_bytes() if os.path.exists(path) else None
        for left in (disk.left, out):
            states.append(state_of_file(load, left, step, step + 1, Training(seed + 1)))
    p.see("file", next((state for state in states if state != "whole"), "whole"))


class Planted:
    """What loads by calling a function: here one that makes a folder, which is seen afterwards."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@contextlib.contextmanager
def recording_loads():
    """Write what reads a file into the record of calls, which tells apart in words what lets the same code run."""
    kept = torch.load, pickle.load
    torch.load, pickle.load = trace.recorded("torch.load", torch.load), trace.recorded("pickle.load", pickle.load)
    try:
        yield
    finally:
        torch.load, pickle.load = kept


@checkpoint.probe("safe")
def code_in_the_file(answer, p):
    """a file in which somebody planted code"""
    save, load = answer
    run = Training(p.random.randrange(2**31))
    run.step()
    p.given("a checkpoint file in which somebody planted code")
    with checkpoint_path(p.random.random() < 0.5) as path:
        save(path, *run.parts(), 7)
        made = Path(path).with_name("made")
        planted = {"model": Planted(made), "step": 7}
        for dump in (lambda: torch.save(planted, path), lambda: Path(path).write_bytes(pickle.dumps(planted))):
            dump()
            with contextlib.suppress(Exception), recording_loads():
                load(path, *run.parts())
        p.see("code", "ran" if made.exists() else "did not run")


# A file may lack several things. What is named is the first of them in this order; the crash and the code after all of them.


def first_scales(failed):
    """Where the scale of an ordinary resumed run went wrong, its value after the first step."""
    return [c.got[0] for c in failed if c.probe == "stopped_and_resumed" and c.key == "scale" and c.got]


@checkpoint.symptom("scaler_missing")
def scale_of_a_new_scaler(failed):
    return any(scale <= INIT_SCALE for scale in first_scales(failed))


@checkpoint.symptom("growth_tracker_missing")
def scale_grows_at_another_step(failed):
    return any(scale > INIT_SCALE for scale in first_scales(failed))


@checkpoint.symptom("optimizer_missing")
def learning_rate_of_a_new_optimizer(failed):
    return any(c.key == "lr" and c.got[0] == LR != c.expected[0] for c in failed)


@checkpoint.symptom("scheduler_missing")
def another_course_of_the_learning_rate(failed):
    return any(c.key == "lr" and isinstance(c.got, list) for c in failed)


@checkpoint.symptom("rng_missing")
def other_random_numbers(failed):
    # where saving disturbs the run that goes on, it is that
    keys = {c.key for c in failed if c.probe == "stopped_and_resumed" and not c.was_raised}
    return "random" in keys and "undisturbed" not in keys


@checkpoint.symptom("not_atomic")
def only_a_crash_is_left(failed):
    return "file" in {c.key for c in failed} and "resume" not in in_parts(checkpoint, failed)


# ---------------------------------------------------------------------------------------------------------------- 4

ema_step = Exercise(
    "ema_step",
    parts={"average": 1, "skip": 1},
    labels={
        "parameters": "the parameters of ema_model",
        "buffers": "the buffers of ema_model",
        "model": "the parameters and buffers of model",
        "later": "the buffers of ema_model when the model has trained on after the last call",
    },
    ulps=64,
)


class Tower(nn.Module):
    """A linear layer, a batch norm, whose buffers are of both kinds, and two names for one weight where it is tied."""

    def __init__(self, p, tied):
        super().__init__()
        self.encoder = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)
        self.decoder = nn.Linear(3, 2, bias=False)
        if tied:
            self.decoder.weight = self.encoder.weight
        self.change(p)

    def change(self, p, size=1.0):
        """What a step of training does: in place, as an optimizer and a batch norm do it."""
        with torch.no_grad():
            for weight in self.parameters():
                if weight.requires_grad:
                    weight.add_(size * p.normal(*weight.shape))
            self.norm.running_mean.add_(size * p.normal(2))
            self.norm.running_var.mul_(1.0 + size * torch.rand(2, generator=p.torch))
            self.norm.num_batches_tracked.add_(p.random.randint(1, 9))


def averaging(answer, p, decay, steps, *, tied=False, size=1.0, frozen=False, frozen_later=False):
    """One call for each of `steps`, which says whether the optimizer stepped. `frozen`: ema_model's parameters require no
    gradients; `frozen_later`: nor does one of the model's, which has moved on before."""
    model = Tower(p, tied)
    ema_model = copy.deepcopy(model).requires_grad_(not frozen)
    model.change(p, size)
    model.encoder.bias.requires_grad_(not frozen_later)
    p.given(
        f"decay {decay:g}, stepped {', '.join(map(str, steps))}"
        + (", one weight under two names" if tied else "")
        + (", parameters that change little" if size < 0.5 else "")
        + (", a parameter of model that is frozen by now, requires_grad False" if frozen_later else "")
    )
    for call, stepped in enumerate(steps, 1):
        answer(ema_model, model, decay, stepped)
        p.see(f"parameters after call {call}", {name: w.detach() for name, w in ema_model.named_parameters()})
        p.see(f"buffers after call {call}", dict(ema_model.named_buffers()))
        p.see(f"model after call {call}", flat(list(model.parameters()) + [b.float() for b in model.buffers()]))
        model.change(p, size)
    p.see("later", dict(ema_model.named_buffers()))


@ema_step.probe(draws=3)
def ordinary_averages(answer, p):
    """several steps that landed"""
    averaging(answer, p, p.random.choice([0.7, 0.8, 0.9]), [True] * 3, frozen=True)


@ema_step.probe()
def gradients_required(answer, p):
    """an ema_model that is a plain deepcopy, so that its parameters require gradients"""
    averaging(answer, p, 0.75, [True, True])


@ema_step.probe()
def frozen_later(answer, p):
    """a parameter of model that was frozen after ema_model had been made"""
    averaging(answer, p, 0.8, [True, True], frozen_later=True)


@ema_step.probe()
def long_average(answer, p):
    """a decay close to 1, with which FP16 and BF16 do not move at all"""
    averaging(answer, p, 0.9999, [True] * 4, size=0.2)


@ema_step.probe(draws=2)
def tied_weight(answer, p):
    """a weight that the model uses under two names"""
    averaging(answer, p, p.random.choice([0.6, 0.7, 0.8]), [True, True], tied=True)


@ema_step.probe("skip", draws=3)
def skipped_updates(answer, p):
    """skipped steps among others"""
    steps = [True, False, p.random.random() < 0.5]
    p.random.shuffle(steps)
    averaging(answer, p, p.random.choice([0.7, 0.9]), [*steps, False])


@ema_step.symptom("low_precision")
def parameters_of_few_bits(failed):
    """Every parameter is its own rounding to FP16, or every one its own to BF16."""
    found = [w for c in failed if c.key.startswith("parameters") and isinstance(c.got, dict) for w in c.got.values()]
    return bool(found) and any(
        all(torch.equal(w.float(), w.to(dtype).float()) for w in found) for dtype in (torch.float16, torch.bfloat16)
    )


# ---------------------------------------------------------------------------------------------------------------- 5

measure = Exercise(
    "measure",
    parts={"time": 1, "median": 1},
    labels={"returned": "the returned time in seconds", "calls": "calls of step()"},
)


class Device:
    """A device that works behind the CPU's back: step() returns after `launch` seconds, and the work it started is done
    when synchronize() returns. The clock is the only time that passes."""

    def __init__(self, durations, launch, queued=0.0):
        self.durations, self.launch = list(durations), launch
        self.now, self.busy_until, self.calls = 1000.0, 1000.0 + queued, 0

    def step(self):
        duration = self.durations[min(self.calls, len(self.durations) - 1)]
        self.calls += 1
        self.now += self.launch
        self.busy_until = max(self.now, self.busy_until) + duration

    def synchronize(self):
        self.now = max(self.now, self.busy_until)

    def clock(self):
        return self.now


def ticks(n):
    """Seconds that are added without rounding."""
    return n / 1024


def timing(answer, p, warmup, timed, *, queued=0, defaults=False):
    """Measure steps of these durations in ticks."""
    launch = p.random.randint(1, 3)
    device = Device(map(ticks, [*warmup, *timed]), ticks(launch), ticks(queued))
    lists = ", ".join(f"{ticks(n) * 1e3:.4g}" for n in (timed if len(set(timed)) > 1 else timed[:1]))
    p.given(
        (
            f"warmup {len(warmup)}, iterations {len(timed)}"
            if not defaults
            else "warmup and iterations at their defaults"
        )
        + f", {ticks(launch) * 1e3:.3g} ms to launch a step"
        + (f", work of {ticks(queued) * 1e3:.4g} ms that is under way before" if queued else "")
        + (f", warm-up steps of {', '.join(f'{ticks(n) * 1e3:.4g}' for n in warmup)} ms" if warmup else "")
        + f" and timed steps of {lists} ms on the device"
    )
    arguments = {} if defaults else {"warmup": len(warmup), "iterations": len(timed)}
    p.see("returned", answer(device.step, device.synchronize, device.clock, **arguments))
    p.see("calls", device.calls)


@measure.probe(draws=2)
def steady_steps(answer, p):
    """steps that all take as long"""
    n = p.random.randint(20, 60)
    timing(answer, p, [n] * 3, [n] * 10, defaults=True)


@measure.probe()
def one_iteration(answer, p):
    """a single iteration, warm-up steps as long"""
    n = p.random.randint(20, 60)
    timing(answer, p, [n, n], [n])


@measure.probe(draws=2)
def work_under_way(answer, p):
    """a device that is still busy, no warm-up"""
    n = p.random.randint(20, 40)
    timing(answer, p, [], [n] * p.random.choice([1, 2]), queued=p.random.randint(50, 90))


def distinct(p, count, low=20, high=200):
    return p.random.sample(range(low, high), count)


@measure.probe("median", draws=2)
def slow_warm_up(answer, p):
    """warm-up steps that are slow"""
    n = p.random.randint(20, 60)
    count = p.random.randint(3, 5)
    timing(answer, p, distinct(p, count, 500, 900), [n] * (count - p.random.choice([0, 1])))


def skewed(p, count):
    """Durations whose mean is far above their median, and whose middle two are far apart."""
    middle = p.random.randint(60, 80)
    low = distinct(p, (count - 1) // 2, 20, 40)
    high = distinct(p, count // 2, 200, 400)
    timed = [*low, middle, *high]
    p.random.shuffle(timed)
    return timed


@measure.probe("median", draws=2)
def odd_number(answer, p):
    """an odd number of iterations of different length"""
    timing(answer, p, distinct(p, 2), skewed(p, p.random.choice([3, 5, 7])))


@measure.probe("median", draws=2)
def even_number(answer, p):
    """an even number of iterations of different length"""
    timing(answer, p, distinct(p, p.random.choice([1, 3])), skewed(p, p.random.choice([4, 6, 10])))
