"""A crash while saving left no whole file at `path`: yours writes to `path` itself, which is empty from the moment it
is opened until the new checkpoint is complete. Look for a way to let the earlier one stand until then.
"""

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
    torch.save(state, path)


def load_checkpoint(path, model, optimizer, scheduler, scaler):
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    scaler.load_state_dict(state["scaler"])
    torch.set_rng_state(state["rng"])
    return state["step"]
