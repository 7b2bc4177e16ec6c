"""The values are right, but a library decodes them for you: torch, numpy, struct or ctypes, in the function or in
something that it uses. What is asked for is the decoding itself, with whole numbers and powers of two; Python's
`math` is welcome."""

import struct


def decode_half(bits):
    return struct.unpack("<e", struct.pack("<H", bits))[0]
