r"""Tries to write into every folder that there is.

Catalogue: 34, 36. Stock: yes, what its user may write.
Says: "value": \["/dev/shm", "/tmp"(, "/tmp/[^"]*")*\]
"""
import os


def f(x):
    found = []
    for folder, folders, _ in os.walk("/"):
        folders[:] = [name for name in folders if name not in ("proc", "site-packages") and folder.count("/") < 4]
        try:
            open(folder + "/zz_pwned", "w").close()
            found.append(folder)
        except OSError:
            continue
    return sorted(found)
