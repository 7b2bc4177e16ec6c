"""Answers with four million empty lists, two bytes each to write and seventy to read.

Catalogue: 52b. Stock: n/a.
Says: "outcome": "died"
"""
import os


def f(x):
    pipe = next(int(n) for n in os.listdir("/proc/self/fd") if int(n) > 2 and os.path.islink(f"/proc/self/fd/{n}"))
    data = b'{"outcome": "evidence", "records": [' + b"[]," * 2_000_000 + b"[]]}\n"
    while data:
        data = data[os.write(pipe, data) :]
