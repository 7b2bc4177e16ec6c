"""Files that a command is asked to write: refused before the work if they cannot be, and never left half written."""

import json
import os
from pathlib import Path
from typing import Any

from ampkit.errors import OutputError

__all__ = ["writable", "write", "write_json"]


def writable(options: dict[str, Path | None]) -> None:
    """Raise OutputError unless each file can be written; options: {"--json": path or None}. Call it before the work."""
    for option, path in options.items():
        if path is None:
            continue
        folder = path.absolute().parent
        if not folder.is_dir():
            raise OutputError(f"{option} {path}: there is no folder {folder} to write it to. Make it first.")
        if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
            raise OutputError(
                f"{option} {path} cannot be written: it is a folder, or it is not yours. Name another file."
            )


def write(data: bytes, path: Path) -> None:
    """Write data beside path and move it there, so that a run that is stopped leaves no half of a file. Raises OutputError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise OutputError(f"{path} cannot be written: {error.strerror}. Name another file.") from error


def write_json(content: dict[str, Any], path: Path) -> None:
    """Write content, which must be strict JSON (no inf, no nan), to path. Raises OutputError."""
    write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode(), path)
