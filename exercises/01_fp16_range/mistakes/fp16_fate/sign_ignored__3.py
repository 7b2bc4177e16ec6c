"""."""


def fp16_fate(x):
    fates = []
    for v, h in zip(x.tolist(), x.half().tolist(), strict=True):
        if v != v:
            fates.append("nan")
        elif h == float("inf"):
            fates.append("inf")
        elif h == 0:
            fates.append("zero")
        elif abs(h) < 2**-14:
            fates.append("subnormal")
        else:
            fates.append("normal")
    return fates
