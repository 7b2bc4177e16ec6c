"""Numbers that FP16 cannot hold are called normal, as they are in FP32 and in BF16, whose range is far larger. The
question is about what is left after the numbers have been stored in FP16."""


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
