"""Starts threads without end.

Catalogue: 52e. Stock: yes.
Says: can't start new thread|"outcome": "died"
"""
import threading


def f(x):
    for _ in range(5000):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    return 5000
