"""A crash while saving left no whole file at `path`: the earlier checkpoint stands under another name, where nobody
looks for it, until the new one is complete. It has to be `path` that is whole at every moment.
"""

import os

import torch


def save_checkpoint(path, model, optimizer, scheduler, scaler, step):
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": scaler.state_dict(),
        "rng": torch.get_rng_state(),
        "step": step,
    }
    if os.path.exists(path):
        os.replace(path, f"{path}.backup")
    torch.save(state, path)
    if os.path.exists(f"{path}.backup"):
        os.remove(f"{path}.backup")


def load_checkpoint(path, model, optimizer, scheduler, scaler):
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    scaler.load_state_dict(state["scaler"])
    torch.set_rng_state(state["rng"])
    return state["step"]
