"""The products are FP16, and their sums overflow: the region is on, and casts whatever goes into a product to FP16,
also what you have just cast to FP32. Look for what switches it off."""


def attention_fp32_scores(q, k, v, device_type):
    q, k, v = q.float(), k.float(), v.float()
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return scores.softmax(-1) @ v
