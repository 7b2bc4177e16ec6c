"""Data sets that are on every machine already, and batches of them whose order the seed decides and a checkpoint keeps."""

import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ampkit import models
from ampkit.errors import DataError

__all__ = [
    "DATA",
    "Batches",
    "Dataset",
    "Digits",
    "batches",
    "cifar10",
    "described",
    "digits",
    "fits",
    "load",
    "synthetic",
    "text",
]

DATA = ("digits", "text", "cifar10", "synthetic")

_TEST_SIZE = 397  # leaves 1400 images to train on


class Dataset(NamedTuple):
    """Examples to train on and examples held out: inputs (N, …) and targets (N,) or (N, …). Synthetic data hold out 0."""

    train_inputs: Tensor
    train_targets: Tensor
    test_inputs: Tensor
    test_targets: Tensor


class Digits(NamedTuple):
    """The data set, split. Images are FP32 (N, 1, 8, 8), standardised; labels are int64 (N,), 0 to 9."""

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


def load(
    name: str,
    model: str = "mlp",
    *,
    rows: int = 128,
    device: str = "cpu",
    folder: str | Path | None = None,
    seed: int = 0,
) -> Dataset:
    """The data set of that name for the model of that name (or import path).

    rows and device are for "synthetic": so many examples, made on that device. folder is for "cifar10": where it is.
    Raises DataError for a name that does not exist, data that are not there, and data that the model does not take.
    """
    if name not in DATA:
        raise DataError(f"There are no data {name!r}. The data are: {', '.join(DATA)}.")
    entry = models.MODELS.get(model)
    if entry is not None and name not in entry.data:
        fitting = [other.name for other in models.MODELS.values() if name in other.data]
        raise DataError(
            f"{model} does not take {name}. Data that fit {model}: {', '.join(entry.data)}. "
            f"Models that fit {name}: {', '.join(fitting)}."
        )
    if name == "digits":
        return Dataset(*digits())
    if name == "cifar10":
        return cifar10(folder)
    if name == "text":
        if entry is None:
            return text()
        assert entry.length is not None  # what takes text takes tokens
        return text(entry.length, next_token=entry.each_token)
    return synthetic(model, rows, device=device, seed=seed)


def digits(split_seed: int = 0) -> Digits:
    """1400 images to train on and 397 held out, both shuffled once by split_seed.

    Pixels are standardised to mean 0 and standard deviation 1 over the training images.
    Source: scikit-learn's load_digits (UCI, Optical Recognition of Handwritten Digits).
    """
    pixels, labels = _file()
    images = torch.tensor(pixels, dtype=torch.float32).reshape(-1, 1, 8, 8)
    labels = torch.tensor(labels, dtype=torch.int64)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(split_seed))
    test, train = order[:_TEST_SIZE], order[_TEST_SIZE:]
    images = (images - images[train].mean()) / images[train].std()
    return Digits(images[train], labels[train], images[test], labels[test])


@cache
def _file():
    from sklearn.datasets import load_digits  # a second to import, and needed only here

    return load_digits(return_X_y=True)


# Modules of the standard library that are long and have been there for many versions.
_MODULES = (
    "argparse",
    "ast",
    "datetime",
    "difflib",
    "doctest",
    "inspect",
    "optparse",
    "pickletools",
    "tarfile",
    "turtle",
)


def text(length: int = 64, *, next_token: bool = True) -> Dataset:
    """Python's own text, as bytes: tokens int64 (N, length), each 0 to 255.

    next_token: the language reference that comes with Python for `help()` (pydoc_data.topics, some 700 kB of English),
    cut into pieces; targets int64 (N, length) are the following bytes. Otherwise half of the pieces are that reference
    and half are source code of the standard library, each after a token 0; targets int64 (N,) are 0 for English and 1
    for code.
    Every tenth piece is held out. On one version of Python the data are always the same; another version has a slightly
    other text. Raises DataError if this Python comes without it.
    """
    english = _pieces(_reference(), length + 1)
    if next_token:
        return _split(english[:, :-1], english[:, 1:])
    code = _pieces(_source(), length + 1)
    count = min(len(english), len(code))
    tokens = torch.stack([english[:count, :-1], code[:count, :-1]], dim=1).flatten(0, 1)
    tokens[:, 0] = 0  # the token that BERT's head reads says nothing by itself
    return _split(tokens, torch.tensor([0, 1]).repeat(count))


@cache
def _reference() -> bytes:
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise DataError(
            "This Python comes without pydoc_data, the text that the data 'text' consist of. Install the whole of "
            "Python's standard library, or train on other data, for example 'synthetic'."
        ) from None
    return "\n".join(topics[name] for name in sorted(topics)).encode()


@cache
def _source() -> bytes:
    sources = []
    for name in _MODULES:
        spec = importlib.util.find_spec(name)
        loader: Any = spec.loader if spec else None  # all of Python's own have get_source
        source = loader and loader.get_source(name)
        if not source:
            raise DataError(f"This Python comes without the source of {name}, which the data 'text' take code from.")
        sources.append(source)
    return "\n".join(sources).encode()


def _pieces(raw: bytes, length: int) -> Tensor:
    count = len(raw) // length
    return torch.frombuffer(bytearray(raw[: count * length]), dtype=torch.uint8).view(count, length).long()


def _split(inputs: Tensor, targets: Tensor) -> Dataset:
    held_out = torch.arange(len(inputs)) // 2 % 10 == 9  # by twos, so that both classes are held out
    return Dataset(inputs[~held_out], targets[~held_out], inputs[held_out], targets[held_out])


def cifar10(folder: str | Path | None) -> Dataset:
    """CIFAR-10 as torchvision keeps it in folder: images FP32 (N, 3, 32, 32), standardised; labels int64 (N,), 0 to 9.

    Nothing is downloaded. Raises DataError, which says how to get it, if it is not there.
    """
    how = (
        "Nothing is downloaded here. Get it once with torchvision, "
        "python -c \"import torchvision; torchvision.datasets.CIFAR10('FOLDER', download=True)\", and name that folder "
        "with --data-dir; or train on --data synthetic."
    )
    if folder is None:
        raise DataError(f"CIFAR-10 is wanted, and no folder was named that holds it. {how}")
    from torchvision.datasets import CIFAR10  # seconds to import

    try:
        train, test = (CIFAR10(folder, train=part, download=False) for part in (True, False))
    except RuntimeError:
        raise DataError(f"{folder} does not hold the whole of CIFAR-10 as torchvision keeps it. {how}") from None
    images, held_out = (torch.from_numpy(part.data).permute(0, 3, 1, 2) / 255 for part in (train, test))
    mean, std = images.mean((0, 2, 3), keepdim=True), images.std((0, 2, 3), keepdim=True)
    labels, held_out_labels = (torch.tensor(part.targets) for part in (train, test))
    return Dataset((images - mean) / std, labels, (held_out - mean) / std, held_out_labels)


def synthetic(model: str, rows: int, *, device: str = "cpu", seed: int = 0) -> Dataset:
    """rows examples for a registered model drawn at random on the device, to measure speed; nothing can be learned.

    Raises ModelError for somebody's own model, whose inputs are not known.
    """
    (inputs,), targets = models.example(model, rows, device, seed)
    return Dataset(inputs, targets, inputs[:0], targets[:0])


def described(model: str, network: nn.Module, text: str, name: str, *, seed: int = 0) -> Dataset:
    """Synthetic data for somebody's own model: its input as parse_input reads it, targets that fit its logits.

    The input's first size is the number of examples. Raises DataError, ModelError.
    """
    if name != "synthetic" or model in models.MODELS:
        raise DataError(
            f"--input describes synthetic data for a model of your own, and this is {model} with the data {name}. "
            "Leave --input out."
        )
    tensors = models.parse_input(text, seed=seed)
    if len(tensors) != 1 or tensors[0].dim() == 0:
        raise DataError(
            f"--input {text!r}: the loops give a model one input, whose first size is the number of examples."
        )
    (inputs,) = tensors
    logits = _logits(model, network, inputs[:2])
    shape = (len(inputs), *logits.shape[1:-1])
    targets = torch.randint(0, logits.shape[-1], shape, generator=torch.Generator().manual_seed(seed))
    return Dataset(inputs, targets, inputs[:0], targets[:0])


def fits(model: str, network: nn.Module, dataset: Dataset) -> None:
    """Raises DataError unless somebody's own model takes the data's inputs and has a logit for each of its classes."""
    logits = _logits(model, network, dataset.train_inputs[:2])
    wanted = (*dataset.train_targets[:2].shape, int(dataset.train_targets.max()) + 1)
    if logits.shape[:-1] != wanted[:-1] or logits.shape[-1] < wanted[-1]:
        raise DataError(
            f"{model} returns logits of shape {tuple(logits.shape)} for two examples of these data, and their targets "
            f"need {wanted} (more classes do no harm). Choose other --data, or change the last layer."
        )


def _logits(model: str, network: nn.Module, inputs: Tensor) -> Tensor:
    training = network.training
    network.eval()  # two examples are not to count in BatchNorm's statistics, nor dropout's numbers
    try:
        with torch.no_grad():
            logits = network(inputs)
    except Exception as error:
        raise DataError(
            f"{model} does not take inputs of shape {tuple(inputs.shape)} and {inputs.dtype}: {error}"
        ) from error
    finally:
        network.train(training)
    if not isinstance(logits, Tensor) or logits.dim() < 2:
        raise DataError(
            f"{model} returns {type(logits).__name__}, and the loops need logits: a tensor (N, …, classes)."
        )
    return logits


def batches(inputs: Tensor, targets: Tensor, batch_size: int, *, seed: int = 0) -> "Batches":
    """Endless batches of inputs and targets, in an order that the seed decides: Batches(…).

    Raises ValueError for a batch_size that is not between 1 and the number of examples.
    """
    return Batches(inputs, targets, batch_size, seed=seed)


class Batches:
    """An endless iterator over batches: each epoch is shuffled anew, from the seed alone.

    next() gives inputs (batch_size, …) and targets (batch_size, …) and leaves out an epoch's ragged last batch;
    take() gives it. state_dict() is the position in the data, and load_state_dict() goes there.
    Raises ValueError for a batch_size that is not between 1 and the number of examples.
    """

    def __init__(self, inputs: Tensor, targets: Tensor, batch_size: int, *, seed: int = 0):
        if not 1 <= batch_size <= len(inputs):
            raise ValueError(
                f"batch_size is {batch_size}; it must be between 1 and the number of examples, {len(inputs)}."
            )
        self._inputs, self._targets, self._batch_size = inputs, targets, batch_size
        self._generator = torch.Generator().manual_seed(seed)
        self._shuffle()

    def _shuffle(self) -> None:
        self._before_shuffle = self._generator.get_state()
        self._order = torch.randperm(len(self._inputs), generator=self._generator)
        self._row = 0

    def _batch(self) -> tuple[Tensor, Tensor]:
        rows = self._order[self._row : self._row + self._batch_size].to(self._inputs.device)
        self._row += len(rows)
        return self._inputs[rows], self._targets[rows]

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self

    def __next__(self) -> tuple[Tensor, Tensor]:
        if self._row + self._batch_size > len(self._order):
            self._shuffle()
        return self._batch()

    def take(self, count: int, smallest: int = 1) -> list[tuple[Tensor, Tensor]]:
        """Up to count batches of one epoch: fewer, and the last one smaller, where the epoch ends; never none.

        A last batch of fewer than smallest examples is left out.
        """
        if len(self._order) - self._row < smallest:
            self._shuffle()
        taken: list[tuple[Tensor, Tensor]] = []
        while len(taken) < count and len(self._order) - self._row >= smallest:
            taken.append(self._batch())
        return taken

    def state_dict(self) -> dict[str, Any]:
        """Where in the data the next batch begins."""
        return {"generator": self._before_shuffle, "row": self._row, "examples": len(self._order)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to where state_dict was called. Raises ValueError for a position in other data."""
        if state["examples"] != len(self._order):
            raise ValueError(f"it is a position in {state['examples']} examples, and these are {len(self._order)}.")
        self._generator.set_state(state["generator"])
        self._shuffle()
        self._row = state["row"]
