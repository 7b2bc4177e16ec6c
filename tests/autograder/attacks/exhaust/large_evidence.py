"""Answers honestly, with far more than anybody asked for.

Catalogue: 52b. Stock: yes.
Says: "outcome": "(evidence|raises|timeout|died)"
"""
def f(x):
    return [["x" * 2000] * 20_000] * 20_000 if x else None
