"""A cell that never ends, deaf to interrupts.

Catalogue: 18. Stock: no (b20), the later cells of the kernel time out too.
Says: "outcome": "timeout".*"where": "cell"|"where": "cell".*"outcome": "timeout"
"""
import signal

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGXCPU, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)
while True:
    pass
