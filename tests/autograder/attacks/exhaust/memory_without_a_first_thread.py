"""Ends its first thread, in whose status the memory of the others is not to be seen.

Catalogue: 52e. Stock: yes.
Says: "why": "memory"
"""
import ctypes
import mmap
import threading
import time


def work():
    kept = mmap.mmap(-1, 3 << 30)
    for start in range(0, 3 << 30, 4096):
        kept[start] = 1
    time.sleep(60)


def f(x):
    threading.Thread(target=work).start()
    ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[__import__("os").uname().machine], 0)
