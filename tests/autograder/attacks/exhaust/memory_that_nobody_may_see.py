"""Divides the memory over processes, each of which forbids that it is looked at.

Catalogue: 52e. Stock: yes.
Says: "why": "memory"
"""
import ctypes
import os
import time


def f(x):
    for _ in range(24):
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
            kept = b"x" * (200 << 20)
            time.sleep(60)
    time.sleep(60)
