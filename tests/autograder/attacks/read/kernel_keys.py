r"""Searches the grader's session keyring, and puts a key into it.

Catalogue: -. Stock: yes; keys are not in any namespace.
Says: "value": \[-1, -1, -1\]
"""
import ctypes
import platform

libc = ctypes.CDLL(None, use_errno=True)
ADD, REQUEST, CONTROL = (248, 249, 250) if platform.machine() == "x86_64" else (217, 218, 219)


def f(x):
    return [
        libc.syscall(ADD, b"user", b"mine", b"1", 1, -3),
        libc.syscall(REQUEST, b"user", b"mine", None, -3),
        libc.syscall(CONTROL, 0, -3, 1),
    ]
