"""The region ends after the model, so that the loss is computed on logits of low precision with nobody to cast them:
it is rounded to their few digits. Look at the dtype of the loss, and at what stands inside the region.
"""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    with torch.autocast(device_type, dtype=dtype):
        output = model(x)
    loss = loss_fn(output, y)
    loss.backward()
    return loss.detach()
