"""The training loops, one idea a file: their order, their sources and the diffs between neighbours."""

import ast
import difflib
from dataclasses import dataclass
from importlib import resources

from ampkit.errors import LoopError

__all__ = ["LADDER", "Rung", "diff", "rung", "source"]


@dataclass(frozen=True)
class Rung:
    """One loop: its file's name, the precision that it trains in, and the loop that it is a small diff away from.

    `complete` trains in any precision; its own is what it trains in unless it is told another.
    scheduled: the learning rate of a step depends on how many steps there are to be.
    """

    name: str
    precision: str
    neighbour: str | None
    scheduled: bool = False


LADDER = (
    Rung("fp32", "fp32", None),
    Rung("tf32", "tf32", "fp32"),
    Rung("bf16", "bf16-mixed", "fp32"),
    Rung("fp16_no_scaler", "fp16-mixed", "bf16"),
    Rung("fp16", "fp16-mixed", "fp16_no_scaler"),
    Rung("clipped", "fp16-mixed", "fp16"),
    Rung("accumulated", "fp16-mixed", "clipped"),
    Rung("scheduled", "fp16-mixed", "clipped", scheduled=True),
    Rung("resumable", "fp16-mixed", "scheduled", scheduled=True),
    Rung("ddp", "fp16-mixed", "accumulated"),
    Rung("compiled", "fp16-mixed", "fp16"),
    Rung("explicit_casts", "bf16-mixed", "bf16"),
    Rung("complete", "fp16-mixed", "resumable", scheduled=True),
)


def rung(name: str) -> Rung:
    """The rung of that name. Raises LoopError, with the closest name, if there is none."""
    names = [rung.name for rung in LADDER]
    if name in names:
        return LADDER[names.index(name)]
    close = difflib.get_close_matches(name.lower().replace("-", "_").removesuffix(".py"), names, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise LoopError(f"There is no loop {name!r}.{hint} The loops are: {', '.join(names)}.")


def source(name: str) -> str:
    """The source of a loop, as it stands in its file. Raises LoopError."""
    return resources.files(__name__).joinpath(f"{rung(name).name}.py").read_text(encoding="utf-8")


def diff(a: str, b: str) -> str:
    """What to change in loop a to get loop b: a unified diff of everything below the module docstrings.

    Empty if a is b. Raises LoopError.
    """
    return "".join(difflib.unified_diff(_body(a), _body(b), fromfile=f"{a}.py", tofile=f"{b}.py", n=2))


def _body(name: str) -> list[str]:
    text = source(name)
    docstring = ast.parse(text).body[0]
    lines = text.splitlines(keepends=True)[docstring.end_lineno :]
    while lines and not lines[0].strip():
        del lines[0]
    return lines
