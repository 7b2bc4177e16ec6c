"""Reports one cell after the other as begun, so that its time never runs out.

Catalogue: 18. Stock: n/a, time-outs are per cell there (a21).
Says: "outcome": "died"
"""
import os

for n in range(3, 256):
    try:
        os.write(n, b'{"cell": 0}\n' * 3)
    except OSError:
        continue
while True:
    pass
