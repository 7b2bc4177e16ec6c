"""Keeps every core busy with more processes than there are cores.

Catalogue: 52e. Stock: yes.
Says: "outcome": "timeout"
"""
import os


def f(x):
    for _ in range(12):
        if os.fork() == 0:
            break
    while True:
        pass
