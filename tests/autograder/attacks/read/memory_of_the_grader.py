"""Opens the memory of its parent, of the grader and of the warm process.

Catalogue: 33. Stock: yes, same user.
Says: FileNotFoundError
"""
import os


def f(x):
    return attempt(*(lambda pid=pid: os.open(f"/proc/{pid}/mem", os.O_RDWR) for pid in (os.getppid(), GRADER, WARM, VICTIM)))
