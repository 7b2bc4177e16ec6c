"""State kept as attributes of the optimizer; max and min of each gradient are looked at."""

import torch


class LossScaler:
    def __init__(self, init_scale, growth_factor, backoff_factor, growth_interval):
        self._scale, self._good = init_scale, 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._seen = []

    @property
    def _inverse(self):
        return 1.0 / self._scale

    def scale(self, loss):
        return loss * self.get_scale()

    @torch.no_grad()
    def unscale_(self, optimizer):
        if getattr(optimizer, "amp_unscaled", False):
            raise RuntimeError("unscale_() twice, or after step()")
        optimizer.amp_unscaled, optimizer.amp_overflow = True, False
        self._seen.append(optimizer)
        for group in optimizer.param_groups:
            for parameter in filter(lambda p: p.grad is not None, group["params"]):
                parameter.grad.mul_(self._inverse)
                low, high = parameter.grad.aminmax()
                if not (low > -float("inf") and high < float("inf")):
                    optimizer.amp_overflow = True

    def step(self, optimizer):
        if getattr(optimizer, "amp_stepped", False):
            raise RuntimeError("step() twice")
        if not getattr(optimizer, "amp_unscaled", False):
            self.unscale_(optimizer)
        optimizer.amp_stepped = True
        if not optimizer.amp_overflow:
            optimizer.step()

    def update(self):
        overflow = any(optimizer.amp_overflow for optimizer in self._seen)
        self._good = 0 if overflow else self._good + 1
        if overflow:
            self._scale *= self._backoff_factor
        elif self._good % self._growth_interval == 0:
            self._scale *= self._growth_factor
        while self._seen:
            optimizer = self._seen.pop()
            optimizer.amp_unscaled = optimizer.amp_stepped = False

    def get_scale(self):
        return self._scale
