"""A model or an input that a user names in one word: `package.module:callable`, `file.py:callable`, `f32[8,3,224,224]`."""

import difflib
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from ampkit.errors import ModelError

__all__ = ["imported", "is_import_path", "made", "normal", "parse_input", "whole"]

_DTYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "bool": torch.bool,
}
_INPUT = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,\s]*)\](?:<(?P<below>\d+))?")


def is_import_path(spec: str) -> bool:
    """Whether it names a callable of the user's own, `….module:callable` or `….py:callable`, and no registered model."""
    return ":" in spec


def imported(spec: str) -> Callable[[], nn.Module]:
    """The callable that `package.module:callable` or `path/to/file.py:callable` names. Raises ModelError."""
    place, _, name = spec.rpartition(":")
    if not place or not name:
        raise ModelError(f"{spec!r} is no import path. Write package.module:callable or path/to/file.py:callable.")
    module = _file(place) if place.endswith(".py") else _module(place)
    target = module
    for part in name.split("."):
        if not hasattr(target, part):
            close = difflib.get_close_matches(part, dir(target), n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise ModelError(f"{place} has no {name!r}.{hint} Name a function or class in it that makes the model.")
        target = getattr(target, part)
    if isinstance(target, nn.Module):
        raise ModelError(f"{spec} is a model already. Name a function that makes it: def make(): return MyModel(...).")
    if not callable(target):
        raise ModelError(f"{spec} is {_a(target)}, which cannot be called. Name a function that makes the model.")
    return target


def made(spec: str, make: Callable[[], nn.Module]) -> nn.Module:
    """The model that make() returns. Raises ModelError if it needs arguments, fails, or returns something else."""
    try:
        needed = list(inspect.signature(make).parameters.values())
    except (TypeError, ValueError):  # some callables of C have no signature
        needed = []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    names = [p.name for p in needed if p.default is p.empty and p.kind not in optional]
    if names:
        raise ModelError(
            f"{spec} needs arguments: {', '.join(names)}. It is called without any; write a function that calls it "
            f"with yours: def make(): return {spec.rpartition(':')[2]}(...), and name that."
        )
    try:
        model = make()
    except Exception as error:
        raise ModelError(f"{spec} raised {type(error).__name__} when it was called: {error}") from error
    if not isinstance(model, nn.Module):
        raise ModelError(f"{spec} returned {_a(model)}, and not an nn.Module. Let it return the model.")
    return model


def _a(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _module(place: str):
    with _searched(Path.cwd()):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{place}.".startswith(f"{error.name}."):
                raise ModelError(f"{place} imports {error.name}, which is not installed here.") from error
            raise ModelError(
                f"There is no module {error.name!r}, neither installed nor under {Path.cwd()}. Install it, go to the "
                "folder that holds it, or name the file: path/to/file.py:callable."
            ) from None
        except Exception as error:
            raise ModelError(f"{place} raised {type(error).__name__} when it was imported: {error}") from error


def _file(place: str):
    path = Path(place)
    if not path.is_file():
        raise ModelError(f"There is no file {place!r}, seen from {Path.cwd()}.")
    name = f"_model_in_{path.stem}"
    module_spec = importlib.util.spec_from_file_location(name, path)
    assert module_spec is not None and module_spec.loader is not None  # None is for endings other than .py
    module = importlib.util.module_from_spec(module_spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses look their module up while they are being defined
    try:
        with _searched(path.resolve().parent):  # as for `python file.py`, its neighbours can be imported
            module_spec.loader.exec_module(module)
    except Exception as error:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise ModelError(f"{place} raised {type(error).__name__} when it was imported: {error}") from error
    return module


@contextmanager
def _searched(folder: Path):
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))


def parse_input(text: str, device: str = "cpu", seed: int = 0) -> tuple[Tensor, ...]:
    """Tensors as `dtype[shape]` says, several with `;` between them: "f32[8,3,224,224]", "i64[8,128]<30522; bool[8,128]".

    dtypes: f32, f16, bf16 (drawn from the standard normal distribution), i64 (whole numbers from 0 to below the number
    after `<`, 2 without one), bool. Shape [] is a scalar. Values depend on seed alone, not on the device; on "meta" and
    inside FakeTensorMode there are none. Raises ModelError.

    >>> [(x.dtype, tuple(x.shape)) for x in parse_input("f32[2,3]; i64[2]<10")]
    [(torch.float32, (2, 3)), (torch.int64, (2,))]
    """
    if not text.strip():
        raise ModelError("The input is empty. Write dtype[shape], as in f32[8,3,224,224].")
    parts = [part.strip() for part in text.split(";")]
    generator = torch.Generator().manual_seed(seed)
    return tuple(_tensor(part, generator, device) for part in parts)


def _tensor(part: str, generator: torch.Generator, device: str) -> Tensor:
    match = _INPUT.fullmatch(part)
    if match is None:
        raise ModelError(f"{part!r} is no input. Write dtype[shape], as in f32[8,3,224,224] or i64[8,128]<30522.")
    dtype, shape, below = match["dtype"], match["shape"], match["below"]
    if dtype not in _DTYPES:
        raise ModelError(f"{part!r}: there is no dtype {dtype!r}. Choose one of: {', '.join(_DTYPES)}.")
    sizes = [size.strip() for size in shape.split(",")] if shape.strip() else []
    if not all(size.isdecimal() and int(size) > 0 for size in sizes):
        raise ModelError(f"{part!r}: each size in the shape is a whole number from 1 on, with commas between them.")
    if below is not None and (dtype != "i64" or int(below) < 1):
        raise ModelError(f"{part!r}: only i64 has a bound, and it is 1 or more: i64[8,128]<30522.")
    numbers = tuple(map(int, sizes))
    if dtype == "i64":
        return whole(numbers, int(below or 2), generator, device)
    if dtype == "bool":
        return whole(numbers, 2, generator, device, torch.bool)
    return normal(numbers, generator, device, _DTYPES[dtype])


def normal(
    shape: tuple[int, ...], generator: torch.Generator, device: str, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Standard normal numbers of a CPU generator, on the device; on "meta" no memory is taken."""
    if torch.device(device).type == "meta":
        return torch.empty(shape, dtype=dtype, device="meta")
    return _moved(torch.randn(shape, generator=generator, device="cpu").to(dtype), device)


def whole(
    shape: tuple[int, ...],
    below: int,
    generator: torch.Generator,
    device: str,
    dtype: torch.dtype = torch.int64,
) -> Tensor:
    """Whole numbers from 0 to below `below` of a CPU generator, on the device; on "meta" no memory is taken."""
    if torch.device(device).type == "meta":
        return torch.empty(shape, dtype=dtype, device="meta")
    return _moved(torch.randint(0, below, shape, generator=generator, device="cpu").to(dtype), device)


def _moved(tensor: Tensor, device: str) -> Tensor:
    if torch.device(device).type == "cpu":
        return tensor
    if type(tensor) is not Tensor:  # fake: a CPU-only PyTorch cannot copy to its fake cuda, but can make tensors there
        return torch.empty(tensor.shape, dtype=tensor.dtype, device=device)
    return tensor.to(device)
