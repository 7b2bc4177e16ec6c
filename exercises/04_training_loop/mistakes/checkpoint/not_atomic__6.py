"""A crash while saving left no file at all: yours takes the earlier checkpoint away before the new one has its name.
Look for a way to exchange a file in one go.
"""

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
    target = Path(path)
    temporary = target.with_suffix(".tmp")
    torch.save(state, temporary)
    target.unlink(missing_ok=True)
    temporary.rename(target)


def load_checkpoint(path, model, optimizer, scheduler, scaler):
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    scaler.load_state_dict(state["scaler"])
    torch.set_rng_state(state["rng"])
    return state["step"]
