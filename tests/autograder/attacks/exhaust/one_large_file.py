"""Writes one large sparse file.

Catalogue: 52e. Stock: yes.
Says: File too large|"outcome": "died"
"""
def f(x):
    with open("/tmp/big", "wb") as file:
        file.truncate(1 << 40)
