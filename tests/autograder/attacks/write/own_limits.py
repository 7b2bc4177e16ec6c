r"""Raises its own limits and asks to be spared when memory runs out.

Catalogue: 52e. Stock: there are none.
Says: "value": \["(ValueError|PermissionError).*PermissionError
"""
import os
import resource


def f(x):
    return attempt(
        *(lambda name=name: resource.setrlimit(name, (resource.RLIM_INFINITY,) * 2) for name in (resource.RLIMIT_AS, resource.RLIMIT_NPROC)),
        lambda: open("/proc/self/oom_score_adj", "w").write("-1000"),
        lambda: os.nice(-10),
    )
