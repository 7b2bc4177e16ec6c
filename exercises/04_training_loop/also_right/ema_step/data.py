"""Through .data, by name, with a formula."""


def ema_step(ema_model, model, decay, stepped) -> None:
    if not stepped:
        return
    weights, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    for name, average in ema_model.named_parameters():
        average.data = decay * average.data + (1.0 - decay) * weights[name].data
    for name, mine in ema_model.named_buffers():
        mine.data.copy_(buffers[name])
