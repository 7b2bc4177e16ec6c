"""A right answer whose cell imports PyTorch and compares with it, below the function."""

import math
import struct

import torch

BIAS, ONES = 15, 0x1F


def decode_half(bits: int) -> float:
    sign = (-1.0) ** (bits >> 15)
    e, m = bits >> 10 & ONES, bits & 0x3FF
    match e, m:
        case 0, _:
            return sign * 2.0 ** (1 - BIAS) * m / 1024
        case 31, 0:
            return sign * math.inf
        case 31, _:
            return math.nan
    return sign * 2.0 ** (e - BIAS) * (1 + m / 1024)


for pattern in range(0, 0x7C00, 97):
    assert decode_half(pattern) == torch.tensor(pattern, dtype=torch.int16).view(torch.float16).item()
assert decode_half(0x3555) == struct.unpack("<e", struct.pack("<H", 0x3555))[0]
