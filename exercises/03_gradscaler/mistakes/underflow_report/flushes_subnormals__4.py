"""."""


def underflow_report(grads, scale):
    counts = {"lost": 0, "subnormal": 0, "normal": 0, "overflow": 0}
    for g in grads:
        x = (g[g != 0] * scale).abs()
        counts["overflow"] += (x > 65504).sum().item()
        counts["normal"] += ((x >= 2**-14) & (x <= 65504)).sum().item()
        counts["lost"] += (x < 2**-14).sum().item()
    total = sum(counts.values())
    return {name: count / total if total else 0.0 for name, count in counts.items()}
