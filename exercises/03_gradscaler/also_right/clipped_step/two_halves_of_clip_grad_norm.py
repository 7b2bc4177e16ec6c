"""get_total_norm and clip_grads_with_norm_ over a list made of the iterable."""

from torch.nn.utils import clip_grads_with_norm_, get_total_norm


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    total_norm = get_total_norm([p.grad for p in parameters if p.grad is not None])
    clip_grads_with_norm_(parameters, max_norm, total_norm)
    scaler.step(optimizer)
    scaler.update()
    return total_norm.item()
