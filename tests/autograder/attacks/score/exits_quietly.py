"""Leaves with status 0 before it can fail.

Catalogue: 17. Stock: partly (a10): no score, to be graded by hand.
Says: "outcome": "died"
"""
import os


def f(x):
    os._exit(0)
