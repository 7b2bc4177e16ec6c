"""The scores are transposed: a row of them belongs to one key, where it should belong to one query. Each output then mixes the
values with another token's weights. Look at which of the two, q or k, is transposed, and at the order of your indices.
"""

import torch


def attention_fp32_scores(q, k, v, device_type):
    with torch.autocast(device_type, enabled=False):
        q, k, v = q.float(), k.float(), v.float()
        scores = k @ q.transpose(-2, -1) / q.shape[-1] ** 0.5
        return scores.softmax(-1) @ v
