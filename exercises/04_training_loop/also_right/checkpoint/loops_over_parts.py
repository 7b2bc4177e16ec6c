"""One loop over what has a state dict; the generator itself is asked for its state; moved with shutil."""

import os
import shutil
import tempfile

import torch

PARTS = "model", "optimizer", "scheduler", "scaler"


def save_checkpoint(path, model, optimizer, scheduler, scaler, step) -> None:
    state = {name: part.state_dict() for name, part in zip(PARTS, (model, optimizer, scheduler, scaler), strict=True)}
    state |= {"generator": torch.default_generator.get_state(), "step": int(step)}
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)))
    with os.fdopen(descriptor, "wb") as file:
        torch.save(state, file)
    shutil.move(temporary, path)


def load_checkpoint(path, model, optimizer, scheduler, scaler) -> int:
    with open(path, "rb") as file:
        state = torch.load(file, weights_only=True)
    for name, part in zip(PARTS, (model, optimizer, scheduler, scaler), strict=True):
        part.load_state_dict(state[name])
    torch.random.set_rng_state(state["generator"])
    return state["step"]
