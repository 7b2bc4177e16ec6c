"""Reads tokens from its environment.

Catalogue: 31. Stock: yes (b10).
Says: "PATH"
"""
import os


def f(x):
    return sorted(os.environ) + [value for name, value in os.environ.items() if "TOKEN" in name or "KEY" in name]
