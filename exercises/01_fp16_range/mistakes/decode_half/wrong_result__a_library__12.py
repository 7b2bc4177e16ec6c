"""."""

from ampkit.formats import FP16


def decode_half(bits):
    return FP16.decode(bits)
