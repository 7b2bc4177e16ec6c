"""Reads in the scaler's state whether unscale_ found an overflow."""

import torch


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    torch.autograd.backward([scaler.scale(loss)])
    scaler.unscale_(optimizer)
    found_inf = scaler._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
    stepped = sum(flag.item() for flag in found_inf.values()) == 0
    scaler.step(optimizer)
    scaler.update()
    if stepped:
        scheduler.step()
    return stepped
