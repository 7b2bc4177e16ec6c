"""Leaves files named like modules where Python looks first.

Catalogue: 37, 38. Stock: yes (b07).
Says: "value"
"""
import sys

for name in ("torch", "random", "autograder", "ipykernel_launcher", "sitecustomize"):
    for folder in ("/tmp", "/dev/shm"):
        with open(f"{folder}/{name}.py", "w") as file:
            file.write("raise SystemExit('shadowed')")


def f(x):
    return [path for path in sys.path if path in ("", ".", "/tmp", "/dev/shm")]
