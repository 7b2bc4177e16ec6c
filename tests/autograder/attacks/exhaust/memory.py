"""Allocates memory without end.

Catalogue: 52e. Stock: yes (#1429): the grader is killed.
Says: MemoryError|"why": "memory"
"""
def f(x):
    kept = []
    while True:
        kept.append(bytearray(64 << 20))
