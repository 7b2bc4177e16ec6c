"""The margin: how far an answer is from right, in multiples of the tolerance, up to the next power of two."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.evidence import FLOAT_EPS
from autograder.margins import Margin, distance
from autograder.probes import Exercise

EXERCISE = Exercise("one", parts={"all": 1}, ulps=8.0)


def records(**seen):
    return [{"probe": "p", "draw": 0, "given": "", "seen": seen, "calls": [], "error": None}]


def test_the_same_bits_are_at_distance_zero():
    weight = torch.tensor([1.0, -2.0, 1e-30])
    assert distance(EXERCISE, records(a=weight, b=3.5, c=[1, "x"]), records(a=weight.clone(), b=3.5, c=[1, "x"])) == 0


@given(power=st.integers(-8, 20))
def test_an_error_of_so_many_tolerances_is_at_that_distance(power):
    tolerance = 8.0 * FLOAT_EPS
    got = 1.0 + tolerance * 2.0**power * 0.75  # between two powers of two
    assert distance(EXERCISE, records(a=1.0), records(a=got)) == pytest.approx(2.0**power)


def test_the_worst_piece_of_evidence_counts():
    tolerance = 8.0 * FLOAT_EPS
    got = records(a=1.0 + 3 * tolerance, b=1.0 + 100 * tolerance, c=1.0)
    assert distance(EXERCISE, records(a=1.0, b=1.0, c=1.0), got) == 128.0


@pytest.mark.parametrize(
    "got", [{"a": 2, "n": 6}, {"a": torch.tensor([1.0], dtype=torch.float16), "n": 5}, {"a": torch.tensor([1.0])}]
)
def test_another_count_another_dtype_and_missing_evidence_are_infinitely_far(got):
    assert distance(EXERCISE, records(a=torch.tensor([1.0]), n=5), records(**got)) == math.inf


def test_where_nothing_is_tolerated_every_difference_is_infinitely_far():
    exact = Exercise("exact", parts={"all": 1}, ulps=0.0)
    assert distance(exact, records(a=1.0, b=2.0), records(a=1.0 + 1e-9, b=2.0)) == math.inf
    assert distance(exact, records(a=1.0, b=2.0), records(a=1.0, b=2.0)) == 0


def test_a_mistake_within_four_tolerances_is_not_safe():
    assert Margin("one", "", 0.0, "near", 4.0).is_safe and not Margin("one", "", 0.0, "near", 2.0).is_safe
