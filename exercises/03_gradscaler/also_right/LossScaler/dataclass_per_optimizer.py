"""A dataclass for each optimizer, keyed by id."""

from collections import defaultdict
from dataclasses import dataclass

import torch


@dataclass
class State:
    unscaled: bool = False
    stepped: bool = False
    overflow: bool = False


class LossScaler:
    def __init__(self, init_scale, growth_factor, backoff_factor, growth_interval):
        self.current = float(init_scale)
        self.growth_factor, self.backoff_factor, self.growth_interval = growth_factor, backoff_factor, growth_interval
        self.streak = 0
        self.states = defaultdict(State)

    def scale(self, loss):
        return self.current * loss

    def unscale_(self, optimizer):
        state = self.states[id(optimizer)]
        if state.stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if state.unscaled:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        state.unscaled = True
        with torch.no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.grad = p.grad / self.current
                        state.overflow |= not torch.isfinite(p.grad).all().item()

    def step(self, optimizer):
        state = self.states[id(optimizer)]
        if state.stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if not state.unscaled:
            self.unscale_(optimizer)
        state.stepped = True
        return None if state.overflow else optimizer.step()

    def update(self):
        if any(state.overflow for state in self.states.values()):
            self.current *= self.backoff_factor
            self.streak = 0
        elif self.streak + 1 == self.growth_interval:
            self.current *= self.growth_factor
            self.streak = 0
        else:
            self.streak += 1
        self.states = defaultdict(State)

    def get_scale(self):
        return self.current
