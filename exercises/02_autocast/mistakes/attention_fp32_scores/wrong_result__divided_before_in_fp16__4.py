"""."""

import torch


def attention_fp32_scores(q, k, v, device_type):
    with torch.autocast(device_type, enabled=False):
        scores = q.float() @ k.float().mT / q.shape[-1] ** 0.5
        weights = scores.softmax(-1, dtype=q.dtype)
        return weights.float() @ v.float()
