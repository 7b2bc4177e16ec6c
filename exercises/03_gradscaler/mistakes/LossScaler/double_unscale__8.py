"""."""


class LossScaler:
    def __init__(self, init_scale, growth_factor, backoff_factor, growth_interval):
        self._scale = init_scale
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.good_steps = 0
        self.found_inf = {}  # id of an optimizer that was unscaled: did it overflow?
        self.stepped = set()
        self.unscaled = set()

    def scale(self, loss):
        return loss * self._scale

    def unscale_(self, optimizer):
        if id(optimizer) in self.unscaled:
            raise RuntimeError("unscale_() has already been called since the last update()")
        self._divide(optimizer)
        self.unscaled.add(id(optimizer))

    def _divide(self, optimizer):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        for grad in grads:
            grad /= self._scale
        self.found_inf[id(optimizer)] = not all(grad.isfinite().all() for grad in grads)

    def step(self, optimizer):
        if id(optimizer) in self.stepped:
            raise RuntimeError("step() has already been called since the last update()")
        if id(optimizer) not in self.unscaled:
            self._divide(optimizer)
        self.stepped.add(id(optimizer))
        if not self.found_inf[id(optimizer)]:
            optimizer.step()

    def update(self):
        if any(self.found_inf.values()):
            self._scale *= self.backoff_factor
            self.good_steps = 0
        else:
            self.good_steps += 1
            if self.good_steps == self.growth_interval:
                self._scale *= self.growth_factor
                self.good_steps = 0
        self.found_inf.clear()
        self.stepped.clear()
        self.unscaled.clear()

    def get_scale(self):
        return self._scale
