"""The digits: 1797 real images of 8×8 pixels that come inside scikit-learn, so that nothing is downloaded."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Digits", "batches", "digits"]

_TEST_SIZE = 397  # leaves 1400 images to train on


class Digits(NamedTuple):
    """The data set, split. Images are FP32 (N, 1, 8, 8), standardised; labels are int64 (N,), 0 to 9."""

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


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


def batches(images: Tensor, labels: Tensor, batch_size: int, *, seed: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches: each epoch is shuffled anew, from the seed alone; a ragged last batch is left out.

    Yields images (batch_size, …) and labels (batch_size,) of the dtypes given. Raises ValueError for a batch_size that
    is not between 1 and the number of images.
    """
    if not 1 <= batch_size <= len(images):
        raise ValueError(f"batch_size is {batch_size}; it must be between 1 and the number of images, {len(images)}.")
    return _batches(images, labels, batch_size, torch.Generator().manual_seed(seed))


def _batches(images, labels, batch_size, generator):
    while True:
        order = torch.randperm(len(images), generator=generator)
        for rows in order.split(batch_size):
            if len(rows) == batch_size:
                yield images[rows], labels[rows]
