"""What is not the lesson: the data, the model, the seed, the log, the bar, the checkpoint and the accuracy around a loop."""

import gc
import importlib
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist
from torch import nn

from ampkit import data, models
from ampkit.checkpoint import Checkpoint
from ampkit.data import Dataset
from ampkit.errors import LoopError
from ampkit.loops import LADDER, rung
from ampkit.precision import Precision
from ampkit.report import StepReport, progress, write_reports

__all__ = ["BATCH_SIZE", "LOSS_WEIGHT", "LR", "MAX_NORM", "SAVE_EVERY", "accuracy", "check", "main", "reports", "run"]

LOSS_WEIGHT = 2.0**-20  # see fp32.py: about 1e-6, and a power of two, so that FP32 trains the same bits with it
LR = 0.1  # for a loss of weight 1; a smaller weight gets a learning rate larger by as much
MAX_NORM = 1.0  # likewise for a loss of weight 1
BATCH_SIZE = 128
SAVE_EVERY = 100


def reports(
    name: str,
    model: nn.Module,
    *,
    dataset: Dataset | None = None,
    device: str | None = None,
    steps: int = 300,
    batch_size: int = BATCH_SIZE,
    seed: int = 0,
    lr: float = LR,
    loss_weight: float | None = None,
    init_scale: float | None = None,
    max_norm: float | None = None,
    accumulate: int | None = None,
    precision: str | None = None,
    backend: str | None = None,
    checkpoint: str | Path | None = None,
    save_every: int = SAVE_EVERY,
    settings: Mapping[str, Any] | None = None,
) -> Iterator[StepReport]:
    """Train the model on the data (the digits) with the loop of that name, in place; yields a StepReport each step.

    lr and max_norm are meant for a loss of weight 1 and are rescaled to loss_weight, which is LOSS_WEIGHT on the digits
    in a loop that has one, else 1. Every save_every steps the run is saved to checkpoint, and it goes on from there if
    it is there; settings are what else a checkpoint has to agree with, such as the model's name.
    Raises LoopError for a loop that does not exist, an option that it does not have or a batch larger than the data,
    DeviceError for a device that cannot do it, CheckpointError, at the first step, for another run's checkpoint.
    """
    given = {
        "loss_weight": loss_weight,
        "init_scale": init_scale,
        "max_norm": max_norm,
        "accumulate": accumulate,
        "precision": precision,
        "backend": backend,
    }
    device, chosen = check(name, device, given)
    train = _train(name)
    accepted = inspect.signature(train).parameters
    weight = loss_weight or (LOSS_WEIGHT if dataset is None and "loss_weight" in accepted else 1.0)
    options: dict[str, Any] = {option: value for option, value in given.items() if value is not None}
    options |= {"device": device, "lr": lr / weight}
    if "loss_weight" in accepted:
        options["loss_weight"] = weight
    if "max_norm" in accepted:
        options["max_norm"] = (MAX_NORM if max_norm is None else max_norm) * weight

    dataset = Dataset(*data.digits()) if dataset is None else dataset
    try:
        batches = data.batches(dataset.train_inputs, dataset.train_targets, batch_size, seed=seed)
    except ValueError as error:
        raise LoopError(f"--batch-size: {error}") from None
    about = {**options, "loop": name, "precision": str(chosen), "batch_size": batch_size, "seed": seed}
    about |= {"steps": steps} if rung(name).scheduled else {}
    about |= settings or {}

    options |= {"steps": steps, "loss_fn": models.cross_entropy}
    if "precision" in accepted:
        options["precision"] = chosen
    saver = None
    if "checkpoint" in accepted:
        options |= {"checkpoint": checkpoint and Path(checkpoint), "save_every": save_every, "settings": about}
    elif checkpoint is not None:
        saver = Checkpoint(checkpoint, settings=about, batches=batches)
        options["restore"] = saver.restore
    return _steps(train, model, batches, options, chosen, saver, save_every)


def check(name: str, device: str | None, given: Mapping[str, Any]) -> tuple[str, Precision]:
    """The device type and the precision that the loop will train on and in, if it has the options given (not None).

    Raises LoopError, PrecisionError, DeviceError.
    """
    accepted = inspect.signature(_train(name)).parameters
    for option, value in given.items():
        if value is not None and option not in accepted:
            having = [other.name for other in LADDER if option in inspect.signature(_train(other.name)).parameters]
            raise LoopError(
                f"The loop {name} has no {option}; leave it out, or train one that has it: {', '.join(having)}."
            )
    precision = Precision(given.get("precision") or rung(name).precision)
    device = precision.check(device)
    if given.get("init_scale") is not None:
        precision.scaler(device)  # says why, if this precision has none
    return device, precision


def _train(name: str):
    return importlib.import_module(f"ampkit.loops.{rung(name).name}").train


def _steps(train, model, batches, options, precision, saver, save_every):
    device, steps = options["device"], options["steps"]
    group = _process_group(device) if train.__module__.endswith(".ddp") else nullcontext()
    with group, precision.float32_math(device):
        for report in _explained(train(model.to(device), batches, **options)):
            yield report
            # after the report is in the log: a kill in between repeats a step, and loses no record
            if saver is not None and ((report.step + 1) % save_every == 0 or report.step + 1 == steps):
                saver.save(report.step + 1)


def _explained(reports: Iterator[StepReport]) -> Iterator[StepReport]:
    """The same reports; what torch.compile cannot do here is said in a sentence in the place of 200 lines."""
    try:
        yield from reports
    except Exception as error:
        if not type(error).__module__.startswith(("torch._dynamo.exc", "torch._inductor.exc")):
            raise
        said = str(error).strip().splitlines()[0].rstrip(".")
        raise LoopError(
            f"torch.compile cannot compile this model here: {said}. The default backend, inductor, needs a C++ compiler "
            "for the CPU and Triton for a GPU; --backend aot_eager needs neither, and is no faster than no compiling."
        ) from error


@contextmanager
def _process_group(device: str):
    """torchrun's ranks, with NCCL on CUDA and gloo on the CPU; without torchrun one rank; or the group that is there."""
    if dist.is_initialized():
        yield
        return
    # Gloo's threads end with the group, if nothing holds it any more. One that drops the tensor of the last all_reduce while
    # Python shuts down aborts the process. This module's functions would hold the group that there is when it is imported.
    importlib.import_module("torch.distributed.nn.functional")
    backend = "nccl" if device == "cuda" else "gloo"
    _use_own_gpu(device)
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, rank=0, world_size=1, store=dist.HashStore())
    try:
        yield
    finally:
        dist.destroy_process_group()
        gc.collect()  # DDP is a cycle of objects, and holds the group


def _use_own_gpu(device: str) -> None:
    if device == "cuda":
        local = int(os.environ.get("LOCAL_RANK", 0))
        Precision("fp32").check(f"cuda:{local}")  # torchrun may have been asked for more ranks than there are GPUs
        torch.cuda.set_device(local)


def accuracy(model: nn.Module, dataset: Dataset | None = None) -> float:
    """The share of the held-out examples (the digits') that the model names correctly; of a decoder, of next tokens.

    Computed in the dtype that the model's parameters are in.
    """
    dataset = Dataset(*data.digits()) if dataset is None else dataset
    parameter = next(model.parameters())
    right = 0
    model.eval()
    with torch.no_grad():
        for inputs, targets in zip(dataset.test_inputs.split(256), dataset.test_targets.split(256), strict=True):
            if inputs.is_floating_point():
                inputs = inputs.to(parameter.dtype)
            named = model(inputs.to(parameter.device)).argmax(-1)
            right += (named == targets.to(parameter.device)).sum().item()
    return right / dataset.test_targets.numel()


def run(
    name: str,
    *,
    model: str = "mlp",
    data_name: str | None = None,
    data_dir: Path | None = None,
    input: str | None = None,
    device: str | None = None,
    log: Path | None = None,
    seed: int = 0,
    steps: int = 300,
    batch_size: int | None = None,
    lr: float | None = None,
    checkpoint: Path | None = None,
    save_every: int = SAVE_EVERY,
    **options: Any,
) -> None:
    """Train with a progress bar, write the log if one is asked for, and print how it ended.

    options are the loop's own, see reports. Raises what models.build, data.load and reports raise.
    """
    device, _ = check(name, device, options)
    if name == "ddp":
        _use_own_gpu(device)  # before data are made on it
    entry = models.MODELS.get(model)
    torch.manual_seed(seed)
    network = models.build(model)
    usual = entry.batch_size if entry else BATCH_SIZE
    if data_name is None:
        data_name = "synthetic" if input else entry.data[0] if entry else "digits"
    if input is not None:
        dataset = data.described(model, network, input, data_name, seed=seed)
    else:
        rows = (batch_size or usual) * (options.get("accumulate") or 1)
        dataset = data.load(data_name, model, rows=rows, device=device, folder=data_dir, seed=seed)
        if entry is None:
            data.fits(model, network, dataset)
    if data_name == "digits" and options.get("loss_weight") is None:
        options["loss_weight"] = LOSS_WEIGHT if "loss_weight" in inspect.signature(_train(name)).parameters else None
    stream = reports(
        name,
        network,
        dataset=dataset,
        device=device,
        steps=steps,
        batch_size=batch_size or min(usual, len(dataset.train_inputs)),
        seed=seed,
        lr=(entry.lr if entry else LR) if lr is None else lr,
        checkpoint=checkpoint,
        save_every=save_every,
        settings={"model": model, "data": data_name},
        **options,
    )
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if rank > 0:  # of torchrun: one of them speaks
        for _ in stream:
            pass
        return
    if log is not None:
        stream = write_reports(stream, log)
    done = list(progress(stream, total=steps))
    if not done:
        print(f"{name}: {checkpoint} has all of the {steps} steps already. Ask for more --steps to go on.")
        return
    print(_ending(name, done, network, dataset))
    if name == "ddp" and ranks == 1:
        print("This was one process. For two: torchrun --nproc-per-node 2 -m -- ampkit.loops.ddp")


def _ending(name: str, done: list[StepReport], model: nn.Module, dataset: Dataset) -> str:
    last = done[-1]
    skips = sum(report.skipped for report in done)
    ending = (
        f"{name}: loss {done[0].loss:.4f} -> {last.loss:.4f} in {len(done)} steps, "
        f"gradient norm {done[0].grad_norm:.3g} -> {last.grad_norm:.3g}, {skips} skipped"
    )
    if done[0].step:
        ending += f", from step {done[0].step} on"
    if len(dataset.test_targets):
        ending += f", test accuracy {accuracy(model, dataset):.1%}"
    return ending


def main(file: str) -> None:
    """`python -m ampkit.loops.NAME` is `ampkit train NAME`."""
    from ampkit.cli import app

    app(["train", Path(file).stem, *sys.argv[1:]], prog_name="ampkit")
