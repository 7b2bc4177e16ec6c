"""Leaves dead children unburied, until there is no room for more.

Catalogue: 52e. Stock: yes.
Says: BlockingIOError|"outcome": "(died|timeout)"
"""
import os


def f(x):
    for _ in range(500):
        if os.fork() == 0:
            os._exit(0)
    return 500
