"""PyTorch mixed precision: real training loops and instruments.

Names are imported when they are first used, so that `import ampkit` and `ampkit --help` do not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING

_HOME = {
    "AmpkitError": "errors",
    "BenchError": "errors",
    "Checkpoint": "checkpoint",
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
    "OutputError": "errors",
    "Precision": "precision",
    "PrecisionError": "errors",
    "Recipe": "ledger",
    "ReportError": "errors",
    "StepReport": "report",
    "Subject": "ledger",
    "checkpoint_blocks": "lowvram",
    "diagnose": "doctor",
    "diagnose_log": "doctor",
    "examine": "doctor",
    "fake_cuda": "fake",
    "fp32_island": "layers",
    "guard_batchnorm": "layers",
    "half_except_norms": "layers",
    "inspect": "ops",
    "offload": "lowvram",
    "plan": "ledger",
    "progress": "report",
    "read_reports": "report",
    "recalibrate_batchnorm": "layers",
    "release_gpu": "gpu",
    "write_reports": "report",
}
__all__ = [
    "AmpkitError",
    "BenchError",
    "Checkpoint",
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
    "OutputError",
    "Precision",
    "PrecisionError",
    "Recipe",
    "ReportError",
    "StepReport",
    "Subject",
    "checkpoint_blocks",
    "diagnose",
    "diagnose_log",
    "examine",
    "fake_cuda",
    "fp32_island",
    "guard_batchnorm",
    "half_except_norms",
    "inspect",
    "offload",
    "plan",
    "progress",
    "read_reports",
    "recalibrate_batchnorm",
    "release_gpu",
    "write_reports",
]

if TYPE_CHECKING:  # a type checker does not run __getattr__, and without it sees a name that is misspelled
    from ampkit.checkpoint import Checkpoint
    from ampkit.doctor import diagnose, diagnose_log, examine
    from ampkit.errors import (
        AmpkitError,
        BenchError,
        CheckpointError,
        DataError,
        DeviceError,
        DoctorError,
        FakeError,
        LabError,
        LayerError,
        LedgerError,
        LoopError,
        LowVramError,
        ModelError,
        OpsError,
        OutputError,
        PrecisionError,
        ReportError,
    )
    from ampkit.fake import fake_cuda
    from ampkit.gpu import release_gpu
    from ampkit.layers import fp32_island, guard_batchnorm, half_except_norms, recalibrate_batchnorm
    from ampkit.ledger import Recipe, Subject, plan
    from ampkit.lowvram import checkpoint_blocks, offload
    from ampkit.ops import inspect
    from ampkit.precision import Precision
    from ampkit.report import StepReport, progress, read_reports, write_reports
else:

    def __getattr__(name):
        if name not in _HOME:
            raise AttributeError(f"module 'ampkit' has no attribute {name!r}")
        return getattr(importlib.import_module(f"ampkit.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
