"""Fills /dev/shm and /dev.

Catalogue: 52e. Stock: yes, half of the memory.
Says: No space left
"""
def f(x):
    for number in range(40):
        with open(f"/dev/shm/{number}", "wb") as file:
            for _ in range(32):
                file.write(bytes(1 << 20))
