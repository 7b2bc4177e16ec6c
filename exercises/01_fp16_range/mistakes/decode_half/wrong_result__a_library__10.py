"""."""

import struct

VALUES = {}
for pattern in range(2**16):
    VALUES[pattern] = struct.unpack("<e", pattern.to_bytes(2, "little"))[0]


def decode_half(bits):
    return VALUES[bits]
