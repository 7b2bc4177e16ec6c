"""The doctor: where the numbers break and why, what a log of steps says, what is wrong with this machine.

examine(model, inputs, targets, loss_fn)    one forward and backward pass, op by op
"""

import importlib

_HOME = {"Diagnosis": "findings", "Examination": "numbers", "Finding": "findings", "examine": "numbers"}
__all__ = ["Diagnosis", "Examination", "Finding", "examine"]


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'ampkit.doctor' has no attribute {name!r}")
    return getattr(importlib.import_module(f"ampkit.doctor.{_HOME[name]}"), name)


def __dir__():
    return sorted({*globals(), *__all__})
