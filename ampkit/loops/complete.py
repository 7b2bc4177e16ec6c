"""complete: everything together, in any precision that the device has: copy this one.

Autocast, a scaler where the precision needs one, accumulation with a ragged tail, clipping of the true gradient, a
schedule that knows of skipped steps, and checkpoints that continue bit for bit. `enabled=` lets the four numbered lines
stand for every precision: a scaler that is switched off multiplies by 1 and never skips.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ampkit.checkpoint import load, rng_state, save, set_rng_state
from ampkit.data import Batches
from ampkit.precision import Precision
from ampkit.report import StepReport, peak_bytes


def train(
    model: nn.Module,
    batches: Batches,
    *,
    device: str,
    steps: int,
    lr: float,
    precision: Precision,
    loss_fn: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    init_scale: float = 2.0**16,
    max_norm: float = 1.0,
    accumulate: int = 1,
    checkpoint: Path | None = None,
    save_every: int = 100,
    settings: Mapping[str, Any],
) -> Iterator[StepReport]:
    device = precision.check(device)
    model.to(precision.param_dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    scaler = torch.amp.GradScaler(device, init_scale=init_scale, enabled=precision.scales_loss)
    first = 0
    saved = None if checkpoint is None else load(checkpoint, settings)  # settings: another run's is refused
    if saved is not None:
        first = saved["step"]
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        batches.load_state_dict(saved["batches"])
        set_rng_state(saved["rng"])  # last: nothing may draw a number after it
    model.train()
    for step in range(first, steps):
        start = time.perf_counter()
        window = batches.take(accumulate)  # fewer micro-batches, and a smaller one, where an epoch ends
        samples = sum(len(targets) for _, targets in window)
        loss_sum = torch.zeros((), device=device)

        with precision.float32_math(device):  # TF32 or strict FP32, for forward and backward
            for inputs, targets in window:
                inputs, targets = inputs.to(device), targets.to(device)
                if inputs.is_floating_point():
                    inputs = inputs.to(precision.param_dtype)
                with precision.autocast(device):  # 1 forward
                    loss = loss_fn(model(inputs).float(), targets) * (len(targets) / samples)
                scaler.scale(loss).backward()  # 2 scaled backward
                loss_sum += loss.detach()
        scaler.unscale_(optimizer)  # 3 unscale; nothing to do for a precision without a scaler
        grad_norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)  # returns the norm before clipping
        scale = scaler.get_scale()  # CPU-GPU sync
        scaler.step(optimizer)  # 4 step and update; CPU-GPU sync: was any gradient inf or nan?
        scaler.update()
        skipped = scaler.get_scale() < scale  # CPU-GPU sync; only a skipped step lowers the scale
        lr = scheduler.get_last_lr()[0]
        if not skipped:
            scheduler.step()
        optimizer.zero_grad()

        yield StepReport(
            step=step,
            loss=loss_sum.item(),  # CPU-GPU sync: .item() waits for the device
            grad_norm=grad_norm.item(),  # CPU-GPU sync
            scale=scale if scaler.is_enabled() else None,
            skipped=skipped,
            samples=samples,
            seconds=time.perf_counter() - start,
            peak_bytes=peak_bytes(device),
            lr=lr,
        )

        if checkpoint is not None and ((step + 1) % save_every == 0 or step + 1 == steps):
            state = {
                "step": step + 1,
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "scaler": scaler.state_dict(),
                "batches": batches.state_dict(),
                "rng": rng_state(),
                "settings": settings,
            }
            save(state, checkpoint)  # after update(), and after the step is in the log


if __name__ == "__main__":
    from ampkit.loops.run import main

    main(__file__)
