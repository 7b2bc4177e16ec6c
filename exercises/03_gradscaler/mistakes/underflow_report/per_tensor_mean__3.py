"""."""

import torch


def underflow_report(grads, scale):
    def fractions(g):
        half = (g[g != 0] * scale).half().abs()
        return torch.stack(
            [
                (half == 0).float().mean(),
                ((half > 0) & (half < 2**-14)).float().mean(),
                ((half >= 2**-14) & half.isfinite()).float().mean(),
                half.isinf().float().mean(),
            ]
        )

    mean = torch.stack([fractions(g) for g in grads]).mean(dim=0)
    return dict(zip(["lost", "subnormal", "normal", "overflow"], mean.tolist(), strict=True))
