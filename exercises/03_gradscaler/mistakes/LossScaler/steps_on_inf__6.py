"""."""


class LossScaler:
    def __init__(self, init_scale, growth_factor, backoff_factor, growth_interval):
        self._scale = init_scale
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.good_steps = 0
        self.found_inf = False
        self.unscaled, self.stepped = set(), set()

    def scale(self, loss):
        return loss * self._scale

    def unscale_(self, optimizer):
        if optimizer in self.unscaled:
            raise RuntimeError("unscale_() has already been called since the last update()")
        self.unscaled.add(optimizer)
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    param.grad.div_(self._scale)

    def step(self, optimizer):
        if optimizer in self.stepped:
            raise RuntimeError("step() has already been called since the last update()")
        self.stepped.add(optimizer)
        overflow = False
        if optimizer not in self.unscaled:
            self.unscale_(optimizer)
            grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
            overflow = not all(grad.isfinite().all() for grad in grads)
        if overflow:
            self.found_inf = True
        else:
            optimizer.step()

    def update(self):
        if self.found_inf:
            self._scale *= self.backoff_factor
            self.good_steps = 0
        else:
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self._scale *= self.growth_factor
                self.good_steps = 0
        self.found_inf = False
        self.unscaled, self.stepped = set(), set()

    def get_scale(self):
        return self._scale
