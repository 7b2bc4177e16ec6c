"""All parameters as one vector, buffers exchanged."""

import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters


@torch.no_grad()
def ema_step(ema_model, model, decay, stepped) -> None:
    if not stepped:
        return
    old, new = parameters_to_vector(ema_model.parameters()), parameters_to_vector(model.parameters())
    vector_to_parameters(old * decay + new * (1 - decay), ema_model.parameters())
    for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
        mine.set_(buffer.clone())
