"""Never comes back, and catches whatever is thrown at it.

Catalogue: 18, 52a. Stock: no (a20, a21), after 30 s a cell.
Says: "outcome": "timeout"
"""
def f(x):
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue
