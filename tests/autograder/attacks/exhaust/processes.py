"""A fork bomb.

Catalogue: 52e. Stock: yes (#1429).
Says: BlockingIOError|"outcome": "(died|timeout)"
"""
import os
import time


def f(x):
    started = 0
    while True:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        started += 1
        if started > 1000:
            return started
