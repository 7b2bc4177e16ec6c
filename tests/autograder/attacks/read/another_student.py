"""Reads another student's submission.

Catalogue: 27. Stock: yes (a13). Unboxed: yes.
Says: FileNotFoundError
"""
def f(x):
    return attempt(lambda: open(COURSE + "/submitted/bob/n.ipynb").read())
