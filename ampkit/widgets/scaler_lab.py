"""A real GradScaler, model and optimizer that one drives call by call, and reads after each call; it draws nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["Call", "ScalerLab", "Update"]

MEANINGS = {
    "unscale_() has already been called": (
        "A second unscale_ would divide the gradients by the scale twice. One unscale_ per optimizer, then update()."
    ),
    "unscale_() is being called after step()": (
        "step() has used these gradients already. Unscale, look or clip before the step, never after it."
    ),
    "step() has already been called": (
        "Two steps on one set of gradients. Most often update() is missing at the end of the iteration."
    ),
    "No inf checks were recorded prior to update": (
        "update() has nothing to judge: since the last update() nothing was unscaled or stepped."
    ),
    "No inf checks were recorded for this optimizer": (
        "None of this optimizer's parameters has a gradient: no backward() since they were cleared."
    ),
    "Attempted": "The scaler has no scale yet: it is made in the first scaler.scale(loss).",
}


@dataclass(frozen=True)
class Call:
    """One call and what came of it. error: PyTorch's own words, or None. meaning: one line on it, or on the outcome."""

    name: str
    code: str
    error: str | None
    meaning: str


@dataclass(frozen=True)
class Update:
    """The scale after one update(), and whether the optimizer's step before it was skipped."""

    scale: float
    skipped: bool


class ScalerLab:
    """One weight vector, SGD, and torch.amp.GradScaler("cpu"), driven by hand.

    The forward runs under CPU autocast in FP16, so the scaled gradient really passes through FP16 on its way back to
    the FP32 weights: it overflows from 65520 on and vanishes at 2**-25.

    init_scale, growth_interval: the scaler's own. max_norm: for `clip`. gradient: size of the largest true gradient.
    nan: whether the forward produces a NaN.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_interval: int = 4,
        max_norm: float = 1.0,
        gradient: float = 2.0**-4,
    ) -> None:
        self.init_scale, self.growth_interval, self.max_norm = init_scale, growth_interval, max_norm
        self.gradient, self.nan = gradient, False
        self.reset()

    def reset(self) -> None:
        """A new model, optimizer and scaler with the settings as they stand."""
        self.model = torch.nn.Linear(4, 1, bias=False)
        torch.nn.init.zeros_(self.model.weight)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1.0)
        self.scaler = torch.amp.GradScaler(
            "cpu", init_scale=self.init_scale, growth_interval=self.growth_interval, enabled=True
        )
        self.scaler.scale(torch.zeros(()))  # the scale exists from the first call on
        self.calls: list[Call] = []
        self.updates: list[Update] = []
        self.steps_taken = 0
        self.skipped: bool | None = None
        self.optimizer.register_step_post_hook(self._count_step)

    def _count_step(self, *_: Any) -> None:
        self.steps_taken += 1

    # The calls. Each one is made on the real object, and PyTorch's own error is kept when it refuses.

    def backward(self) -> Call:
        """optimizer.zero_grad(); scaler.scale(loss).backward()"""
        stale = self.stage != "READY"

        def run() -> str:
            self.optimizer.zero_grad()
            self.scaler.scale(self._loss()).backward()
            if stale:
                return (
                    f"New scaled gradients, but the stage is still {self.stage}: nothing will unscale them. "
                    "PyTorch does not notice. update() comes first."
                )
            peak = self.model.weight.grad.abs().max().item()
            if peak != peak or peak == float("inf"):
                return "The gradients hold inf or NaN now. Nobody has looked yet: found_inf is set in unscale_."
            if peak == 0:
                return "Every gradient vanished in FP16: this scale is too low for gradients so small."
            return "The stored gradients are the true ones times the scale."

        return self._do("backward", "scaler.scale(loss).backward()", run)

    def unscale(self) -> Call:
        """scaler.unscale_(optimizer)"""

        def run() -> str:
            self.scaler.unscale_(self.optimizer)
            if self.found_inf:
                return "Divided by the scale, and looked: found_inf is 1. The step will be skipped."
            return "Divided by the scale, and looked: found_inf is 0. The stored gradients are the true ones."

        return self._do("unscale_", "scaler.unscale_(optimizer)", run)

    def clip(self) -> Call:
        """torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)"""

        def run() -> str:
            scaled = self.stage == "READY" and self.model.weight.grad is not None
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
            if not norm.isfinite():
                return "The norm is inf or NaN, so clipping ruins every gradient. No harm: this step will be skipped."
            if scaled:
                return "Clipped the scaled gradients: in true units to max_norm / scale. PyTorch does not notice."
            return f"The true norm is at most {self.max_norm:g} now."

        return self._do("clip", f"clip_grad_norm_(model.parameters(), {self.max_norm:g})", run)

    def step(self) -> Call:
        """scaler.step(optimizer)"""

        def run() -> str:
            before = self.steps_taken
            self.scaler.step(self.optimizer)
            self.skipped = self.steps_taken == before
            if self.skipped:
                return "Skipped: found_inf is 1, optimizer.step() was not called, the weights are untouched."
            return "optimizer.step() was called."

        return self._do("step", "scaler.step(optimizer)", run)

    def update(self) -> Call:
        """scaler.update()"""

        def run() -> str:
            before, found = self.scale, self.found_inf
            self.scaler.update()
            self.updates.append(Update(self.scale, bool(found)))
            self.skipped = None
            if self.scale < before:
                return f"The scale falls at once: {before:g} → {self.scale:g}. The count starts again."
            if self.scale > before:
                return f"{self.growth_interval} clean updates in a row: the scale grows, {before:g} → {self.scale:g}."
            return f"The scale stays. Clean updates in a row: {self.tracker} of {self.growth_interval}."

        return self._do("update", "scaler.update()", run)

    def iteration(self) -> Call:
        """One whole iteration in the right order."""
        if self.stage != "READY":
            self.update()
        for call in (self.backward, self.unscale, self.clip, self.step):
            call()
        return self.update()

    # What one can read, from the real object.

    @property
    def stage(self) -> str:
        """READY, UNSCALED or STEPPED: the scaler's own record for this optimizer."""
        record = self.scaler._per_optimizer_states.get(id(self.optimizer))
        return record["stage"].name if record else "READY"

    @property
    def found_inf(self) -> float | None:
        """What the last inf check since update() recorded; None if there was none."""
        record = self.scaler._per_optimizer_states.get(id(self.optimizer))
        found = record["found_inf_per_device"] if record else {}
        return sum(value.item() for value in found.values()) if found else None

    @property
    def scale(self) -> float:
        """The scaler's own scale: what the next loss is multiplied by."""
        return self.scaler.get_scale()

    @property
    def tracker(self) -> int:
        """Clean updates in a row."""
        return self.scaler._get_growth_tracker()

    @property
    def stored_norm(self) -> float | None:
        """2-norm of what is in .grad, scaled or not; None where there is no gradient."""
        grad = self.model.weight.grad
        return None if grad is None else grad.norm().item()

    @property
    def true_norm(self) -> float:
        """2-norm of the gradient that FP32 computes without a scale."""
        with torch.autocast("cpu", enabled=False):
            (grad,) = torch.autograd.grad(self._loss(half=False), self.model.weight)
        return grad.norm().item()

    def _loss(self, half: bool = True) -> torch.Tensor:
        inputs = torch.tensor([[1.0, -0.5, 0.25, -0.125]])
        if self.nan:
            inputs = inputs * float("nan")
        with torch.autocast("cpu", dtype=torch.float16, enabled=half):
            outputs = self.model(inputs)
        return outputs.float().sum() * self.gradient

    def _do(self, name: str, code: str, run: Callable[[], str]) -> Call:
        try:
            call = Call(name, code, None, run())
        except (RuntimeError, AssertionError, ValueError) as error:
            words = f"{type(error).__name__}: {error}"
            meaning = next((text for key, text in MEANINGS.items() if key in words), "PyTorch refused this order.")
            call = Call(name, code, words, meaning)
        self.calls.append(call)
        return call
