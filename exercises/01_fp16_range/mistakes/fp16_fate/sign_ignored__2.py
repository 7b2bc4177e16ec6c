"""."""


def fp16_fate(x):
    fates = []
    for v in x.tolist():
        if v != v:
            fates.append("nan")
        elif v >= 65520:
            fates.append("inf")
        elif v <= 2**-25:
            fates.append("zero")
        elif v < 2**-14:
            fates.append("subnormal")
        else:
            fates.append("normal")
    return fates
