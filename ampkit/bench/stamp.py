"""What stands beside a number: the stamp (machine, software, date, commit) and the spread."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from ampkit import gpu

__all__ = ["quartiles", "stamp", "stamp_line"]


def stamp(shared: str | None = None, device: str = "cuda") -> dict[str, Any]:
    """What a number depends on besides the code: gpu, driver, torch, cuda, cpu, threads, python, date (UTC), commit, shared.

    shared: what gpu.sharing said before the measurement, so that a neighbour who has left by now is in the stamp; who is
    on `device` now is looked for here, where nobody was before. None in the stamp: nobody was seen but this process.
    gpu, driver, capability and gpu_memory_bytes are None without a CUDA GPU; commit is the one that is checked out, with
    "-dirty" where tracked files differ from it, or the installed version outside a checkout.
    """
    has_gpu = torch.cuda.is_available()
    return {
        "gpu": torch.cuda.get_device_name() if has_gpu else None,
        "driver": _driver() if has_gpu else None,
        "capability": ".".join(map(str, torch.cuda.get_device_capability())) if has_gpu else None,
        "gpu_memory_bytes": torch.cuda.get_device_properties(0).total_memory if has_gpu else None,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _commit(),
        "shared": shared or gpu.sharing(device),
    }


def stamp_line(result: dict[str, Any]) -> str:
    """The stamp in a line: what goes under every table and plot; on a shared GPU a second line says what they are worth."""
    where = (
        f"{result['gpu']}, driver {result['driver']}"
        if result["gpu"]
        else f"{result['cpu']}, {result['threads']} threads"
    )
    line = f"Measured on {where}; PyTorch {result['torch']}; {result['date']}; commit {result['commit']}."
    return f"{line}\n{gpu.not_to_be_trusted(result['shared'])}" if result.get("shared") else line


def quartiles(values: list[float]) -> list[float]:
    """The lower and the upper quartile of repeated measurements."""
    if len(values) < 2:
        return [values[0]] * 2
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return [low, high]


def _driver() -> str | None:
    # nvidia-smi comes with the driver; torch knows the runtime that it was built with and not the driver
    try:
        said = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.split("\n")[0].strip() or None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _commit() -> str | None:
    folder = Path(__file__).resolve().parents[2]
    try:
        if not (folder / ".git").exists():
            raise OSError("not a checkout")
        git = ["git", "-C", str(folder)]
        head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        dirty = subprocess.run([*git, "diff", "--quiet", "HEAD"], capture_output=True).returncode != 0
        return head.stdout.strip() + ("-dirty" if dirty else "")
    except (OSError, subprocess.SubprocessError):
        try:
            return f"amp-course {importlib.metadata.version('amp-course')}"
        except importlib.metadata.PackageNotFoundError:
            return None
