"""The authenticator `passwords`: one password for each person, made by the hub, kept as a salted hash."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from jupyterhub.auth import Authenticator
from traitlets import Unicode

from autograder.atomic import write_atomically
from autograder.errors import HubError

LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that is taken for another when read aloud or off paper
SCRYPT = {"n": 2**14, "r": 8, "p": 1}  # 16 MiB and some 50 ms a try


class PasswordsAuthenticator(Authenticator):
    """Lets in whoever is allowed and gives the password that belongs to the name."""

    file = Unicode(help="The JSON file with the hashes, by user name.").tag(config=True)

    async def authenticate(self, handler, data):
        name, password = data["username"], data["password"]
        known = read(Path(self.file)).get(name)
        # A name that is not there takes as long as one that is: the time does not tell who takes the course.
        right = await asyncio.to_thread(matches, password, known or hashed("", b"nobody"))
        return name if known and right else None


def hashed(password: str, salt: bytes | None = None) -> str:
    salt = secrets.token_bytes(16) if salt is None else salt
    return f"scrypt${salt.hex()}${hashlib.scrypt(password.encode(), salt=salt, **SCRYPT).hex()}"


def matches(password: str, known: str) -> bool:
    """Whether `hashed` made this of the password.

    >>> matches("right", hashed("right")), matches("wrong", hashed("right"))
    (True, False)
    """
    return hmac.compare_digest(hashed(password, bytes.fromhex(known.split("$")[1])), known)


def read(path: Path) -> dict[str, str]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise HubError(
            f"The passwords' file {path} cannot be read ({error}). Restore it, or delete it: then everybody gets a new one."
        ) from error


def make(path: Path, names: Iterable[str], *, anew: bool = False) -> dict[str, str]:
    """Give each name that has none (`anew`: each name) a random password; only the names given keep one. The new ones."""
    known = {} if anew else {name: value for name, value in read(path).items() if name in set(names)}
    new = {name: _password() for name in names if name not in known}
    known |= {name: hashed(password) for name, password in new.items()}
    write_atomically(path, json.dumps(known, indent=1, sort_keys=True).encode() + b"\n", 0o600)
    return new


def _password() -> str:
    """Three groups of four letters: 59 bits."""
    return "-".join("".join(secrets.choice(LETTERS) for _ in range(4)) for _ in range(3))


def hand_out(path: Path, new: dict[str, str]) -> None:
    """Add new passwords to the list (CSV, readable by its owner only) from which the administrator hands them out."""
    fresh = not path.exists()
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(["username", "password"])
        writer.writerows(sorted(new.items()))
