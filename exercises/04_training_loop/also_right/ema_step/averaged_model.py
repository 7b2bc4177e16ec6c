"""PyTorch's own averaging function, and buffers by hand."""

from torch.optim.swa_utils import get_ema_multi_avg_fn


def ema_step(ema_model, model, decay, stepped) -> None:
    if stepped:
        average = get_ema_multi_avg_fn(decay)
        average([p.detach() for p in ema_model.parameters()], [p.detach() for p in model.parameters()], None)
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            mine.copy_(buffer)
