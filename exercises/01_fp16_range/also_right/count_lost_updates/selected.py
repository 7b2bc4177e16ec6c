"""Only the nonzero updates, as an optimizer would add them."""

import torch


def count_lost_updates(weight, update, dtype):
    nonzero = update.nonzero(as_tuple=True)
    parameter = torch.nn.Parameter(weight[nonzero].to(dtype, copy=True))
    parameter.grad = update[nonzero].neg().to(dtype)
    before = parameter.detach().clone()
    torch.optim.SGD([parameter], lr=1.0).step()
    return int(torch.eq(parameter.detach(), before).sum())
