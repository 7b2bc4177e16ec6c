"""The optimizer of the resumed run is as it was made: it has forgotten its momentum, so its first steps differ from
those of the run that was not stopped. Look at what an optimizer keeps besides the parameters, and at what becomes of
it when you load.
"""

import os

import torch


def save_checkpoint(path, model, optimizer, scheduler, scaler, step):
    state = {
        "model": model.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": scaler.state_dict(),
        "rng": torch.get_rng_state(),
        "step": step,
    }
    torch.save(state, f"{path}.tmp")
    os.replace(f"{path}.tmp", path)


def load_checkpoint(path, model, optimizer, scheduler, scaler):
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    scheduler.load_state_dict(state["scheduler"])
    scaler.load_state_dict(state["scaler"])
    torch.set_rng_state(state["rng"])
    return state["step"]
