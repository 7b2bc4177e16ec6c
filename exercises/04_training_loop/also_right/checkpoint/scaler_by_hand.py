"""Scale and growth tracker as two numbers; the random state as a list."""

import os

import torch


def save_checkpoint(path, model, optimizer, scheduler, scaler, step):
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scale": scaler.get_scale(),
        "good_steps": scaler.state_dict()["_growth_tracker"],
        "rng": torch.get_rng_state().tolist(),
        "step": step,
    }
    torch.save(state, f"{path}.tmp")
    os.replace(f"{path}.tmp", path)


def load_checkpoint(path, model, optimizer, scheduler, scaler):
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    scaler.load_state_dict({**scaler.state_dict(), "scale": state["scale"], "_growth_tracker": state["good_steps"]})
    torch.set_rng_state(torch.tensor(state["rng"], dtype=torch.uint8))
    return state["step"]
