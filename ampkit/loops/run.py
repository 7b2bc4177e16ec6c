"""What is not the lesson: the data, the model, the seed, the log, the bar and the accuracy around a loop."""

import importlib
import inspect
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
from torch import nn

from ampkit import data, models
from ampkit.errors import LoopError
from ampkit.loops import LADDER, rung
from ampkit.precision import Precision
from ampkit.report import StepReport, progress, write_reports

LOSS_WEIGHT = 2.0**-20  # see fp32.py: about 1e-6, and a power of two, so that FP32 trains the same bits with it
LR = 0.1  # for a loss of weight 1; a smaller weight gets a learning rate larger by as much
MAX_NORM = 1.0  # likewise for a loss of weight 1


def reports(
    name: str,
    model: nn.Module,
    *,
    device: str | None = None,
    steps: int = 300,
    batch_size: int = 128,
    seed: int = 0,
    loss_weight: float = LOSS_WEIGHT,
    lr: float = LR,
    init_scale: float | None = None,
    max_norm: float | None = None,
) -> Iterator[StepReport]:
    """Train the model on the digits with the loop of that name, in place; yields a StepReport each step.

    lr and max_norm are meant for a loss of weight 1 and are rescaled to loss_weight. Raises LoopError for a loop that
    does not exist or an option that it does not have, DeviceError for a device that cannot do it.
    """
    precision = Precision(rung(name).precision)
    device = precision.check(device)
    train = _train(name)
    options = {"device": device, "lr": lr / loss_weight, "loss_weight": loss_weight}
    accepted = inspect.signature(train).parameters
    for option, value in (("init_scale", init_scale), ("max_norm", max_norm)):
        if value is not None and option not in accepted:
            having = [other.name for other in LADDER if option in inspect.signature(_train(other.name)).parameters]
            having = ", ".join(having)
            raise LoopError(f"The loop {name} has no {option}; leave it out, or train one that has it: {having}.")
    if init_scale is not None:
        options["init_scale"] = init_scale
    if "max_norm" in accepted:
        options["max_norm"] = (MAX_NORM if max_norm is None else max_norm) * loss_weight
    digits = data.digits()
    batches = data.batches(digits.train_images, digits.train_labels, batch_size, seed=seed)
    return _steps(train, model.to(device), islice(batches, steps), options, precision)


def _train(name: str):
    return importlib.import_module(f"ampkit.loops.{name}").train


def _steps(train, model, batches, options, precision):
    with precision.float32_math(options["device"]):
        yield from train(model, batches, **options)


def accuracy(model: nn.Module) -> float:
    """The share of the 397 held-out digits that the model names correctly, computed in FP32."""
    digits = data.digits()
    device = next(model.parameters()).device
    model.eval()
    with torch.no_grad():
        named = model(digits.test_images.to(device)).argmax(1).cpu()
    return (named == digits.test_labels).float().mean().item()


def run(name: str, *, log: Path | None = None, seed: int = 0, steps: int = 300, **options) -> None:
    """Train with a progress bar, write the log if one is asked for, and print how it ended."""
    torch.manual_seed(seed)
    model = models.mlp()
    stream = reports(name, model, seed=seed, steps=steps, **options)
    if log is not None:
        stream = write_reports(stream, log)
    done = list(progress(stream, total=steps))
    last = done[-1]
    skips = sum(report.skipped for report in done)
    print(
        f"{name}: loss {done[0].loss:.4f} -> {last.loss:.4f} in {len(done)} steps, "
        f"gradient norm {done[0].grad_norm:.3g} -> {last.grad_norm:.3g}, {skips} skipped, "
        f"test accuracy {accuracy(model):.1%}"
    )


def main(file: str) -> None:
    """`python -m ampkit.loops.NAME` is `ampkit train NAME`."""
    from ampkit.cli import app

    app(["train", Path(file).stem, *sys.argv[1:]], prog_name="ampkit")
