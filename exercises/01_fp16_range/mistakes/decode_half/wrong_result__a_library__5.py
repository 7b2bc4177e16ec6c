"""."""


def decode_half(bits):
    from struct import unpack

    return unpack(">e", bits.to_bytes(2, "big"))[0]
