"""Plants a module into Python itself, and a .pth that runs for everybody.

Catalogue: 36. Stock: yes.
Says: Read-only|Permission
"""
import os
import site
import sys

import torch


def f(x):
    places = [*site.getsitepackages(), os.path.dirname(torch.__file__), sys.prefix, os.path.dirname(os.__file__), "/course/autograder"]
    return attempt(*(lambda place=place: open(place + "/zz_pwned.pth", "w") for place in places))
