"""Recurses until the stack ends, in Python and in C.

Catalogue: 52a. Stock: no, the kernel dies.
Says: RecursionError|"outcome": "(died|timeout)"
"""
import sys


def f(x):
    sys.setrecursionlimit(10**9)
    return f(x)
