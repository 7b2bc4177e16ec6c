"""clipped: fp16 with gradient clipping, which has its place between unscale and step.

max_norm is a bound on the true gradient, so the gradients have to be unscaled before they are clipped.
"""

import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ampkit.checkpoint import from_scratch
from ampkit.report import StepReport, peak_bytes


def train(
    model: nn.Module,
    batches: Iterator[tuple[Tensor, Tensor]],
    *,
    device: str,
    steps: int,
    lr: float,
    loss_fn: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    loss_weight: float = 1.0,
    init_scale: float = 2.0**16,
    max_norm: float = 1.0,
    restore: Callable[..., int] = from_scratch,
) -> Iterator[StepReport]:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    scaler = torch.amp.GradScaler(device, init_scale=init_scale)
    first = restore(model=model, optimizer=optimizer, scaler=scaler)  # 0, or where a checkpoint goes on
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
        optimizer.zero_grad()

        yield StepReport(
            step=step,
            loss=loss.item() / loss_weight,  # CPU-GPU sync: .item() waits for the device
            grad_norm=grad_norm.item(),  # CPU-GPU sync
            scale=scale,
            skipped=scaler.get_scale() < scale,  # CPU-GPU sync; only a skipped step lowers the scale
            samples=len(targets),
            seconds=time.perf_counter() - start,
            peak_bytes=peak_bytes(device),
        )


if __name__ == "__main__":
    from ampkit.loops.run import main

    main(__file__)
