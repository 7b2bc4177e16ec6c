"""One mask for each fate, on the FP16 tensor."""

import torch


def fp16_fate(x):
    h = x.half()
    fates = ["normal"] * len(h)
    masks = {
        "zero": h == 0,
        "subnormal": (h != 0) & (h.abs() < torch.finfo(h.dtype).smallest_normal),
        "inf": torch.isinf(h),
        "nan": torch.isnan(h),
    }
    for fate, mask in masks.items():
        for i in mask.nonzero().flatten().tolist():
            fates[i] = fate
    return fates
