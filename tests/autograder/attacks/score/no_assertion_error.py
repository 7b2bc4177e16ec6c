"""Replaces builtins.AssertionError, so that no assert can be caught.

Catalogue: 14. Stock: no (a29).
Says: "value": 0
"""
import builtins

builtins.AssertionError = builtins.Exception = SystemExit


def f(x):
    return 0
