"""Precision: one value that says what is computed in, what the weights are held in, and whether the loss is scaled."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from ampkit.errors import DeviceError, PrecisionError

__all__ = ["PRECISIONS", "Precision", "default_device"]

# name -> (computed in, weights held in). "mixed": FP32 weights, autocast computes lower; "true": everything is lower.
_DTYPES = {
    "fp32": (torch.float32, torch.float32),
    "tf32": (torch.float32, torch.float32),
    "bf16-mixed": (torch.bfloat16, torch.float32),
    "fp16-mixed": (torch.float16, torch.float32),
    "bf16-true": (torch.bfloat16, torch.bfloat16),
    "fp16-true": (torch.float16, torch.float16),
}
PRECISIONS = tuple(_DTYPES)

_AMPERE = (8, 0)  # compute capability from which NVIDIA GPUs have TF32 and BF16 arithmetic


@dataclass(frozen=True)
class Precision:
    """What a training run computes in: "fp32", "tf32", "bf16-mixed", "fp16-mixed", "bf16-true" or "fp16-true".

    "mixed" and "true" are used as in Lightning Fabric: with *mixed* the weights stay FP32 and autocast computes the
    listed ops lower; with *true* weights, gradients and arithmetic are all of the lower dtype. Nothing is ever replaced
    by another precision: what a device cannot do is a DeviceError.

    Raises PrecisionError for any other name.
    """

    name: str

    def __post_init__(self):
        if self.name not in _DTYPES:
            raise PrecisionError(f"There is no precision {self.name!r}. Choose one of: {', '.join(PRECISIONS)}.")

    def __str__(self) -> str:
        return self.name

    @property
    def compute_dtype(self) -> torch.dtype:
        """The dtype that matrix products and convolutions see: torch.float32 for "tf32" too (it is FP32 storage)."""
        return _DTYPES[self.name][0]

    @property
    def param_dtype(self) -> torch.dtype:
        """The dtype of weights, their gradients and the optimizer's state."""
        return _DTYPES[self.name][1]

    @property
    def is_mixed(self) -> bool:
        """Whether weights stay in FP32 while autocast computes lower."""
        return self.compute_dtype is not self.param_dtype

    @property
    def scales_loss(self) -> bool:
        """Whether training needs a GradScaler: only FP16 gradients underflow, and only FP32 weights can be unscaled."""
        return self.name == "fp16-mixed"

    def autocast(self, device_type: str | None = None) -> torch.autocast:
        """The context for the forward pass; for the precisions that are not mixed it is autocast switched off.

        device_type is "cuda" or "cpu", by default the first of them that is there.
        Raises DeviceError where torch.autocast("cuda") would only warn and do nothing.
        """
        device_type = self.check(device_type)
        if self.is_mixed:
            return torch.autocast(device_type, dtype=self.compute_dtype)
        return torch.autocast(device_type, enabled=False)

    def scaler(
        self,
        device_type: str | None = None,
        *,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
    ) -> torch.amp.GradScaler:
        """A GradScaler that is switched on, with PyTorch's own defaults (torch/amp/grad_scaler.py).

        Raises PrecisionError for a precision whose loss is not scaled, DeviceError where the device is not there
        (torch.amp.GradScaler("cuda") would only warn there and switch itself off).
        """
        if not self.scales_loss:
            raise PrecisionError(self._why_no_scaler())
        return torch.amp.GradScaler(
            self.check(device_type),
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
        )

    def _why_no_scaler(self) -> str:
        if self.name == "fp16-true":
            return (
                "fp16-true holds the gradients in FP16, and a GradScaler refuses to unscale those "
                '("Attempting to unscale FP16 gradients."). Train in fp16-mixed, which keeps the weights in FP32.'
            )
        return (
            f"{self.name} needs no GradScaler: its exponent has as many bits as FP32's, so its gradients do not "
            f"underflow. Train without one, or choose fp16-mixed, the only precision here whose loss is scaled."
        )

    @contextmanager
    def float32_math(self, device_type: str | None = None) -> Iterator[None]:
        """What matrix products of FP32 tensors may use on CUDA: TF32 for "tf32", strict FP32 for everything else.

        Put it around the whole training, forward and backward: unlike autocast, which backward remembers op by op,
        these are flags of the process. PyTorch's own default lets cuDNN convolutions use TF32, so that "FP32" without
        this is not strict. The flags are as before on leaving; on the CPU nothing is changed.
        """
        if self.check(device_type) != "cuda":
            yield
            return
        flags = (torch.backends.cuda.matmul, torch.backends.cudnn.conv)
        before = [flag.fp32_precision for flag in flags]
        try:
            for flag in flags:
                flag.fp32_precision = "tf32" if self.name == "tf32" else "ieee"
            yield
        finally:
            for flag, value in zip(flags, before, strict=True):
                flag.fp32_precision = value

    def check(self, device: str | torch.device | None = None) -> str:
        """The device type, "cuda" or "cpu", after making sure that it can compute in this precision.

        Raises DeviceError, which names what the device (or this machine) can do instead.
        """
        try:
            chosen = torch.device(default_device() if device is None else device)
        except RuntimeError:
            raise DeviceError(f"There is no device {device!r}. This course uses 'cuda' and 'cpu'.") from None
        if chosen.type not in ("cuda", "cpu"):
            raise DeviceError(f"This course runs on 'cuda' and 'cpu', not on {chosen.type!r}. Choose --device cpu.")
        if chosen.type == "cuda" and not torch.cuda.is_available():
            raise DeviceError(
                "CUDA was asked for, and PyTorch sees no CUDA GPU here. PyTorch alone would only warn, then train in "
                f"FP32 without a scaler. Use the device 'cpu' ({_list(_possible('cpu'))} compute for real there), or a "
                "machine with an NVIDIA GPU and a CUDA build of PyTorch."
            )
        if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
            count = torch.cuda.device_count()
            raise DeviceError(f"There is no {chosen}: PyTorch sees {count} CUDA GPU(s), numbered from cuda:0.")
        possible = _possible(chosen)
        if self.name not in possible:
            raise DeviceError(f"{self._why_not(chosen)} It can compute in {_list(possible)}: choose one of those.")
        return chosen.type

    def _why_not(self, device: torch.device) -> str:
        if device.type == "cpu":
            return "TF32 is a mode of NVIDIA's tensor cores; the CPU has none."
        major, minor = torch.cuda.get_device_capability(device)
        return (
            f"{torch.cuda.get_device_name(device)} has compute capability {major}.{minor}, and {self.name} needs "
            f"{_AMPERE[0]}.{_AMPERE[1]} (Ampere) or newer."
        )


def default_device() -> str:
    """ "cuda" where PyTorch sees a GPU, else "cpu"."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def _possible(device: str | torch.device) -> tuple[str, ...]:
    device = torch.device(device)
    if device.type == "cpu":
        return tuple(name for name in PRECISIONS if name != "tf32")
    if torch.cuda.get_device_capability(device) >= _AMPERE:
        return PRECISIONS
    # is_bf16_supported() says yes to emulation too, which is what "never another precision" forbids
    return tuple(name for name in PRECISIONS if name != "tf32" and not name.startswith("bf16"))


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1]
