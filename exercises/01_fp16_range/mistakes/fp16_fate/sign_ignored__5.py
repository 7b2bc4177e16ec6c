"""."""


def fp16_fate(x):
    fates = []
    for v in x.tolist():
        if v != v:
            fates.append("nan")
        elif v > 65504:
            fates.append("inf")
        elif v < 6e-5:
            fates.append("subnormal" if v > 6e-8 else "zero")
        else:
            fates.append("normal")
    return fates
