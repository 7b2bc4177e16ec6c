"""Kills every process that it may.

Catalogue: 40. Stock: yes (b03): the class run dies.
Says: ProcessLookupError
"""
import os
import signal


def f(x):
    return attempt(*(lambda pid=pid: os.kill(pid, signal.SIGKILL) for pid in (-1, GRADER, WARM, VICTIM)))
