"""A crash while saving left no whole file: yours puts the earlier checkpoint back when an error is raised, and a
process that is killed raises none. It has to be whole at every moment.
"""

import os
from pathlib import Path

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
    before = Path(path).read_bytes() if os.path.exists(path) else None
    try:
        torch.save(state, path)
    except BaseException:
        if before is not None:
            Path(path).write_bytes(before)
        raise


def load_checkpoint(path, model, optimizer, scheduler, scaler):
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    scaler.load_state_dict(state["scaler"])
    torch.set_rng_state(state["rng"])
    return state["step"]
