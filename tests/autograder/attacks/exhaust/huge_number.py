r"""Answers with a number of a million digits, one that is no number of JSON, and a text that nobody can write.

Catalogue: 52b. Stock: n/a.
Says: "\$other": "int of
"""
def f(x):
    return [10**1_000_000, float("inf"), "\ud800", "\x1b[2J<script>alert(1)</script>"]
