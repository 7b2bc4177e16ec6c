r"""The classic way out of a container: a cgroup whose release agent runs on the host.

Catalogue: -. Stock: as root in a careless container.
Says: "value": \[-1, false
"""
import ctypes
import os


def f(x):
    mounted = ctypes.CDLL(None).mount(b"cgroup", b"/tmp", b"cgroup", ctypes.c_ulong(0), b"memory")
    return [mounted, os.path.exists("/tmp/release_agent"), os.path.exists("/sys/fs/cgroup")]
