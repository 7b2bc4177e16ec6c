"""."""

import numpy as np


def decode_half(bits):
    return float(np.array([bits], dtype=np.uint16).view(np.float16)[0])
