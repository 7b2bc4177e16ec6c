"""The exceptions of ampkit: one tree, and messages written for somebody who is learning."""

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
    "OutputError",
    "PrecisionError",
    "ReportError",
]


class AmpkitError(Exception):
    """The root of everything that ampkit raises on purpose.

        AmpkitError
        ├── PrecisionError    a precision that does not exist, or that is asked for what it does not have
        │   └── DeviceError   a device that is not there, or that cannot compute in this precision
        ├── FakeError         what tensors without data cannot do, here or anywhere
        ├── OpsError          an op without an autocast policy to tell, or a model that cannot be inspected
        ├── ReportError       a log of step records that cannot be read
        ├── ModelError        a model that cannot be found or made, or inputs for one that cannot
        ├── DataError         data that are not here, or that the model does not take
        ├── CheckpointError   a checkpoint that cannot be written, read, or continued with these options
        ├── BenchError        a measurement that cannot be made
        ├── LedgerError       a training step whose memory cannot be counted, or a plan that makes no sense
        ├── LayerError        a change of a layer's precision that its weights or the model do not allow
        ├── LowVramError      a way to save memory that this model, this machine or these numbers do not allow
        ├── DoctorError       a model that cannot be examined, for a reason that is not its precision
        ├── OutputError       a file that a command was asked to write, and that cannot be written
        ├── LoopError         a training loop, or an option of one, that does not exist
        └── LabError          the course's working copy cannot be made, or JupyterLab cannot be started

    Each message says what happened, what it means, and what to do.
    The command line prints the message and exits with status 1 (2 for a LoopError or an OutputError: the command was mistyped).
    """


class PrecisionError(AmpkitError, ValueError):
    """A precision that does not exist, or that is asked for something that it does not have."""


class DeviceError(PrecisionError):
    """A device that this machine does not have, or that cannot compute in the precision asked for."""


class FakeError(AmpkitError, RuntimeError):
    """Something was asked of tensors without data that they cannot tell, here or anywhere."""


class OpsError(AmpkitError, ValueError):
    """An op that has no autocast policy to tell, or a model that cannot be inspected."""


class ReportError(AmpkitError, ValueError):
    """A log of step records that cannot be read."""


class ModelError(AmpkitError, ValueError):
    """A model that cannot be found or made, or inputs for one that cannot."""


class DataError(AmpkitError, ValueError):
    """Data that are not on this machine, or that the model does not take."""


class CheckpointError(AmpkitError, ValueError):
    """A checkpoint that cannot be written, that cannot be read, or that another run made."""


class BenchError(AmpkitError, ValueError):
    """A measurement that cannot be made: no such suite, or nothing to compare."""


class LedgerError(AmpkitError, ValueError):
    """A training step whose memory cannot be counted, or a plan that makes no sense."""


class LayerError(AmpkitError, ValueError):
    """A change of a layer's precision that its weights or the model do not allow."""


class LowVramError(AmpkitError, ValueError):
    """A way to save memory that this model, this machine or these numbers do not allow."""


class OutputError(AmpkitError, ValueError):
    """A file that a command was asked to write, and that cannot be written."""


class LoopError(AmpkitError, LookupError):
    """A training loop, or an option of a training loop, that does not exist."""

    def __str__(self) -> str:  # LookupError's relatives quote their message; ours is prose
        return str(self.args[0]) if self.args else ""


class LabError(AmpkitError, RuntimeError):
    """The working copy of the course cannot be made, or JupyterLab cannot be started."""


class DoctorError(AmpkitError, RuntimeError):
    """A model that cannot be examined, for a reason that is not its precision."""
