"""A closure over what another function worked out."""

import torch


def make(exponent_bits, mantissa_bits):
    ones, steps = 2**exponent_bits - 1, 2**mantissa_bits
    lowest = 2 - 2 ** (exponent_bits - 1)

    def decode(bits):
        sign = (1.0, -1.0)[bits >> exponent_bits + mantissa_bits]
        exponent, mantissa = bits // steps & ones, bits % steps
        if exponent == ones:
            return sign * float("inf") if mantissa == 0 else float("nan")
        significand = mantissa + steps * (exponent > 0)
        return sign * significand / steps * 2.0 ** (lowest + max(exponent - 1, 0))

    return decode


decode_half = make(5, 10)
assert decode_half(0x0001) == torch.finfo(torch.float16).smallest_normal * torch.finfo(torch.float16).eps
