"""compiled: fp16 with the model compiled by torch.compile.

autocast is inside of what is compiled. Around it, PyTorch would compile the backward under autocast as well
(torch._functorch.config.backward_pass_autocast is "same_as_forward"), and a layer that was kept in FP32 with
`autocast(enabled=False)` would have its backward in FP16. Inside, the backward is what it is without torch.compile.
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
    backend: str = "inductor",
    restore: Callable[..., int] = from_scratch,
) -> Iterator[StepReport]:
    def forward(inputs: Tensor) -> Tensor:
        with torch.autocast(device, dtype=torch.float16):
            return model(inputs)

    compiled = torch.compile(forward, backend=backend)  # once; the first step waits for it
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    scaler = torch.amp.GradScaler(device, init_scale=init_scale)
    first = restore(model=model, optimizer=optimizer, scaler=scaler)  # 0, or where a checkpoint goes on
    model.train()
    for step in range(first, steps):
        start = time.perf_counter()
        inputs, targets = (tensor.to(device) for tensor in next(batches))

        loss = loss_weight * loss_fn(compiled(inputs).float(), targets)  # 1 forward
        scaler.scale(loss).backward()  # 2 scaled backward
        scaler.unscale_(optimizer)  # 3 unscale
        grad_norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
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
