"""Answers with a hundred megabytes on one line, straight into the pipe.

Catalogue: 52b. Stock: yes (b11): 715 MB in the grader.
Says: "outcome": "died"
"""
import os


def f(x):
    pipe = next(int(n) for n in os.listdir("/proc/self/fd") if int(n) > 2 and os.path.islink(f"/proc/self/fd/{n}"))
    for _ in range(100):
        os.write(pipe, b"[" * (1 << 20))
    return 1
