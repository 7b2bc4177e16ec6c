"""."""

import torch
from torch.nn import functional as F


def attention_fp32_scores(q, k, v, device_type):
    with torch.autocast(device_type, enabled=False):
        output = F.scaled_dot_product_attention(q.float(), k.float(), v.float())
    torch.set_autocast_dtype(device_type, torch.bfloat16)
    return output
