"""What is measured: workloads (a model and a batch) and the settings that each is trained in."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from ampkit.errors import BenchError

__all__ = ["SUITES", "Setting", "Suite", "Workload", "own_suite", "suite"]


@dataclass(frozen=True)
class Setting:
    """How a workload is trained. `larger_batch`: with as much of the batch as fits into the peak memory that FP32 took."""

    name: str
    precision: str
    larger_batch: bool = False
    compiled: bool = False


@dataclass(frozen=True)
class Workload:
    """A model by the name that ampkit.models.build takes, and samples a step; `input` describes what somebody's own takes."""

    model: str
    batch_size: int
    input: str | None = None
    optimizer: str = "adamw"
    lr: float = 1e-4


@dataclass(frozen=True)
class Suite:
    """Workloads × settings, and how long each is measured: `warmup` steps, then `blocks` of `steps` steps, in `rounds`.

    The settings of a workload take turns in every round, so that a machine that grows slower slows all of them.
    """

    name: str
    device: str
    workloads: tuple[Workload, ...]
    settings: tuple[Setting, ...]
    warmup: int
    blocks: int
    steps: int
    rounds: int


_GPU_SETTINGS = (
    Setting("FP32 strict", "fp32"),
    Setting("TF32", "tf32"),
    Setting("AMP FP16", "fp16-mixed"),
    Setting("AMP BF16", "bf16-mixed"),
    Setting("AMP BF16, larger batch", "bf16-mixed", larger_batch=True),
    Setting("AMP BF16, compiled", "bf16-mixed", compiled=True),
)
_CPU_SETTINGS = (
    Setting("FP32", "fp32"),
    Setting("AMP FP16", "fp16-mixed"),
    Setting("AMP BF16", "bf16-mixed"),
    Setting("AMP BF16, larger batch", "bf16-mixed", larger_batch=True),
)

SUITES = {
    "quick": Suite(
        "quick",
        "cpu",
        (Workload("cnn", 32, lr=1e-3), Workload("bert_tiny", 8, lr=1e-3)),
        _CPU_SETTINGS,
        warmup=2,
        blocks=3,
        steps=4,
        rounds=2,
    ),
    "headline": Suite(
        "headline",
        "cuda",
        (Workload("bert_base", 32), Workload("resnet50", 64), Workload("gpt2", 8)),
        _GPU_SETTINGS,
        warmup=8,
        blocks=5,
        steps=8,
        rounds=1,
    ),
}


def suite(name: str) -> Suite:
    """The suite of that name. Raises BenchError, with the closest name, if there is none."""
    if name in SUITES:
        return SUITES[name]
    close = difflib.get_close_matches(name.lower(), SUITES, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise BenchError(f"There is no suite {name!r}.{hint} The suites are: {', '.join(SUITES)}.")


def own_suite(model: str, batch_size: int, device: str, *, input: str | None = None, compiled: bool = False) -> Suite:
    """The settings that `device` can be asked for, on one model of the user's choice."""
    settings = _GPU_SETTINGS if device == "cuda" else _CPU_SETTINGS
    chosen = tuple(setting for setting in settings if compiled or not setting.compiled)
    long = device == "cuda"
    return Suite(
        model,
        device,
        (Workload(model, batch_size, input),),
        chosen,
        5 if long else 1,
        5 if long else 3,
        10 if long else 2,
        2,
    )
