"""The number line draws each number of a format once, where it lies, and says how many there are."""

import math
import xml.etree.ElementTree as ElementTree

import pytest
import torch

from ampkit.formats import BF16, E4M3, FP16, FP32
from ampkit.widgets import number_line
from ampkit.widgets.number_line import LEFT, PLOT, TICKS, VIEWS, NumberLine, line_alt, line_svg

SVG = "{http://www.w3.org/2000/svg}"


def ticks(line, fmt):
    """The x of each tick in the only row of the line."""
    root = ElementTree.fromstring(line_svg(NumberLine(line.low, line.high, [fmt], line.log)))
    paths = [path.attrib["d"] for path in root.iter(f"{SVG}path")]
    return [
        float(d[1:].split(",")[0]) for d in paths if " V" in d and d.startswith("M") and "," in d and d[:3] != "M0,"
    ]


def words(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("low", "high"), [(1.0, 2.0), (300.0, 600.0), (2.0**-12, 2.0**-5)])
def test_there_is_one_tick_for_each_number_that_pytorch_knows(low, high, log):
    everything = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).double()
    expected = sorted({v for v in everything.tolist() if low <= v <= high})
    line = NumberLine(low, high, [E4M3], log)
    assert 0 < len(expected) <= TICKS
    assert ticks(line, E4M3) == pytest.approx([LEFT + PLOT * line.place(v) for v in expected], abs=0.06)


def test_the_line_says_how_many_numbers_there_are():
    line = NumberLine(1.0, 2.0, [FP32, FP16, BF16, E4M3])
    for count in ("8,388,609 numbers", "1,025 numbers", "129 numbers", "9 numbers"):
        assert count in words(line_svg(line))
    assert line_alt(line).endswith("FP32 8,388,609, FP16 1,025, BF16 129, FP8 E4M3 9.")
    assert "1 number" in words(line_svg(NumberLine(65505.0, 65600.0, [BF16])))


def test_a_place_and_its_value_are_inverse():
    for low, high, log in VIEWS.values():
        line = NumberLine(low, high, [FP16], log)
        for share in (0.0, 0.25, 0.5, 1.0):
            assert line.place(line.value(share)) == pytest.approx(share, abs=1e-9)


def test_zoom_keeps_the_middle_and_pan_keeps_the_length():
    line = NumberLine(0.0, 8.0, [FP16])
    line.zoom(1 / 4)
    assert (line.low, line.high) == (3.0, 5.0)
    line.pan(0.5)
    assert (line.low, line.high) == (4.0, 6.0)
    line = NumberLine(2.0**-8, 2.0**8, [FP16], log=True)
    line.zoom(1 / 2)
    assert (line.low, line.high) == (2.0**-4, 2.0**4)


def test_one_cannot_zoom_or_move_out_of_what_can_be_drawn():
    for low, high, log in VIEWS.values():
        line = NumberLine(low, high, [FP32, FP16], log)
        for _ in range(200):
            line.zoom(4)
        ElementTree.fromstring(line_svg(line))
        for _ in range(100):
            try:
                line.zoom(1 / 4)
            except ValueError:
                break
        assert line.low < line.high
        ElementTree.fromstring(line_svg(line))


@pytest.mark.parametrize(
    ("low", "high", "log", "why"),
    [
        (2.0, 1.0, False, "two finite ends in order"),
        (1.0, math.inf, False, "two finite ends in order"),
        (math.nan, 1.0, False, "two finite ends in order"),
        (0.0, 1.0, True, "A log axis never reaches 0"),
        (1.0, math.nextafter(1.0, 2.0), False, "cannot tell positions apart"),
    ],
)
def test_ends_that_make_no_line_are_refused_with_the_reason(low, high, log, why):
    with pytest.raises(ValueError, match=why):
        NumberLine(low, high, [FP16], log)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_drawn_well_formed_with_its_alt_text(view):
    shown = number_line(*VIEWS[view][:2], log=VIEWS[view][2])
    root = ElementTree.fromstring(line_svg(shown.line))
    assert root.attrib["aria-label"] == shown.alt
    for rect in root.iter(f"{SVG}rect"):
        assert 0 <= float(rect.attrib.get("x", 0)) <= LEFT + PLOT + 1
    assert "<svg" not in shown.html and "Run this cell" in shown.text


def test_what_overflows_is_hatched_from_the_first_number_that_does():
    line = NumberLine(65400.0, 65600.0, [FP16])
    hatched = [
        rect.attrib
        for rect in ElementTree.fromstring(line_svg(line)).iter(f"{SVG}rect")
        if "hatch" in rect.attrib.get("style", "") and rect.attrib["height"] == "22"
    ]
    assert [float(rect["x"]) for rect in hatched] == pytest.approx([LEFT + PLOT * line.place(65520.0)], abs=0.06)


def test_the_buttons_zoom_move_and_explain_what_they_cannot():
    pytest.importorskip("ipywidgets", reason="requires ipywidgets for the live view")
    shown = number_line(-1.0, 1.0)
    controls, picture, below = shown.widget.children
    views, left, closer, wider, right = controls.children
    low, high, axis, says = below.children
    closer.click()
    assert (shown.line.low, shown.line.high) == (-0.25, 0.25)
    assert low.value == "-0.25" and "from -0.25 to 0.25" in picture.value
    axis.value = "log"
    assert "A log axis never reaches 0" in says.value and axis.value == "linear" and not shown.line.log
    low.value = "2**-10"
    assert shown.line.low == 2**-10 and says.value == ""
    axis.value = "log"
    assert shown.line.log
    high.value = "abc"
    assert "is not a number" in says.value and shown.line.high == 0.25 and high.value == "0.25"
    axis.value = "linear"
    wider.click()
    right.click()
    left.click()
    assert shown.line.high - shown.line.low == pytest.approx(4 * (0.25 - 2**-10))
    views.value = "all of it"
    assert shown.line.log and axis.value == "log"
