"""Cross-entropy by hand with a mask; classes moved to the place where cross_entropy would want them."""

import torch


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    masks = [y != ignore_index for _, y in micro_batches]
    valid = torch.stack([mask.sum() for mask in masks]).sum()
    losses = []
    for (x, y), mask in zip(micro_batches, masks, strict=True):
        with torch.autocast(device_type, dtype=torch.float16):
            log_probabilities = model(x).float().log_softmax(-1)
        chosen = log_probabilities.gather(-1, y.where(mask, 0)[..., None])[..., 0]
        loss = -(chosen * mask).sum() / valid
        scaler.scale(loss).backward()
        losses.append(loss.detach())
    scaler.step(optimizer)
    scaler.update()
    return sum(losses).item()
