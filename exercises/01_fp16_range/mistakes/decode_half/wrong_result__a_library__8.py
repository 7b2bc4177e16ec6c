"""."""


def decode_half(bits):
    library = __import__("numpy")
    return library.frombuffer(bits.to_bytes(2, "little"), dtype="<f2")[0].item()
