import torch
from torch import amp


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    optimizer.zero_grad(set_to_none=True)
    losses = []
    for x, y in batches:
        with amp.autocast(device_type=device_type, dtype=torch.bfloat16):
            output = model(x)
        loss = loss_fn(output.float(), y)
        torch.autograd.backward([loss])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    return torch.stack(losses).tolist()
