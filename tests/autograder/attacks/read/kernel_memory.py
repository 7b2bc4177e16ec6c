"""Reads the machine's memory and its log.

Catalogue: 33. Stock: as root.
Says: PermissionError|FileNotFoundError
"""
import ctypes


def f(x):
    log = ctypes.create_string_buffer(4096)
    said = attempt(*(lambda path=path: open(path, "rb").read(64) for path in ("/dev/mem", "/dev/kmsg", "/proc/kcore", "/proc/kallsyms")))
    return [entry for entry in said if "00000000" not in entry] + [ctypes.CDLL(None).klogctl(3, log, 4096)]
