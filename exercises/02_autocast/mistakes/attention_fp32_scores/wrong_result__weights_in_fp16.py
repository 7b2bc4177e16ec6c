"""The scores are right, and then the weights are rounded to FP16, by you or by autocast. The digits that they lose show where
values of both signs cancel. Three steps were to be in FP32; look at what comes after softmax.
"""

import torch


def attention_fp32_scores(q, k, v, device_type):
    with torch.autocast(device_type, enabled=False):
        scores = q.float() @ k.float().transpose(-2, -1) / q.shape[-1] ** 0.5
        return (scores.softmax(-1).half() @ v).float()
