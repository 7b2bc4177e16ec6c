"""Takes shared anonymous memory, which the limit on data does not count.

Catalogue: 52e. Stock: yes.
Says: "why": "memory"
"""
import mmap


def f(x):
    kept = mmap.mmap(-1, 6 << 30)
    for i in range(0, len(kept), 64 << 20):
        kept[i : i + (64 << 20)] = bytes(64 << 20)
    return 1
