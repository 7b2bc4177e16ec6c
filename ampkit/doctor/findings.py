"""What the doctor says: findings with their evidence, as text for a reader and as data for a program."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Diagnosis", "Finding"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    cause     which of the known causes it is, one word ("attention_overflow"); the same in text, JSON and tests
    where     the place: phase, op and module, or steps of a log, or a part of the environment
    what      what happened, with the numbers that show it
    why       what that means
    cure      what to do
    op        the aten op ("bmm") that made the first bad value, where there is one
    module    the path of its module in the model ("encoder.attn"), "" for the model's own forward, "loss" for the loss
    dtype     what the op computed in, as PyTorch prints it ("torch.float16")
    evidence  numbers behind the words, for a program
    """

    cause: str
    where: str
    what: str
    why: str
    cure: str
    op: str | None = None
    module: str | None = None
    dtype: str | None = None
    evidence: dict[str, Any] = field(default_factory=dict)

    def text(self, width: int = 100) -> str:
        """The finding as indented lines, no longer than width."""
        lines = [self.cause]
        for label in ("where", "what", "why", "cure"):
            lines += _paragraph(label, getattr(self, label), width)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that strict JSON can hold; inf and nan are the strings "inf", "-inf" and "nan"."""
        names = ("cause", "where", "what", "why", "cure", "op", "module", "dtype")
        return {name: getattr(self, name) for name in names} | {"evidence": _plain(self.evidence)}


@dataclass(frozen=True)
class Diagnosis:
    """What an instrument found. subject: what was looked at. state: one word or phrase for the whole.

    notes are worth knowing and are no fault. No findings: healthy.
    """

    subject: str
    state: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """Nothing is wrong."""
        return not self.findings

    def text(self, width: int = 100) -> str:
        """The diagnosis as paragraphs, no line longer than width."""
        parts = [textwrap.fill(f"{self.subject}: {self.state}.", width)]
        for number, finding in enumerate(self.findings, start=1):
            parts.append(f"{number}. {finding.text(width)}")
        parts += [line for note in self.notes for line in _paragraph("note", note, width)]
        return "\n".join(parts)

    def __str__(self) -> str:
        return self.text()

    def to_dict(self) -> dict[str, Any]:
        """Plain data that strict JSON can hold."""
        return {
            "subject": self.subject,
            "state": self.state,
            "healthy": self.healthy,
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """The same as one indented JSON document."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)


def _paragraph(label: str, sentence: str, width: int) -> list[str]:
    return textwrap.wrap(
        sentence, width, initial_indent=f"   {label:<6}", subsequent_indent=" " * 9, break_on_hyphens=False
    )


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
