"""What `ampkit ops` does: the inspection of a registered model or of the user's own, printed, and written as JSON."""

from pathlib import Path

import torch
from torch import Tensor

from ampkit import models
from ampkit.errors import FakeError, ModelError, OpsError
from ampkit.ops import tables
from ampkit.ops.inspection import Inspection, inspect
from ampkit.output import writable, write_json
from ampkit.precision import Precision

__all__ = ["print_lists", "run"]

_DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


def print_lists(device: str) -> None:
    """Print the cast lists for "cuda", "cpu", "mps", "xpu", or "both" (CUDA and CPU). Raises OpsError for another."""
    print(tables.lists(("cuda", "cpu") if device == "both" else (device,)))


def run(
    model: str,
    *,
    dtype: str = "fp16",
    device: str = "cuda",
    input: str | None = None,
    batch_size: int = 8,
    by: str = "module",
    real: bool = False,
    json_file: Path | None = None,
) -> bool:
    """Inspect the model and print what was found. Returns whether the forward pass was followed to its end.

    model is a registered name or an import path, input as ampkit.models.parse_input reads it (by default the registered
    model's own example of batch_size). device is "cuda", "cpu" or "both". Raises OpsError, ModelError, DeviceError.
    """
    if dtype not in _DTYPES:
        raise OpsError(f"There is no --dtype {dtype!r}. Autocast computes in {' or '.join(_DTYPES)}.")
    if by not in ("op", "module"):
        raise OpsError(f"There is no --by {by!r}. Choose op or module.")
    if device not in ("cuda", "cpu", "both"):
        raise OpsError(
            f"There is no --device {device!r}. Choose cuda, cpu or both; a list alone is shown for mps and xpu too."
        )
    writable({"--json": json_file})
    device_types = ("cuda", "cpu") if device == "both" else (device,)
    found = {each: _inspected(model, each, _DTYPES[dtype], input, batch_size, real) for each in device_types}
    print(_title(model, found, dtype))
    print()
    if device == "both":
        print(tables.both(found["cuda"], found["cpu"]))
    else:
        print(tables.modules(found[device]) if by == "module" else tables.ops(found[device]))
    for each, inspection in found.items():
        print()
        if device == "both":
            print(f"{each.upper()}:")
        print(tables.findings(inspection))
    if json_file is not None:
        whole = {each: inspection.to_dict() for each, inspection in found.items()}
        write_json({"model": model, **(whole if device == "both" else whole[device])}, json_file)
    return all(inspection.stopped is None for inspection in found.values())


def _inspected(
    spec: str, device_type: str, dtype: torch.dtype, input: str | None, batch_size: int, real: bool
) -> Inspection:
    if real:
        Precision("fp16-mixed" if dtype is torch.float16 else "bf16-mixed").check(device_type)
        inputs = _inputs(spec, input, batch_size, device_type)
        return inspect(models.build(spec).to(device_type), *inputs, device_type=device_type, dtype=dtype, real=True)
    inputs = _inputs(spec, input, batch_size, "meta")
    try:
        return inspect(lambda: models.build(spec), *inputs, device_type=device_type, dtype=dtype)
    except (FakeError, ModelError):  # some constructors read a value; if it is another error, it comes again
        return inspect(models.build(spec), *inputs, device_type=device_type, dtype=dtype)


def _inputs(spec: str, input: str | None, batch_size: int, device: str) -> tuple[Tensor, ...]:
    if input is not None:
        return models.parse_input(input, device=device)
    inputs, _ = models.example(spec, batch_size, device=device)
    return inputs


def _title(model: str, found: dict[str, Inspection], dtype: str) -> str:
    devices = " and ".join(each.upper() for each in found)
    first = next(iter(found.values()))
    how = "without data" if first.on.startswith("fake") else "run for real"
    return f"{model} under {devices} autocast to {dtype.upper()}, {how}, PyTorch {torch.__version__}"
