r"""Uses descriptors that were left open: a socket of the warm process, a job's pipe.

Catalogue: 33. Stock: yes, the kernel's sockets.
Says: "value": \[\["pipe"
"""
import os


def f(x):
    kinds = []
    for n in os.listdir("/proc/self/fd"):
        try:
            kinds.append(os.readlink(f"/proc/self/fd/{n}").split(":")[0])
        except OSError:
            continue
    return [[kind for kind in kinds if kind in ("socket", "pipe", "anon_inode")], kinds]
