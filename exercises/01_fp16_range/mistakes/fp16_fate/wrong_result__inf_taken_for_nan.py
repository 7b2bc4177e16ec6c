"""An infinite or undefined input gets the wrong name. Storing does not turn inf into nan or nan into a number; and
nan compares as False with everything, so look at the order of your tests."""


def fp16_fate(x):
    fates = []
    for h in x.half().abs().tolist():
        if h == 0:
            fates.append("zero")
        elif h < 2**-14:
            fates.append("subnormal")
        elif h <= 65504:
            fates.append("normal")
        else:
            fates.append("inf")
    return fates
