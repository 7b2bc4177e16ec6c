"""Who else is on this GPU, so that a time is not trusted that others had a part in; and letting go of it at the end."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Process", "Seen", "devices", "look", "not_to_be_trusted", "release_gpu", "sharing"]

SAID = "AMPKIT_GPU_SHARED"  # what the hub's administrator knows and no program can see: "time-slicing, 4 to a GPU"
# What a process takes that its allocator does not count (CUDA context, kernels, libraries), and what the driver keeps for
# itself. Generous bounds and not measurements: below them a neighbour that NVML does not list is not told from ourselves.
CONTEXT = 2**30
DRIVER = 2**30
SLACK = 2**27
NO_INSTANCE = 0xFFFFFFFF  # NVML's instance of a process on a GPU that is not in slices


@dataclass(frozen=True)
class Process:
    """A process that NVML lists on a GPU. kind: compute, graphics or MPS; used_bytes: None where NVML does not say."""

    pid: int
    used_bytes: int | None
    kind: str = "compute"
    instance: int | None = None


@dataclass(frozen=True)
class Seen:
    """What can be seen of one GPU, and of our own part in it.

    used_bytes is everybody's, reserved_bytes our allocator's; driver_in_used: whether the driver's own memory is in
    used_bytes. busy_percent: of the last second or less. started: whether we ever put a tensor on it; initialized:
    whether we may have a context on it; own: our process and its descendants among `processes`.
    """

    name: str
    nvml: bool = False
    processes: tuple[Process, ...] = ()
    total_bytes: int | None = None
    used_bytes: int | None = None
    driver_in_used: bool = True
    busy_percent: int | None = None
    display: bool = False
    reserved_bytes: int = 0
    started: bool = False
    initialized: bool = False
    own: frozenset[int] = frozenset()
    said: str = ""
    mps_share: str = ""

    @property
    def mig(self) -> str | None:
        """The profile of the MIG slice that this is, such as 1g.10gb, or None: CUDA has it in the device's name."""
        found = re.search(r"\bMIG (\d\S*)", self.name)
        return found[1] if found else None


def sharing(device: str = "cuda") -> str | None:
    """Why what is measured on this device is others' doing too, in a sentence; None on a CPU, and where nobody is seen.

    Asked are the administrator (the variable AMPKIT_GPU_SHARED), NVML for processes, MPS, memory and utilisation, and
    CUDA for the memory in use where NVML is not installed. Time-slicing itself cannot be seen, and neither can, from
    inside a container, a neighbour who holds less memory than a CUDA context may take: None is no proof.
    """
    import torch

    if torch.device(device).type != "cuda" or not torch.cuda.is_available():
        return None
    return reason(look(device))


def not_to_be_trusted(why: str) -> str:
    """What stands beside a number that was measured on a shared GPU."""
    return f"Measured on a shared GPU: not to be trusted. {why}"


def reason(seen: Seen) -> str | None:
    """The verdict on what was seen: all reasons to call the GPU shared, or None."""
    at = f"this MIG slice ({seen.mig})" if seen.mig else "this GPU"
    whys = []
    if seen.said:
        whys.append(f"It is shared by configuration: {seen.said} ({SAID}).")
    others = _others(seen)
    if others:
        listed = "; ".join(_process(each) for each in others[:4]) + ("; …" if len(others) > 4 else "")
        many = f"{len(others)} other processes compute"
        if seen.started and not seen.own:  # one of them is we, under a number that is not ours in this container
            whys.append(f"{len(others)} processes compute on {at}, and one of them at most is ours: {listed}.")
        else:
            whys.append(f"{'Another process computes' if len(others) == 1 else many} on {at}: {listed}.")
    if seen.mps_share or any(each.kind == "MPS" for each in seen.processes):
        part = (
            f", which leaves this process {seen.mps_share}" if seen.mps_share else ", which others may join any moment"
        )
        whys.append(f"It runs under MPS{part}.")
    beyond = _beyond_ours(seen)
    if not others and beyond is not None:
        whys.append(f"Others hold some {beyond / 2**20:,.0f} MiB of {at}, and are not listed (as in a container).")
    if not others and not seen.started and seen.busy_percent:
        whys.append(f"It was {seen.busy_percent} % busy before this process put anything on it.")
    return " ".join(whys) or None


def _process(process: Process) -> str:
    used = "" if process.used_bytes is None else f", {process.used_bytes / 2**20:,.0f} MiB"
    return f"pid {process.pid}{used}"


def _others(seen: Seen) -> list[Process]:
    """Those of other people, or other notebooks of ours."""
    computing = [each for each in seen.processes if each.kind != "graphics"]
    instances = {each.instance for each in computing if each.pid in seen.own}
    others = [each for each in computing if each.pid not in seen.own]
    if instances:
        return [each for each in others if each.instance in instances]  # a neighbour's slice is not ours
    if seen.initialized and len(others) == 1 and (seen.started or (others[0].used_bytes or 0) <= CONTEXT):
        return []  # a container's process ids are not NVML's: the only one on the GPU is ourselves
    return others


def _beyond_ours(seen: Seen) -> int | None:
    """Bytes in use that are nobody's that we know of; None if that may be the context's, the driver's or the display's."""
    if seen.used_bytes is None or seen.display:
        return None
    known = [each.used_bytes for each in seen.processes if each.pid in seen.own and each.kind != "graphics"]
    if known and None not in known:
        ours, allowance = sum(filter(None, known)), SLACK
    else:
        ours, allowance = seen.reserved_bytes, SLACK + (CONTEXT if seen.initialized else 0)
    allowance += DRIVER if seen.driver_in_used else 0
    beyond = seen.used_bytes - ours - sum(each.used_bytes or 0 for each in seen.processes if each.kind == "graphics")
    return beyond if beyond > allowance else None


# The look


def look(device: str = "cuda") -> Seen:
    """This GPU now. NVML is asked where nvidia-ml-py is installed; without it there is only the memory in use."""
    import torch

    initialized = torch.cuda.is_initialized()
    with _nvml() as nvml:
        properties = torch.cuda.get_device_properties(torch.device(device))
        number = torch.device(device).index
        stats = torch.cuda.memory_stats(device) if initialized else {}
        ours = {
            "reserved_bytes": stats.get("reserved_bytes.all.current", 0),
            "started": stats.get("allocated_bytes.all.allocated", 0) > 0,
            "initialized": initialized,
            "said": os.environ.get(SAID, "").strip(),
            "mps_share": _mps_share(),
        }
        handle = _handle(nvml, properties) if nvml else None
        if handle is not None:
            seen = _of_handle(nvml, handle, properties.name)
            own = frozenset(each.pid for each in seen.processes if _ours(each.pid))
            return Seen(**{**vars(seen), **ours, "own": own})
    # this makes a context, so it comes last, and what it sees has ours in it
    free, total = torch.cuda.mem_get_info(number)
    return Seen(properties.name, total_bytes=total, used_bytes=total - free, **{**ours, "initialized": True})


def devices() -> list[Seen] | None:
    """Every GPU of this machine with its processes, as NVML sees it; None without nvidia-ml-py or without a driver.

    On a GPU in MIG slices the processes of all slices are listed, where NVML lets this user see them.
    """
    with _nvml() as nvml:
        if nvml is None:
            return None
        count = _ask(nvml, "nvmlDeviceGetCount") or 0
        handles = [_ask(nvml, "nvmlDeviceGetHandleByIndex", number) for number in range(count)]
        named = [(handle, _ask(nvml, "nvmlDeviceGetName", handle)) for handle in handles if handle is not None]
        return [_of_handle(nvml, handle, str(name or "GPU")) for handle, name in named]


@contextmanager
def _nvml() -> Iterator[Any]:
    """NVML for a while, or None."""
    try:
        import pynvml
    except ImportError:
        yield None
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:  # no driver here
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def _ask(nvml: Any, function: str, *arguments: Any, **named: Any) -> Any:
    """The answer, or None where this driver, this GPU or this container does not give it."""
    try:
        return getattr(nvml, function)(*arguments, **named)
    except (nvml.NVMLError, AttributeError):  # an older nvidia-ml-py lacks the function itself
        return None


def _handle(nvml: Any, properties: Any) -> Any:
    """NVML's handle of a device of CUDA's: by its id, as CUDA_VISIBLE_DEVICES renumbers one and not the other."""
    uuid = str(getattr(properties, "uuid", ""))
    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.startswith("MIG-")]
    slices = [*named, f"MIG-{uuid}"] if "MIG " in properties.name else []
    for name in [*slices, *([] if slices else [f"GPU-{uuid}"])]:
        handle = _ask(nvml, "nvmlDeviceGetHandleByUUID", name)
        if handle is not None:
            return handle
    return None  # of a slice that NVML does not find, the whole GPU would say what others' slices hold


def _of_handle(nvml: Any, handle: Any, name: str) -> Seen:
    memory = _ask(nvml, "nvmlDeviceGetMemoryInfo", handle, version=getattr(nvml, "nvmlMemory_v2", None))
    without_driver = memory is not None and getattr(nvml, "nvmlMemory_v2", None) is not None
    if memory is None:
        memory = _ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    rates = _ask(nvml, "nvmlDeviceGetUtilizationRates", handle)
    found: dict[int, Process] = {}
    for kind, function in (
        ("graphics", "nvmlDeviceGetGraphicsRunningProcesses"),
        ("compute", "nvmlDeviceGetComputeRunningProcesses"),
        ("MPS", "nvmlDeviceGetMPSComputeRunningProcesses"),
    ):
        for each in _ask(nvml, function, handle) or []:
            instance = getattr(each, "gpuInstanceId", NO_INSTANCE)
            found[each.pid] = Process(each.pid, each.usedGpuMemory, kind, None if instance == NO_INSTANCE else instance)
    return Seen(
        name,
        nvml=True,
        processes=tuple(found.values()),
        total_bytes=None if memory is None else memory.total,
        used_bytes=None if memory is None else memory.used,
        driver_in_used=not without_driver,
        busy_percent=None if rates is None else rates.gpu,
        display=bool(_ask(nvml, "nvmlDeviceGetDisplayActive", handle)),
    )


def _mps_share() -> str:
    """What MPS leaves to this process, if its limits are set."""
    percent = os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "")
    memory = os.environ.get("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "")
    parts = [f"{percent} % of the multiprocessors"] * bool(percent) + [f"memory of {memory}"] * bool(memory)
    return " and ".join(parts)


def _ours(pid: int) -> bool:
    """Whether a process is this one or came from it, as a DataLoader's workers do."""
    for _ in range(32):
        if pid == os.getpid():
            return True
        try:
            # the name, in parentheses, may have spaces and parentheses of its own
            pid = int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
        if pid <= 1:
            return False
    return False


# Letting go


def release_gpu(names: dict[str, Any] | None = None) -> str:
    """Let go of every tensor and model of a notebook, give the memory back to the GPU, and say in one line what that freed.

    names: the variables to go through, by default the notebook's; in a script pass globals(). Removed are those that are
    or hold tensors, modules or optimizers (in lists, dicts, objects and running generators too), what the notebook keeps
    of its outputs (Out), and the traceback of the last error, which holds the tensors of its frames. The CUDA context
    stays until the kernel is shut down: no call of PyTorch frees it.
    """
    import torch

    on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
    before = (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) if on_gpu else (0, 0)
    names = _notebook() if names is None else names
    holding = [name for name, value in names.items() if not name.startswith("__") and _holds(value, {id(names)}, 5)]
    for name in holding:
        del names[name]
    for name in ("last_traceback", "last_value", "last_exc"):
        if hasattr(sys, name):
            setattr(sys, name, None)
    gc.collect()
    let_go = f"let go of {len(holding)} variable{'s' * (len(holding) != 1)} with tensors or models"
    if not torch.cuda.is_available():
        return f"No GPU here, so none to free; {let_go}."
    if not on_gpu:
        return f"This process never used the GPU, so there is nothing to free on it; {let_go}."
    torch.cuda.empty_cache()
    left, kept = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    rest = f"{left / 2**20:,.0f} MiB of tensors are still held by something else; " if left else ""
    return (
        f"GPU: gave {(before[1] - kept) / 2**20:,.0f} MiB back, {(before[0] - left) / 2**20:,.0f} of them tensors, and "
        f"{let_go}; {rest}the CUDA context goes with the kernel (Kernel, Shut Down)."
    )


def _notebook() -> dict[str, Any]:
    """The variables of the notebook that we are in, without what it keeps of its outputs; none outside of one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return {}
    if getattr(shell.displayhook, "do_full_cache", False):
        shell.displayhook.flush()
    shell.push({"_": "", "__": "", "___": ""}, interactive=False)  # the last outputs, in IPython's second list too
    # An error keeps the frames that it came from, and they their tensors.
    for holder, attributes in (
        (shell.InteractiveTB, ("tb", "evalue")),
        (shell.last_execution_result, ("result", "error_before_exec", "error_in_exec")),
    ):
        for name in attributes:
            if hasattr(holder, name):
                setattr(holder, name, None)
    return shell.user_ns


def _holds(value: Any, seen: set[int], deeper: int) -> bool:
    """Whether a variable is, or holds at most `deeper` steps away, a tensor, a module or an optimizer."""
    import types

    import torch

    if isinstance(value, torch.Tensor | torch.nn.Module | torch.optim.Optimizer | torch.amp.GradScaler):
        return True
    if id(value) in seen or not deeper or isinstance(value, type | types.ModuleType | types.FunctionType):
        return False
    seen.add(id(value))
    if isinstance(value, dict):
        inside = list(value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        inside = list(value)
    elif isinstance(value, types.GeneratorType):
        inside = list(value.gi_frame.f_locals.values()) if value.gi_frame else []
    else:
        inside = list(getattr(value, "__dict__", {}).values())
    return any(_holds(each, seen, deeper - 1) for each in inside)
