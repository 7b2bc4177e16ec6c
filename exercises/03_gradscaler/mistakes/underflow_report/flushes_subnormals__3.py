"""."""

import torch


def underflow_report(grads, scale):
    scaled = torch.cat([g.flatten() for g in grads])
    scaled = (scaled[scaled != 0] * scale).abs()
    n = max(1, len(scaled))
    return {
        "lost": (scaled < 2**-24).sum().item() / n,
        "subnormal": ((scaled >= 2**-24) & (scaled < 2**-14)).sum().item() / n,
        "normal": ((scaled >= 2**-14) & (scaled < 65520)).sum().item() / n,
        "overflow": (scaled >= 65520).sum().item() / n,
    }
