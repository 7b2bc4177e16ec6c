"""Every pattern and every cast of ampkit.formats is PyTorch's, and the numbers of a format are torch.finfo's."""

import doctest
import itertools
import math
from bisect import bisect_left, bisect_right
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ampkit import PrecisionError, formats
from ampkit.formats import BF16, E4M3, E5M2, FORMATS, FP16, FP32, TF32

STORED = [f for f in FORMATS if f is not TF32]
SHORT = [f for f in STORED if f is not FP32]  # all patterns of these can be gone through
SIGNED = {8: torch.int8, 16: torch.int16, 32: torch.int32}
E4M3_SATURATES = torch.tensor(1e9).to(torch.float8_e4m3fn).float().item() == 448
any_float32 = st.floats(width=32, allow_nan=False)
formats_of_torch = pytest.mark.parametrize("fmt", STORED, ids=str)
short_formats = pytest.mark.parametrize("fmt", SHORT, ids=str)


def same(a: float, b: float) -> bool:
    """Equal, with the sign of zero, or both nan."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def cast(value: float, fmt) -> float:
    return torch.tensor(value, dtype=torch.float32).to(fmt.dtype).double().item()


def encode(fmt, value: float) -> int:
    return fmt.encode(value, saturate=E4M3_SATURATES if fmt is E4M3 else None)


def patterns(fmt) -> torch.Tensor:
    """All patterns of the format, read by PyTorch as its dtype, in FP64."""
    bits = torch.arange(2**fmt.bits)
    return bits.to(SIGNED[fmt.bits]).view(fmt.dtype).double()


@cache
def numbers(fmt) -> list[float]:
    """All finite numbers of the format in order, by PyTorch."""
    return sorted({value for value in patterns(fmt).tolist() if math.isfinite(value)})


def test_the_docstrings_examples_are_true():
    found = doctest.testmod(formats)
    assert found.failed == 0 and found.attempted >= 10


@formats_of_torch
def test_the_limits_are_those_of_torch_finfo(fmt):
    info = torch.finfo(fmt.dtype)
    assert (fmt.max, fmt.smallest_normal, fmt.eps, fmt.bits) == (info.max, info.smallest_normal, info.eps, info.bits)
    assert fmt.smallest_subnormal == info.smallest_normal * info.eps


def test_tf32_has_the_exponent_of_fp32_and_the_mantissa_of_fp16():
    assert TF32.dtype is None
    assert (TF32.bits, TF32.bias, TF32.smallest_normal) == (19, FP32.bias, FP32.smallest_normal)
    assert TF32.eps == FP16.eps
    for value in (1.0, 0.1, 3.0e38, 1e-40):
        assert FP32.encode(TF32.round(value)) % 2**13 == 0  # an FP32 number whose last 13 bits are 0


@short_formats
def test_decode_gives_pytorchs_value_for_every_pattern(fmt):
    theirs = patterns(fmt).tolist()
    assert len(theirs) == 2**fmt.bits
    assert all(same(fmt.decode(bits), value) for bits, value in enumerate(theirs))


@short_formats
def test_encode_gives_back_every_pattern_that_is_not_nan(fmt):
    theirs = patterns(fmt)
    for bits, value in enumerate(theirs.tolist()):
        if value != value:
            assert fmt.classify(fmt.encode(value)) == "nan"
        else:
            assert fmt.encode(value, saturate=False) == bits


@short_formats
def test_every_tie_and_its_two_fp32_neighbours_round_as_in_pytorch(fmt):
    ties = torch.tensor([(a + b) / 2 for a, b in itertools.pairwise(numbers(fmt))], dtype=torch.float64)
    ties = torch.cat([ties, torch.tensor([fmt.overflow_at, -fmt.overflow_at], dtype=torch.float64)]).float()
    ties = torch.cat([ties, ties.nextafter(torch.tensor(math.inf)), ties.nextafter(torch.tensor(-math.inf))])
    theirs = ties.to(fmt.dtype).double().tolist()
    assert len(theirs) > 2 ** (fmt.bits + 1)
    wrong = [v for v, t in zip(ties.tolist(), theirs, strict=True) if not same(fmt.decode(encode(fmt, v)), t)]
    assert not wrong


@formats_of_torch
@given(value=any_float32)
@settings(max_examples=300, deadline=None)
def test_encode_of_any_fp32_number_is_pytorchs_cast(fmt, value):
    assert same(fmt.decode(encode(fmt, value)), cast(value, fmt))


@formats_of_torch
@given(value=st.floats(min_value=-1e6, max_value=1e6, width=32))
@settings(max_examples=300, deadline=None)
def test_encode_of_a_number_of_ordinary_size_is_pytorchs_cast(fmt, value):
    assert same(fmt.decode(encode(fmt, value)), cast(value, fmt))


def test_a_double_is_rounded_once_where_pytorch_rounds_it_twice():
    value = 1 + 2**-11 + 2**-40  # above a tie of FP16, and so close to it that FP32 rounds it onto the tie
    assert torch.tensor(value, dtype=torch.float64).half().item() == 1.0
    assert FP16.round(value) == 1 + 2**-10


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
@given(value=st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=200, deadline=None)
def test_rounding_goes_to_the_nearest_of_two_neighbours(fmt, value):
    rounded = fmt.round(value)
    below, above = fmt.neighbours(value)
    assert below < value < above
    if abs(value) >= fmt.overflow_at:
        assert rounded == math.copysign(math.inf if fmt.ieee else fmt.max, value)
    elif rounded != value:
        assert rounded in (below, above) or abs(rounded) == fmt.max
        assert abs(rounded - value) <= fmt.spacing(rounded) / 2
    assert not math.copysign(1, rounded) * math.copysign(1, value) < 0


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_neighbours_lead_back_and_are_one_spacing_apart(fmt, data):
    bits = data.draw(st.integers(0, fmt.encode(fmt.max)))
    value = fmt.decode(bits)
    below, above = fmt.neighbours(value)
    assert above == (value + fmt.spacing(value) if value < fmt.max else math.inf)
    assert fmt.neighbours(below)[1] == value
    assert math.isinf(above) or fmt.neighbours(above)[0] == value
    assert fmt.neighbours(-value) == (-above, -below)


def test_overflow_begins_where_pytorchs_cast_says():
    assert FP16.overflow_at == 65520 and cast(65519.996, FP16) == 65504 and cast(65520.0, FP16) == math.inf
    for fmt in (FP16, BF16, E5M2):
        at = torch.tensor(fmt.overflow_at, dtype=torch.float64).float()
        assert at.double() == fmt.overflow_at
        assert at.to(fmt.dtype).double().isinf()
        assert at.nextafter(torch.tensor(0.0)).to(fmt.dtype).double() == fmt.max
    assert FP32.overflow_at == 2.0**128 - 2.0**103


def test_e4m3_has_no_inf_and_is_saturated_or_nan_on_request():
    assert "inf" not in {E4M3.classify(bits) for bits in range(256)}
    assert E4M3.round(464.0) == 448 and E4M3.overflow_at == math.nextafter(464.0, math.inf)
    assert E4M3.decode(E4M3.encode(465, saturate=True)) == 448
    assert math.isnan(E4M3.decode(E4M3.encode(465, saturate=False)))
    assert E4M3.decode(E4M3.encode(-math.inf)) == -448


def test_e4m3_saturates_in_pytorch_since_2_12():
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    assert (release >= (2, 12)) == E4M3_SATURATES


def test_an_ieee_format_saturates_on_request_only():
    assert FP16.decode(FP16.encode(1e9)) == math.inf
    assert FP16.decode(FP16.encode(-1e9, saturate=True)) == -65504


@short_formats
def test_classes_are_pytorchs(fmt):
    theirs, normal = patterns(fmt), torch.finfo(fmt.dtype).smallest_normal
    expected = {
        "zero": theirs == 0,
        "subnormal": (theirs != 0) & (theirs.abs() < normal),
        "normal": (theirs.abs() >= normal) & theirs.isfinite(),
        "inf": theirs.isinf(),
        "nan": theirs.isnan(),
    }
    ours = [fmt.classify(bits) for bits in range(2**fmt.bits)]
    for name, theirs in expected.items():
        assert [found == name for found in ours] == theirs.tolist(), name


@short_formats
def test_the_formula_computes_the_value(fmt):
    checked = 0
    for bits in range(0, 2**fmt.bits, 1 if fmt.bits == 8 else 41):
        if fmt.classify(bits) in ("inf", "nan"):
            continue
        text = fmt.formula(bits)
        value = eval(text.replace("−", "-").replace("×", "*").replace("^", ".0**"))
        assert value == fmt.decode(bits), text
        checked += 1
    assert checked > 200


@short_formats
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_between_lists_what_is_between_and_count_counts_it(fmt, data):
    ends = st.one_of(st.sampled_from(numbers(fmt)), st.floats(-1e3, 1e3))
    low, high = sorted([data.draw(ends), data.draw(ends)])
    expected = numbers(fmt)[bisect_left(numbers(fmt), low) : bisect_right(numbers(fmt), high)]
    assert fmt.count(low, high) == len(expected)
    if len(expected) < 5000:
        assert list(fmt.between(low, high)) == expected


def test_each_binade_holds_as_many_numbers_and_they_are_spread_twice_as_wide():
    for exponent in range(-14, 15):
        low, high = 2.0**exponent, 2.0 ** (exponent + 1)
        assert FP16.count(low, high) == 1025
        assert FP16.spacing(high) == 2 * FP16.spacing(low)


@pytest.mark.parametrize("bits", [-1, 1 << 16])
def test_a_pattern_that_does_not_fit_says_which_do(bits):
    with pytest.raises(PrecisionError, match=r"FP16 has 16 bits, so its patterns go from 0 to 0xffff"):
        FP16.decode(bits)


def test_there_is_no_spacing_beyond_the_largest_number_and_no_neighbour_of_nan():
    with pytest.raises(PrecisionError, match="FP16 ends at 65504"):
        FP16.spacing(65536)
    with pytest.raises(PrecisionError, match="FP16 ends at 65504"):
        FP16.spacing(math.nan)
    with pytest.raises(PrecisionError, match="no neighbours"):
        FP16.neighbours(math.nan)
