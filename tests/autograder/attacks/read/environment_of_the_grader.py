"""Reads the environment and the command line of every process that it can find.

Catalogue: 33. Stock: yes. Unboxed: yes.
Says: FileNotFoundError
"""
import os


def f(x):
    said = attempt(lambda: open(f"/proc/{VICTIM}/environ").read(), lambda: open(f"/proc/{VICTIM}/cmdline").read())
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != os.getpid():
            said += attempt(lambda pid=pid: open(f"/proc/{pid}/environ").read()[:2000])
    return said
