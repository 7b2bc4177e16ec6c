"""Buckets of the magnitudes after the cast."""

import torch


def fp16_fate(x):
    names = ("zero", "subnormal", "normal", "inf")
    half = x.half().float().abs()
    buckets = torch.bucketize(half, torch.tensor([2.0**-24, 2.0**-14, 65536.0]), right=True)
    return ["nan" if v != v else names[b] for v, b in zip(x.tolist(), buckets.tolist(), strict=True)]
