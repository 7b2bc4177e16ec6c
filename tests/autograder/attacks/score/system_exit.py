"""Raises SystemExit instead of an answer.

Catalogue: 16. Stock: no (a11).
Says: SystemExit
"""
import sys


def f(x):
    sys.exit(0)
