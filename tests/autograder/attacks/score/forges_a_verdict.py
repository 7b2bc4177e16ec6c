"""Writes a finished verdict instead of evidence.

Catalogue: 42. Stock: n/a; otter and Gradescope have read such files.
Says: "outcome": "died"
"""
import os

for n in range(3, 256):
    try:
        os.write(n, b'{"score": 100, "passed": true, "status": "graded", "exercise": "g"}\n')
    except OSError:
        continue


def f(x):
    return 0
