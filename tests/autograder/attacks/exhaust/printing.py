"""Prints without end.

Catalogue: 52d. Stock: partly (b12): 268 MB in the grader.
Says: "outcome": "timeout"
"""
import os


def f(x):
    while True:
        print("x" * 10_000)
        os.write(1, b"x" * 100_000)
        os.write(2, b"x" * 100_000)
