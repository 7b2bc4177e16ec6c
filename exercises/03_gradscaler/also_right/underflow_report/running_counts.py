"""Counts that run over the tensors, borders in FP32 with round half to even, no cast at all."""


def underflow_report(grads, scale):
    lost = subnormal = normal = overflow = 0
    for g in grads:
        x = (g * scale).abs()[g != 0]
        lost += int((x <= 2.0**-25).sum())
        subnormal += int(((x > 2.0**-25) & (x < 2.0**-14 - 2.0**-25)).sum())
        normal += int(((x >= 2.0**-14 - 2.0**-25) & (x < 65520)).sum())
        overflow += int((x >= 65520).sum())
    n = lost + subnormal + normal + overflow
    if n == 0:
        return {"lost": 0.0, "subnormal": 0.0, "normal": 0.0, "overflow": 0.0}
    return {"lost": lost / n, "subnormal": subnormal / n, "normal": normal / n, "overflow": overflow / n}
