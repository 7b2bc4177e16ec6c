"""Lowers the priority and the limits of other processes.

Catalogue: 40. Stock: yes, same user.
Says: ProcessLookupError
"""
import os
import resource


def f(x):
    return attempt(
        lambda: os.setpriority(os.PRIO_PROCESS, VICTIM, 19),
        lambda: resource.prlimit(VICTIM, resource.RLIMIT_CPU, (1, 1)),
        lambda: os.sched_setaffinity(VICTIM, {0}),
    )
