"""StepReport: what one training step did, as one record; its JSONL log; the progress bar that reads the same stream."""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch

from ampkit.errors import ReportError

__all__ = ["StepReport", "peak_bytes", "progress", "read_reports", "write_reports"]


@dataclass(frozen=True)
class StepReport:
    """One training step. Every table, plot, log and diagnosis reads these.

    step        0, 1, 2, …
    loss        the mean cross-entropy of the batch, in nats, before any loss weight and never scaled
    grad_norm   2-norm of the true (unscaled) gradient over all parameters, before clipping; inf or nan on an overflow
    scale       the scale that this step's loss was multiplied by; None without a GradScaler
    skipped     True if the scaler left the weights as they were, because the gradient held an inf or nan
    samples     examples in the batch, or in the window of batches that a step accumulates over
    seconds     wall-clock time of the step, after the device has finished it
    peak_bytes  most memory that PyTorch's CUDA allocator has given out so far (max_memory_allocated); None off CUDA
    lr          the learning rate of this step; None in a loop without a schedule
    """

    step: int
    loss: float
    grad_norm: float
    scale: float | None
    skipped: bool
    samples: int
    seconds: float
    peak_bytes: int | None
    lr: float | None = None

    def to_json(self) -> str:
        """One line of strict JSON. JSON has no inf and no nan: they are the strings "inf", "-inf" and "nan"."""
        record = {name: _encode(value) for name, value in asdict(self).items()}
        return json.dumps(record, allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> "StepReport":
        """The record of a line that to_json wrote. Raises ReportError for anything else."""
        try:
            record = json.loads(line)
        except ValueError:
            raise ReportError(f"Not a step record, which is one line of JSON: {line.strip()[:80]!r}.") from None
        names = [field.name for field in fields(cls)]
        if isinstance(record, dict):
            record = {"lr": None, **record}  # logs that are older than schedules do not have it
        if not isinstance(record, dict) or sorted(record) != sorted(names):
            raise ReportError(f"A step record has the fields {', '.join(names)}; this line does not: {line[:80]!r}.")
        for name in ("loss", "grad_norm", "scale", "seconds", "lr"):
            value = record[name]
            if isinstance(value, str) and value not in ("inf", "-inf", "nan"):
                raise ReportError(f'{name} is a number, "inf", "-inf" or "nan", and not {value!r}.')
            record[name] = None if value is None else float(value)
        return cls(**record)


def _encode(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def write_reports(reports: Iterable[StepReport], path: str | Path) -> Iterator[StepReport]:
    """Pass the reports through, writing each to path as a line of JSON as it comes (a killed run keeps its log).

    A run that goes on at step k > 0 keeps the records of the steps before k and drops what comes after them, which the
    run that was killed had logged and not saved; any other run begins the log anew.
    Raises ReportError, before the first step, if path cannot be written.
    """
    try:
        file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 (closed below; only opening it is to be caught)
    except OSError as error:
        raise ReportError(f"The log {path} cannot be written: {error.strerror}. Name another file.") from None
    with file:
        for count, report in enumerate(reports):
            if count == 0:
                file.truncate(_end_of_steps_before(report.step, path))
            file.write(report.to_json() + "\n")
            file.flush()
            yield report


def _end_of_steps_before(step: int, path: str | Path) -> int:
    """How many bytes of the log are whole records of earlier steps."""
    end = 0
    with open(path, "rb") as file:
        for line in file:
            try:
                earlier = StepReport.from_json(line.decode()).step < step
            except (ReportError, UnicodeDecodeError):  # a run can be killed in the middle of a line
                break
            if not earlier or not line.endswith(b"\n"):
                break
            end += len(line)
    return end


def read_reports(path: str | Path) -> list[StepReport]:
    """The reports of a JSONL log, in order. Raises ReportError with the line's number if one is not a record."""
    reports = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                reports.append(StepReport.from_json(line))
            except ReportError as error:
                raise ReportError(f"{path}, line {number}: {error}") from None
    return reports


def progress(reports: Iterable[StepReport], total: int | None = None) -> Iterator[StepReport]:
    """Pass the reports through while a bar shows loss, scale, skipped steps, samples/s and peak memory.

    total is the number of the run's steps, if it is known; a run that goes on at step k begins the bar at k. The bar
    goes to stderr.
    """
    from tqdm import tqdm  # not needed to read or to write records

    skips = 0
    with tqdm(total=total, unit="step", dynamic_ncols=True) as bar:
        for report in reports:
            if bar.n == 0:
                bar.initial = bar.n = report.step
            skips += report.skipped
            state = {"loss": f"{report.loss:.4f}"}
            if report.scale is not None:
                state["scale"] = f"{report.scale:g}"
                state["skips"] = str(skips)
            if report.seconds > 0:
                state["samples/s"] = f"{report.samples / report.seconds:.0f}"
            if report.lr is not None:
                state["lr"] = f"{report.lr:.3g}"
            if report.peak_bytes is not None:
                state["peak_mib"] = f"{report.peak_bytes / 2**20:.0f}"
            bar.set_postfix(state, refresh=False)
            bar.update()
            yield report


def peak_bytes(device: str) -> int | None:
    """Most bytes that the CUDA allocator has given out since the start or the last reset; None off CUDA."""
    return torch.cuda.max_memory_allocated() if torch.device(device).type == "cuda" else None
