"""torch.bucketize on the magnitudes and a histogram of the buckets."""

import torch


def underflow_report(grads, scale):
    pooled = torch.nn.utils.parameters_to_vector(grads)
    magnitudes = (pooled[pooled.abs() > 0] * scale).half().float().abs()
    borders = torch.tensor([2.0**-24, 2.0**-14, float("inf")])
    bucket = torch.bucketize(magnitudes, borders, right=True)
    share = torch.nn.functional.one_hot(bucket, 4).double().sum(dim=0) / max(1, magnitudes.numel())
    lost, subnormal, normal, overflow = share.tolist()
    return {"lost": lost, "subnormal": subnormal, "normal": normal, "overflow": overflow}
