"""Connects to sockets of other processes, by path and in the abstract name space.

Catalogue: -. Stock: yes. Unboxed: yes.
Says: FileNotFoundError.*(ConnectionRefusedError|PermissionError)
"""
import socket


def connect(address):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(address)
        client.send(b"hello")
        return "connected"


def f(x):
    return attempt(lambda: connect(COURSE + "/socket"), lambda: connect("\0" + MARK))
