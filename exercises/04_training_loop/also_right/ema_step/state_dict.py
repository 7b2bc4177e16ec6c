"""Over the state dicts, each tensor once, buffers by load_state_dict."""


def ema_step(ema_model, model, decay, stepped) -> None:
    if not stepped:
        return
    names = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    new, old = model.state_dict(), ema_model.state_dict()
    mixed = {name: old[name] * decay + new[name] * (1 - decay) if name in names else new[name] for name in new}
    ema_model.load_state_dict(mixed)
