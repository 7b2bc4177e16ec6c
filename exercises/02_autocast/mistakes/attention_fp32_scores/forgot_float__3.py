"""."""

import torch


def attention_fp32_scores(q, k, v, device_type):
    with torch.autocast(device_type, enabled=False):
        scores = torch.matmul(q, k.transpose(-2, -1)) / q.shape[-1] ** 0.5
        weights = torch.softmax(scores, -1, dtype=torch.float32)
        return weights @ v.float()
