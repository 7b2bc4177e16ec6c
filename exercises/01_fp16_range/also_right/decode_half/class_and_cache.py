"""A callable object with a cache of its own."""

import functools
import math


class Half:
    BIAS = 15

    def __call__(self, bits):
        return self.decode(bits)

    @staticmethod
    @functools.cache
    def decode(bits):
        if bits >= 0x8000:
            return -Half.decode(bits - 0x8000)
        if bits > 0x7C00:
            return math.nan
        if bits == 0x7C00:
            return math.inf
        if bits < 0x0400:
            return bits / 2**24
        return (bits % 1024 + 1024) / 1024 * 2 ** (bits // 1024 - Half.BIAS)


decode_half = Half()
