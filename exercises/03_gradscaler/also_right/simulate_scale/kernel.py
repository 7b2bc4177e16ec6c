"""The kernel that GradScaler.update calls, on FP32 tensors."""

import torch


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scale = torch.full((), init_scale, dtype=torch.float32)
    tracker = torch.zeros((), dtype=torch.int32)
    history = []
    for found in found_inf:
        flag = torch.tensor(float(found))
        torch._amp_update_scale_(scale, tracker, flag, growth_factor, backoff_factor, growth_interval)
        history.append(scale.item())
    return history
