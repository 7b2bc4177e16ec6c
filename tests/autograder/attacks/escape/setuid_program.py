"""Becomes root through setuid: a copy of the shell, su, setuid itself.

Catalogue: -. Stock: where there is a hole in one.
Says: 65534
"""
import os
import shutil
import subprocess


def f(x):
    shutil.copy("/bin/sh", "/tmp/sh")
    os.chmod("/tmp/sh", 0o4755)
    uids = [subprocess.run([program, "-c", "id -u"], capture_output=True, text=True, timeout=2, stdin=subprocess.DEVNULL).stdout.strip() for program in ("/tmp/sh", "/bin/sh")]
    return uids + attempt(lambda: os.setuid(0), lambda: os.setresgid(0, 0, 0)) + [str(os.getuid())]
