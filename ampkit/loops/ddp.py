"""ddp: accumulated on several processes with DistributedDataParallel, each computing its share of every micro-batch.

    torchrun --nproc-per-node 2 -m -- ampkit.loops.ddp --device cpu --log run.jsonl

(The -- keeps torchrun from reading --log as an option of its own.)

DDP averages the gradients during the backward of a window's last micro-batch, and those are the scaled ones: an inf on
one rank is an inf on all of them after the average, so all skip and all halve, and no rank needs to tell the others.
Each rank's scaler therefore holds the same scale for ever, as long as all began with the same.
BatchNorm takes the statistics of each rank's share by itself; nn.SyncBatchNorm takes them of all.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from ampkit.checkpoint import from_scratch
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
    accumulate: int = 4,
    restore: Callable[..., int] = from_scratch,
) -> Iterator[StepReport]:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(torch.initial_seed() + rank)  # other dropout masks on every rank
    ddp = DistributedDataParallel(model)  # rank 0's weights on all of them
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    scaler = torch.amp.GradScaler(device, init_scale=init_scale)
    first = restore(model=model, optimizer=optimizer, scaler=scaler)  # 0, or where a checkpoint goes on
    ddp.train()
    for step in range(first, steps):
        start = time.perf_counter()
        window = batches.take(accumulate, smallest=ranks)  # the same on every rank
        samples = sum(len(targets) for _, targets in window)
        loss_sum = torch.zeros((), device=device)

        for micro, (inputs, targets) in enumerate(window, start=1):
            inputs, targets = inputs[rank::ranks].to(device), targets[rank::ranks].to(device)
            share = len(targets) / samples * ranks  # times ranks: DDP divides by it
            # no_sync is around the forward as well: there DDP decides whether this backward will average
            with ddp.no_sync() if micro < len(window) else nullcontext():
                with torch.autocast(device, dtype=torch.float16):  # 1 forward
                    loss = loss_weight * loss_fn(ddp(inputs).float(), targets) * share
                scaler.scale(loss).backward()  # 2 scaled backward; the last one averages over the ranks
            loss_sum += loss.detach()
        dist.all_reduce(loss_sum)
        scaler.unscale_(optimizer)  # 3 unscale
        grad_norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)  # returns the norm before clipping
        scale = scaler.get_scale()  # CPU-GPU sync
        scaler.step(optimizer)  # 4 step and update; CPU-GPU sync: was any gradient inf or nan?
        scaler.update()
        optimizer.zero_grad()

        yield StepReport(
            step=step,
            loss=loss_sum.item() / ranks / loss_weight,  # CPU-GPU sync: .item() waits for the device
            grad_norm=grad_norm.item(),  # CPU-GPU sync
            scale=scale,
            skipped=scaler.get_scale() < scale,  # CPU-GPU sync; only a skipped step lowers the scale
            samples=samples,
            seconds=time.perf_counter() - start,
            peak_bytes=peak_bytes(device),
        )


if __name__ == "__main__":
    from ampkit.loops.run import main

    main(__file__)
