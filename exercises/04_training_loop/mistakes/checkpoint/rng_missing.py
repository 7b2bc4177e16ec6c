"""The resumed run draws other random numbers than the one that was not stopped: other dropout masks, another order of
the data. Look at where PyTorch's random numbers come from, whether that state is in the file, and whether the
generator has it again when load_checkpoint returns.
"""

import os

import torch


def save_checkpoint(path, model, optimizer, scheduler, scaler, step):
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": scaler.state_dict(),
        "step": step,
    }
    torch.save(state, f"{path}.tmp")
    os.replace(f"{path}.tmp", path)


def load_checkpoint(path, model, optimizer, scheduler, scaler):
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    scaler.load_state_dict(state["scaler"])
    return state["step"]
