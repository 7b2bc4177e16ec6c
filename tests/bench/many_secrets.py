"""Prove assignments on many new secrets: a mistake that earns full marks for one secret in a hundred is a defect of its check.

    python tests/bench/many_secrets.py [ASSIGNMENT …] [--secrets 20]

Prints each failure with its secret, and how often each came; ends with status 1 if there was one.
"""

import argparse
import collections
import secrets

from autograder.reference import compute
from autograder.release import prove
from autograder.room import ROOMS, find_room


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("assignment", nargs="*", default=sorted(path.name for path in ROOMS.iterdir() if path.is_dir()))
    parser.add_argument("--secrets", type=int, default=20)
    options = parser.parse_args()
    failures: collections.Counter[str] = collections.Counter()
    for number in range(1, options.secrets + 1):
        for assignment in options.assignment:
            secret = secrets.token_bytes(16)
            for proof in prove(compute(find_room(assignment), secret)):
                if proof.failure:
                    failures[f"{assignment}: {proof.exercise}/{proof.name}"] += 1
                    print(f"{assignment}, secret {secret.hex()}: {proof.failure}", flush=True)
        print(f"{number} of {options.secrets}: {sum(failures.values())} failures", flush=True)
    for place, count in failures.most_common():
        print(f"{count} of {options.secrets}: {place}")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
