"""What `ampkit plan` does with its options."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

from ampkit.errors import LedgerError
from ampkit.ledger.planning import plan
from ampkit.ledger.recipe import Recipe
from ampkit.ledger.report import plan_text, stored
from ampkit.ledger.sizes import parse_size
from ampkit.ledger.subject import Subject
from ampkit.output import writable, write_json

__all__ = ["run"]


def run(
    model: str,
    *,
    vram: str | None,
    recipe: dict[str, Any],
    inputs: str | None,
    loss: str | None,
    measure: bool,
    json_file: Path | None,
) -> None:
    """Print the plan, and with measure the allocator's numbers beside it. Raises AmpkitError where there is none."""
    writable({"--json": json_file})
    subject, trained = Subject.of(model, inputs, loss), Recipe(**recipe)
    if measure and not torch.cuda.is_available():
        raise LedgerError(
            "--measure compares the ledger with a GPU's allocator, and PyTorch sees no CUDA GPU here. Leave it out: "
            "the prediction needs none."
        )
    size = _card(vram)
    found = plan(subject, trained, size, told=_progress)
    _clear()
    print(plan_text(found, stored()))
    result = found.to_dict()
    if measure:
        from ampkit.ledger.measure import comparison_text, measured_run

        result["measurement"] = measured_run(subject, found)
        print("\n" + comparison_text(result["measurement"]))
    if json_file is not None:
        write_json(result, json_file)


def _card(vram: str | None) -> int:
    if vram is not None:
        return parse_size(vram)
    if not torch.cuda.is_available():
        raise LedgerError("How much memory does the card have? Say it with --vram, as in --vram 8GiB.")
    return torch.cuda.get_device_properties(0).total_memory


def _progress(recipe: Recipe) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[Krehearsing {recipe} …", end="", file=sys.stderr, flush=True)


def _clear() -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
