"""Displays HTML three thousand times.

Catalogue: 52c. Stock: yes (b13).
Says: "value": 0
"""
from IPython.display import HTML, display


def f(x):
    for _ in range(3000):
        display(HTML("<script>alert(1)</script>" * 50))
    return 0
