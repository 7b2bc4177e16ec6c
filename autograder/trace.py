"""The order in which an answer called the scaler, the optimizer, the scheduler, backward and the clipping functions.

The record words a hint and never decides a verdict: it is kept in the answer's own process, which could forge it.
Only outermost calls count: the `unscale_` and `optimizer.step` that `scaler.step` makes are not the answer's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

_calls: list[str] | None = None
_depth = 0

# What is recorded of torch itself: where it hangs, its name there, the name in the record.
_RECORDED = (
    (torch.Tensor, "backward", "backward"),
    (torch.autograd, "backward", "backward"),
    (torch.autograd, "grad", "backward"),
    (torch.nn.utils, "clip_grad_norm_", "clip"),
    (torch.nn.utils.clip_grad, "clip_grad_norm_", "clip"),
    (torch.nn.utils, "clip_grad_value_", "clip_value"),
    (torch.nn.utils.clip_grad, "clip_grad_value_", "clip_value"),
    (torch.nn.utils, "clip_grads_with_norm_", "clip"),
    (torch.nn.utils, "get_total_norm", "norm"),
)


@contextmanager
def recording() -> Iterator[list[str]]:
    """Record the calls made inside the block; the list grows as they are made."""
    global _calls, _depth
    before, _calls, _depth = (_calls, _depth), [], 0
    try:
        yield _calls
    finally:
        _calls, _depth = before


def recorded(name: str, function: Callable) -> Callable:
    """`function`, which also writes `name` into the record that is open when it is called."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        global _depth
        if _calls is not None and _depth == 0 and len(_calls) < 200:
            _calls.append(name)
        _depth += 1
        try:
            return function(*args, **kwargs)
        finally:
            _depth -= 1

    return call


@contextmanager
def recording_torch() -> Iterator[None]:
    """Make torch's own functions write into the record for as long as the block lasts."""
    kept = [(owner, attribute, getattr(owner, attribute)) for owner, attribute, _ in _RECORDED]
    made: dict[int, Callable] = {}
    for (owner, attribute, function), (_, _, name) in zip(kept, _RECORDED, strict=True):
        setattr(owner, attribute, made.setdefault(id(function), recorded(name, function)))
    try:
        yield
    finally:
        for owner, attribute, function in kept:
            setattr(owner, attribute, function)


class GradScaler(torch.amp.GradScaler):
    """PyTorch's scaler, enabled, on the CPU unless told otherwise, whose calls are recorded."""

    def __init__(self, device: str = "cpu", **kwargs) -> None:
        super().__init__(device, **kwargs)
        self.labels: dict[int, str] = {}

    def scale(self, outputs):
        return recorded("scale", super().scale)(outputs)

    def unscale_(self, optimizer):
        return recorded("unscale_" + self.labels.get(id(optimizer), ""), super().unscale_)(optimizer)

    def step(self, optimizer, *args, **kwargs):
        return recorded("step" + self.labels.get(id(optimizer), ""), super().step)(optimizer, *args, **kwargs)

    def update(self, new_scale=None):
        return recorded("update", super().update)(new_scale)


def watch(optimizer: torch.optim.Optimizer, label: str = "") -> torch.optim.Optimizer:
    """Record calls of optimizer.step; `label` tells several optimizers apart."""

    def note(*_):
        if _calls is not None and _depth == 0 and len(_calls) < 200:
            _calls.append("optimizer.step" + label)

    optimizer.register_step_pre_hook(note)
    return optimizer


def watch_scheduler(scheduler: torch.optim.lr_scheduler.LRScheduler) -> torch.optim.lr_scheduler.LRScheduler:
    """Record calls of scheduler.step."""
    scheduler.step = recorded("scheduler.step", scheduler.step)
    return scheduler
