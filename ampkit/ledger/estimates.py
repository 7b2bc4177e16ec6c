"""Ledger: the terms of a rehearsal's peak, and beside them the terms that only a GPU could tell, as estimates."""

from __future__ import annotations

from dataclasses import dataclass

from ampkit.ledger.live import ROLES
from ampkit.ledger.rehearsal import Rehearsal
from ampkit.ledger.sizes import MIB

__all__ = ["CONTEXT_BYTES", "CUBLAS_BYTES", "Ledger", "Term"]

# Two cuBLAS handles, one of the thread that runs forward and one of autograd's, of 32 MiB each on Hopper and newer;
# older GPUs take 8 MiB each. aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize.
CUBLAS_BYTES = 2 * 32 * MIB
# Kernels, driver and stack of a process; 200 to 600 MiB by GPU, driver and CUDA version, never in the allocator's count.
CONTEXT_BYTES = 500 * MIB


@dataclass(frozen=True)
class Term:
    """A line of the ledger. estimate: whether it is an estimate, rather than counted or computed by a rule."""

    name: str
    bytes: int
    estimate: bool = False


@dataclass(frozen=True)
class Ledger:
    """What a training step takes of a card, term by term, at the moment when it takes the most.

    >>> from ampkit.ledger import Recipe, Rehearsals, Subject
    >>> with Rehearsals(Subject.of("mlp")) as stage:
    ...     ledger = Ledger(stage.run(Recipe(128)))
    >>> [term.name for term in ledger.terms if not term.estimate][:4]
    ['weights', 'gradients', 'optimizer state', 'saved activations']
    """

    rehearsal: Rehearsal

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms above zero; their sum is `needs`."""
        peak = self.rehearsal.peak
        counted = [Term(role, peak.of(role)) for role in ROLES]
        counted.append(Term("rounding to blocks of 512 bytes", peak.blocks - peak.total))
        estimated = [
            Term("rounding to segments of 2 and 20 MiB", peak.segments - peak.blocks, estimate=True),
            Term("workspace of cuBLAS and cuDNN", CUBLAS_BYTES + self.rehearsal.conv_bytes, estimate=True),
            Term("CUDA context, outside the allocator", CONTEXT_BYTES, estimate=True),
        ]
        return tuple(term for term in [*counted, *estimated] if term.bytes)

    @property
    def allocated(self) -> int:
        """Bytes that max_memory_allocated() will show, without the workspaces."""
        return self.rehearsal.peak.blocks

    @property
    def needs(self) -> int:
        """Bytes that the card must have, estimates included."""
        return sum(term.bytes for term in self.terms)

    @property
    def largest(self) -> Term:
        """The largest term that a change of the recipe can make smaller."""
        roles = [term for term in self.terms if term.name in ROLES]
        return max(roles, key=lambda term: term.bytes)
