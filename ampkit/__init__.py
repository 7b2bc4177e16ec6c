"""PyTorch mixed precision: real training loops and instruments.

Names are imported when they are first used, so that `import ampkit` and `ampkit --help` do not wait for torch.
"""

import importlib

_HOME = {
    "AmpkitError": "errors",
    "BenchError": "errors",
    "CheckpointError": "errors",
    "DataError": "errors",
    "DeviceError": "errors",
    "DoctorError": "errors",
    "FakeError": "errors",
    "LabError": "errors",
    "LayerError": "errors",
    "LedgerError": "errors",
    "LoopError": "errors",
    "LowVramError": "errors",
    "ModelError": "errors",
    "OpsError": "errors",
    "Precision": "precision",
    "PrecisionError": "errors",
    "ReportError": "errors",
    "StepReport": "report",
    "progress": "report",
    "read_reports": "report",
    "write_reports": "report",
}
__all__ = [
    "AmpkitError",
    "BenchError",
    "CheckpointError",
    "DataError",
    "DeviceError",
    "DoctorError",
    "FakeError",
    "LabError",
    "LayerError",
    "LedgerError",
    "LoopError",
    "LowVramError",
    "ModelError",
    "OpsError",
    "Precision",
    "PrecisionError",
    "ReportError",
    "StepReport",
    "progress",
    "read_reports",
    "write_reports",
]


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'ampkit' has no attribute {name!r}")
    return getattr(importlib.import_module(f"ampkit.{_HOME[name]}"), name)


def __dir__():
    return sorted({*globals(), *__all__})
