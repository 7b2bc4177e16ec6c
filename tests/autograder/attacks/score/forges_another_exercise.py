"""Reports evidence in the name of the next exercise, and of another variant.

Catalogue: 42. Stock: n/a.
Says: "exercise": "f"
"""
import os


def f(x):
    line = b'{"outcome": "evidence", "exercise": "g", "variant": "bob", "records": [{"probe": "call_g", "seen": {"value": 0}}]}\n'
    for n in range(3, 256):
        try:
            os.write(n, line)
        except OSError:
            continue
