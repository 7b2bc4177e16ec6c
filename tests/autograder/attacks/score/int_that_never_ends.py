"""Returns an int whose conversion raises, hoping that the failure counts as no failure.

Catalogue: 1. Stock: no, the assert raises.
Says: ValueError: gotcha
"""
class Bad(int):
    def __int__(self): raise ValueError("ValueError: gotcha")
    __index__ = __int__


def f(x):
    return Bad(3)
