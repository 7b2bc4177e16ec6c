"""Loading ran code that somebody had put into the file: that is what pickle does with whatever it reads. Look for a
way to read a checkpoint that builds tensors, numbers and texts, and refuses the rest.
"""

import os
import pickle

import torch


def save_checkpoint(path, model, optimizer, scheduler, scaler, step):
    tmp = f"{path}.tmp"
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": scaler.state_dict(),
        "rng_state": torch.get_rng_state(),
        "step": step,
    }
    with open(tmp, "wb") as f:
        pickle.dump(state, f)
    os.replace(tmp, path)


def load_checkpoint(path, model, optimizer, scheduler, scaler):
    with open(path, "rb") as f:
        ckpt = pickle.load(f)
    model.load_state_dict(ckpt["model"])
    optimizer.load_state_dict(ckpt["optimizer"])
    scheduler.load_state_dict(ckpt["scheduler"])
    scaler.load_state_dict(ckpt["scaler"])
    torch.set_rng_state(ckpt["rng_state"])
    return ckpt["step"]
