"""The average was changed in place while autograd was recording. It is no part of the computation that is
differentiated; look for the context in which nothing is recorded.
"""


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
        average.mul_(decay).add_(weight, alpha=1 - decay)
    for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
        mine.copy_(buffer)
