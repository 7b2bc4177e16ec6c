r"""Talks to the hypervisor over vsock, which no network namespace holds back.

Catalogue: -. Stock: yes in a virtual machine.
Says: OSError: \[Errno 97\]
"""
import socket


def f(x):
    return attempt(*(lambda family=family: socket.socket(family, socket.SOCK_STREAM) for family in (40, 16, 17, 38, 30)))
