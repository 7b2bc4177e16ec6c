"""."""


def underflow_report(grads, scale):
    per_tensor = []
    for g in grads:
        half = (g * scale).half().abs()
        n = g.numel()
        per_tensor.append(
            {
                "lost": ((half == 0) & (g != 0)).sum().item() / n,
                "subnormal": ((half > 0) & (half < 2**-14)).sum().item() / n,
                "normal": ((half >= 2**-14) & half.isfinite()).sum().item() / n,
                "overflow": half.isinf().sum().item() / n,
            }
        )
    return {key: sum(r[key] for r in per_tensor) / len(per_tensor) for key in per_tensor[0]}
