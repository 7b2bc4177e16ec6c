"""."""

import torch


def attention_fp32_scores(q, k, v, device_type):
    with torch.autocast(device_type, enabled=False):
        scores = q.float() @ k.float().transpose(-2, -1) / q.shape[-1] ** 0.5
        weights = (scores - scores.mean(-1, keepdim=True)).exp()
        return weights / weights.sum(-1, keepdim=True) @ v.float()
