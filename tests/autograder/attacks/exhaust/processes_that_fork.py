"""A fork bomb of the other kind: every process forks, and the shell does it.

Catalogue: 52e. Stock: yes.
Says: "outcome": "(evidence|died|timeout)"
"""
import subprocess


def f(x):
    subprocess.run(["sh", "-c", "b() { b | b & }; b; sleep 30"], capture_output=True)
    return 0
