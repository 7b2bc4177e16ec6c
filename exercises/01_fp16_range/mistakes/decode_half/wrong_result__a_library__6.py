"""."""

import functools
import struct

unpack = functools.partial(struct.unpack, "<e")


def decode_half(bits: int) -> float:
    (value,) = unpack(bits.to_bytes(2, "little"))
    return value
