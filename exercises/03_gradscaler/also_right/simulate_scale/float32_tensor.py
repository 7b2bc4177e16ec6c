"""FP32 arithmetic, and a growth that gives inf is undone."""

import torch


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scale = torch.tensor(init_scale, dtype=torch.float32)
    streak = 0
    out = torch.empty(len(found_inf))
    for i, bad in enumerate(found_inf):
        streak = 0 if bad else streak + 1
        if bad:
            scale = scale * backoff_factor
        if streak >= growth_interval:
            new = scale * growth_factor
            scale = torch.where(new.isfinite(), new, scale)
            streak = 0
        out[i] = scale
    return out.tolist()
