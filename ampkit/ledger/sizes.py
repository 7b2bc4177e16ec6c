"""Sizes in words: what "8GiB" means, and how the ledger writes bytes."""

from __future__ import annotations

import re

from ampkit.errors import LedgerError

__all__ = ["GIB", "MIB", "in_words", "parse_size"]

MIB, GIB = 2**20, 2**30
_UNITS = {
    "b": 1,
    "kib": 2**10,
    "mib": MIB,
    "gib": GIB,
    "tib": 2**40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}


def parse_size(text: str) -> int:
    """Bytes of a size with its unit: KiB, MiB, GiB and TiB are powers of 1024, kB, MB, GB and TB of 1000.

    A card sold with "8 GB" has 8 GiB. Raises LedgerError for anything else, and for a unit that leaves that open.

    >>> parse_size("8GiB"), parse_size("8192 MiB"), parse_size("1.5GB")
    (8589934592, 8589934592, 1500000000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    if match is None:
        raise LedgerError(f"{text!r} is no size. Write a number with its unit, as in 8GiB or 8192MiB.")
    number, unit = match.groups()
    if unit.lower() not in _UNITS:
        rest = f"the unit {unit!r} is not known" if unit else "the unit is missing"
        raise LedgerError(f"{text!r} is no size: {rest}. Write GiB or MiB (powers of 1024), GB or MB (of 1000).")
    size = round(float(number) * _UNITS[unit.lower()])
    if size < 1:
        raise LedgerError(f"{text!r} is no memory at all. Write a size above zero, as in 8GiB.")
    return size


def in_words(size: int) -> str:
    """Bytes in GiB, MiB, KiB or B, with as many digits as one reads.

    >>> in_words(8 * 2**30), in_words(2720 * 2**20), in_words(1536), in_words(100)
    ('8.00 GiB', '2.66 GiB', '1.5 KiB', '100 B')
    """
    if abs(size) >= GIB:
        return f"{size / GIB:.2f} GiB"
    if abs(size) >= MIB:
        return f"{size / MIB:.1f} MiB"
    return f"{size / 1024:.1f} KiB" if abs(size) >= 1024 else f"{size} B"
