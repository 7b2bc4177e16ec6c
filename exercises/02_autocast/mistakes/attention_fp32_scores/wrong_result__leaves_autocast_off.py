"""The output is right, and autocast is not what it was when you return: it is off, or in another dtype. Whatever the
caller computes after your island is cast in another way, or not at all, and nobody notices. Open the island in a form
that ends by itself."""

import torch


def attention_fp32_scores(q, k, v, device_type):
    torch.set_autocast_enabled(device_type, False)
    q, k, v = q.float(), k.float(), v.float()
    return (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1) @ v
