"""Swallows every exception that a later cell raises.

Catalogue: 15. Stock: no (a05).
Says: "value": 0
"""
from IPython import get_ipython

get_ipython().set_custom_exc((BaseException,), lambda *a, **k: None)
get_ipython().events.register("post_run_cell", lambda *a: None)


def f(x):
    return 0
