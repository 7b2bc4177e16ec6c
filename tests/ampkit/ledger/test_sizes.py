"""Sizes are read as written, or not at all; the docstrings of the ledger are true."""

import doctest
import importlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ampkit.errors import LedgerError
from ampkit.ledger import in_words, parse_size
from ampkit.ledger.live import BLOCK, LiveBytes, Snapshot, block_bytes

MODULES = ("estimates", "kernels", "live", "measure", "planning", "recipe", "rehearsal", "report", "sizes", "subject")


def test_the_examples_in_the_docstrings_hold():
    if not torch.backends.cuda.is_built():
        pytest.skip("requires a CUDA build of PyTorch (it needs no GPU)")
    results = [doctest.testmod(importlib.import_module(f"ampkit.ledger.{name}")) for name in MODULES]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) >= 12


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GiB", 8 * 2**30), ("8GB", 8 * 10**9), ("8192MiB", 8 * 2**30), (" 0.5 gib ", 2**29), ("24576 MiB", 24 * 2**30)],
)
def test_a_size_is_what_it_says(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["8", "8G", "GiB", "", "-8GiB", "8 GiB free", "0GiB", "8GiBs", "1e9B", "nanGiB"])
def test_a_size_that_leaves_something_open_is_an_error_that_says_how_to_write_it(text):
    with pytest.raises(LedgerError, match="GiB"):
        parse_size(text)


@given(st.integers(1, 2**44))
def test_bytes_are_read_back_and_words_round_to_what_they_mean(size):
    assert parse_size(f"{size}B") == size
    number, unit = in_words(size).split()
    assert abs(parse_size(f"{number}{unit}") - size) <= 0.05 * size


@given(st.integers(0, 2**40))
def test_a_block_is_the_next_multiple_of_512(size):
    assert 0 <= block_bytes(size) - size < BLOCK and block_bytes(size) % BLOCK == 0


@given(st.lists(st.integers(1, 3 * 2**24), max_size=8), st.lists(st.integers(1, 3 * 2**24), max_size=8))
def test_snapshots_add_up_and_segments_hold_their_blocks(first, second):
    def alive(sizes):
        with LiveBytes("meta") as live:
            tensors = [torch.empty(size, dtype=torch.uint8, device="meta") for size in sizes]
            return live.now(), tensors

    (a, _), (b, _), (both, _) = alive(first), alive(second), alive(first + second)
    assert a + b == both
    assert both.total <= both.blocks <= both.segments
    assert both.blocks == sum(map(block_bytes, first + second))


def test_a_storage_counts_once_from_its_making_until_the_last_view_goes():
    with LiveBytes("cpu") as live:
        base = torch.zeros(1024)
        view = base[:10].view(2, 5)
        assert live.now().total == 4096
        del base
        assert live.now().total == 4096
        copy = view.clone()
        live.call("inputs", [copy])
        assert live.now().of("inputs") == 40 and live.role(copy) == "inputs"
        del view, copy
        assert live.now() == Snapshot() or live.now().total == 0
    assert live.peak.total == 4096 + 40
