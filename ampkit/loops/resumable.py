"""resumable: scheduled with checkpoints: stopped anywhere and started again, it trains as if it had never stopped, bit for bit.

Whatever the next step depends on is in the file: weights, momentum, schedule, scale and how long it has been clean, the
random number generators (dropout), and where in the data the next batch begins. What is left out is not missed at once:
without the scaler's state a run that had settled at 256 begins again at 65536, and skips eight steps.
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
from ampkit.report import StepReport, peak_bytes


def train(
    model: nn.Module,
    batches: Batches,
    *,
    device: str,
    steps: int,
    lr: float,
    loss_fn: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    loss_weight: float = 1.0,
    init_scale: float = 2.0**16,
    max_norm: float = 1.0,
    checkpoint: Path | None = None,
    save_every: int = 100,
    settings: Mapping[str, Any],
) -> Iterator[StepReport]:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    scaler = torch.amp.GradScaler(device, init_scale=init_scale)
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
        inputs, targets = (tensor.to(device) for tensor in next(batches))

        with torch.autocast(device, dtype=torch.float16):  # 1 forward
            loss = loss_weight * loss_fn(model(inputs).float(), targets)
        scaler.scale(loss).backward()  # 2 scaled backward
        scaler.unscale_(optimizer)  # 3 unscale
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
            loss=loss.item() / loss_weight,  # CPU-GPU sync: .item() waits for the device
            grad_norm=grad_norm.item(),  # CPU-GPU sync
            scale=scale,
            skipped=skipped,
            samples=len(targets),
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
