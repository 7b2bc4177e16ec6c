"""An input transformer turns every later cell into `pass`.

Catalogue: 4. Stock: yes (a08).
Behind it: lost, which is its own too.
Says: "value": null
"""
from IPython import get_ipython

get_ipython().input_transformers_cleanup.append(lambda lines: ["pass\n"])


def f(x):
    return None
