"""The learning rate of the resumed run takes another course than that of the run that was not stopped: the scheduler
does not go on counting where it was. Look at what the file holds of the scheduler, and at what becomes of it when you
load; a learning rate is not its count.
"""

import os

import torch


def save_checkpoint(path, model, optimizer, scheduler, scaler, step):
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scaler": scaler.state_dict(),
        "rng": torch.get_rng_state(),
        "step": step,
    }
    torch.save(state, f"{path}.tmp")
    os.replace(f"{path}.tmp", path)


def load_checkpoint(path, model, optimizer, scheduler, scaler):
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scaler.load_state_dict(state["scaler"])
    torch.set_rng_state(state["rng"])
    return state["step"]
