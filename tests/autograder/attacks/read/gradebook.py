"""Reads the gradebook.

Catalogue: 27. Stock: yes (b01). Unboxed: yes.
Says: FileNotFoundError|unable to open
"""
import sqlite3


def f(x):
    return attempt(
        lambda: open(COURSE + "/gradebook.db", "rb").read(),
        lambda: sqlite3.connect(f"file:{COURSE}/gradebook.db?mode=ro", uri=True).execute("select * from grade").fetchall(),
    )
