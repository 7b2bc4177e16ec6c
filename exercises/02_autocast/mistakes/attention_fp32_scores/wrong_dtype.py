"""Everything is computed in FP32, and the output is rounded to FP16 at the end. What comes next may need it in FP32,
and autocast casts it down by itself where it does not; the dtype of the result was asked for.
"""

import torch


def attention_fp32_scores(q, k, v, device_type):
    dtype = q.dtype
    with torch.autocast(device_type, enabled=False):
        q, k, v = q.float(), k.float(), v.float()
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        return (scores.softmax(-1) @ v).to(dtype)
