import math

import torch


def attention_fp32_scores(q, k, v, device_type):
    q, k, v = (tensor.to(torch.float32) for tensor in (q, k, v))
    with torch.amp.autocast(device_type=device_type, enabled=False):
        scores = torch.matmul(q / math.sqrt(q.size(-1)), k.mT)
        return torch.matmul(torch.softmax(scores, dim=-1), v)
