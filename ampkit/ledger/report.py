"""The ledger in words: the table of terms, the verdict, what to change first, and how far all that has been measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ampkit.ledger.planning import MOST, Plan
from ampkit.ledger.rehearsal import PHASES
from ampkit.ledger.sizes import MIB, in_words

__all__ = ["WIDTH", "accuracy", "plan_text", "stored"]

WIDTH = 96


def plan_text(plan: Plan, runs: Sequence[dict[str, Any]] = ()) -> str:
    """The report of `ampkit plan`, at most 96 columns wide. runs: the stored measurements, for the line on accuracy."""
    ledger, rehearsal = plan.ledger, plan.ledger.rehearsal
    lines = [
        *_wrapped(f"{plan.subject}, {plan.parameters:,} parameters: {plan.recipe}; a card of {in_words(plan.vram)}"),
        "",
        f"{'at the peak, in ' + rehearsal.phase:<38}{'MiB':>10}{'share':>9}",
    ]
    for term in ledger.terms:
        dtypes = {_short(dtype): size for (role, dtype), size in rehearsal.peak.bytes.items() if role == term.name}
        large = {dtype: size for dtype, size in dtypes.items() if size >= max(dtypes.values()) / 50}
        words = ", ".join(f"{dtype} {size / MIB:,.0f}" for dtype, size in large.items())
        words = "   estimate" if term.estimate else f"   {words}" if len(large) > 1 else f"   {''.join(large)}"
        lines.append(f"{term.name:<38}{term.bytes / MIB:>10,.1f}{term.bytes / ledger.needs:>9.1%}{words}".rstrip())
    lines.append(f"{'in all':<38}{ledger.needs / MIB:>10,.1f}{1:>9.1%}")
    peaks = ", ".join(f"{phase} {rehearsal.peaks[phase].blocks / MIB:,.0f}" for phase in PHASES)
    kept = ", ".join(f"{_short(d)} {size / MIB:,.1f}" for d, size in rehearsal.kept.items() if size >= MIB / 20)
    total = sum(rehearsal.kept.values())
    casts = f"; {rehearsal.kept_casts / MIB:,.1f} of it copies of weights" if rehearsal.kept_casts else ""
    lines += [
        "",
        *_wrapped(f"Most that is allocated, by phase (MiB): {peaks}."),
        *_wrapped(
            f"Kept by autograd from forward to backward: {total / MIB:,.1f} MiB ({kept or 'next to nothing'}){casts}."
        ),
        "",
        *_wrapped(plan.verdict),
        *_wrapped(_largest_batch(plan)),
    ]
    needs = plan.needs
    for number, change in enumerate(plan.changes):
        word = ("First change" if not plan.fits else "To make room") if number == 0 else "Then"
        enough = "" if plan.fits else " It fits then." if change.needs <= plan.vram else " It still does not fit."
        lines += _wrapped(
            f"{word}, because the largest term is {change.because}: {change.what}. "
            f"It saves {in_words(needs - change.needs)} and needs {in_words(change.needs)}.{enough} "
            f"Price: {change.price}."
        )
        needs = change.needs
    if not plan.fits and needs > plan.vram:
        lines += _wrapped(
            "Nothing in this ledger makes the largest term that is left smaller. What can: a smaller model, shorter "
            "inputs, training a part of the weights (LoRA), or several cards (FSDP)."
        )
    lines += ["", *(line for note in rehearsal.notes for line in _wrapped(note)), *_wrapped(accuracy(runs))]
    lines += _wrapped(f"{plan.rehearsals} training steps rehearsed without a GPU in {plan.seconds:.1f} s.")
    return "\n".join(lines)


_SHORT = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}


def _short(dtype: torch.dtype) -> str:
    return _SHORT.get(dtype, str(dtype).removeprefix("torch."))


def _largest_batch(plan: Plan) -> str:
    what = "micro-batch" if plan.recipe.accumulate > 1 else "batch"
    if plan.largest_batch is None:
        return f"Largest {what} that fits: more than {MOST:,}."
    if plan.largest_batch == 0:
        return f"Largest {what} that fits: none, not even one example does."
    return (
        f"Largest {what} that fits, all else unchanged: {plan.largest_batch:,} ({plan.largest_batch + 1:,} does not)."
    )


def accuracy(runs: Sequence[dict[str, Any]]) -> str:
    """One sentence on how near the ledger came to a GPU's allocator, from stored measurements of kind "ledger"."""
    if not runs:
        return (
            "Counted, not measured: how near this comes to a GPU's allocator has not yet been measured. Estimates are "
            "marked; --measure compares on a GPU."
        )
    parts = []
    for run in runs:
        errors = [row["predicted"]["peak"] / row["measured"]["peak"] - 1 for row in run["results"]]
        worst = max(errors, key=abs)
        parts.append(f"{run['gpu']}, PyTorch {run['torch']}, {run['date']}: {len(errors)} steps, at worst {worst:+.1%}")
    return f"Counted. The predicted peak against the allocator's: {'; '.join(parts)}."


def stored(folder: Path | None = None) -> list[dict[str, Any]]:
    """The stored measurements of the ledger: those of kind "ledger" in lessons/measured of the checkout, or in folder.

    ValueError: a file lacks a part of its stamp.
    """
    import ampkit
    from ampkit.show import stored_runs

    folder = Path(ampkit.__file__).parent.parent / "lessons" / "measured" if folder is None else folder
    return [run for run in stored_runs(folder) if run.get("kind") == "ledger"]


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False) or [""]
