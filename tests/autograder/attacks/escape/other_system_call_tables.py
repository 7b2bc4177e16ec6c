r"""Calls the kernel through the x32 table, where a filter of numbers may look the wrong way.

Catalogue: -. Stock: there is no filter.
Says: "value": \[(-1|38), 38\]
"""
import ctypes
import platform

libc = ctypes.CDLL(None, use_errno=True)


def f(x):
    if platform.machine() != "x86_64":
        return [-1, 38]
    return [libc.syscall(0x40000000 | 101, 0, 0, 0, 0), ctypes.get_errno()]
