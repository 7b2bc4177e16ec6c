"""The VRAM ledger: what a training step keeps alive on a GPU, counted in seconds without one.

A model is trained for one step on fake CUDA (ampkit.fake): the real autograd graph under the real autocast, with
tensors that have no data. What is alive at each moment is what the allocator will be asked for.

    Subject     a model with its inputs and its loss
    Recipe      batch size, precision, optimizer, accumulation, checkpointing
    Rehearsals  the context that trains a subject by recipes; a Rehearsal is what it counted
    Ledger      the terms of its peak, with estimates of what only a GPU could tell
    plan        what fits a card, the largest batch that does, what to change first
"""

from ampkit.ledger.estimates import Ledger, Term
from ampkit.ledger.planning import Change, Plan, plan
from ampkit.ledger.recipe import Recipe
from ampkit.ledger.rehearsal import Rehearsal, Rehearsals
from ampkit.ledger.sizes import in_words, parse_size
from ampkit.ledger.subject import Subject

__all__ = [
    "Change",
    "Ledger",
    "Plan",
    "Recipe",
    "Rehearsal",
    "Rehearsals",
    "Subject",
    "Term",
    "in_words",
    "parse_size",
    "plan",
]
