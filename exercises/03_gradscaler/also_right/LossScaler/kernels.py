"""The two kernels that GradScaler calls, FP32 tensors for scale and tracker."""

import torch


class LossScaler:
    def __init__(self, init_scale, growth_factor, backoff_factor, growth_interval):
        self._scale = torch.tensor(init_scale, dtype=torch.float32)
        self._tracker = torch.tensor(0, dtype=torch.int32)
        self._factors = (growth_factor, backoff_factor, growth_interval)
        self._found, self._done = {}, []

    def scale(self, loss):
        return loss * self._scale

    def unscale_(self, optimizer):
        if optimizer in self._found:
            raise RuntimeError("already unscaled")
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        self._found[optimizer] = torch.zeros(1)
        torch._amp_foreach_non_finite_check_and_unscale_(grads, self._found[optimizer], self._scale.reciprocal())

    def step(self, optimizer):
        if optimizer in self._done:
            raise RuntimeError("already stepped")
        if optimizer not in self._found:
            self.unscale_(optimizer)
        self._done.append(optimizer)
        if self._found[optimizer].item() == 0:
            optimizer.step()

    def update(self):
        found = sum(self._found.values(), torch.zeros(1))
        torch._amp_update_scale_(self._scale, self._tracker, found, *self._factors)
        self._found, self._done = {}, []

    def get_scale(self):
        return self._scale.item()
