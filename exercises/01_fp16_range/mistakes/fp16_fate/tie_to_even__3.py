"""."""


def fp16_fate(x):
    def fate(v):
        a = abs(v)
        if v != v:
            return "nan"
        if a > 65520:
            return "inf"
        if a < 2**-25:
            return "zero"
        if a < 2**-14:
            return "subnormal"
        return "normal"

    return [fate(v) for v in x.tolist()]
