"""Leaves a daemon behind: forks twice, a session of its own, deaf to signals.

Catalogue: 52g. Stock: yes (b09).
Says: "value": 1
"""
import os
import signal
import subprocess


def f(x):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 32):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    continue
            subprocess.run(["sleep", SLEEP])
        os._exit(0)
    return 1
