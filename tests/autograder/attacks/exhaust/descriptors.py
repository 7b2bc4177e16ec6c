"""Opens sockets without end: their buffers are the kernel's memory.

Catalogue: 52e. Stock: up to the user's limit.
Says: Too many open files|unable to resolve|"outcome": "died"
"""
import socket


def f(x):
    kept = []
    while True:
        kept.append(socket.socketpair())
