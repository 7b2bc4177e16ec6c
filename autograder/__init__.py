"""From submissions to grades: probes, evidence, verdicts, feedback.

A learner's notebook needs `Checks` of it, and PyTorch; the rest is for who grades.
"""

from __future__ import annotations

__all__ = ["Checks"]


def __getattr__(name: str) -> object:
    if name == "Checks":
        from autograder.student import Checks

        return Checks
    raise AttributeError(f"module 'autograder' has no attribute {name!r}")
