"""."""

import torch


class LossScaler(torch.amp.GradScaler):
    def __init__(self, init_scale, growth_factor, backoff_factor, growth_interval):
        super().__init__("cpu", init_scale, growth_factor, backoff_factor)
