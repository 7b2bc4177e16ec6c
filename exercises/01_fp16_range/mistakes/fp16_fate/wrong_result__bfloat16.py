"""These are the fates that BF16 would have for the numbers, which has FP32's range. Look at the dtype that you
cast to."""


def fp16_fate(x):
    fates = []
    for h in x.bfloat16().float().abs().tolist():
        if h != h:
            fates.append("nan")
        elif h == float("inf"):
            fates.append("inf")
        elif h == 0:
            fates.append("zero")
        elif h < 2**-126:
            fates.append("subnormal")
        else:
            fates.append("normal")
    return fates
