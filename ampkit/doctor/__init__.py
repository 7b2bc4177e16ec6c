"""The doctor: where the numbers break and why, what a log of steps says, what is wrong with this machine.

    examine(model, inputs, targets, loss_fn)    one forward and backward pass, op by op
    diagnose(reports), diagnose_log(path)       the state of a training run
    environment()                               PyTorch, driver, GPU, memory and settings of this machine

Each returns a Diagnosis: its state, its findings with cause, evidence and cure, as text or as JSON.
"""

import importlib
from typing import TYPE_CHECKING

_HOME = {
    "Diagnosis": "findings",
    "Examination": "numbers",
    "Finding": "findings",
    "diagnose": "logs",
    "diagnose_log": "logs",
    "environment": "machine",
    "examine": "numbers",
    "read_log": "logs",
}
__all__ = ["Diagnosis", "Examination", "Finding", "diagnose", "diagnose_log", "environment", "examine", "read_log"]

if TYPE_CHECKING:  # a type checker does not run __getattr__, and without it sees a name that is misspelled
    from ampkit.doctor.findings import Diagnosis, Finding
    from ampkit.doctor.logs import diagnose, diagnose_log, read_log
    from ampkit.doctor.machine import environment
    from ampkit.doctor.numbers import Examination, examine
else:

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module 'ampkit.doctor' has no attribute {name!r}")
        return getattr(importlib.import_module(f"ampkit.doctor.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
