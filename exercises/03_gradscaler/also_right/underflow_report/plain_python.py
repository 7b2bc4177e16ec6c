"""One element after the other, classified by an if."""

import math


def underflow_report(grads, scale):
    report = {"lost": 0, "subnormal": 0, "normal": 0, "overflow": 0}
    for g in grads:
        before = g.flatten().tolist()
        after = (g * scale).half().flatten().tolist()
        for b, a in zip(before, after, strict=True):
            if b == 0:
                continue
            a = abs(a)
            if a == 0:
                report["lost"] += 1
            elif math.isinf(a):
                report["overflow"] += 1
            elif a < 2**-14:
                report["subnormal"] += 1
            else:
                report["normal"] += 1
    n = sum(report.values())
    return {k: v / n if n else 0.0 for k, v in report.items()}
