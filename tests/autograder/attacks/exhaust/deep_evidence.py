"""Answers with lists in lists in lists.

Catalogue: 52b. Stock: n/a.
Says: too deeply nested
"""
def f(x):
    kept = []
    for _ in range(100_000):
        kept = [kept]
    return kept
