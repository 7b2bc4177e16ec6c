"""environment: what of this machine is in the way of mixed precision, and the cure; a look first, then the verdict."""

from __future__ import annotations

import math
import os
import platform
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ampkit.doctor.findings import Diagnosis, Finding

__all__ = ["Environment", "Gpu", "Machine", "environment", "look", "verdict"]

OLDEST_TORCH = (2, 11)
SMALL_SHM = 2**29  # Docker's default is 64 MiB; a DataLoader's workers hand batches over in it
DRIVER_OF_CUDA = {12: "525", 13: "580"}  # the first driver branch of each CUDA major version (CUDA release notes)
VARIABLES = (
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)


@dataclass(frozen=True)
class Gpu:
    """One CUDA GPU: name, compute capability, bytes in all, and bytes in use by everybody (None without NVML)."""

    name: str
    capability: tuple[int, int]
    total_bytes: int
    used_bytes: int | None = None


@dataclass(frozen=True)
class Machine:
    """What look() saw. Times are milliseconds of a 256 × 256 matrix product on the CPU; None: not measured."""

    torch: str
    python: str = platform.python_version()
    system: str = "Linux"
    release: str = ""
    cuda_build: str | None = None
    hip_build: str | None = None
    cuda_available: bool = False
    cuda_error: str | None = None
    driver: str | None = None
    driver_cuda: tuple[int, int] | None = None
    nvml: bool = False
    gpus: tuple[Gpu, ...] = ()
    arch_list: tuple[str, ...] = ()
    matmul_fp32: str = "none"
    conv_fp32: str = "none"
    variables: dict[str, str] = field(default_factory=dict)
    shm_bytes: int | None = None
    cpus: float = 1.0
    threads: int = 1
    fp32_ms: float | None = None
    fp16_ms: float | None = None
    bf16_ms: float | None = None

    @property
    def wsl(self) -> int | None:
        """1 or 2 inside the Windows Subsystem for Linux, else None."""
        if "microsoft" not in self.release.lower():
            return None
        return 2 if "wsl2" in self.release.lower() or "microsoft-standard" in self.release.lower() else 1


@dataclass(frozen=True)
class Environment(Diagnosis):
    """The Diagnosis of a machine: a line for each finding with its cure, and for each thing that is as it should be."""

    def text(self, width: int = 100) -> str:
        lines = []
        for finding in self.findings:
            lines += _line("fix", f"{finding.where}: {finding.what} {finding.why} Cure: {finding.cure}", width)
        for note in self.notes:
            lines += _line("ok", note, width)
        return "\n".join([*lines, *textwrap.wrap(f"{self.subject}: {self.state}.", width)])


def _line(mark: str, sentence: str, width: int) -> list[str]:
    return textwrap.wrap(
        sentence, width, initial_indent=f"{mark:<5}", subsequent_indent=" " * 5, break_on_hyphens=False
    )


def environment() -> Environment:
    """Look at this machine and say what is in the way of mixed precision; about a second, and nothing is changed.

    It works without a GPU and without nvidia-ml-py, and says what could not be seen.
    """
    return verdict(look())


def verdict(machine: Machine) -> Environment:
    """What there is to say about a machine."""
    findings: list[Finding] = []
    notes: list[str] = []
    for check in CHECKS:
        for found in check(machine):
            if isinstance(found, Finding):
                findings.append(found)
            else:
                notes.append(found)
    count = len(findings)
    state = "ready" if not count else f"{count} thing{'s' * (count > 1)} to repair"
    return Environment("this machine", state, tuple(findings), tuple(notes))


# What there is to say; each check yields findings, and sentences about what is as it should be


def _torch(machine: Machine) -> Iterator[Finding | str]:
    version = tuple(int(part) for part in re.findall(r"\d+", machine.torch)[:2])
    if version < OLDEST_TORCH:
        yield Finding(
            "old_torch",
            "PyTorch",
            f"{machine.torch} is older than {OLDEST_TORCH[0]}.{OLDEST_TORCH[1]}.",
            "What this course says of autocast, TF32 flags and the allocator is of newer versions.",
            "pip install --upgrade torch torchvision",
        )
    build = f"built for CUDA {machine.cuda_build}" if machine.cuda_build else "built for CPUs only"
    if machine.hip_build:
        build = f"built for ROCm {machine.hip_build}"
    yield f"PyTorch {machine.torch}, {build}; Python {machine.python}, {machine.system}"


def _gpu_there(machine: Machine) -> Iterator[Finding | str]:
    if machine.cuda_available:
        return
    hidden = machine.variables.get("CUDA_VISIBLE_DEVICES")
    if machine.wsl == 1:
        yield Finding(
            "wsl1",
            "WSL",
            "This is WSL 1.",
            "It has no access to the GPU.",
            "In Windows: wsl --set-version DISTRIBUTION 2",
        )
    elif machine.driver is None:
        yield "no NVIDIA driver, so no GPU: FP16 and BF16 compute for real on the CPU; TF32 needs a GPU"
    elif hidden is not None and hidden.strip() in ("", "-1"):
        yield Finding(
            "gpus_hidden",
            "CUDA",
            f"CUDA_VISIBLE_DEVICES is {hidden!r}.",
            "That hides every GPU from PyTorch.",
            "Unset it: unset CUDA_VISIBLE_DEVICES",
        )
    elif machine.cuda_build is None and machine.hip_build is None:
        yield Finding(
            "cpu_build",
            "PyTorch",
            f"There is an NVIDIA driver ({machine.driver}), and this PyTorch is built for CPUs only.",
            'torch.autocast("cuda") and GradScaler("cuda") only warn here, and do nothing.',
            "Install a CUDA build, by the command that pytorch.org/get-started gives for your driver.",
        )
    elif machine.cuda_build and machine.driver_cuda and machine.driver_cuda[0] < _major(machine.cuda_build):
        need = DRIVER_OF_CUDA.get(_major(machine.cuda_build), "a newer one")
        yield Finding(
            "old_driver",
            "driver",
            f"Driver {machine.driver} runs CUDA up to {machine.driver_cuda[0]}.{machine.driver_cuda[1]}; PyTorch is built for "
            f"CUDA {machine.cuda_build}.",
            "A driver runs every CUDA of its own major version and of older ones, and none of a newer one.",
            f"Update the driver ({need} or newer), or install a PyTorch built for CUDA {machine.driver_cuda[0]}.",
        )
    else:
        yield Finding(
            "cuda_unavailable",
            "CUDA",
            f"There is a driver ({machine.driver}), and PyTorch cannot use it: {machine.cuda_error or 'no reason given'}.",
            "In a container the GPU has to be passed in; after an update of the driver the machine has to be restarted.",
            "See whether nvidia-smi works here; in Docker start with --gpus all; else restart.",
        )


def _major(version: str) -> int:
    return int(version.split(".")[0])


def _gpus(machine: Machine) -> Iterator[Finding | str]:
    for number, gpu in enumerate(machine.gpus):
        at, capability = f"GPU {number}", f"{gpu.capability[0]}.{gpu.capability[1]}"
        memory = f"{gpu.total_bytes / 2**30:.1f} GiB"
        if machine.arch_list and not machine.hip_build and not _runs(gpu.capability, machine.arch_list):
            yield Finding(
                "arch_not_built",
                at,
                f"{gpu.name} has compute capability {capability}, and PyTorch has code for {', '.join(machine.arch_list)}.",
                'Every kernel fails with "no kernel image is available".',
                "Install a build that has it: an older CUDA's for old GPUs, the newest for new ones.",
            )
        if "GTX 16" in gpu.name:
            yield Finding(
                "gtx_16",
                at,
                f"{gpu.name}: on cards of this series FP16 convolutions have given nan.",
                "That is a fault of the hardware's library, and looks like an overflow.",
                "Compare FP16 with FP32 on one batch before training, ampkit.doctor.examine; if they differ, train in FP32.",
            )
        elif gpu.capability < (7, 0):
            yield Finding(
                "no_tensor_cores",
                at,
                f"{gpu.name} has compute capability {capability}: no Tensor Cores, no BF16, no TF32.",
                "FP16 saves memory here and no time; on 6.1 its arithmetic runs at 1/64 of FP32's.",
                "Train in FP32, or in fp16-mixed only to fit more into memory.",
            )
        elif gpu.capability < (8, 0):
            yield f"{at}: {gpu.name}, {memory}, {capability}: FP16 Tensor Cores; no BF16 and no TF32 (they begin with 8.0)"
        else:
            yield f"{at}: {gpu.name}, {memory}, {capability}: FP16, BF16 and TF32"
        if gpu.used_bytes is not None and gpu.used_bytes > gpu.total_bytes / 2:
            yield Finding(
                "gpu_in_use",
                at,
                f"{gpu.used_bytes / 2**30:.1f} of {memory} are in use.",
                "Other processes take memory, and times measured here mean little.",
                "See who it is with nvidia-smi, or choose another GPU by CUDA_VISIBLE_DEVICES.",
            )
    if machine.gpus and not machine.nvml:
        yield "nvidia-ml-py is not installed, so that driver and memory in use were not seen: pip install nvidia-ml-py"
    if machine.gpus and machine.driver:
        cuda = f", CUDA up to {machine.driver_cuda[0]}.{machine.driver_cuda[1]}" if machine.driver_cuda else ""
        yield f"driver {machine.driver}{cuda}"


def _runs(capability: tuple[int, int], arch_list: tuple[str, ...]) -> bool:
    """Code for sm_XY runs on the same major version from XY on; compute_XY is compiled on the spot for anything newer."""
    major, minor = capability
    for arch in arch_list:
        kind, _, digits = arch.partition("_")
        digits = re.sub(r"\D", "", digits)
        if not digits:
            continue
        built = int(digits[:-1]), int(digits[-1])
        if kind == "sm" and built[0] == major and built[1] <= minor:
            return True
        if kind == "compute" and built <= capability:
            return True
    return False


def _tf32(machine: Machine) -> Iterator[Finding | str]:
    forced = machine.variables.get("NVIDIA_TF32_OVERRIDE") or machine.variables.get("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")
    if forced is not None:
        name = next(
            name for name in ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE") if machine.variables.get(name)
        )
        yield Finding(
            "tf32_forced",
            "TF32",
            f"{name}={forced} overrides what a program asks for.",
            "A comparison of FP32 with TF32 then compares one of them with itself.",
            f"Unset it: unset {name}",
        )
    if machine.gpus:
        yield (
            f"FP32 math: matrix products {_math(machine.matmul_fp32)}, cuDNN convolutions {_math(machine.conv_fp32)}; "
            'strict is "ieee", and Precision("fp32").float32_math() sets it'
        )


def _math(setting: str) -> str:
    return {"ieee": "strict FP32", "tf32": "TF32", "none": "PyTorch's default"}.get(setting, setting)


def _allocator(machine: Machine) -> Iterator[Finding | str]:
    old, new = machine.variables.get("PYTORCH_CUDA_ALLOC_CONF"), machine.variables.get("PYTORCH_ALLOC_CONF")
    if old is not None and new is not None and old != new:
        yield Finding(
            "allocator_conflict",
            "allocator",
            f"PYTORCH_ALLOC_CONF={new} and PYTORCH_CUDA_ALLOC_CONF={old} disagree.",
            "The first is PyTorch's name for it now, the second the old one.",
            "Unset PYTORCH_CUDA_ALLOC_CONF.",
        )
    elif old is not None:
        yield Finding(
            "old_allocator_name",
            "allocator",
            f"PYTORCH_CUDA_ALLOC_CONF={old} is the old name.",
            "It is still read, and will go.",
            f"Set PYTORCH_ALLOC_CONF={old} instead.",
        )
    setting = new or old or ""
    if "max_split_size_mb" in setting and "expandable_segments:True" not in setting:
        yield Finding(
            "max_split_size",
            "allocator",
            f"{setting} keeps large blocks whole, which was the remedy for fragmentation once.",
            "Expandable segments grow one block instead, and waste less.",
            "Set PYTORCH_ALLOC_CONF=expandable_segments:True",
        )
    if "expandable_segments:True" in setting and machine.system == "Windows":
        yield Finding(
            "no_expandable_segments",
            "allocator",
            "expandable_segments is asked for, and Windows has none.",
            "PyTorch warns once and goes on without.",
            "Unset it, or train in WSL 2.",
        )
    for name, slow in (
        ("CUDA_LAUNCH_BLOCKING", "every kernel waits for the one before it"),
        ("PYTORCH_NO_CUDA_MEMORY_CACHING", "every tensor is a call to cudaMalloc"),
    ):
        if machine.variables.get(name, "0") not in ("", "0"):
            yield Finding(
                "debug_setting",
                name,
                f"{name}={machine.variables[name]} is for debugging.",
                f"With it {slow}, so that a GPU is slow.",
                f"Unset it: unset {name}",
            )


def _memory_and_threads(machine: Machine) -> Iterator[Finding | str]:
    if machine.wsl == 2:
        yield "WSL 2: the GPU's driver is Windows' own; install none inside, and see to it that Windows' is new enough"
    if machine.shm_bytes is not None and machine.shm_bytes < SMALL_SHM:
        yield Finding(
            "small_shm",
            "/dev/shm",
            f"It has {machine.shm_bytes / 2**20:.0f} MiB.",
            'A DataLoader with workers hands batches over in it, and dies with "bus error" when it is full.',
            "In Docker start with --shm-size=8g (or --ipc=host); else num_workers=0.",
        )
    if machine.threads > 1.5 * machine.cpus:
        yield Finding(
            "too_many_threads",
            "threads",
            f"PyTorch computes with {machine.threads} threads on {machine.cpus:g} CPUs.",
            "Threads without a CPU of their own wait for each other: slower than fewer.",
            f"OMP_NUM_THREADS={max(1, math.floor(machine.cpus))}, or torch.set_num_threads",
        )
    else:
        yield f"{machine.threads} thread{'s' * (machine.threads > 1)} on {machine.cpus:g} CPU{'s' * (machine.cpus != 1)}"


def _speed(machine: Machine) -> Iterator[Finding | str]:
    if machine.fp32_ms is None or machine.fp16_ms is None or machine.bf16_ms is None:
        return
    parts = []
    for name, milliseconds in (("FP16", machine.fp16_ms), ("BF16", machine.bf16_ms)):
        ratio = milliseconds / machine.fp32_ms
        compared = (
            f"{ratio:.0f} times slower"
            if ratio >= 1.5
            else "as fast"
            if ratio > 0.67
            else f"{1 / ratio:.1f} times faster"
        )
        parts.append(f"{name} {milliseconds:.2f} ms ({compared})")
    small = "; keep models on this CPU small" if machine.fp16_ms > 10 * machine.fp32_ms else ""
    yield f"a 256 × 256 matrix product on this CPU, best of 6: FP32 {machine.fp32_ms:.2f} ms, {', '.join(parts)}{small}"


CHECKS: tuple[Callable[[Machine], Iterator[Finding | str]], ...] = (
    _torch,
    _gpu_there,
    _gpus,
    _tf32,
    _allocator,
    _memory_and_threads,
    _speed,
)


# The look


def look(*, measure: bool = True) -> Machine:
    """This machine. measure: time small matrix products in FP32, FP16 and BF16 on the CPU, about half a second."""
    import torch

    nvml = _nvml()
    available, error = _cuda(torch)
    gpus = []
    for number in range(torch.cuda.device_count() if available else 0):
        properties = torch.cuda.get_device_properties(number)
        used = nvml["used"].get(str(getattr(properties, "uuid", "")))
        gpus.append(Gpu(properties.name, (properties.major, properties.minor), properties.total_memory, used))
    times = _times(torch) if measure else {}
    return Machine(
        torch=torch.__version__,
        system=platform.system(),
        release=platform.release(),
        cuda_build=torch.version.cuda,
        hip_build=torch.version.hip,
        cuda_available=available,
        cuda_error=error,
        driver=nvml["driver"] or _driver_of_proc(),
        driver_cuda=nvml["cuda"],
        nvml=nvml["there"],
        gpus=tuple(gpus),
        arch_list=tuple(torch.cuda.get_arch_list()) if available else (),
        matmul_fp32=torch.backends.cuda.matmul.fp32_precision,
        conv_fp32=torch.backends.cudnn.conv.fp32_precision,
        variables={name: os.environ[name] for name in VARIABLES if name in os.environ},
        shm_bytes=shutil.disk_usage("/dev/shm").total
        if sys.platform == "linux" and os.path.isdir("/dev/shm")
        else None,
        cpus=_cpus(),
        threads=torch.get_num_threads(),
        fp32_ms=times.get("float32"),
        fp16_ms=times.get("float16"),
        bf16_ms=times.get("bfloat16"),
    )


def _cuda(torch) -> tuple[bool, str | None]:
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    if available or torch.version.cuda is None:
        return available, None
    words = [str(warning.message).splitlines()[0] for warning in caught]
    return False, words[0] if words else None


def _nvml() -> dict[str, Any]:
    """Driver, the newest CUDA that it runs, and bytes in use by GPU, from nvidia-ml-py if that is installed."""
    seen: dict[str, Any] = {"there": False, "driver": None, "cuda": None, "used": {}}
    try:
        import pynvml
    except ImportError:
        return seen
    seen["there"] = True
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:  # no driver here
        return seen
    try:
        seen["driver"] = str(pynvml.nvmlSystemGetDriverVersion())
        version = pynvml.nvmlSystemGetCudaDriverVersion()  # 12040 is 12.4
        seen["cuda"] = (version // 1000, version % 1000 // 10)
        for number in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(number)
            uuid = str(pynvml.nvmlDeviceGetUUID(handle)).removeprefix("GPU-")
            seen["used"][uuid] = pynvml.nvmlDeviceGetMemoryInfo(handle).used
    except pynvml.NVMLError:  # a container may hide some of it
        pass
    finally:
        pynvml.nvmlShutdown()
    return seen


def _driver_of_proc() -> str | None:
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return None
    found = re.search(r"Kernel Module\S*\s+(?:for \S+\s+)?(\d+\.[\d.]+)", text)
    return found[1] if found else "of unknown version"


def _cpus() -> float:
    """CPUs that this process may use: its affinity, and a container's quota."""
    cpus = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return cpus
    return cpus if quota == "max" else min(cpus, int(quota) / int(period))


def _times(torch) -> dict[str, float]:
    """Milliseconds of a matrix product, by the name of the dtype; the best of some, as others use this CPU too."""
    times = {}
    for name in ("float32", "float16", "bfloat16"):
        x = torch.ones(256, 256, dtype=getattr(torch, name))
        taken = []
        for _ in range(6):
            start = time.perf_counter()
            x @ x
            taken.append(1e3 * (time.perf_counter() - start))
        times[name] = min(taken)
    return times
