"""Fills the disk.

Catalogue: 52e. Stock: yes.
Says: No space left|File too large|"outcome": "died"
"""
def f(x):
    written = 0
    for number in range(40):
        with open(f"/tmp/{number}", "wb") as file:
            for _ in range(32):
                written += file.write(bytes(1 << 20))
    return written
