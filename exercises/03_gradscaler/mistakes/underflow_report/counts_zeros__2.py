"""."""


def underflow_report(grads, scale):
    lost = subnormal = normal = overflow = n = 0
    for g in grads:
        half = (g * scale).half().abs()
        lost += int(((half == 0) & (g != 0)).sum())
        subnormal += int(((half > 0) & (half < 2**-14)).sum())
        normal += int(((half >= 2**-14) & half.isfinite()).sum())
        overflow += int(half.isinf().sum())
        n += g.numel()
    return {"lost": lost / n, "subnormal": subnormal / n, "normal": normal / n, "overflow": overflow / n}
