"""LiveBytes: which storages of the device are alive while fake tensors are computed with, how large, and what they hold."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

__all__ = ["BLOCK", "ROLES", "LiveBytes", "Snapshot", "block_bytes"]

ROLES = (
    "weights",
    "master weights",
    "gradients",
    "optimizer state",
    "cast copies",
    "saved activations",
    "inputs",
    "temporaries",
)

# c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize, kSmallSize, kMinLargeAlloc, kSmallBuffer, kLargeBuffer, kRoundLarge
BLOCK = 512
_SMALL, _LARGE = 2**20, 10 * 2**20
_SMALL_SEGMENT, _MIDDLE_SEGMENT, _ROUND = 2 * 2**20, 20 * 2**20, 2 * 2**20


def block_bytes(size: int) -> int:
    """What the CUDA allocator takes for a tensor of size bytes: the next multiple of 512.

    >>> block_bytes(0), block_bytes(4), block_bytes(512), block_bytes(513)
    (0, 512, 512, 1024)
    """
    return -(-size // BLOCK) * BLOCK


@dataclass(frozen=True)
class Snapshot:
    """What was alive at one moment; two of them add up.

    bytes   (role, dtype) -> bytes of the tensors, without rounding
    small   bytes of the allocator's blocks up to 1 MiB, each a multiple of 512; they share segments of 2 MiB
    middle  bytes of its blocks below 10 MiB, which share segments of 20 MiB
    large   bytes of its blocks from 10 MiB on, and large_segments the same rounded to 2 MiB, a segment each
    """

    bytes: dict[tuple[str, torch.dtype], int] = field(default_factory=dict)
    small: int = 0
    middle: int = 0
    large: int = 0
    large_segments: int = 0

    def of(self, role: str) -> int:
        """Bytes of one role, over all dtypes."""
        return sum(size for (name, _), size in self.bytes.items() if name == role)

    @property
    def total(self) -> int:
        """Bytes of all tensors, without rounding."""
        return sum(self.bytes.values())

    @property
    def blocks(self) -> int:
        """Bytes of the allocator's blocks: what torch.cuda.memory_allocated() counts."""
        return self.small + self.middle + self.large

    @property
    def segments(self) -> int:
        """The least that the allocator has taken from the driver for these blocks; what was freed comes on top.

        >>> Snapshot(small=512, middle=2**20 + 512).segments == (2 + 20) * 2**20
        True
        """
        small = -(-self.small // _SMALL_SEGMENT) * _SMALL_SEGMENT
        return small + -(-self.middle // _MIDDLE_SEGMENT) * _MIDDLE_SEGMENT + self.large_segments

    def __add__(self, other: Snapshot) -> Snapshot:
        return Snapshot(
            dict(Counter(self.bytes) + Counter(other.bytes)),
            self.small + other.small,
            self.middle + other.middle,
            self.large + other.large,
            self.large_segments + other.large_segments,
        )


@dataclass
class _Storage:
    size: int
    role: str
    dtype: torch.dtype
    alive: weakref.ref


class LiveBytes(TorchDispatchMode):
    """A dispatch mode that knows, after each op, the bytes alive on the device, and keeps the moment with the most.

    A storage counts from the op that makes it until Python and autograd let go of it, so views and saved tensors that
    share one count once. A new storage is a "temporary", unless it is the low-precision copy of a weight (an
    aten._to_copy of it), which is a "cast copy"; `call` says what else a storage is. Put it inside a FakeTensorMode;
    device_type is the device whose memory is counted.
    """

    def __init__(self, device_type: str = "cuda") -> None:
        super().__init__()
        self.device_type = device_type
        self.peak = Snapshot()
        self._storages: dict[int, _Storage] = {}
        self._bytes: Counter[tuple[str, torch.dtype]] = Counter()
        self._blocks: Counter[str] = Counter()

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        role = "temporaries"
        if op is torch.ops.aten._to_copy.default and self.role(args[0]) in ("weights", "cast copies"):
            role = "cast copies"
        self._add(tree_leaves(result), role)
        return result

    def call(self, role: str, tensors: Iterable[Tensor], only_from: str | None = None) -> None:
        """Count the storages of the tensors as this role from now on; with only_from, those that have that role now."""
        for tensor in tensors:
            if tensor.device.type != self.device_type:
                continue
            storage = self._storages.get(tensor.untyped_storage()._cdata)
            if storage is None:
                self._add([tensor], role)
            elif only_from in (None, storage.role):
                self._bytes[storage.role, storage.dtype] -= storage.size
                self._bytes[role, storage.dtype] += storage.size
                storage.role = role

    def role(self, tensor: Tensor) -> str | None:
        """What the tensor's storage counts as; None if it is not on the device."""
        storage = self._storages.get(tensor.untyped_storage()._cdata)
        return None if storage is None else storage.role

    def now(self) -> Snapshot:
        """What is alive now."""
        return Snapshot({key: size for key, size in self._bytes.items() if size}, **self._blocks)

    def only(self, role: str) -> Snapshot:
        """What is alive now of one role."""
        storages = [storage for storage in self._storages.values() if storage.role == role]
        sizes: Counter[tuple[str, torch.dtype]] = Counter()
        blocks: Counter[str] = Counter()
        for storage in storages:
            sizes[role, storage.dtype] += storage.size
            blocks.update(_blocks(storage.size))
        return Snapshot(dict(sizes), **blocks)

    def start_phase(self) -> None:
        """Forget the peak: from here on it is that of what comes."""
        self.peak = self.now()

    def _add(self, leaves: Iterable[Any], role: str) -> None:
        new = False
        for leaf in leaves:
            if not isinstance(leaf, Tensor) or leaf.device.type != self.device_type:
                continue
            storage = leaf.untyped_storage()
            key = storage._cdata
            if key in self._storages:
                continue
            size = storage.nbytes()
            self._storages[key] = _Storage(size, role, leaf.dtype, weakref.ref(storage, self._forgetting(key)))
            self._count(self._storages[key], +1)
            new = True
        if new and sum(self._blocks[size] for size in _POOLS) > self.peak.blocks:
            self.peak = self.now()

    def _forgetting(self, key: int) -> Any:
        def forget(_: Any) -> None:
            self._count(self._storages.pop(key), -1)

        return forget

    def _count(self, storage: _Storage, sign: int) -> None:
        self._bytes[storage.role, storage.dtype] += sign * storage.size
        for pool, size in _blocks(storage.size).items():
            self._blocks[pool] += sign * size


_POOLS = ("small", "middle", "large")


def _blocks(size: int) -> dict[str, int]:
    block = block_bytes(size)
    if block <= _SMALL:
        return {"small": block}
    if block < _LARGE:
        return {"middle": block}
    return {"large": block, "large_segments": -(-block // _ROUND) * _ROUND}
