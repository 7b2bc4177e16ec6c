"""Sends what it knows to a server on the grader's own machine.

Catalogue: 32. Stock: yes. Unboxed: yes.
Says: ConnectionRefusedError|OSError
"""
import socket


def f(x):
    return attempt(lambda: socket.create_connection(("127.0.0.1", PORT), 1).send(b"hello"))
