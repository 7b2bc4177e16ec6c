"""An NVML without a GPU: the functions of nvidia-ml-py that the course asks, by their real names and with its own errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """As nvidia-ml-py's: whatever a driver, a GPU or a container does not answer."""


def process(pid: int, used_bytes: int | None, instance: int = 0xFFFFFFFF) -> SimpleNamespace:
    """As c_nvmlProcessInfo_v3_t."""
    return SimpleNamespace(pid=pid, usedGpuMemory=used_bytes, gpuInstanceId=instance, computeInstanceId=instance)


class FakeGpu:
    """What one GPU answers; None: this is not supported here."""

    def __init__(
        self,
        uuid: str = "GPU-1",
        name: str = "NVIDIA A100-SXM4-40GB",
        compute: tuple | None = (),
        graphics: tuple | None = (),
        mps: tuple | None = (),
        used: int = 0,
        total: int = 40 << 30,
        busy: int | None = 0,
        display: int = 0,
        driver_reserve: int = 600 << 20,
    ) -> None:
        self.__dict__.update(locals())


def fake_nvml(*gpus: FakeGpu, driver: bool = True, old: bool = False) -> Any:
    """A module to put in the place of pynvml. old: a driver that does not tell its own memory from the processes'."""
    nvml = SimpleNamespace(NVMLError=NVMLError, nvmlMemory_v2=0x02000028, shutdowns=0)

    def answer(value: Any) -> Any:
        if value is None:
            raise NVMLError("Not Supported")
        return value

    def init() -> None:
        if not driver:
            raise NVMLError("Driver Not Loaded")

    def shutdown() -> None:
        nvml.shutdowns += 1

    def by_uuid(uuid: str) -> FakeGpu:
        return answer(next((gpu for gpu in gpus if gpu.uuid == uuid), None))

    def memory(handle: FakeGpu, version: int | None = None) -> SimpleNamespace:
        if version and old:
            raise NVMLError("Function Not Found")
        return SimpleNamespace(total=handle.total, used=handle.used + (0 if version else handle.driver_reserve))

    nvml.nvmlInit = init
    nvml.nvmlShutdown = shutdown
    nvml.nvmlDeviceGetCount = lambda: len(gpus)
    nvml.nvmlDeviceGetHandleByIndex = lambda index: gpus[index]
    nvml.nvmlDeviceGetHandleByUUID = by_uuid
    nvml.nvmlDeviceGetName = lambda handle: handle.name
    nvml.nvmlDeviceGetMemoryInfo = memory
    nvml.nvmlDeviceGetUtilizationRates = lambda handle: SimpleNamespace(gpu=answer(handle.busy), memory=0)
    nvml.nvmlDeviceGetComputeRunningProcesses = lambda handle: list(answer(handle.compute))
    nvml.nvmlDeviceGetGraphicsRunningProcesses = lambda handle: list(answer(handle.graphics))
    nvml.nvmlDeviceGetMPSComputeRunningProcesses = lambda handle: list(answer(handle.mps))
    nvml.nvmlDeviceGetDisplayActive = lambda handle: handle.display
    return nvml
