"""."""


def attention_fp32_scores(q, k, v, device_type):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return (scores.softmax(dim=-1) @ v).float()
