"""Has a name that looks like a size in the list of its sizes, and takes memory that no limit of one process counts.

Catalogue: 52e. Stock: yes.
Says: "why": "memory"
"""
import ctypes
import mmap
import time


def f(x):
    ctypes.CDLL(None).prctl(15, b"x kB", 0, 0, 0)
    kept = mmap.mmap(-1, 3 << 30)
    for start in range(0, 3 << 30, 4096):
        kept[start] = 1
    time.sleep(60)
