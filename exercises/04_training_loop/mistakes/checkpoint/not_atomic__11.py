"""What belongs together is in two files, and they are not exchanged in one go: after a crash between the two, one is of
the new checkpoint and the other of the earlier one. Look at how many files your checkpoint has."""

import os

import torch


def save_checkpoint(path, model, optimizer, scheduler, scaler, step):
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "rng": torch.get_rng_state(),
        "step": step,
    }
    torch.save(state, f"{path}.tmp")
    os.replace(f"{path}.tmp", path)
    torch.save(scaler.state_dict(), f"{path}.scaler")


def load_checkpoint(path, model, optimizer, scheduler, scaler):
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    scaler.load_state_dict(torch.load(f"{path}.scaler", weights_only=True))
    torch.set_rng_state(state["rng"])
    return state["step"]
