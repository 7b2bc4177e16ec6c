"""You put the new file into place even if writing it failed: what stands after `finally` is done on the way out of an error
too, and then half a file takes the place of a whole one."""

import os

import torch


def save_checkpoint(path, model, optimizer, scheduler, scaler, step):
    tmp = f"{path}.tmp"
    try:
        torch.save(
            {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "scaler": scaler.state_dict(),
                "rng_state": torch.get_rng_state(),
                "step": step,
            },
            tmp,
        )
    finally:
        os.replace(tmp, path)


def load_checkpoint(path, model, optimizer, scheduler, scaler):
    ckpt = torch.load(path, weights_only=True)
    model.load_state_dict(ckpt["model"])
    optimizer.load_state_dict(ckpt["optimizer"])
    scheduler.load_state_dict(ckpt["scheduler"])
    scaler.load_state_dict(ckpt["scaler"])
    torch.set_rng_state(ckpt["rng_state"])
    return ckpt["step"]
