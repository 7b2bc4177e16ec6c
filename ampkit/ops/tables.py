"""What the op inspector prints: the ops or modules of an inspection, two devices side by side, the cast lists."""

import difflib
import textwrap
from collections.abc import Iterable, Sequence

import torch

from ampkit.ops.cast_lists import CATEGORIES, policies
from ampkit.ops.inspection import Inspection, OpRecord
from ampkit.ops.watch import TensorInfo
from ampkit.show import table

__all__ = ["both", "findings", "lists", "modules", "ops", "short"]

_SHORT = {
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.complex32: "complex32",
    torch.complex64: "complex64",
}
_WIDTH = 96


def short(dtype: torch.dtype | None) -> str:
    """A dtype as the course writes it in tables: "fp16", "bf16", "fp32", "int64"; "-" for None."""
    return "-" if dtype is None else _SHORT.get(dtype, str(dtype).removeprefix("torch."))


def ops(inspection: Inspection) -> str:
    """A line for each op in the order of execution: where, what, dtypes in, computed in, out, and the casts' size."""
    rows = [
        (
            record.index,
            record.module or "(model)",
            record.op,
            _category(record),
            _dtypes(record.inputs),
            short(record.compute),
            _dtypes(record.outputs),
            _casts(record),
        )
        for record in inspection.records
    ]
    return table(("#", "module", "op", "autocast", "in", "computes", "out", "casts"), rows).text


def modules(inspection: Inspection) -> str:
    """A line for each module that ran an op, its children included: dtypes by number of ops, output, casts."""
    rows = [
        (
            _tree(summary.path),
            summary.type_name,
            summary.ops,
            _mix(summary.compute),
            _dtypes(summary.outputs),
            _size(summary.cast_bytes),
            _size(summary.weight_cast_bytes),
        )
        for summary in inspection.modules()
    ]
    return table(("module", "type", "ops", "computes in", "out", "casts", "of weights"), rows).text


def both(cuda: Inspection, cpu: Inspection) -> str:
    """The ops under CUDA autocast and under CPU autocast, side by side; a line that differs is marked with ≠."""
    left = [(record.module, record.op) for record in cuda.records]
    right = [(record.module, record.op) for record in cpu.records]
    rows = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [_pair(x, y) for x, y in zip(cuda.records[a:b], cpu.records[c:d], strict=True)]
        else:
            rows += [_pair(x, None) for x in cuda.records[a:b]] + [_pair(None, y) for y in cpu.records[c:d]]
    differ = sum(row[0] == "≠" for row in rows)
    alone = sum("(not run)" in row for row in rows)
    said = f"{differ} of {len(rows) - alone} ops that run on both compute or return something else on the CPU."
    if alone:
        said += f" {alone} run on one of the two only: PyTorch composes some ops differently there."
    header = ("", "module", "op", "CUDA computes", "out", "CPU computes", "out")
    return f"{table(header, rows).text}\n\n{_filled(said)}"


def _pair(cuda: OpRecord | None, cpu: OpRecord | None) -> tuple[str, ...]:
    cells = []
    for side in (cuda, cpu):
        cells += [f"{short(side.compute)}  {_category(side)}", _dtypes(side.outputs)] if side else ["(not run)", ""]
    same = (
        cuda is None or cpu is None or (cuda.compute == cpu.compute and _dtypes(cuda.outputs) == _dtypes(cpu.outputs))
    )
    place = next((side.module or "(model)", side.op) for side in (cuda, cpu) if side)
    return "" if same else "≠", *place, *cells


def findings(inspection: Inspection) -> str:
    """The totals and what is to be known besides: bans, where the inspection stopped, notes."""
    counts = ", ".join(f"{count} in {short(dtype)}" for dtype, count in inspection.compute_counts().items())
    lines = [f"{len(inspection.records)} ops: {counts or 'none computes in floating point'}."]
    casts = [cast for cast in inspection.casts if cast.cache != "hit"]
    hits = len(inspection.casts) - len(casts)
    lines.append(
        f"{len(casts)} casts write {_size(inspection.cast_bytes) or '0 B'}, of them "
        f"{_size(inspection.cached_weight_bytes) or '0 B'} weights that the cache keeps until autocast ends"
        + (f", where {hits} later uses find them." if hits else ".")
    )
    for record in inspection.banned:
        lines.append(
            f"BANNED: {record.op} in {record.module or 'the model itself'}. {inspection.device_type.upper()} autocast "
            f"refuses it, and the model stops there: {record.banned} The rest is what runs once it stands in an FP32 "
            "island: with torch.autocast(device_type, enabled=False), and .float() on its inputs; or use the form with "
            "logits (binary_cross_entropy_with_logits), which autocast computes in FP32."
        )
    for record in inspection.mismatched:
        lines.append(
            f"MISMATCH: {record.op} in {record.module or 'the model itself'} raises on a device: {record.mismatch} Cast one "
            "of them, as in x.to(y.dtype)."
        )
    if inspection.stopped:
        lines.append(f"INCOMPLETE. {inspection.stopped}")
    lines += [f"Note: {note}" for note in inspection.notes]
    return "\n".join(_filled(line) for line in lines)


def lists(device_types: Sequence[str]) -> str:
    """The cast lists of the installed PyTorch for these device types."""
    parts = []
    for device_type in device_types:
        found = policies(device_type)
        count = sum(len(names) for names in found.values())
        parts.append(
            f"{device_type.upper()} autocast of PyTorch {torch.__version__}: {count} ops, asked of their kernels"
        )
        for category, names in found.items():
            if names:
                title = f"{category} ({len(names)}): {CATEGORIES[category]}"
                parts += [
                    "",
                    _filled(title),
                    textwrap.fill(", ".join(names), _WIDTH, initial_indent="  ", subsequent_indent="  "),
                ]
        parts += ["", _filled(f"unlisted: every other op; {CATEGORIES['unlisted'].partition(': ')[2]}."), ""]
    return "\n".join(parts).rstrip()


def _category(record: OpRecord) -> str:
    return "lower" if record.category == "lower precision" else record.category


def _dtypes(infos: Iterable[TensorInfo]) -> str:
    """The distinct dtypes in order, without those of indices and masks unless there is nothing else."""
    found = list(dict.fromkeys(info.dtype for info in infos))
    numbers = [dtype for dtype in found if dtype.is_floating_point or dtype.is_complex]
    return " ".join(short(dtype) for dtype in numbers or found) or "-"


def _casts(record: OpRecord) -> str:
    made = sum(cast.bytes for cast in record.casts if cast.cache != "hit")
    hits = sum(cast.cache == "hit" for cast in record.casts)
    words = [_size(made)] if made else []
    return " + ".join(words + ([f"{hits} cached"] if hits else []))


def _mix(compute: dict[torch.dtype, int]) -> str:
    if len(compute) == 1:
        return short(next(iter(compute)))
    return ", ".join(f"{short(dtype)} ×{count}" for dtype, count in compute.items()) or "-"


def _tree(path: str) -> str:
    return "(model)" if not path else "  " * path.count(".") + path


def _size(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B" if count else ""


def _filled(line: str) -> str:
    return textwrap.fill(line, _WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
