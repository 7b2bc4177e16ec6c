"""Waits for ever without using a CPU, so that no limit on CPU time catches it.

Catalogue: 52a. Stock: no.
Says: "outcome": "timeout"
"""
import threading


def f(x):
    threading.Event().wait()
