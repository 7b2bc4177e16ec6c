"""Asks the cloud's metadata service for credentials, and a name server for an address.

Catalogue: 32. Stock: yes where there is one.
Says: OSError
"""
import socket


def f(x):
    return attempt(
        lambda: socket.create_connection(("169.254.169.254", 80), 1),
        lambda: socket.create_connection(("fd00:ec2::254", 80), 1),
        lambda: socket.getaddrinfo("example.org", 80),
    )
