"""Fills files that lie in memory and that no process is charged for.

Catalogue: 52e. Stock: yes.
Says: PermissionError
"""
import os


def f(x):
    return attempt(lambda: os.memfd_create("mine"))
