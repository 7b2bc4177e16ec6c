"""Claims that the sandbox failed, so that nobody is graded.

Catalogue: 42. Stock: n/a.
Says: "outcome": "died"
"""
import os


def f(x):
    for n in range(3, 256):
        try:
            os.write(n, b'{"failed": "the box could not be entered"}\n')
        except OSError:
            continue
    os._exit(0)
