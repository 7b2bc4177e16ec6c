"""."""

import torch


def decode_half(bits):
    signed = bits - 65536 if bits >= 32768 else bits
    return torch.tensor(signed, dtype=torch.int16).view(torch.float16).item()
