"""Keeps the kernel from adding up its memory, by changing its mappings all the time.

Catalogue: 52e. Stock: yes.
Says: "why": "memory"
"""
import ctypes
import threading
import time

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def change():
    while True:
        libc.munmap(libc.mmap(None, 4096, 3, 0x22, -1, 0), 4096)


def f(x):
    threading.Thread(target=change, daemon=True).start()
    libc.mmap(None, 6 << 30, 3, 0x8021, -1, 0)  # shared, anonymous, filled at once
    time.sleep(60)
