"""."""

import struct

half = struct.Struct("=e")


def decode(pattern):
    return half.unpack(pattern)[0]


def decode_half(bits):
    return decode(bits.to_bytes(2, __import__("sys").byteorder))
