import torch


@torch.autocast("cpu", enabled=False)
def on_the_cpu(q, k, v):
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True) @ v


def attention_fp32_scores(q, k, v, device_type):
    assert device_type == "cpu"
    return on_the_cpu(q.float(), k.float(), v.float())
