"""What our complete loop costs over the same loop written by hand, and over Lightning Fabric and Accelerate if installed.

All of them train the same model from the same weights on the same batches: autocast, a scaler where the precision has one,
clipping, a schedule, and the loss and the gradient's norm read in every step. They take turns, block by block.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn

from ampkit import gpu, models
from ampkit.bench.stamp import quartiles, stamp, stamp_line
from ampkit.data import Batches
from ampkit.errors import BenchError
from ampkit.loops import complete
from ampkit.precision import Precision

__all__ = ["CONTESTANTS", "GOAL", "Repeated", "accelerate", "by_hand", "fabric", "ours", "overhead", "overhead_table"]

LR, MAX_NORM, SEED, HORIZON = 0.01, 1.0, 0, 1_000_000
GOAL = 1.02


class Repeated:
    """The same few batches for ever, on the device already: a stand-in for ampkit.data.Batches that costs nothing."""

    def __init__(self, batches: list[tuple[Tensor, Tensor]]) -> None:
        self.batches, self.at = batches, 0

    def __next__(self) -> tuple[Tensor, Tensor]:
        self.at += 1
        return self.batches[self.at % len(self.batches)]

    def take(self, count: int) -> list[tuple[Tensor, Tensor]]:
        """The next `count` batches."""
        return [next(self) for _ in range(count)]


def ours(model: nn.Module, batches: Repeated, device: str, precision: Precision, loss_fn: Callable) -> Iterator[Any]:
    """ampkit/loops/complete.py, as it is."""
    model = model.to(device)
    return complete.train(
        model,
        cast(Batches, batches),  # the stand-in has all that this loop asks of it
        device=device,
        steps=HORIZON,
        lr=LR,
        precision=precision,
        loss_fn=loss_fn,
        max_norm=MAX_NORM,
        settings={},
    )


def by_hand(model: nn.Module, batches: Repeated, device: str, precision: Precision, loss_fn: Callable) -> Iterator[Any]:
    """The same steps in plain PyTorch, with no accumulation, no checkpoint and no record."""
    model = model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=HORIZON)
    scaler = torch.amp.GradScaler(device, enabled=precision.scales_loss)
    while True:
        inputs, targets = next(batches)
        with torch.autocast(device, dtype=precision.compute_dtype, enabled=precision.is_mixed):
            loss = loss_fn(model(inputs).float(), targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() >= scale:
            scheduler.step()
        optimizer.zero_grad()
        yield loss.item(), norm.item()


def fabric(model: nn.Module, batches: Repeated, device: str, precision: Precision, loss_fn: Callable) -> Iterator[Any]:
    """The same steps through Lightning Fabric's setup, backward and clip_gradients."""
    from lightning_fabric import Fabric

    name = {"fp16-mixed": "16-mixed", "bf16-mixed": "bf16-mixed", "fp32": "32-true"}[precision.name]
    runner = Fabric(accelerator=device, devices=1, precision=name)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=HORIZON)
    wrapped, optimizer = runner.setup(model.train(), optimizer)
    while True:
        inputs, targets = next(batches)
        loss = loss_fn(wrapped(inputs).float(), targets)
        runner.backward(loss)
        norm = runner.clip_gradients(wrapped, optimizer, max_norm=MAX_NORM, error_if_nonfinite=False)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        yield loss.item(), norm.item()


def accelerate(
    model: nn.Module, batches: Repeated, device: str, precision: Precision, loss_fn: Callable
) -> Iterator[Any]:
    """The same steps through Accelerate's prepare, backward and clip_grad_norm_."""
    from accelerate import Accelerator

    name = {"fp16-mixed": "fp16", "bf16-mixed": "bf16", "fp32": "no"}[precision.name]
    runner = Accelerator(mixed_precision=name, cpu=device == "cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=HORIZON)
    wrapped, optimizer, scheduler = runner.prepare(model.train(), optimizer, scheduler)
    while True:
        inputs, targets = next(batches)
        loss = loss_fn(wrapped(inputs).float(), targets)
        runner.backward(loss)
        norm = runner.clip_grad_norm_(wrapped.parameters(), MAX_NORM)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        yield loss.item(), norm.item()


CONTESTANTS = {
    "by hand": (by_hand, None),
    "ampkit complete": (ours, None),
    "Lightning Fabric": (fabric, "lightning_fabric"),
    "Accelerate": (accelerate, "accelerate"),
}


def overhead(
    device: str,
    model: str = "bert_tiny",
    batch_size: int = 16,
    *,
    blocks: int = 12,
    steps: int = 10,
    say: Callable[[str], None] = lambda words: None,
) -> dict[str, Any]:
    """Seconds a step of each contestant, median over `blocks` blocks of `steps`, and its ratio to the loop written by hand.

    In fp16-mixed on CUDA and in bf16-mixed on a CPU, where Accelerate refuses FP16. Raises BenchError, ModelError,
    DeviceError.
    """
    if blocks < 1 or steps < 1:
        raise BenchError(f"blocks and steps are 1 or more, not {blocks} and {steps}.")
    precision = Precision("fp16-mixed" if device == "cuda" else "bf16-mixed")
    device = precision.check(device)
    shared = gpu.sharing(device)
    running, missing = {}, []
    for name, (make, package) in CONTESTANTS.items():
        if package is not None and importlib.util.find_spec(package) is None:
            missing.append(name)
            continue
        say(f"warming up: {name}")
        running[name] = _start(make, model, batch_size, device, precision)
        _block(running[name], device, 3)
    seconds: dict[str, list[float]] = {name: [] for name in running}
    for number in range(blocks):
        say(f"block {number + 1} of {blocks}")
        first = number % len(running)  # everybody goes first equally often
        order = [*running][first:] + [*running][:first]
        for name in order:
            seconds[name].append(_block(running[name], device, steps) / steps)
    base = statistics.median(seconds["by hand"])
    return {
        **stamp(shared, device),
        "kind": "overhead",
        "device": device,
        "precision": str(precision),
        "model": model,
        "batch_size": batch_size,
        "goal": GOAL,
        "rows": [
            {
                "loop": name,
                "seconds_per_step": values,
                "median": statistics.median(values),
                "ratio": statistics.median(values) / base,
                # each block beside the block by hand of the same turn: what a drift of the machine does not touch
                "ratio_quartiles": quartiles([a / b for a, b in zip(values, seconds["by hand"], strict=True)]),
            }
            for name, values in seconds.items()
        ],
        "missing": missing,
    }


def _start(make: Callable, spec: str, batch_size: int, device: str, precision: Precision) -> Iterator[Any]:
    torch.manual_seed(SEED)
    model = models.build(spec)
    batches = [models.example(spec, batch_size, device=device, seed=SEED + 1 + i) for i in range(4)]
    if any(len(inputs) != 1 for inputs, _ in batches):
        raise BenchError(f"{spec} takes more than one input; the loops here pass one.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what others' set-up warns of is not what is measured
        return make(
            model, Repeated([(inputs[0], targets) for inputs, targets in batches]), device, precision, models.loss(spec)
        )


def _block(steps: Iterator[Any], device: str, count: int) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        next(steps)
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def overhead_table(result: dict[str, Any]) -> str:
    """The result as text: milliseconds a step and the ratio to the loop written by hand."""
    lines = [
        f"{result['model']}, batch {result['batch_size']}, {result['precision']} on {result['device']}",
        f"{'loop':<18} {'ms a step':>10} {'ratio':>7}  quartiles of the ratio",
    ]
    for row in result["rows"]:
        low, high = row["ratio_quartiles"]
        lines.append(f"{row['loop']:<18} {row['median'] * 1e3:>10.3f} {row['ratio']:>7.3f}  {low:.3f} to {high:.3f}")
    if result["missing"]:
        lines.append(f"not installed: {', '.join(result['missing'])} (pip install 'amp-course[compare]')")
    return "\n".join([*lines, f"The goal for ampkit complete is at most {result['goal']:g}.", "", stamp_line(result)])
