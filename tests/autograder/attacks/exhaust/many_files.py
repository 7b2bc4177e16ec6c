"""Makes files without end: each takes a kilobyte of the kernel's memory.

Catalogue: 52e. Stock: yes.
Says: No space left
"""
def f(x):
    for number in range(10**6):
        open(f"/tmp/{number}", "w").close()
