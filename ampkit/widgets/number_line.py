"""The numbers that exist: each format's own between two ends, on a line that one can zoom and move."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from typing import Any

from ampkit.formats import BF16, E4M3, E5M2, FP16, FP32, TF32, Format
from ampkit.show import FAINT, INK, ORANGE, RULE, VERMILLION, Live, drawing, power
from ampkit.widgets import svg
from ampkit.widgets.bit_flipper import number

__all__ = ["Line", "NumberLine", "line_alt", "line_svg", "number_line"]

LEFT, PLOT, ROW = 92, 484, 44  # where the rows begin, how wide they are, how high one is; pixels
TICKS = 250  # more numbers than this in a row are drawn as a band
INVITE = "Run this cell in JupyterLab to zoom, to move along the line, or to set its ends."
VIEWS = {
    "one and two": (1.0, 2.0, False),
    "around zero": (-1e-6, 1e-6, False),
    "2048: FP16 counts by twos": (2044.0, 2060.0, False),
    "the end of FP16": (65400.0, 65600.0, False),
    "the end of E4M3": (300.0, 600.0, False),
    "all of it": (1e-46, 1e39, True),
}


class NumberLine:
    """Two ends, an axis that is linear or logarithmic, and the formats in view; it draws nothing.

    ValueError: the ends are not finite and in order, or a log axis is to start at or below 0.
    """

    def __init__(self, low: float, high: float, formats: Sequence[Format], log: bool = False) -> None:
        self.formats = tuple(formats)
        self.show(low, high, log)

    def show(self, low: float, high: float, log: bool) -> None:
        """Sets both ends and the axis, or raises ValueError and leaves them as they are."""
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"The line needs two finite ends in order, and not {low:g} and {high:g}.")
        if log and low <= 0:
            raise ValueError(f"A log axis never reaches 0, so it cannot start at {low:g}. Start above 0, or go linear.")
        if not log and high - low < 64 * math.ulp(max(abs(low), abs(high))):
            raise ValueError("Closer than this a Python float cannot tell positions apart.")
        self.low, self.high, self.log = low, high, log

    def zoom(self, factor: float) -> None:
        """Makes what is in view `factor` times as long, around its middle."""
        start, end = self._ends()
        middle, half = (start + end) / 2, (end - start) / 2 * factor
        self._move(middle - half, middle + half)

    def pan(self, share: float) -> None:
        """Moves along the line by a share of what is in view; negative moves towards smaller numbers."""
        start, end = self._ends()
        self._move(start + share * (end - start), end + share * (end - start))

    def place(self, value: float) -> float:
        """Where value lies: 0 at the left end, 1 at the right."""
        start, end = self._ends()
        if self.log:
            value = math.log2(value) if value > 0 else -math.inf
        return (value - start) / (end - start)

    def value(self, place: float) -> float:
        """The inverse of place."""
        start, end = self._ends()
        at = start + place * (end - start)
        return 2.0**at if self.log else at

    def _ends(self) -> tuple[float, float]:
        return (math.log2(self.low), math.log2(self.high)) if self.log else (self.low, self.high)

    def _move(self, start: float, end: float) -> None:
        if self.log:
            start, end = 2.0 ** max(start, -160.0), 2.0 ** min(end, 140.0)  # a little beyond FP32, the widest
        limit = 2.0**130
        self.show(max(start, -limit), min(end, limit), self.log)


def line_svg(line: NumberLine) -> str:
    """One row a format: a tick for each of its numbers, or a band where there are too many to tell apart."""
    tall = 62 + ROW * len(line.formats)
    parts = [svg.opened(tall, line_alt(line))]
    for row, fmt in enumerate(line.formats):
        parts += _row(line, fmt, 10 + ROW * row)
    base = 18 + ROW * len(line.formats)
    parts.append(f'<path d="M{LEFT},{base} H{LEFT + PLOT}" style="stroke:{INK};stroke-width:1.2"/>')
    for place, label in _axis(line):
        x = LEFT + PLOT * place
        parts.append(f'<path d="M{x:.1f},{base} v5" style="stroke:{INK};stroke-width:1.2"/>')
        parts.append(svg.text(x, base + 19, label, size=11))
    note = "log2 axis" if line.log else "linear axis"
    parts.append(svg.text(LEFT + PLOT + 14, base + 36, note, size=11, anchor="start", ink=FAINT))
    parts.append(_legend(line, base + 36))
    return "".join(parts) + "</svg>"


def line_alt(line: NumberLine) -> str:
    """The line in words."""
    counts = ", ".join(f"{fmt.name} {fmt.count(line.low, line.high):,}" for fmt in line.formats)
    axis = "log2" if line.log else "linear"
    return f"How many numbers each format has from {line.low:.9g} to {line.high:.9g} ({axis} axis): {counts}."


class Line(Live):
    """The drawn line; `line` is what the buttons change."""

    def __init__(self, line: NumberLine) -> None:
        still = drawing(line_svg(line), line_alt(line), INVITE)
        super().__init__(still.html, still.text, alt=still.alt)
        self.line, self.widget = line, _controls(line)


def number_line(
    low: float = 1.0,
    high: float = 2.0,
    formats: Sequence[Format] = (FP32, TF32, BF16, FP16, E5M2, E4M3),
    log: bool = False,
) -> Line:
    """The numbers of each format from low to high, on a linear or a log2 axis that one can zoom and move.

    Without a kernel, the first view stands as a picture. ValueError: low and high are not finite and in order, or low
    is not above 0 on a log axis.
    """
    return Line(NumberLine(low, high, formats, log))


def _row(line: NumberLine, fmt: Format, top: float) -> list[str]:
    count = fmt.count(line.low, line.high)
    middle = top + 16
    parts = [svg.text(LEFT - 10, middle + 5, fmt.name, anchor="end", bold=True)]
    parts.append(f'<path d="M{LEFT},{middle + 14} H{LEFT + PLOT}" style="stroke:{RULE};stroke-width:0.8"/>')
    said = f"{count:,} number" + ("" if count == 1 else "s")
    parts.append(svg.text(LEFT + PLOT + 14, middle + 5, said, size=12, anchor="start"))
    over = fmt.overflow_at
    parts += [_band(line, a, b, top, "over") for a, b in ((over, math.inf), (-math.inf, -over))]
    if line.log:
        parts.append(_band(line, 0.0, fmt.smallest_subnormal / 2, top, "lost"))
    if count > TICKS:
        edge = fmt.smallest_normal
        for a, b, kind in (
            (-fmt.max, -edge, "normal"),
            (-edge, -fmt.smallest_subnormal, "subnormal"),
            (fmt.smallest_subnormal, edge, "subnormal"),
            (edge, fmt.max, "normal"),
        ):
            parts.append(_band(line, a, b, top, kind))
        return parts
    labelled = count <= 8
    for value in fmt.between(line.low, line.high):
        x = LEFT + PLOT * line.place(value)
        colour, up = (svg.CURVE, 12) if abs(value) >= fmt.smallest_normal else (ORANGE, 7)
        colour = INK if value == 0 else colour
        parts.append(f'<path d="M{x:.1f},{middle + 14} V{middle - up + 4}" style="stroke:{colour};stroke-width:1.6"/>')
        if labelled:
            parts.append(svg.text(min(max(x, LEFT + 12), LEFT + PLOT - 12), middle - 10, f"{value:.7g}", size=10))
    return parts


def _band(line: NumberLine, low: float, high: float, top: float, kind: str) -> str:
    """What lies between two values, clipped to what is in view: a filled band, or a hatched one where nothing is."""
    low, high = max(low, line.low), min(high, line.high)
    if low >= high:
        return ""
    x, end = (LEFT + PLOT * min(max(line.place(at), 0.0), 1.0) for at in (low, high))
    fill = {"normal": svg.CURVE, "subnormal": ORANGE}.get(kind, _hatch(line))
    wide = max(end - x, 1.5)  # the subnormals of FP16 are a hair on a linear axis, and they are there
    return f'<rect x="{x:.1f}" y="{top + 8}" width="{wide:.1f}" height="22" style="fill:{fill}"/>'


def _legend(line: NumberLine, y: float) -> str:
    parts = [
        f'<defs><pattern id="{_hatch(line)[5:-1]}" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><path d="M0,0 V6" style="stroke:{VERMILLION};stroke-width:2"/></pattern></defs>'
    ]
    x = LEFT
    for fill, words, wide in (
        (svg.CURVE, "normal", 84),
        (ORANGE, "subnormal", 108),
        (_hatch(line), "no number: rounds to 0, or overflows", 0),
    ):
        parts.append(f'<rect x="{x}" y="{y - 9}" width="14" height="10" style="fill:{fill}"/>')
        parts.append(svg.text(x + 20, y, words, size=11, anchor="start", ink=FAINT))
        x += wide
    return "".join(parts)


def _hatch(line: NumberLine) -> str:
    """The fill of what holds no number, named after the view: a page has several lines, and any may be folded away."""
    return f"url(#ampkit-hatch-{abs(hash((line.low, line.high, line.log))) % 10**9})"


def _axis(line: NumberLine) -> list[tuple[float, str]]:
    if not line.log:
        span = line.high - line.low
        digits = max(3, min(15, 2 + math.ceil(math.log10(max(abs(line.low), abs(line.high)) / span * 8))))
        return [(share / 4, f"{line.value(share / 4):.{digits}g}") for share in range(5)]
    first, last = math.ceil(math.log2(line.low)), math.floor(math.log2(line.high))
    if last - first < 1:
        return [(0.0, f"{line.low:.4g}"), (1.0, f"{line.high:.4g}")]
    every = next(step for step in (1, 2, 4, 8, 16, 32, 64, 128) if (last - first) / step <= 9)
    marks = range(every * math.ceil(first / every), last + 1, every)
    return [(line.place(2.0**mark), power(2.0**mark)) for mark in marks]


def _controls(line: NumberLine) -> Any:
    try:
        import ipywidgets as widgets
    except ImportError:  # the picture still shows
        return None
    picture, says = widgets.HTML(), widgets.HTML()
    ends = [widgets.Text(description=name, continuous_update=False) for name in ("from", "to")]
    axis = widgets.ToggleButtons(options=["linear", "log"], tooltips=["linear axis", "log2 axis"])
    axis.style.button_width = "64px"
    views = widgets.Dropdown(options=["choose a view …", *VIEWS])
    views.layout.width = "210px"
    for box in ends:
        box.style.description_width, box.layout.width = "34px", "150px"
    drawing_now = False

    def draw() -> None:
        nonlocal drawing_now
        picture.value, says.value = line_svg(line), ""
        drawing_now = True  # the controls follow the line here, and must not drive it
        ends[0].value, ends[1].value = f"{line.low:.12g}", f"{line.high:.12g}"
        axis.value = "log" if line.log else "linear"
        drawing_now = False

    def act(action: Callable[[], Any]) -> None:
        if drawing_now:
            return
        try:
            action()
        except ValueError as error:
            draw()
            says.value = f'<span role="alert" style="color:{INK}">✗ {html.escape(str(error))}</span>'
            return
        draw()

    def press(label: str, hint: str, action: Callable[[], Any]) -> Any:
        button = widgets.Button(description=label, tooltip=hint)
        button.layout = widgets.Layout(width="auto", margin="2px 4px 2px 0")
        button.on_click(lambda _: act(action))
        return button

    def set_ends(_: Any) -> None:
        act(lambda: line.show(number(ends[0].value), number(ends[1].value), line.log))

    def set_axis(change: Any) -> None:
        act(lambda: line.show(line.low, line.high, change["new"] == "log"))

    def set_view(change: Any) -> None:
        if change["new"] in VIEWS:
            act(lambda: line.show(*VIEWS[change["new"]]))

    for box in ends:
        box.observe(set_ends, names="value")
    axis.observe(set_axis, names="value")
    views.observe(set_view, names="value")
    moves = [
        press("◀", "towards smaller numbers, by half of what is in view", lambda: line.pan(-0.5)),
        press("zoom in", "to a quarter of what is in view, around its middle", lambda: line.zoom(1 / 4)),
        press("zoom out", "to four times what is in view", lambda: line.zoom(4)),
        press("▶", "towards larger numbers, by half of what is in view", lambda: line.pan(0.5)),
    ]
    wrap = widgets.Layout(flex_flow="row wrap", align_items="center")
    draw()
    parts = [widgets.Box([views, *moves], layout=wrap), picture, widgets.Box([*ends, axis, says], layout=wrap)]
    return widgets.VBox(parts, layout=widgets.Layout(max_width="800px", padding="4px"))
