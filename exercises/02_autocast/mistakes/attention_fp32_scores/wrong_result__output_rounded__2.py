"""."""

import torch
from torch.nn import functional as F


def attention_fp32_scores(q, k, v, device_type):
    with torch.autocast(device_type, enabled=False):
        return F.scaled_dot_product_attention(q, k, v).float()
