"""A tensor of 10 elements counts as much as one of 10000: you averaged the fractions of the tensors. The question
is about all elements together."""


def underflow_report(grads, scale):
    report = {"lost": 0.0, "subnormal": 0.0, "normal": 0.0, "overflow": 0.0}
    for g in grads:
        g = g[g != 0]
        half = (g * scale).half().abs()
        n = max(1, g.numel())
        report["lost"] += (half == 0).sum().item() / n
        report["subnormal"] += ((half > 0) & (half < 2**-14)).sum().item() / n
        report["normal"] += ((half >= 2**-14) & half.isfinite()).sum().item() / n
        report["overflow"] += half.isinf().sum().item() / n
    return {name: value / len(grads) for name, value in report.items()}
