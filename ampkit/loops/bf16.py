"""bf16: the forward pass under BF16 autocast; the weights stay FP32.

BF16 has the exponent of FP32, so no gradient that FP32 can hold underflows, and no scaler is needed.
`.float()` before the loss: autocast on CUDA computes cross_entropy in FP32 by itself, autocast on the CPU does not.
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
    restore: Callable[..., int] = from_scratch,
) -> Iterator[StepReport]:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    first = restore(model=model, optimizer=optimizer)  # 0, or where a checkpoint goes on
    model.train()
    for step in range(first, steps):
        start = time.perf_counter()
        inputs, targets = (tensor.to(device) for tensor in next(batches))

        with torch.autocast(device, dtype=torch.bfloat16):  # 1 forward
            loss = loss_weight * loss_fn(model(inputs).float(), targets)
        loss.backward()  # 2 backward
        grad_norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
        optimizer.step()  # 4 step
        optimizer.zero_grad()

        yield StepReport(
            step=step,
            loss=loss.item() / loss_weight,  # CPU-GPU sync: .item() waits for the device
            grad_norm=grad_norm.item(),  # CPU-GPU sync
            scale=None,
            skipped=False,
            samples=len(targets),
            seconds=time.perf_counter() - start,
            peak_bytes=peak_bytes(device),
        )


if __name__ == "__main__":
    from ampkit.loops.run import main

    main(__file__)
