"""Subject: a model to plan for, with inputs of any batch size and its loss; nothing in it takes memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ampkit import models
from ampkit.errors import LedgerError

__all__ = ["LOSSES", "Subject"]


def _cross_entropy(output: Any, target: Tensor | None) -> Tensor:
    logits = _tensor(output)
    if target is None:  # one class for each example, or for each position of a map: (N, C, …) to (N, …), (N, T, C) too
        return F.cross_entropy(
            logits.float().flatten(0, -2), logits.new_zeros(logits.shape[:-1], dtype=torch.int64).flatten()
        )
    return models.cross_entropy(logits.float(), target)


def _pixels(output: Any, target: Tensor | None) -> Tensor:
    logits = _tensor(output)
    return F.cross_entropy(logits.float(), logits.new_zeros((len(logits), *logits.shape[2:]), dtype=torch.int64))


def _mse(output: Any, target: Tensor | None) -> Tensor:
    prediction = _tensor(output).float()
    return F.mse_loss(prediction, torch.zeros_like(prediction))


def _bce(output: Any, target: Tensor | None) -> Tensor:
    logits = _tensor(output).float()
    return F.binary_cross_entropy_with_logits(logits, torch.zeros_like(logits))


def _mean(output: Any, target: Tensor | None) -> Tensor:
    tensors = _floats(output)
    if len(tensors) == 1 and tensors[0].numel() == 1:
        return tensors[0].float()
    return torch.stack([tensor.float().mean() for tensor in tensors]).sum()


LOSSES = {"cross_entropy": _cross_entropy, "pixels": _pixels, "mse": _mse, "bce": _bce, "mean": _mean}


def _tensor(output: Any) -> Tensor:
    for name in ("logits", "out", "sample", "last_hidden_state"):
        if isinstance(output, dict) and name in output:
            return output[name]
        if isinstance(getattr(output, name, None), Tensor):
            return getattr(output, name)
    return _floats(output)[0]


def _floats(output: Any) -> list[Tensor]:
    """The floating-point tensors in what a model returned: tensor, sequence, dict, dataclass, or anything with fields."""
    if isinstance(output, Tensor):
        return [output] if output.is_floating_point() else []
    if isinstance(output, dict):
        output = list(output.values())
    elif not isinstance(output, list | tuple):
        output = list(getattr(output, "__dict__", {}).values())
    found = [tensor for part in output if part is not None for tensor in _floats(part)]
    return found


@dataclass(frozen=True)
class Subject:
    """A model and what it is fed.

    name    what the report calls it
    make    makes the model; called once for each model that is needed
    batch   batch size -> (inputs, target); tensors on the "meta" device, target None if the loss needs none
    loss    (what the model returned, target) -> scalar
    notes   what has to be said about these, each a sentence
    """

    name: str
    make: Callable[[], nn.Module]
    batch: Callable[[int], tuple[tuple[Tensor, ...], Tensor | None]]
    loss: Callable[[Any, Tensor | None], Tensor]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: str, inputs: str | None = None, loss: str | None = None) -> Subject:
        """The subject of a registered name, or of an import path with inputs as in "f32[8,3,224,224]".

        The first dimension of the first input is the batch; inputs with the same first dimension are batched with it.
        loss is a name of LOSSES: cross_entropy (classes are the last dimension), pixels (classes are the second),
        mse, bce, mean. A registered model is trained with cross-entropy; without a name, anybody's own with mean.
        Raises ModelError, and LedgerError for a loss that does not exist or inputs that are missing.
        """
        own = models.is_import_path(spec)
        if loss is not None and loss not in LOSSES:
            raise LedgerError(f"There is no loss {loss!r}. Choose one of: {', '.join(LOSSES)}.")
        if own and inputs is None:
            raise LedgerError(
                f"What {spec} takes is not known. Describe a batch of any size with --input, as in "
                "--input 'f32[8,3,224,224]'."
            )
        notes = []
        if own and loss is None:
            notes.append(
                "The loss is taken to be the mean of what the model returns. A cross-entropy over many classes keeps "
                "more: name yours with --loss."
            )
        if not own:
            models.example(spec, 1, device="meta")  # a ModelError for a name that does not exist, before anything else
        example = models.parse_input(inputs, device="meta") if inputs is not None else None

        def batch(size: int) -> tuple[tuple[Tensor, ...], Tensor | None]:
            if example is None:
                return models.example(spec, size, device="meta")
            first = example[0].shape[:1]
            resized = tuple(
                torch.empty((size, *tensor.shape[1:]), dtype=tensor.dtype, device="meta")
                if first and tensor.shape[:1] == first
                else tensor
                for tensor in example
            )
            return resized, None

        function = LOSSES[loss or ("mean" if own else "cross_entropy")]
        return cls(spec, lambda: models.build(spec), batch, function, tuple(notes))
