"""Displays something before the test fails; nbgrader's score is the first displayed result.

Catalogue: 2. Stock: yes, full marks (a03).
Says: "value": -1
"""
import sys


def f(x):
    sys.displayhook("x")
    sys.displayhook(1.0)
    return -1
