"""."""


def underflow_report(grads, scale):
    keys = ["lost", "subnormal", "normal", "overflow"]
    report = dict.fromkeys(keys, 0.0)
    for g in grads:
        nonzero = g != 0
        half = (g * scale).half().abs()
        masks = [half == 0, (half > 0) & (half < 2**-14), (half >= 2**-14) & half.isfinite(), half.isinf()]
        for key, mask in zip(keys, masks, strict=True):
            report[key] += (mask & nonzero).sum().item() / nonzero.sum().item() / len(grads)
    return report
