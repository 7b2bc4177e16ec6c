"""."""

import torch
from torch.nn import functional as F


def attention_fp32_scores(q, k, v, device_type):
    with torch.autocast(device_type, enabled=False):
        q = q.float() / q.shape[-1] ** 0.5
        return F.scaled_dot_product_attention(q, k.float(), v.float())
