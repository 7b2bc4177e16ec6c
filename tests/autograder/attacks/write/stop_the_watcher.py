"""Stops the process that holds the clock.

Catalogue: 40. Stock: yes.
Says: "outcome": "(evidence|died)"
"""
import os
import signal


def f(x):
    return attempt(*(lambda pid=pid: os.kill(pid, signal.SIGSTOP) for pid in range(2, 100)), lambda: os.killpg(2, signal.SIGSTOP))[-1]
