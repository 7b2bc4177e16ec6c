"""Evidence: plain data about what an answer did, its wire format, and how two pieces of it are compared.

Evidence is made where the answer runs and judged where it does not, so nothing here is ever executed or unpickled. A value
is None, bool, int, float, str, a tensor, a list or a dict of values with string keys, or `Other`: something that an answer
gave back and that has no business being evidence, of which only the name of its type is kept.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import numbers
from dataclasses import dataclass

import torch

from autograder.errors import EvidenceError

MAX_DEPTH = 8
MAX_ITEMS = 20_000
MAX_TEXT = 2_000
MAX_TENSOR_BYTES = 1 << 20
MAX_LINE = 8 << 20  # of JSON; evidence of this course's exercises is a hundredth of it
MAX_VALUES = 400_000  # in one line: a value of two bytes of JSON is a hundred bytes of Python
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.bool,
    )
}
# A float without a tensor's dtype is judged as what it nearly always was: a number read out of an FP32 tensor.
FLOAT_EPS = torch.finfo(torch.float32).eps
# Below this a float counts as zero, so that 1 - 0.7 - 0.3 is 0.
FLOAT_FLOOR = 1e-2


@dataclass(frozen=True)
class Other:
    """A value that is no evidence; `kind` is the name of its type."""

    kind: str


def freeze(value: object, depth: int = 0) -> object:
    """Copy `value` into plain data: subclasses become their base, tensors are detached CPU copies, the rest `Other`."""
    if depth > MAX_DEPTH:
        return Other("too deeply nested object")
    if value is None or isinstance(value, (bool, Other)):
        return value
    if isinstance(value, torch.Tensor):
        too_large = value.numel() * value.element_size() > MAX_TENSOR_BYTES
        if value.layout is not torch.strided or value.dtype not in DTYPES.values() or too_large:
            return Other(f"{str(value.layout).removeprefix('torch.')} tensor of {value.dtype}")
        return torch.Tensor.detach(value).as_subclass(torch.Tensor).cpu().contiguous().clone()
    if isinstance(value, str):
        return str.__str__(value)[:MAX_TEXT]
    if isinstance(value, numbers.Integral):
        number = int(value)
        return number if -(2**63) <= number < 2**63 else Other(f"int of {number.bit_length()} bits")
    if isinstance(value, numbers.Real):
        try:
            return float(value)
        except OverflowError:
            return Other(f"{type(value).__name__[:80]} too large for a float")
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    if isinstance(value, (list, tuple, dict)) and len(value) > MAX_ITEMS:
        return Other(f"{type(value).__name__[:80]} with {len(value)} entries")
    if isinstance(value, (list, tuple)):
        return [freeze(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {str(key): freeze(item, depth + 1) for key, item in value.items()}
    return Other(type(value).__name__[:80])


def encode(value: object) -> object:
    """`value` (frozen) as what json.dumps takes with allow_nan=False."""
    if isinstance(value, Other):
        return {"$other": value.kind}
    if isinstance(value, torch.Tensor):
        data = value.reshape(-1).view(torch.uint8) if value.numel() else torch.empty(0, dtype=torch.uint8)
        return {
            "$tensor": str(value.dtype).removeprefix("torch."),
            "shape": list(value.shape),
            "data": base64.b64encode(bytes(data.tolist())).decode("ascii"),
        }
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    return value


def clean(text: str, limit: int = MAX_TEXT) -> str:
    """Text from a box that can be written, printed and shown: no lone surrogates, no control characters, bounded."""
    text = text[:limit]
    if text.isprintable():  # nearly all is, and a class has a million of them
        return text
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


def bounded(line: bytes) -> bytes:
    """A line of JSON. EvidenceError where it would take more than MAX_LINE or MAX_VALUES."""
    if len(line) > MAX_LINE or sum(line.count(mark) for mark in (b",", b"[", b"{")) > MAX_VALUES:
        raise EvidenceError("what the answer showed is too large to be looked at")
    return line


def parse(line: bytes) -> object:
    """What is written in a line of JSON. EvidenceError where it is none, or not `bounded`."""
    bounded(line)
    try:
        return json.loads(line, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise EvidenceError("evidence is not JSON") from error


def _finite(text: str) -> float:
    # `encode` writes inf and nan in another way; 1e999 would come back as inf.
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is no finite number")
    return number


def decode(data: object, depth: int = 0) -> object:
    """The value behind parsed JSON; EvidenceError for anything that `encode` would not have written."""
    if depth > MAX_DEPTH + 2:
        raise EvidenceError("evidence is nested too deeply")
    if data is None or isinstance(data, (bool, float)):
        return data
    if isinstance(data, int):
        if -(2**63) <= data < 2**63:
            return data
        raise EvidenceError("evidence holds an integer of more than 64 bits")
    if isinstance(data, str):
        if len(data) > MAX_TEXT:
            raise EvidenceError("evidence holds a text that is too long")
        return clean(data)
    if isinstance(data, list):
        if len(data) > MAX_ITEMS:
            raise EvidenceError("evidence holds a list that is too long")
        return [decode(item, depth + 1) for item in data]
    if not isinstance(data, dict):
        raise EvidenceError(f"evidence holds a {type(data).__name__}")
    special = [key for key in data if key.startswith("$")]
    if not special:
        return {clean(key): decode(item, depth + 1) for key, item in data.items()}
    if special == ["$other"] and len(data) == 1 and isinstance(data["$other"], str):
        return Other(clean(data["$other"], 80))
    if special == ["$float"] and len(data) == 1 and data["$float"] in ("nan", "inf", "-inf"):
        return float(data["$float"])
    if special == ["$tensor"] and set(data) == {"$tensor", "shape", "data"}:
        return _decode_tensor(data)
    raise EvidenceError(f"evidence holds an object with the keys {sorted(data)[:4]}")


def _decode_tensor(data: dict) -> torch.Tensor:
    dtype, shape, text = DTYPES.get(data["$tensor"]), data["shape"], data["data"]
    well_formed = (
        dtype is not None
        and isinstance(text, str)
        and isinstance(shape, list)
        and len(shape) <= 8
        and all(type(n) is int and 0 <= n <= MAX_TENSOR_BYTES for n in shape)
    )
    if not well_formed:
        raise EvidenceError("evidence holds a malformed tensor")
    size = math.prod(shape) * dtype.itemsize
    if size > MAX_TENSOR_BYTES or len(text) > 2 * MAX_TENSOR_BYTES:
        raise EvidenceError("evidence holds a tensor that is too large")
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EvidenceError("evidence holds a tensor that is not base64") from error
    if len(raw) != size:
        raise EvidenceError("evidence holds a tensor whose bytes do not fit its shape")
    if not size:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(dtype).reshape(shape).clone()


def difference(expected: object, got: object, ulps: float) -> str | None:
    """Where `got` differs from `expected`, in words; None where it does not.

    `ulps` is the tolerance in units of the dtype's eps (a float counts as FP32), relative to the largest expected
    magnitude. An int may stand for a float of the same value, 0 and 1 for False and True; all but floats and tensors is
    compared exactly.
    """
    if isinstance(expected, torch.Tensor):
        return _tensor_difference(expected, got, ulps)
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return f"expected a dict, got {show(got)}"
        if set(got) != set(expected):
            return f"expected the keys {show(sorted(expected))}, got {show(sorted(got))}"
        pairs = ((f"at key {key!r}: ", expected[key], got[key]) for key in expected)
    elif isinstance(expected, list):
        if not isinstance(got, list):
            return f"expected a list, got {show(got)}"
        if len(got) != len(expected):
            return f"expected a list of {len(expected)}, got a list of {len(got)}: {show(got)}"
        pairs = ((f"at index {i}: ", a, b) for i, (a, b) in enumerate(zip(expected, got, strict=True)))
    else:
        same = (
            _close(expected, got, ulps)
            if isinstance(expected, float) and _is_number(got)
            else _plain(expected) is _plain(got) and expected == got
        )
        return None if same else _apart(expected, got)
    for place, a, b in pairs:
        words = difference(a, b, ulps)
        if words:
            return place + words
    return None


def _apart(expected: object, got: object) -> str:
    """Two values that are not the same, and do not look the same."""
    words = [show(expected), show(got)]
    if words[0] == words[1] and isinstance(expected, (int, float)):
        kinds = [f" ({type(value).__name__})" if type(expected) is not type(got) else "" for value in (expected, got)]
        words = [f"{value!r}{kind}" for value, kind in zip((expected, got), kinds, strict=True)]
    return f"expected {words[0]}, got {words[1]}"


def _plain(value: object) -> type:
    # 0 and 1 are what Python takes for False and True.
    return int if isinstance(value, bool) else type(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _close(expected: float, got: float, ulps: float) -> bool:
    if not (math.isfinite(expected) and math.isfinite(got)):
        return expected == got or (math.isnan(expected) and math.isnan(got))
    return abs(expected - got) <= ulps * FLOAT_EPS * max(abs(expected), FLOAT_FLOOR)


def _tensor_difference(expected: torch.Tensor, got: object, ulps: float) -> str | None:
    if not isinstance(got, torch.Tensor):
        return f"expected a tensor, got {show(got)}"
    if got.shape != expected.shape:
        return f"expected the shape {tuple(expected.shape)}, got {tuple(got.shape)}"
    if got.dtype != expected.dtype:
        return f"expected {expected.dtype}, got {got.dtype}"
    if torch.equal(expected, got):  # nearly always, and ten times as fast as what follows
        return None
    a, b = expected.double().reshape(-1), got.double().reshape(-1)
    finite = a.isfinite() & b.isfinite()
    same = torch.where(finite, torch.zeros_like(a, dtype=torch.bool), (a == b) | (a.isnan() & b.isnan()))
    if expected.dtype.is_floating_point and finite.any():
        allowed = ulps * torch.finfo(expected.dtype).eps * float(a[finite].abs().max())
        same |= finite & ((a - b).abs() <= allowed)
    else:
        same |= a == b
    if bool(same.all()):
        return None
    gap = torch.where(same, torch.zeros_like(a), torch.where(finite, (a - b).abs(), torch.full_like(a, math.inf)))
    worst = int(gap.argmax())
    place = "" if expected.numel() == 1 else f" at position {worst} of {expected.numel()}"
    return _apart(float(a[worst]), float(b[worst])) + place


def show(value: object) -> str:
    """A value in a few words, for a message to a learner."""
    if isinstance(value, Other):
        return f"an object of type {value.kind}"
    if isinstance(value, torch.Tensor):
        numbers_ = ", ".join(f"{x:.6g}" for x in value.double().reshape(-1)[:4].tolist())
        more = ", …" if value.numel() > 4 else ""
        return f"a tensor of {value.dtype} and shape {tuple(value.shape)} [{numbers_}{more}]"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        whole = math.isfinite(value) and value == int(value) and abs(value) < 1e9
        return f"{value:.10g}" if whole else f"{value:.6g}"
    if isinstance(value, list):
        return "[" + ", ".join(show(item) for item in value[:6]) + (", …]" if len(value) > 6 else "]")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {show(item)}" for key, item in list(value.items())[:8]) + "}"
    return repr(value)[:200]
