"""A weight that the model uses under two names is the model's own in the end: the average was entered under one of its
names, and what stood under the other one was loaded after it. Print the names in a state dict beside those of
`named_parameters()`.
"""

import torch


@torch.no_grad()
def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, average in ema_model.named_parameters():
        state[name] = decay * average + (1 - decay) * state[name]
    ema_model.load_state_dict(state)
    for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
        mine.copy_(buffer)
