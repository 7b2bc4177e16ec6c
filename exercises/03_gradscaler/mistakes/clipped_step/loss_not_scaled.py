"""The loss went backward without having been multiplied by the scale (2): small gradients vanish in FP16, and the
scaler divides by what was never multiplied in. Look at which tensor backward is called on.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    loss.backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
