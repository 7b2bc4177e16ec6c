"""Recipe: how a model is to be trained, as far as that decides memory; the optimizers by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from ampkit.errors import LedgerError
from ampkit.precision import Precision

__all__ = ["OPTIMIZERS", "EightBitState", "Recipe"]


def _sgd(params: Iterable[Tensor]) -> torch.optim.Optimizer:
    return torch.optim.SGD(params, lr=0.1, foreach=True)


def _momentum(params: Iterable[Tensor]) -> torch.optim.Optimizer:
    return torch.optim.SGD(params, lr=0.1, momentum=0.9, foreach=True)


def _adamw(params: Iterable[Tensor]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(params, foreach=True)


def _adamw_fused(params: Iterable[Tensor]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(params, fused=True)


class EightBitState(torch.optim.Optimizer):
    """Makes the state that an 8-bit AdamW keeps, and updates nothing: it stands for its bytes alone.

    Two codes of one byte for each element, and for each 256 of them an FP32 scale; a table of 256 FP32 values for each
    of the two. Tensors below 4096 elements, or that 256 does not divide, stay FP32. That is the rule of torchao
    (torchao/optim/adam.py); bitsandbytes' differs by its tables alone.
    """

    BLOCK, SMALLEST = 256, 4096

    def __init__(self, params: Iterable[Tensor]) -> None:
        super().__init__(params, {})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:
        """Make the state of every parameter that has a gradient; closure is not called."""
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None and not self.state[param]:
                    self.state[param] = {
                        f"{moment}_{part}": made
                        for moment in ("exp_avg", "exp_avg_sq")
                        for part, made in self._moment(param).items()
                    }

    def _moment(self, param: Tensor) -> dict[str, Tensor]:
        if param.numel() < self.SMALLEST or param.numel() % self.BLOCK:
            return {"values": torch.zeros_like(param, dtype=torch.float32)}
        on = param.device
        return {
            "codes": torch.zeros(param.numel(), dtype=torch.uint8, device=on),
            "scales": torch.zeros(param.numel() // self.BLOCK, device=on),
            "table": torch.zeros(256, device=on),
        }


# foreach is what torch.optim chooses by itself for parameters on a GPU; a fake parameter hides that it is one
OPTIMIZERS = {
    "sgd": _sgd,
    "momentum": _momentum,
    "adamw": _adamw,
    "adamw-fused": _adamw_fused,
    "adamw8bit": EightBitState,
}


@dataclass(frozen=True)
class Recipe:
    """How a model is trained, as far as that decides memory.

    batch_size      examples between two steps of the optimizer
    precision       a name of ampkit.Precision: "fp32", "fp16-mixed", "bf16-true", …
    optimizer       a name of OPTIMIZERS; "momentum" is SGD with momentum 0.9
    accumulate      micro-batches that batch_size is split into; the largest of them decides memory
    checkpointing   whether each repeated block keeps its input alone, and is computed again in backward
    master_weights  whether a half model ("…-true") is updated through FP32 copies of its weights, as in apex O2

    Raises LedgerError for a combination that does not exist, PrecisionError for a precision that does not.
    """

    batch_size: int
    precision: str = "fp32"
    optimizer: str = "adamw"
    accumulate: int = 1
    checkpointing: bool = False
    master_weights: bool = False

    def __post_init__(self) -> None:
        precision = Precision(self.precision)
        if self.optimizer not in OPTIMIZERS:
            raise LedgerError(
                f"There is no optimizer {self.optimizer!r} in the ledger. Choose one of: {', '.join(OPTIMIZERS)}."
            )
        if self.batch_size < 1 or not 1 <= self.accumulate <= self.batch_size:
            raise LedgerError(
                f"A batch of {self.batch_size} in {self.accumulate} micro-batches cannot be: the batch is 1 or more, "
                "and each micro-batch needs an example."
            )
        if self.master_weights and precision.param_dtype is torch.float32:
            raise LedgerError(
                f"In {self.precision} the weights are FP32 themselves: they are the master weights, and there is no "
                "second copy. Leave master weights out, or choose bf16-true or fp16-true."
            )

    @property
    def micro_batch(self) -> int:
        """Examples in the largest micro-batch."""
        return -(-self.batch_size // self.accumulate)

    def __str__(self) -> str:
        words = [f"batch {self.batch_size}", self.precision, self.optimizer]
        if self.accumulate > 1:
            words.insert(1, f"in {self.accumulate} micro-batches of up to {self.micro_batch}")
        if self.master_weights:
            words.insert(-1, "FP32 master weights")
        if self.checkpointing:
            words.append("checkpointing")
        return ", ".join(words)
