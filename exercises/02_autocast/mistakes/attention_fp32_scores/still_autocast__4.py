"""."""

import torch


def attention_fp32_scores(q, k, v, device_type):
    q, k, v = q.float(), k.float(), v.float()
    weights = torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5, -1)
    return torch.einsum("bhqk,bhkd->bhqd", weights, v).float()
