"""Makes a device node for the machine's disk.

Catalogue: -. Stock: as root.
Says: PermissionError
"""
import os
import stat


def f(x):
    return attempt(lambda: os.mknod("/tmp/disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0)), lambda: os.open("/dev/vda", os.O_RDWR))
