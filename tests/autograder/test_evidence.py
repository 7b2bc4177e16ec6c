"""Evidence: what goes over the wire comes back the same, what is no evidence is refused, tolerances are the dtype's."""

import json
import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.errors import EvidenceError
from autograder.evidence import DTYPES, MAX_TENSOR_BYTES, Other, clean, decode, difference, encode, freeze, show


def over_the_wire(value):
    return decode(json.loads(json.dumps(encode(freeze(value)), allow_nan=False)))


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text("aé汉🙂 \n", max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=12,
)


@given(plain)
@settings(max_examples=200, deadline=None)
def test_plain_data_survives_the_wire(value):
    assert repr(over_the_wire(value)) == repr(value)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_tensors_survive_the_wire_bit_for_bit(dtype, shape):
    value = (torch.arange(math.prod(shape)).reshape(shape) * 3 - 2).to(dtype)
    back = over_the_wire(value)
    assert back.dtype == dtype and back.shape == value.shape and torch.equal(back, value)


def test_nan_and_inf_in_tensors_survive_the_wire():
    value = torch.tensor([math.nan, math.inf, -math.inf, 0.0])
    assert torch.equal(over_the_wire(value).view(torch.int32), value.view(torch.int32))


class Sly(torch.Tensor):
    """A tensor subclass whose comparisons always hold."""

    def __eq__(self, other):
        return True


class Liar:
    def __eq__(self, other):
        return True


def test_what_is_no_data_keeps_nothing_but_the_name_of_its_type():
    assert over_the_wire(Liar()) == Other("Liar")
    assert over_the_wire(lambda: 1) == Other("function")
    assert over_the_wire(torch.ones(2).to_sparse()) == Other("sparse_coo tensor of torch.float32")
    assert over_the_wire(10**10_000) == Other("int of 33220 bits")
    assert over_the_wire(Fraction(10**400)) == Other("Fraction too large for a float")
    assert type(freeze(torch.ones(2).as_subclass(Sly))) is torch.Tensor


@given(st.text(st.characters(), max_size=40))
@settings(deadline=None)
def test_text_from_a_box_can_be_written_and_shows_no_control_character(value):
    cleaned = clean(value + "\ud800\x1b[0m")
    cleaned.encode("utf-8")
    assert all(char.isprintable() or char in "\n\t" for char in cleaned) and clean(cleaned) == cleaned


def test_a_value_that_equals_everything_is_not_the_expected_one():
    for expected in (1.0, 3, "a", [1.0], torch.ones(2)):
        assert difference(expected, over_the_wire(Liar()), 256)


@pytest.mark.parametrize(
    "data",
    [
        {"$tensor": "float32", "shape": [2], "data": "AAAA"},
        {"$tensor": "float32", "shape": [-1], "data": ""},
        {"$tensor": "float32", "shape": [True], "data": "AAAAAA=="},
        {"$tensor": "complex64", "shape": [1], "data": "AAAAAAAAAAA="},
        {"$tensor": "uint8", "shape": [MAX_TENSOR_BYTES + 1], "data": ""},
        {"$tensor": "float32", "shape": [1], "data": "not base64"},
        {"$tensor": "float32", "shape": [1]},
        {"$float": "1e5"},
        {"$pickle": "gASV"},
        {"$other": 5},
        2**64,
        "x" * 5000,
        [[[[[[[[[[[[1]]]]]]]]]]]],
    ],
)
def test_what_encode_never_writes_is_refused(data):
    with pytest.raises(EvidenceError):
        decode(data)


@given(st.sampled_from([torch.float32, torch.float16, torch.bfloat16]), st.floats(0.1, 0.9))
@settings(deadline=None)
def test_the_tolerance_is_in_units_of_the_dtype(dtype, share):
    expected = torch.ones(3, dtype=torch.float64)
    eps = torch.finfo(dtype).eps
    near, far = expected * (1 + 4 * share * eps), expected * (1 + 12 * eps)
    assert difference(expected.to(dtype), near.to(dtype), 4) is None
    assert difference(expected.to(dtype), far.to(dtype), 4)


def test_shape_dtype_and_type_count():
    one = torch.ones(1)
    assert "shape" in difference(one, torch.ones(2), 256)
    assert "float16" in difference(one, one.half(), 256)
    assert difference(1.0, one, 256) and difference(one, 1.0, 256)
    assert difference(True, 1, 256) is None and difference(True, "True", 256)
    assert difference(2.0, 2, 256) is None and difference("2", 2, 256)
    assert difference(math.nan, math.nan, 256) is None and difference(math.inf, -math.inf, 256)


def test_a_difference_says_where_and_what():
    assert difference([1.0, 2.0], [1.0, 3.0], 256) == "at index 1: expected 2, got 3"
    assert difference({"a": 1.0}, {"a": 2.0}, 256) == "at key 'a': expected 1, got 2"
    assert (
        difference(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]), 256) == "expected 2, got 2.5 at position 1 of 2"
    )
    assert difference([1, 2], [1], 256) == "expected a list of 2, got a list of 1: [1]"
    assert (
        difference([1], 1, 256) == "expected a list, got 1"
        and difference({"a": 1}, [], 256) == "expected a dict, got []"
    )
    assert difference({"a": 1}, {"b": [2] * 9, "a": 1}, 256) == "expected the keys ['a'], got ['a', 'b']"


def test_values_that_differ_do_not_look_the_same():
    assert difference(13, 13.0, 256) == "expected 13 (int), got 13.0 (float)"
    assert difference(0.1, 0.1 + 1e-9, 0) == "expected 0.1, got 0.100000001"
    assert (
        difference(torch.tensor([0.5]), torch.tensor([0.5 + 2.0**-23]), 0.5) == "expected 0.5, got 0.5000001192092896"
    )


@given(plain)
@settings(deadline=None)
def test_anything_can_be_shown(value):
    assert isinstance(show(freeze(value)), str)
