r"""Mounts, remounts writable, and changes its root.

Catalogue: -. Stock: as root.
Says: "value": \[-1, -1, -1, -1, -1, -1\]
"""
import ctypes
import platform

libc = ctypes.CDLL(None)
X86 = platform.machine() == "x86_64"


def f(x):
    return [
        libc.mount(b"none", b"/", None, ctypes.c_ulong(32), None),
        libc.mount(b"proc", b"/tmp", b"proc", ctypes.c_ulong(0), None),
        libc.umount2(b"/tmp", 2),
        libc.chroot(b"/tmp"),
        libc.syscall(155 if X86 else 41, b"/tmp", b"/tmp"),
        libc.syscall(428, -100, b"/", 1),
    ]
