"""Pushes input into the grader's terminal.

Catalogue: -. Stock: yes in a kernel started from a terminal, before Linux 6.2.
Says: OSError|FileNotFoundError
"""
import fcntl


def f(x):
    return attempt(lambda: fcntl.ioctl(open("/dev/tty"), 0x5412, b"x"), lambda: fcntl.ioctl(0, 0x5412, b"x"))
