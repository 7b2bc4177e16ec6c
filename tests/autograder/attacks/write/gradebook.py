"""Changes its own mark, and another student's.

Catalogue: 34. Stock: yes (b01). Unboxed: yes.
Says: unable to open|FileNotFoundError|Errno
"""
import sqlite3


def change():
    with sqlite3.connect(COURSE + "/gradebook.db") as book:
        book.execute("update grade set score = 100")


def f(x):
    return attempt(change)
