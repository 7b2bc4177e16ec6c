"""tf32: fp32 with matrix products and convolutions in TF32, what NVIDIA's tensor cores (Ampere and newer) do with FP32.

Tensors stay FP32. A tensor core reads each number with 10 bits of mantissa in the place of 23, and adds up in FP32.
PyTorch allows it to convolutions by default and to matrix products not, so "FP32" is often half TF32: a fair baseline
sets both. The flags are the process's, not the loop's; `ampkit train` puts them back.
"""

import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ampkit.checkpoint import from_scratch
from ampkit.precision import Precision
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
    Precision("tf32").check(device)  # where there is no TF32 the flags would be ignored, silently
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.cudnn.conv.fp32_precision = "tf32"
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    first = restore(model=model, optimizer=optimizer)  # 0, or where a checkpoint goes on
    model.train()
    for step in range(first, steps):
        start = time.perf_counter()
        inputs, targets = (tensor.to(device) for tensor in next(batches))

        loss = loss_weight * loss_fn(model(inputs), targets)  # 1 forward
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
