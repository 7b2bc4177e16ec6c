"""."""


def underflow_report(grads, scale):
    reports = []
    for g in grads:
        g = g[g != 0]
        if g.numel() == 0:
            continue
        half = (g * scale).half().abs()
        lost = (half == 0).float().mean().item()
        overflow = half.isinf().float().mean().item()
        subnormal = ((half > 0) & (half < 2**-14)).float().mean().item()
        reports.append((lost, subnormal, 1 - lost - subnormal - overflow, overflow))
    if not reports:
        return {"lost": 0.0, "subnormal": 0.0, "normal": 0.0, "overflow": 0.0}
    means = [sum(column) / len(reports) for column in zip(*reports, strict=True)]
    return dict(zip(("lost", "subnormal", "normal", "overflow"), means, strict=True))
