"""You cast the inputs to FP32 while the region is on, and the product casts them back to FP16 on its way in, where
they overflow. A cast alone does not hold against autocast; look for what switches it off.
"""


def attention_fp32_scores(q, k, v, device_type):
    q, k, v = q.float(), k.float(), v.float()
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return scores.softmax(-1) @ v
