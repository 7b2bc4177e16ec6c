"""A zero is not named as the docstring has it: what is 0 before the cast is `"zero"` as well, with either sign."""


def fp16_fate(x):
    fates = []
    for v, h in zip(x.tolist(), x.half().tolist(), strict=True):
        if v != v:
            fates.append("nan")
        elif abs(h) == float("inf"):
            fates.append("inf")
        elif h == 0 and v != 0:
            fates.append("zero")
        elif 0 < abs(h) < 2**-14:
            fates.append("subnormal")
        else:
            fates.append("normal")
    return fates
