"""."""

import torch


class LossScaler:
    def __init__(self, init_scale, growth_factor, backoff_factor, growth_interval):
        self._scale = init_scale
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.good_steps = 0
        self.found_inf = {}  # id of an optimizer that was unscaled: did it overflow?
        self.stepped = set()

    def scale(self, loss):
        return loss * self._scale

    def unscale_(self, optimizer):
        if id(optimizer) in self.found_inf:
            raise RuntimeError("unscale_() has already been called since the last update()")
        found_inf = False
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                param.grad /= self._scale
                if not torch.isfinite(param.grad).all():
                    found_inf = True
        self.found_inf[id(optimizer)] = found_inf

    def step(self, optimizer):
        if id(optimizer) in self.stepped:
            raise RuntimeError("step() has already been called since the last update()")
        if id(optimizer) not in self.found_inf:
            self.unscale_(optimizer)
        self.stepped.add(id(optimizer))
        if not self.found_inf[id(optimizer)]:
            optimizer.step()

    def update(self):
        if any(self.found_inf.values()):
            self._scale = max(self._scale * self.backoff_factor, 1e-8)
            self.good_steps = 0
        else:
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self._scale *= self.growth_factor
                self.good_steps = 0
        self.found_inf.clear()
        self.stepped.clear()

    def get_scale(self):
        return self._scale
