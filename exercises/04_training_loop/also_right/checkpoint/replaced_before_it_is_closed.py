"""Exchanges the files while the new one is open still, when all of it has been flushed."""

import os

import torch


def save_checkpoint(path, model, optimizer, scheduler, scaler, step):
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
    state = {name: part.state_dict() for name, part in parts.items()} | {"rng": torch.get_rng_state(), "step": step}
    with open(f"{path}.tmp", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
        os.replace(f"{path}.tmp", path)


def load_checkpoint(path, model, optimizer, scheduler, scaler):
    state = torch.load(path, weights_only=True)
    for name, part in {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}.items():
        part.load_state_dict(state[name])
    torch.set_rng_state(state["rng"])
    return state["step"]
