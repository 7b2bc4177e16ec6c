"""explicit_casts: bf16 without autocast: the casts stand in the layers, as in several recent codebases.

The weights stay FP32 and each layer casts them to the dtype of what comes in; norms compute in FP32 and give back what
came in (ampkit/models/casts.py). What is computed in which dtype is then read from the model and the same on every
device, and no list of PyTorch decides it.
"""

import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ampkit.checkpoint import from_scratch
from ampkit.models.casts import cast_per_op
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
    cast_per_op(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    first = restore(model=model, optimizer=optimizer)  # 0, or where a checkpoint goes on
    model.train()
    for step in range(first, steps):
        start = time.perf_counter()
        inputs, targets = (tensor.to(device) for tensor in next(batches))

        if inputs.is_floating_point():  # tokens become BF16 in the embedding
            inputs = inputs.bfloat16()
        loss = loss_weight * loss_fn(model(inputs).float(), targets)  # 1 forward; the loss in FP32
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
