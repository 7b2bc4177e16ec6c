"""Weighs each micro-batch's mean with its number of valid tokens; leaves out micro-batches without any."""

import torch
from torch import nn


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    loss_fn = nn.CrossEntropyLoss(ignore_index=ignore_index)
    counts = [(y != ignore_index).sum().item() for _, y in micro_batches]
    mean = 0.0
    for (x, y), count in zip(micro_batches, counts, strict=True):
        if count == 0:
            continue
        with torch.autocast(device_type=device_type, dtype=torch.float16):
            logits = model(x)
            loss = loss_fn(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
        share = loss * (count / sum(counts))
        scaler.scale(share).backward()
        mean += share.item()
    scaler.step(optimizer)
    scaler.update()
    return mean
