r"""Attaches to other processes with ptrace, and writes into their memory.

Catalogue: 33. Stock: yes, same user.
Says: "value": \[-1, -1, -1, -1\]
"""
import ctypes
import platform

libc = ctypes.CDLL(None)
PTRACE, WRITEV = (101, 311) if platform.machine() == "x86_64" else (117, 271)


def f(x):
    return [libc.syscall(PTRACE, 16, pid, 0, 0) for pid in (VICTIM, GRADER)] + [libc.syscall(WRITEV, pid, 0, 0, 0, 0, 0) for pid in (VICTIM, WARM)]
