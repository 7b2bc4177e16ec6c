"""Ports that are chosen here and listened to by a process that starts later."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from autograder.errors import HubError
from autograder.hub.config import HubConfig

LOOPBACK = "127.0.0.1"
# Those that the kernel gives to whoever does not mind which: until it is listened to, one would become a connection's.
GIVEN_AWAY = Path("/proc/sys/net/ipv4/ip_local_port_range")
FIRST, ENOUGH = 20000, 1000
PATIENCE_S = 3.0  # with what a hub that was killed had started, and which is just ending

_turn = random.SystemRandom().randrange(1 << 16)  # where this process begins: none comes twice until all have come
_lock = threading.Lock()


def free(count: int = 1) -> list[int]:
    """So many ports on loopback that nobody listens to."""
    global _turn
    candidates, found = _candidates(), []
    with _lock:
        for _ in candidates:
            _turn += 1
            port = candidates[_turn % len(candidates)]
            if _in_the_way(LOOPBACK, port) is None:
                found.append(port)
            if len(found) == count:
                return found
    raise HubError(f"All ports from {FIRST} on are in use on this machine; nothing was started.")


def _candidates() -> list[int]:
    ports = range(FIRST, 1 << 16)
    with suppress(OSError, ValueError):
        low, high = map(int, GIVEN_AWAY.read_text().split())
        others = [port for port in ports if not low <= port <= high]
        if len(others) >= ENOUGH:
            return others
    return list(ports)


def _in_the_way(address: str, port: int, seconds: float = 0.0) -> OSError | None:
    """Why one cannot listen there; None if one can, at once or within so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
                return None
            except OSError as error:
                if isinstance(error, PermissionError) or time.monotonic() >= deadline:
                    return error
        time.sleep(0.2)


def require(address: str, port: int) -> None:
    """HubError unless one can listen there."""
    error = _in_the_way(address, port, PATIENCE_S)
    if isinstance(error, PermissionError):
        raise HubError(
            f"port: {port}: only root may listen below 1024; nothing was started. Choose another, such as 8000."
        )
    if error:
        raise HubError(
            f"port: {port}: it cannot be listened to at {address} ({error.strerror}); nothing was started. Perhaps a hub is "
            f"running there already: look at {address}:{port}, or choose another port."
        )


def of(config: HubConfig) -> dict[str, int]:
    """The ports on loopback of "hub", "proxy" (its API) and "grader": chosen once, so that they outlive a restart."""
    with suppress(FileNotFoundError, ValueError):
        return json.loads(_path(config).read_text(encoding="utf-8"))
    return _keep(config, dict(zip(("hub", "proxy", "grader"), free(3), strict=True)))


def claim(config: HubConfig, say: Callable[[str], None]) -> None:
    """Of the hub's ports, choose anew those that another program has taken since."""
    chosen = of(config)
    taken = {name: port for name, port in chosen.items() if _in_the_way(LOOPBACK, port, PATIENCE_S)}
    if not taken:
        return
    _keep(config, chosen | dict(zip(taken, free(len(taken)), strict=True)))
    for name, port in taken.items():
        say(f"Port {port}, which was kept for the {name}, is another program's now: the {name} gets another one.")
    if "hub" in taken:
        say(
            "Students' servers that still run do not know it: have them stopped and started (File > Hub Control Panel)."
        )


def _keep(config: HubConfig, chosen: dict[str, int]) -> dict[str, int]:
    _path(config).write_text(json.dumps(chosen) + "\n", encoding="utf-8")
    return chosen


def _path(config: HubConfig) -> Path:
    return config.run / "ports.json"
