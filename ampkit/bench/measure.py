"""Measure a suite: warm up, wait for the device, time blocks of steps, read the allocator's peak, compare what was learnt."""

from __future__ import annotations

import gc
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ampkit import data, gpu, models
from ampkit.bench.stamp import quartiles, stamp, stamp_line
from ampkit.bench.suites import Setting, Suite, Workload
from ampkit.errors import BenchError, DeviceError
from ampkit.precision import Precision

__all__ = ["Trial", "larger_batch", "run", "table"]

SEED = 0
BATCHES = 4  # different ones, in turn; few, so that a run of some dozen steps learns something
_OPTIMIZERS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}


class Trial:
    """One model being trained in one setting on synthetic data. Same seed, same weights, same batches in every setting."""

    def __init__(self, workload: Workload, setting: Setting, device: str, batch_size: int) -> None:
        self.precision = Precision(setting.precision)
        self.device = self.precision.check(device)
        self.batch_size = batch_size
        torch.manual_seed(SEED)
        model: nn.Module = models.build(workload.model)
        self.loss_fn = models.loss(workload.model)
        self.batches = [
            _batch(workload, model, batch_size, self.device, seed) for seed in range(SEED + 1, SEED + 1 + BATCHES)
        ]
        self.model = model.to(self.device)
        fused = {"fused": True} if self.device == "cuda" else {}
        self.optimizer = _OPTIMIZERS[workload.optimizer](self.model.parameters(), lr=workload.lr, **fused)
        self.scaler = self.precision.scaler(self.device) if self.precision.scales_loss else None
        self.forward: Callable[..., Any] = torch.compile(self.model) if setting.compiled else self.model
        self.taken = self.skipped = 0

    def step(self) -> None:
        """One training step; what the scaler skips is counted."""
        inputs, targets = self.batches[self.taken % BATCHES]
        with self.precision.autocast(self.device):
            loss = self.loss_fn(self.forward(*inputs), targets)
        if self.scaler is None:
            loss.backward()
            self.optimizer.step()
        else:
            scale = self.scaler.get_scale()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.skipped += self.scaler.get_scale() < scale
        self.optimizer.zero_grad()
        self.taken += 1

    def block(self, steps: int) -> float:
        """Seconds that `steps` steps take, after the device has finished all of them."""
        with self.precision.float32_math(self.device):
            self._wait()
            start = time.perf_counter()
            for _ in range(steps):
                self.step()
            self._wait()
            return time.perf_counter() - start

    def _wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    @torch.no_grad()
    def quality(self) -> float:
        """The mean loss over the training batches, computed in strict FP32 in training mode without dropout."""
        was = [(module, module.training) for module in self.model.modules()]
        for module in self.model.modules():
            # batch statistics as in training: running ones need hundreds of steps before they mean anything
            module.train(isinstance(module, nn.modules.batchnorm._BatchNorm))
        kept = {name: value.clone() for name, value in self.model.named_buffers()}
        with Precision("fp32").float32_math(self.device):
            losses = [self.loss_fn(self.model(*inputs), targets).item() for inputs, targets in self.batches]
        for name, value in self.model.named_buffers():
            value.copy_(kept[name])
        for module, training in was:
            module.training = training
        return sum(losses) / len(losses)


def _batch(
    workload: Workload, model: nn.Module, batch_size: int, device: str, seed: int
) -> tuple[tuple[Tensor, ...], Tensor]:
    if workload.input is None:
        return models.example(workload.model, batch_size, device=device, seed=seed)
    text = re.sub(r"\[\s*\d+", f"[{batch_size}", workload.input, count=1)  # its first size stands for any batch
    described = data.described(workload.model, model, text, "synthetic", seed=seed)
    return (described.train_inputs.to(device),), described.train_targets.to(device)


def run(suite: Suite, say: Callable[[str], None] = lambda words: None) -> dict[str, Any]:
    """Measure every workload of the suite in every setting; returns the stamp and one row for each.

    A setting that the device cannot do is a row in `left_out` with the reason, never another precision under its name.
    Raises DeviceError where the suite's device is not there.
    """
    Precision("fp32").check(suite.device)
    shared = gpu.sharing(suite.device)
    rows, left_out = [], []
    for workload in suite.workloads:
        possible = []
        for setting in suite.settings:
            try:
                Precision(setting.precision).check(suite.device)
                possible.append(setting)
            except DeviceError as error:
                left_out.append({"model": workload.model, "setting": setting.name, "reason": str(error)})
        rows += _workload(suite, workload, possible, say)
    return {
        **stamp(shared, suite.device),
        "kind": "bench",
        "suite": suite.name,
        "device": suite.device,
        "warmup": suite.warmup,
        "blocks": suite.blocks,
        "steps": suite.steps,
        "rounds": suite.rounds,
        "rows": rows,
        "left_out": left_out,
    }


def _workload(suite: Suite, workload: Workload, settings: list[Setting], say: Callable[[str], None]) -> list[dict]:
    sizes = {setting.name: workload.batch_size for setting in settings}
    for setting in settings:
        if setting.larger_batch:
            say(f"{workload.model}: looking for the batch that {setting.name} can take")
            sizes[setting.name] = larger_batch(workload, setting, suite.device)
    measured: dict[str, list[dict]] = {setting.name: [] for setting in settings}
    for number in range(suite.rounds):
        # to and fro, so that a drift of the machine weighs on no setting more than on another
        for setting in settings if number % 2 == 0 else reversed(settings):
            say(f"{workload.model}: {setting.name}, round {number + 1} of {suite.rounds}")
            measured[setting.name].append(_trial(suite, workload, setting, sizes[setting.name]))
    rows = []
    for setting in settings:
        turns = measured[setting.name]
        seconds = [second for turn in turns for second in turn["block_seconds"]]
        rates = sorted(sizes[setting.name] * suite.steps / second for second in seconds)
        rows.append(
            {
                "model": workload.model,
                "setting": setting.name,
                "precision": setting.precision,
                "compiled": setting.compiled,
                "batch_size": sizes[setting.name],
                "optimizer": workload.optimizer,
                "block_seconds": seconds,
                "samples_per_s": statistics.median(rates),
                "samples_per_s_quartiles": quartiles(rates),
                "peak_allocated_bytes": turns[0]["peak_allocated_bytes"],
                "peak_reserved_bytes": turns[0]["peak_reserved_bytes"],
                "steps_trained": turns[0]["steps_trained"],
                "skipped": turns[0]["skipped"],
                "loss_before": turns[0]["loss_before"],
                "loss_after": turns[0]["loss_after"],
            }
        )
    return rows


def _trial(suite: Suite, workload: Workload, setting: Setting, batch_size: int) -> dict[str, Any]:
    trial = Trial(workload, setting, suite.device, batch_size)
    before = trial.quality()
    trial.block(suite.warmup)
    if suite.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    seconds = [trial.block(suite.steps) for _ in range(suite.blocks)]
    on_gpu = suite.device == "cuda"
    found = {
        "block_seconds": seconds,
        "peak_allocated_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
        "peak_reserved_bytes": torch.cuda.max_memory_reserved() if on_gpu else None,
        "steps_trained": trial.taken,
        "skipped": trial.skipped,
        "loss_before": before,
        "loss_after": trial.quality(),
    }
    del trial
    _free(suite.device)
    return found


def _free(device: str) -> None:
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def larger_batch(workload: Workload, setting: Setting, device: str) -> int:
    """The batch with which `setting` fills the peak memory that strict FP32 takes at the workload's own batch.

    From two measured peaks, since the peak grows linearly with the batch; on a CPU, which has no allocator to ask,
    twice the batch.
    """
    if device != "cuda":
        return 2 * workload.batch_size
    small = workload.batch_size
    limit = _peak(workload, Setting("FP32 strict", "fp32"), device, small)
    at_small, at_double = (
        _peak(workload, replace(setting, compiled=False), device, size) for size in (small, 2 * small)
    )
    each = (at_double - at_small) / small
    if each <= 0:
        raise BenchError(
            f"The peak memory of {workload.model} does not grow with the batch ({at_small} bytes at {small}, {at_double} "
            f"at {2 * small}), so there is no larger batch to look for. Choose a larger --batch-size."
        )
    return max(small, int(small + (limit - at_small) / each))


def _peak(workload: Workload, setting: Setting, device: str, batch_size: int) -> int:
    trial = Trial(workload, setting, device, batch_size)
    trial.block(2)
    torch.cuda.reset_peak_memory_stats()
    trial.block(2)
    peak = torch.cuda.max_memory_allocated()
    del trial
    _free(device)
    return peak


def table(result: dict[str, Any]) -> str:
    """The result as text: one line a setting, its speed as a ratio to the first setting of the same model."""
    wide = max(5, *(len(row["model"]) for row in result["rows"]))
    lines = [
        f"{'model':<{wide}} {'setting':<24} {'batch':>6} {'samples/s':>10} {'quartiles':>17} {'ratio':>6} {'peak MiB':>9} "
        f"{'skips':>5}  loss (FP32) after {result['rows'][0]['steps_trained']} steps"
    ]
    first: dict[str, float] = {}
    for row in result["rows"]:
        base = first.setdefault(row["model"], row["samples_per_s"])
        low, high = row["samples_per_s_quartiles"]
        peak = "-" if row["peak_allocated_bytes"] is None else f"{row['peak_allocated_bytes'] / 2**20:.0f}"
        lines.append(
            f"{row['model']:<{wide}} {row['setting']:<24} {row['batch_size']:>6} {row['samples_per_s']:>10.4g} "
            f"{f'{low:.4g} to {high:.4g}':>17} {row['samples_per_s'] / base:>6.2f} {peak:>9} {row['skipped']:>5}  "
            f"{row['loss_before']:.3f} -> {row['loss_after']:.3f}"
        )
    lines += [f"left out: {left['model']}, {left['setting']}: {left['reason']}" for left in result["left_out"]]
    return "\n".join([*lines, "", stamp_line(result)])
