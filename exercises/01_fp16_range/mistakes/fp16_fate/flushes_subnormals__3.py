"""."""


def fp16_fate(x):
    def fate(value):
        if value != value:
            return "nan"
        a = abs(value)
        if a > 65504:
            return "inf"
        if a < 2**-14:
            return "zero"
        return "normal"

    return [fate(v) for v in x.tolist()]
