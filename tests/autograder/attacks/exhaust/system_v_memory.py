r"""Makes System V segments, which outlive the process and that no limit counts.

Catalogue: 52e. Stock: yes, until the machine is started again.
Says: "value": \[-1, -1, -1\]
"""
import ctypes
import platform

libc = ctypes.CDLL(None)
SHMGET, MSGGET, SEMGET = (29, 68, 64) if platform.machine() == "x86_64" else (194, 186, 190)


def f(x):
    return [libc.syscall(SHMGET, 0, ctypes.c_size_t(1 << 30), 0o1600), libc.syscall(MSGGET, 0, 0o1600), libc.syscall(SEMGET, 0, 1000, 0o1600)]
