"""The output is right, and autocast is off when you return: everything that the caller computes after your island is
in FP32, slow and unnoticed. Open the island in a form that ends by itself.
"""

import torch


def attention_fp32_scores(q, k, v, device_type):
    torch.set_autocast_enabled(device_type, False)
    q, k, v = q.float(), k.float(), v.float()
    return (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1) @ v
