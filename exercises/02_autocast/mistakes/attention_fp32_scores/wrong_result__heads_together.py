"""The tokens of all heads stand in one row, so that a query of one head gives weight to keys of another. Heads are
apart from each other like the sequences of a batch; look at what you reshape."""

import torch
from torch.nn import functional as F


def attention_fp32_scores(q, k, v, device_type):
    batch, heads, tokens, dim = q.shape
    with torch.autocast(device_type, enabled=False):
        q, k, v = (t.float().reshape(batch, heads * tokens, dim) for t in (q, k, v))
        output = F.scaled_dot_product_attention(q, k, v)
    return output.reshape(batch, heads, tokens, dim)
