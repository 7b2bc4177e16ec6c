r"""Makes a user namespace, in which it would be root.

Catalogue: -. Stock: yes where the machine lets users.
Says: "value": \[-1, -1, -1, true\]
"""
import ctypes
import platform

libc = ctypes.CDLL(None, use_errno=True)
CLONE, UNSHARE, SETNS = (56, 272, 308) if platform.machine() == "x86_64" else (220, 97, 268)


def f(x):
    said = [libc.syscall(UNSHARE, 0x10000000), libc.syscall(CLONE, 0x10000000 | 17, 0, 0, 0, 0), libc.syscall(SETNS, 0, 0x10000000)]
    clone3 = libc.syscall(435, (ctypes.c_uint64 * 8)(0x10000000), 64)
    return [*said, clone3 == -1 and ctypes.get_errno() == 38]
