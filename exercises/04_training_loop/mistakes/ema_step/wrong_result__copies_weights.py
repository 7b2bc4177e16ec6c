"""The parameters of ema_model are the model's last ones: nothing is left of the average. Look at what becomes of the
old value in your code.
"""


def ema_step(ema_model, model, decay, stepped):
    if stepped:
        ema_model.load_state_dict(model.state_dict())
