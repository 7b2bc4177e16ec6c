"""The update is right, and so is the norm until the scale changes: you convert it with another scale than the one that
this loss was multiplied by. Look at when you read the scale.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm * scaler.get_scale())
    scaler.step(optimizer)
    scaler.update()
    return float(norm / scaler.get_scale())
