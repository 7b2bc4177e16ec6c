"""How an answer is probed: an assignment's checks.py declares exercises and probes with what stands here.

    clipped_step = Exercise("clipped_step", parts={"update": 2, "norm": 1}, keys={"returned": "norm"})

    @clipped_step.probe(draws=2)
    def gradients_above_max_norm(answer, p):
        max_norm = p.random.choice([0.5, 1.0, 2.0])
        ...
        p.given(f"true gradients of norm {norm:.3g}, max_norm {max_norm}")
        p.see("returned", answer(scaler, optimizer, loss, parameters, max_norm))
        p.see("parameters", weight)

A probe draws its input from `p.random` and `p.torch`, which a seed determines, lets the answer work on it, and says what it
saw. It gives no verdict: what the solution shows on the same seed is what is expected.
"""

from __future__ import annotations

import hashlib
import hmac
import random
import re
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from autograder import trace
from autograder.errors import RoomError
from autograder.evidence import MAX_TEXT, freeze

PUBLIC_SECRET = b"public"
DEFAULT_ULPS = 256.0


@dataclass
class Probe:
    """One kind of input for one exercise. Its docstring says in words what it is about."""

    name: str
    part: str
    draws: int
    about: str
    run: Callable[[object, Seen], None]


@dataclass
class Exercise:
    """A graded exercise: parts with their points, in order, and the probes that decide them.

    The first part is the core: a later part counts only where the core is right too, so that an answer that is wrong in
    the main thing earns nothing for what it gets right by accident. `keys` gives single pieces of evidence to another part
    than their probe's. `counted` makes the parts steps of a count instead: of n parts the first k are earned where at least
    k/n of all evidence is right, wherever it is. `names` is for an answer of several functions, which the probes get as a
    tuple; without it an answer is what has the exercise's name. `labels` names evidence in messages. `ulps` is the tolerance
    (evidence.difference). `seconds` is what the answer may take for all of its probes together.
    """

    name: str
    parts: dict[str, int]
    keys: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    ulps: float = DEFAULT_ULPS
    seconds: float = 10.0
    counted: bool = False
    names: tuple[str, ...] = ()
    probes: dict[str, Probe] = field(default_factory=dict)
    symptoms: list[tuple[str, Callable]] = field(default_factory=list)

    @property
    def defines(self) -> tuple[str, ...]:
        """What an answer has to define."""
        return self.names or (self.name,)

    def answer(self, namespace: dict[str, object]) -> object:
        """What the probes are given of a namespace. NameError where the answer, or a part of it, is not there."""
        missing = [name for name in self.defines if name not in namespace]
        if missing:
            raise NameError(f"name '{missing[0]}' is not defined")
        found = tuple(namespace[name] for name in self.defines)
        return found if self.names else found[0]

    @property
    def points(self) -> int:
        return sum(self.parts.values())

    @property
    def core(self) -> str:
        return next(iter(self.parts))

    def probe(self, part: str | None = None, draws: int = 1) -> Callable:
        """Declare the decorated function as a probe that is run on `draws` different seeds."""
        part = part or self.core
        if part not in self.parts:
            raise RoomError(f"{self.name} has no part {part!r}, only {', '.join(self.parts)}")

        def declare(function: Callable) -> Callable:
            about = (function.__doc__ or "").strip()
            self.probes[function.__name__] = Probe(function.__name__, part, draws, about, function)
            return function

        return declare

    def symptom(self, slug: str) -> Callable:
        """Declare a rule that names a mistake from evidence alone: called with the list of failed Comparisons of an
        answer (verdict.py) where no mistake file explains it, it says whether this is mistake `slug`."""

        def declare(rule: Callable) -> Callable:
            self.symptoms.append((slug, rule))
            return rule

        return declare

    def part_of(self, probe: Probe, key: str) -> str:
        return self.keys.get(key.partition(" ")[0], probe.part)

    def label(self, key: str) -> str:
        base, _, place = key.partition(" ")
        return self.labels.get(key) or " ".join(filter(None, (self.labels.get(base, base.replace("_", " ")), place)))


class Seen:
    """What a probe draws from, and what it saw."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.torch = torch.Generator().manual_seed(seed)
        self.words = ""
        self.evidence: dict[str, object] = {}

    def given(self, words: str) -> None:
        """Say what the answer is given, in a learner's words."""
        self.words = words[:MAX_TEXT]

    def see(self, key: str, value: object) -> None:
        """Record evidence. Keys are in the order of what happened; what is not reached for an error is missing."""
        self.evidence[key] = freeze(value)

    def normal(self, *shape: int) -> torch.Tensor:
        """Standard normal FP32 numbers from this draw's own generator."""
        return torch.randn(*shape, generator=self.torch)


def load_checks(source: str, assignment: str) -> dict[str, Exercise]:
    """The exercises that the text of a checks.py declares, in order. RoomError where it does not run or declares none."""
    module = types.ModuleType(f"checks_{assignment}")
    module.__file__ = f"<checks of {assignment}>"
    # Under its name in sys.modules, so that dataclasses and pickling inside a checks.py work.
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, module.__file__, "exec"), module.__dict__)
    except Exception as error:
        raise RoomError(f"checks.py of {assignment} does not run: {type(error).__name__}: {error}") from error
    exercises = {value.name: value for value in vars(module).values() if isinstance(value, Exercise)}
    if not exercises:
        raise RoomError(f"checks.py of {assignment} declares no Exercise")
    return exercises


def seed_of(secret: bytes, assignment: str, exercise: str, probe: str, draw: int) -> int:
    """The seed of one draw of one probe: 63 bits that nobody can guess who does not know the secret."""
    name = "/".join((assignment, exercise, probe, str(draw))).encode()
    return int.from_bytes(hmac.new(secret, name, hashlib.sha256).digest()[:8], "big") >> 1


def seeds(exercise: Exercise, assignment: str, secret: bytes) -> dict[str, list[int]]:
    """For each probe of the exercise the seeds of its draws."""
    return {
        probe.name: [seed_of(secret, assignment, exercise.name, probe.name, draw) for draw in range(probe.draws)]
        for probe in exercise.probes.values()
    }


def leave_no_state() -> None:
    """Undo what an answer may have left in this process's PyTorch: an open autocast region, grad mode, default dtype."""
    # The counter of open regions can only be moved by one: up once to read it, down to zero.
    depth = torch.autocast_increment_nesting()
    while depth > 0:
        depth = torch.autocast_decrement_nesting()
    while depth < 0:
        depth = torch.autocast_increment_nesting()
    torch.clear_autocast_cache()
    torch.set_autocast_cache_enabled(True)
    for device_type in ("cpu", "cuda"):
        torch.set_autocast_enabled(device_type, False)
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.set_autocast_dtype("cuda", torch.float16)
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)


def run_probes(exercise: Exercise, answer: object, draws: dict[str, list[int]], locate: Callable) -> list[dict]:
    """Probe `answer` on every seed of `draws`; one record a draw, in order.

    A record: {"probe", "draw", "given", "seen": {key: value}, "calls": [name, …],
    "error": None or {"type", "message", "line"}}; `locate(error)` gives the line of the answer's own code, or None.
    """
    records = []
    for name, probe_seeds in draws.items():
        for draw, seed in enumerate(probe_seeds):
            records.append(_run_probe(exercise.probes[name], draw, seed, answer, locate))
    return records


def _run_probe(probe: Probe, draw: int, seed: int, answer: object, locate: Callable) -> dict:
    seen, error = Seen(seed), None
    leave_no_state()
    _seed(seed)
    with warnings.catch_warnings(), trace.recording_torch(), trace.recording() as calls:
        # A warning that PyTorch gives for a right answer is not an error, and stderr in a check cell costs all points.
        warnings.simplefilter("ignore")
        try:
            probe.run(answer, seen)
        except (Exception, SystemExit) as raised:
            error = describe(raised, locate)
    leave_no_state()
    return {
        "probe": probe.name,
        "draw": draw,
        "given": seen.words,
        "seen": seen.evidence,
        "calls": [call[:40] for call in calls],
        "error": error,
    }


def _seed(seed: int) -> None:
    """As torch.manual_seed, of which a build for CUDA keeps a stack trace until a GPU is used: a fifth of what probing took."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def describe(error: BaseException, locate: Callable) -> dict:
    """An exception as plain data, without the colours that some write for a terminal."""
    try:
        message = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().splitlines()
        line = locate(error)
    except Exception:  # the answer's own class, whose __str__ or __traceback__ fails
        message, line = ["its own message could not be made"], None
    return {
        "type": type(error).__name__[:80],
        "message": (message[0] if message else "")[:400],
        "line": line if type(line) is int and 0 < line < 1 << 31 else None,
    }
