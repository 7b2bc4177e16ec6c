"""Reads the machine's users and passwords.

Catalogue: 27. Stock: partly, what its user may read.
Says: FileNotFoundError
"""
def f(x):
    return attempt(*(lambda path=path: open(path).read() for path in ("/etc/passwd", "/etc/shadow", "/etc/gshadow")))
