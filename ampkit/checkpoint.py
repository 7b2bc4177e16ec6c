"""Checkpoints: all that a training run needs to go on bit for bit, and a file that a kill cannot damage."""

import os
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist

from ampkit.errors import CheckpointError

__all__ = ["Checkpoint", "from_scratch", "load", "previous", "rng_state", "save", "set_rng_state"]


def save(state: Mapping[str, Any], path: str | Path) -> None:
    """Write state to path so that a kill at any moment leaves the old checkpoint or the new one, never half of one.

    It is written to `<path>.tmp`, forced to the disk and then renamed; the checkpoint that was at path before stays as
    `<path>.previous`. A .tmp that a kill left behind is overwritten by the next save and never read. One process saves.
    state holds tensors, numbers, strings, None, and lists, tuples and dicts of those, so that load can read it.
    Raises CheckpointError if the file cannot be written.
    """
    path = Path(path)
    temp, link = _beside(path, ".tmp"), _beside(path, ".link.tmp")
    try:
        with open(temp, "wb") as file:
            torch.save(dict(state), file)
            file.flush()
            os.fsync(file.fileno())  # without it a crash of the machine can leave the new name on an empty file
        if path.exists():
            _keep(path, link)
        os.replace(temp, path)
        _sync(path.parent)
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {path} cannot be written: {error.strerror}. What was saved before is still there. "
            "Make room, or name another file."
        ) from error
    finally:
        temp.unlink(missing_ok=True)
        link.unlink(missing_ok=True)


def _keep(path: Path, link: Path) -> None:
    """A second name for the checkpoint, so that its first name never points to nothing."""
    link.unlink(missing_ok=True)
    try:
        os.link(path, link)
    except OSError:  # a file system without hard links: for a moment only the previous one is there, and load knows
        os.replace(path, previous(path))
        return
    os.replace(link, previous(path))


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _sync(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open a folder, and makes a rename durable by itself
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def previous(path: str | Path) -> Path:
    """Where the checkpoint before the newest one is kept."""
    return _beside(Path(path), ".previous")


def load(path: str | Path, settings: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """The newest checkpoint saved at path, on the CPU; None if there is none yet.

    Read with torch.load(weights_only=True), which runs no code of the file. If settings are given they must be those
    that were saved as "settings". Raises CheckpointError for a file that is damaged or of another run.
    """
    path = Path(path)
    if not path.exists() and previous(path).exists():  # a kill between two renames, see _keep
        path = previous(path)
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file raises what its damage makes it raise
        older = f" The one before it is {previous(path)}." if previous(path).exists() else ""
        raise CheckpointError(f"{path} is no checkpoint that can be read ({type(error).__name__}).{older}") from error
    if settings is not None:
        _agree(path, state, settings)
    return state


def _agree(path: Path, state: Any, settings: Mapping[str, Any]) -> None:
    if not isinstance(state, dict) or "settings" not in state:
        raise CheckpointError(f"{path} is not a checkpoint of a training run of ampkit. Name another file.")
    saved = state["settings"]
    names = sorted(name for name in {*saved, *settings} if saved.get(name) != settings.get(name))
    if names:
        differ = "; ".join(f"{name} was {saved.get(name)}, and is {settings.get(name)}" for name in names)
        raise CheckpointError(
            f"{path} was saved by another run: {differ}. Going on with it would train neither of the two. "
            "Use the same options, or name another file."
        )


def rng_state() -> dict[str, Any]:
    """The state of the random number generators: PyTorch's, CUDA's once CUDA is used, Python's, NumPy's if imported."""
    state = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    if "numpy" in sys.modules:
        kind, keys, position, has_gauss, gauss = sys.modules["numpy"].random.get_state()
        state["numpy"] = (kind, keys.tolist(), position, has_gauss, gauss)
    return state


def set_rng_state(state: Mapping[str, Any]) -> None:
    """Set the generators to what rng_state returned."""
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])
    if "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])
    if "numpy" in state:
        import numpy  # it was there when the state was saved

        numpy.random.set_state(state["numpy"])


def from_scratch(**objects: Any) -> int:
    """What a loop calls with its objects where there is nothing to restore: leave them as they are, begin at step 0."""
    return 0


class Checkpoint:
    """Around a loop what resumable.py does by hand: the loop hands its objects to restore, and whoever runs it saves.

    settings say which run it is, batches where in the data it is. In a process group every rank calls save, and rank 0
    writes, with the random number generators of all ranks.
    """

    def __init__(self, path: str | Path, *, settings: Mapping[str, Any], batches: Any):
        self.path, self.settings, self.batches = Path(path), dict(settings), batches
        self._objects: dict[str, Any] = {}

    def restore(self, **objects: Any) -> int:
        """Load the saved state into the objects, the data and the generators: the step to go on with, 0 without any.

        objects have state_dict and load_state_dict. Raises CheckpointError for a checkpoint of another run.
        """
        self._objects = objects
        state = load(self.path, {**self.settings, "ranks": _ranks()})
        if state is None:
            return 0
        for name, held in {**objects, "batches": self.batches}.items():
            try:
                held.load_state_dict(state[name])
            except (KeyError, RuntimeError, ValueError) as error:
                raise CheckpointError(f"The {name} in {self.path} does not fit this run's: {error}") from error
        set_rng_state(state["rng"][_rank()])  # last: nothing may draw a number after it
        return state["step"]

    def save(self, step: int) -> None:
        """Save, before the given step is begun. Raises CheckpointError."""
        rng: list[Any] = [rng_state()]
        if _ranks() > 1:
            rng = [None] * _ranks()
            dist.all_gather_object(rng, rng_state())
        if _rank() == 0:
            states = {name: held.state_dict() for name, held in self._objects.items()}
            settings = {**self.settings, "ranks": _ranks()}
            whole = {**states, "batches": self.batches.state_dict(), "rng": rng, "settings": settings, "step": step}
            save(whole, self.path)


def _ranks() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def _rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0
