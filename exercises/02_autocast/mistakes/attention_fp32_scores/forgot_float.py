"""The region is off and the inputs are still FP16, so that the products are FP16 as well, and above 65504 they are
inf. Switching autocast off casts nothing back; look at the dtype of what goes into the first product.
"""

import torch


def attention_fp32_scores(q, k, v, device_type):
    with torch.autocast(device_type, enabled=False):
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        return (scores.softmax(-1) @ v).float()
