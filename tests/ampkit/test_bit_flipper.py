"""The bit flipper shows what the pattern means, and its buttons change that pattern and nothing else."""

import doctest
import math
import xml.etree.ElementTree as ElementTree

import pytest
import torch

from ampkit.formats import BF16, E4M3, FORMATS, FP16, FP32
from ampkit.widgets import bit_flipper as widgets_bit_flipper
from ampkit.widgets.bit_flipper import PARTS, BitFlipper, bit_flipper, bits_alt, bits_svg, number, readings_html

VALUES = (0.0, -0.0, 1.0, 0.1, -1e-7, 65520.0, 1e30, math.inf, -math.inf, math.nan)


def reading(state, name):
    return dict(state.readings())[name]


def test_flipping_the_last_bit_goes_to_the_next_number():
    state = BitFlipper(1.0)
    state.flip(15)
    assert state.value == 1 + 2**-10
    state.flip(0)
    assert state.value == -1 - 2**-10


def test_every_bit_of_every_format_can_be_flipped_and_flipped_back():
    for fmt in FORMATS:
        state = BitFlipper(1.0, fmt)
        for position in range(fmt.bits):
            state.flip(position)
            assert state.digits() != BitFlipper(1.0, fmt).digits()
            assert state.digits().count("1") - BitFlipper(1.0, fmt).digits().count("1") in (1, -1)
            state.flip(position)
        assert state.value == 1.0


def test_the_parts_of_a_pattern_are_the_formats_and_their_worth_makes_the_value():
    for fmt in FORMATS:
        state = BitFlipper(1.5, fmt)
        parts = [state.part(position) for position in range(fmt.bits)]
        assert [name for name, _ in parts].count("exponent") == fmt.exponent_bits
        assert [name for name, _ in parts].count("mantissa") == fmt.mantissa_bits
        worth = {"sign": 0.0, "exponent": 0.0, "mantissa": 1.0}
        for digit, (name, power) in zip(state.digits(), parts, strict=True):
            worth[name] += 2.0**power * (digit == "1")
        assert 2.0 ** (worth["exponent"] - fmt.bias) * worth["mantissa"] == 1.5


def test_a_change_of_format_casts_the_value():
    state = BitFlipper(65520.0, FP32)
    state.change(FP16)
    assert state.value == torch.tensor(65520.0).half().item() == math.inf
    assert "beyond the largest number 65504" in reading(state, "asked for")


def test_the_error_of_what_was_asked_for_is_the_casts():
    state = BitFlipper(0.1, BF16)
    stored = torch.tensor(0.1, dtype=torch.bfloat16).double().item()
    assert state.value == stored
    assert f"{abs(stored - 0.1) / 0.1:.2g}" in reading(state, "asked for")
    assert "exactly" in reading(BitFlipper(0.5, BF16), "asked for")


def test_a_subnormal_says_how_few_bits_it_has_left():
    assert "(1 of 11 significant bits)" in reading(BitFlipper(2.0**-24), "class")
    assert "(10 of 11 significant bits)" in reading(BitFlipper(2.0**-14 - 2.0**-24), "class")
    assert "(11 of 11 significant bits)" in reading(BitFlipper(2.0**-14), "class")


def test_stepping_walks_along_the_line_and_stops_at_its_ends():
    state = BitFlipper(65504.0)
    state.step(upwards=True)
    assert state.value == math.inf
    assert reading(state, "neighbours") == "65504 below, nothing above"
    state.step(upwards=True)
    assert state.value == math.inf
    state.step(upwards=False)
    assert state.value == 65504
    state = BitFlipper(448.0, E4M3)
    state.step(upwards=True)
    assert state.value == 448  # E4M3 has no inf, and PyTorch saturates
    state = BitFlipper(math.nan)
    state.step(upwards=True)
    assert math.isnan(state.value)


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
@pytest.mark.parametrize("value", VALUES)
def test_every_drawing_is_well_formed_and_shows_each_bit(fmt, value):
    state = BitFlipper(value, fmt)
    root = ElementTree.fromstring(bits_svg(state))
    words = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert "".join(word for word in words if word in ("0", "1")) == state.digits()
    assert root.attrib["aria-label"] == bits_alt(state)
    for name, text in state.readings():
        assert name in words and text in words
    ElementTree.fromstring(readings_html(state))


def test_the_first_view_is_a_picture_with_alt_text_that_needs_no_kernel():
    bundle = bit_flipper(0.1)._repr_mimebundle_()
    assert 'alt="The 16 bits of a number in FP16: sign 0, exponent 01011, mantissa 1001100110.' in bundle["text/html"]
    assert "<svg" not in bundle["text/html"]
    assert "0.0999755859375" in bundle["text/plain"]


def controls(flipper):
    _, kinds, row, readings, (typed, says), around = (
        part.children if type(part).__name__ == "Box" else part for part in flipper.widget.children
    )
    return kinds, row, readings, typed, says, around


def test_the_buttons_are_the_bits():
    pytest.importorskip("ipywidgets", reason="requires ipywidgets for the live view")
    flipper = bit_flipper(1.0)
    kinds, row, readings, *_ = controls(flipper)
    assert "".join(button.description for button in row.children) == "0011110000000000"
    row.children[6].click()
    assert flipper.state.value == 1.5
    assert "1.5" in readings.value and 'aria-live="polite"' in readings.value
    for name in PARTS:
        assert any(f"ampkit-{name}" in button._dom_classes for button in row.children)
    ones = ["ampkit-one" in button._dom_classes for button in row.children]
    assert ones == [button.description == "1" for button in row.children]
    assert all(button.tooltip.startswith("Flip the ") for button in row.children)
    kinds.value = BF16
    assert len(row.children) == 16 and flipper.state.value == 1.5
    kinds.value = E4M3
    assert len(row.children) == 8 and flipper.state.value == 1.5


def test_a_typed_value_is_stored_and_a_typing_error_is_explained():
    pytest.importorskip("ipywidgets", reason="requires ipywidgets for the live view")
    flipper = bit_flipper()
    _, _, readings, typed, says, around = controls(flipper)
    typed.value = "2**-24"
    assert flipper.state.value == 2**-24 and says.value == ""
    typed.value = "two"
    assert "&#x27;two&#x27; is not a number" in says.value
    assert flipper.state.value == 2**-24
    found = []
    for button in around[2:]:
        button.click()
        found.append(flipper.state.value)
    assert found == [2**-24, 2**-14, 1.0, 65504.0]
    around[1].click()
    assert "infinity" in readings.value
    around[0].click()
    assert flipper.state.value == 65504


@pytest.mark.parametrize(
    ("typed", "value"), [("0.1", 0.1), (" 1e-8 ", 1e-8), ("2^-24", 2**-24), ("−3", -3.0), ("-inf", -math.inf)]
)
def test_a_number_can_be_typed_in_the_ways_one_writes_it(typed, value):
    assert number(typed) == value


@pytest.mark.parametrize("typed", ["", "two", "2**", "2**0.5", "2**99999", "0**-1", "1;2", "__import__('os')"])
def test_anything_else_is_not_a_number(typed):
    with pytest.raises(ValueError, match="is not a number"):
        number(typed)


def test_the_docstrings_examples_are_true():
    from sys import modules

    found = doctest.testmod(modules["ampkit.widgets.bit_flipper"])
    assert found.failed == 0 and found.attempted >= 1
    assert widgets_bit_flipper is bit_flipper
