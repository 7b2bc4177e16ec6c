r"""Opens the parts of the kernel that most ways out have come through: io_uring, BPF, userfaultfd, perf, fanotify.

Catalogue: -. Stock: what the machine lets users.
Says: "value": \[\[-1, 1\], \[-1, 1\], \[-1, 1\], \[-1, 1\], \[-1, 1\], \[-1, 1\]\]
"""
import ctypes
import platform

libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
CALLS = (425, 321 if X86 else 280, 323 if X86 else 282, 298 if X86 else 241, 300 if X86 else 262, 313 if X86 else 273)


def f(x):
    return [[libc.syscall(number, 0, ctypes.create_string_buffer(256), 0, 0, 0), ctypes.get_errno()] for number in CALLS]
