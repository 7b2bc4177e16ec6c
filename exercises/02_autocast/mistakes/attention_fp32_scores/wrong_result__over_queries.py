"""Softmax runs over the wrong dimension: the weights of one query over all keys are to sum to 1, and yours sum to 1
over the queries. Sum your weights over their last dimension and see.
"""

import torch


def attention_fp32_scores(q, k, v, device_type):
    with torch.autocast(device_type, enabled=False):
        q, k, v = q.float(), k.float(), v.float()
        return (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-2) @ v
