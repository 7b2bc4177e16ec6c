r"""Goes through another process's root and working folder.

Catalogue: 33. Stock: yes.
Says: "value": \[
"""
import os


def f(x):
    return [
        entry
        for pid in os.listdir("/proc")
        if pid.isdigit() and int(pid) != os.getpid()
        for entry in attempt(lambda pid=pid: os.listdir(os.path.join("/proc", str(pid), "root", "home")), lambda pid=pid: os.listdir(f"/proc/{pid}/cwd"))
    ]
