"""Leaves a process behind that changes the gradebook when grading is over.

Catalogue: 35. Stock: yes (b02). Unboxed: yes.
Says: "value": 1
"""
import subprocess
import sys

LATER = f"import time, pathlib; time.sleep(0.4); pathlib.Path({COURSE!r}, 'pwned').write_text({MARK!r})"


def f(x):
    subprocess.Popen([sys.executable, "-c", LATER], start_new_session=True)
    return 1
