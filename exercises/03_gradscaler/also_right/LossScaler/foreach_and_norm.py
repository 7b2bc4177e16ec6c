"""foreach ops; one norm of all norms tells whether anything is inf or nan; stages are strings."""

import math

import torch


class LossScaler:
    """READY -> UNSCALED -> STEPPED, for each optimizer."""

    def __init__(self, init_scale, growth_factor, backoff_factor, growth_interval):
        self.value = init_scale
        self.growth = growth_factor
        self.backoff = backoff_factor
        self.interval = growth_interval
        self.until_growth = growth_interval
        self.stage = {}
        self.bad = []

    def scale(self, loss):
        return loss.mul(self.value)

    def unscale_(self, optimizer):
        stage = self.stage.get(optimizer, "ready")
        if stage != "ready":
            raise RuntimeError(f"unscale_: this optimizer is already {stage}")
        params = (p for group in optimizer.param_groups for p in group["params"])
        grads = [p.grad for p in params if p.grad is not None]
        norm = torch.stack(torch._foreach_norm(grads)).norm()
        torch._foreach_div_(grads, self.value)
        if not math.isfinite(norm.item()):
            self.bad.append(optimizer)
        self.stage[optimizer] = "unscaled"

    def step(self, optimizer):
        if self.stage.get(optimizer) == "stepped":
            raise RuntimeError("step: this optimizer is already stepped")
        if self.stage.get(optimizer) is None:
            self.unscale_(optimizer)
        self.stage[optimizer] = "stepped"
        if optimizer in self.bad:
            return
        optimizer.step()

    def update(self):
        self.until_growth -= 1
        if self.bad:
            self.value *= self.backoff
            self.until_growth = self.interval
        elif self.until_growth == 0:
            self.value *= self.growth
            self.until_growth = self.interval
        self.stage.clear()
        self.bad.clear()

    def get_scale(self):
        return float(self.value)
