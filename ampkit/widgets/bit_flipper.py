"""One number, bit by bit: click a bit, type a value, change the format, and read what the pattern means."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from typing import Any

from ampkit.formats import FORMATS, FP16, Format
from ampkit.show import FAINT, GREEN, INK, MONO, ORANGE, PAPER, RULE, SKY, VERMILLION, Live, drawing
from ampkit.widgets import svg

__all__ = ["BitFlipper", "Flipper", "bit_flipper", "bits_alt", "bits_svg", "number", "readings_html"]

PARTS = {"sign": ORANGE, "exponent": SKY, "mantissa": GREEN}
INVITE = "Run this cell in JupyterLab to flip the bits, type a value, or change the format."
WHAT = {
    "zero": "zero",
    "subnormal": "subnormal: no leading 1, so fewer significant bits the smaller it is",
    "normal": "normal",
    "inf": "infinity",
    "nan": "not a number",
}


class BitFlipper:
    """A pattern of bits in a format, and the value that was asked for, if one was; it draws nothing.

    position 0 is the sign, the leftmost bit; bits is the whole pattern as an integer.
    """

    def __init__(self, value: float = 1.0, fmt: Format = FP16) -> None:
        self.fmt = fmt
        self.asked: float | None = None
        self.bits = 0
        self.store(value)

    @property
    def value(self) -> float:
        """What the pattern stands for."""
        return self.fmt.decode(self.bits)

    def flip(self, position: int) -> None:
        """Turns one bit over; it is then nobody's rounded value any more."""
        self.bits ^= 1 << self.fmt.bits - 1 - position
        self.asked = None

    def store(self, value: float) -> None:
        """Rounds value into the format, as PyTorch's cast does."""
        self.asked, self.bits = value, self.fmt.encode(value)

    def change(self, fmt: Format) -> None:
        """Casts the value to another format; what that format cannot hold is rounded away."""
        value, self.fmt = self.value, fmt
        self.store(value)

    def step(self, upwards: bool) -> None:
        """Goes to the next number on the line; from inf to max, and from nan nowhere."""
        if not math.isnan(self.value):
            self.bits = self.fmt.encode(self.fmt.neighbours(self.value)[upwards])
            self.asked = None

    def part(self, position: int) -> tuple[str, int]:
        """Which part of the pattern a bit belongs to, and the power of two that it counts for there."""
        if position == 0:
            return "sign", 0
        if position <= self.fmt.exponent_bits:
            return "exponent", self.fmt.exponent_bits - position
        return "mantissa", self.fmt.exponent_bits - position

    def digits(self) -> str:
        """The pattern as it is drawn, sign first."""
        return f"{self.bits:0{self.fmt.bits}b}"

    def readings(self) -> list[tuple[str, str]]:
        """What there is to know about the pattern: pairs of a name and a text."""
        fmt, value, what = self.fmt, self.value, self.fmt.classify(self.bits)
        kind = WHAT[what]
        if what in ("subnormal", "normal"):
            has = fmt.mantissa_bits + 1 if what == "normal" else fmt.fields(self.bits)[2].bit_length()
            kind += f" ({has} of {fmt.mantissa_bits + 1} significant bits)"
        pairs = [("value", f"{value!r}"), ("class", kind), ("formula", fmt.formula(self.bits))]
        pairs.append(self._asked())
        if what == "nan":
            pairs.append(("neighbours", "none: nan is not on the number line"))
        else:
            below, above = fmt.neighbours(value)
            ends = [f"{end:.9g}" if fmt.ieee or math.isfinite(end) else "nothing" for end in (below, above)]
            ends = ["nothing" if end == value else words for end, words in zip((below, above), ends, strict=True)]
            gap = f", one spacing is {fmt.spacing(value):.4g}" if math.isfinite(value) else ""
            pairs.append(("neighbours", f"{ends[0]} below, {ends[1]} above{gap}"))
        return pairs

    def _asked(self) -> tuple[str, str]:
        asked, value = self.asked, self.value
        if asked is None or not math.isfinite(asked):
            return "pattern", f"{self.bits:#0{2 + -(-self.fmt.bits // 4)}x}"
        if value == asked:
            return "asked for", f"{asked!r}, stored exactly"
        if abs(asked) >= self.fmt.overflow_at:
            return "asked for", f"{asked!r}, beyond the largest number {self.fmt.max:.9g}"
        return "asked for", f"{asked!r}, stored with a relative error of {abs((value - asked) / asked):.2g}"


def bits_svg(state: BitFlipper) -> str:
    """The pattern with its three parts, and the readings below it."""
    fmt, parts = state.fmt, [svg.opened(214, bits_alt(state))]
    wide = 21.0
    gap = 10.0
    left = (svg.WIDTH - fmt.bits * wide - 2 * gap) / 2
    spans: dict[str, list[float]] = {}
    for position, digit in enumerate(state.digits()):
        name, _ = state.part(position)
        x = left + position * wide + gap * list(PARTS).index(name)
        spans.setdefault(name, [x, x])[1] = x + wide
        fill, ink = (PARTS[name], "#000000") if digit == "1" else (PAPER, INK)
        parts.append(
            f'<rect x="{x + 1:.1f}" y="34" width="{wide - 2:.1f}" height="32" rx="3" '
            f'style="fill:{fill};stroke:{PARTS[name]};stroke-width:2"/>'
        )
        parts.append(svg.text(x + wide / 2, 56, digit, size=16, ink=ink, bold=digit == "1", mono=True))
    for name, (start, end) in spans.items():
        count = {"sign": 1, "exponent": fmt.exponent_bits, "mantissa": fmt.mantissa_bits}[name]
        parts.append(svg.text((start + end) / 2, 24, name if name == "sign" else f"{name} ({count})", size=12))
    parts.append(svg.text(20, 90, fmt.name, size=15, anchor="start", bold=True))
    for row, (name, words) in enumerate(state.readings()):
        parts.append(svg.text(20, 114 + 22 * row, name, anchor="start", ink=FAINT))
        parts.append(svg.text(110, 114 + 22 * row, words, anchor="start", mono=name not in ("class",)))
    return "".join(parts) + "</svg>"


def bits_alt(state: BitFlipper) -> str:
    """The pattern in words."""
    digits = state.digits()
    cut = 1 + state.fmt.exponent_bits
    return (
        f"The {state.fmt.bits} bits of a number in {state.fmt.name}: sign {digits[0]}, exponent {digits[1:cut]}, "
        f"mantissa {digits[cut:]}. Its value is {state.value!r}, {WHAT[state.fmt.classify(state.bits)]}."
    )


def readings_html(state: BitFlipper) -> str:
    """The readings as a table that a screen reader announces when they change."""
    cell = f"padding:0.15em 0.8em;border-bottom:1px solid {RULE};"
    rows = "".join(
        f'<tr><th scope="row" style="{cell}color:{FAINT};text-align:left;font-weight:400">{name}</th>'
        f'<td style="{cell}font-family:{MONO};text-align:left">{html.escape(words)}</td></tr>'
        for name, words in state.readings()
    )
    return (
        f'<div role="status" aria-live="polite"><table style="border-collapse:collapse;color:{INK};'
        f'min-width:{svg.WIDTH - 60}px">{rows}</table></div>'
    )


class Flipper(Live):
    """The drawn pattern; `state` is what the buttons change."""

    def __init__(self, state: BitFlipper) -> None:
        still = drawing(bits_svg(state), bits_alt(state), INVITE)
        super().__init__(still.html, still.text, alt=still.alt)
        self.state, self.widget = state, _controls(state)


def bit_flipper(value: float = 1.0, fmt: Format = FP16) -> Flipper:
    """The bits of value in fmt, to flip one by one, with what they mean: class, formula, value and neighbours.

    Without a kernel, the first view stands as a picture.
    """
    return Flipper(BitFlipper(value, fmt))


# A 1 is filled and a 0 is hollow, so that colour tells only which part of the pattern a bit belongs to.
STYLE = "<style>.ampkit-bit.jupyter-button{padding:0;min-width:0;border-radius:3px}"
STYLE += "".join(
    f".ampkit-bit.ampkit-{name}{{border:2px solid {colour};background:{PAPER};color:{INK}}}"
    f".ampkit-bit.ampkit-{name}.ampkit-one{{background:{colour};color:#000000;font-weight:700}}"
    for name, colour in PARTS.items()
)
STYLE += f".ampkit-bit.jupyter-button:focus-visible{{outline:3px solid {VERMILLION};outline-offset:1px}}</style>"


def _controls(state: BitFlipper) -> Any:
    try:
        import ipywidgets as widgets
    except ImportError:  # the picture still shows
        return None
    row, readings, says = widgets.HBox(), widgets.HTML(), widgets.HTML()
    row.layout = widgets.Layout(overflow="visible", margin="2px 0")

    def draw() -> None:
        for button, digit in zip(row.children, state.digits(), strict=True):
            button.description = digit
            (button.add_class if digit == "1" else button.remove_class)("ampkit-one")
        readings.value = readings_html(state)

    def build() -> None:
        row.children = [bit(position) for position in range(state.fmt.bits)]
        draw()

    def bit(position: int) -> Any:
        name, power = state.part(position)
        worth = {"sign": "sign bit", "exponent": f"exponent bit, worth {2 ** max(power, 0)}"}
        hint = worth.get(name, f"mantissa bit, worth 2^{power}")
        button = widgets.Button(tooltip=f"Flip the {hint}")
        first = power == (state.fmt.exponent_bits - 1 if name == "exponent" else -1) and name != "sign"
        button.layout = widgets.Layout(width="21px", height="34px", margin=f"2px 1px 2px {8 if first else 1}px")
        button.add_class("ampkit-bit")
        button.add_class(f"ampkit-{name}")

        def flip(_: Any) -> None:
            state.flip(position)
            draw()

        button.on_click(flip)
        return button

    def press(label: str, hint: str, action: Callable[[], Any]) -> Any:
        button = widgets.Button(description=label, tooltip=hint)
        button.layout = widgets.Layout(width="auto", margin="2px 4px 2px 0")

        def pressed(_: Any) -> None:
            action()
            draw()

        button.on_click(pressed)
        return button

    kinds = widgets.ToggleButtons(options=[(f.name, f) for f in FORMATS], value=state.fmt)
    kinds.style.button_width = "auto"
    typed = widgets.Text(description="store", placeholder="0.1, 2**-24, 1e5 …", continuous_update=False)
    typed.style.description_width, typed.layout.width = "36px", "190px"

    def changed(change: Any) -> None:
        state.change(change["new"])
        build()

    def store(change: Any) -> None:
        try:
            value = number(change["new"])
        except ValueError as error:
            says.value = f'<span role="alert" style="color:{INK}">✗ {html.escape(str(error))}</span>'
            return
        says.value = ""
        state.store(value)
        draw()

    kinds.observe(changed, names="value")
    typed.observe(store, names="value")
    wrap = widgets.Layout(flex_flow="row wrap", align_items="center")
    around = [
        press("◀ next below", "the next smaller number of the format", lambda: state.step(upwards=False)),
        press("next above ▶", "the next larger number of the format", lambda: state.step(upwards=True)),
        press("smallest", "the smallest positive number", lambda: state.store(state.fmt.smallest_subnormal)),
        press("smallest normal", "the smallest normal number", lambda: state.store(state.fmt.smallest_normal)),
        press("1", "one", lambda: state.store(1.0)),
        press("largest", "the largest finite number", lambda: state.store(state.fmt.max)),
    ]
    build()
    parts = [widgets.HTML(STYLE, layout=widgets.Layout(display="none")), kinds, row, readings]
    parts += [widgets.Box([typed, says], layout=wrap), widgets.Box(around, layout=wrap)]
    return widgets.VBox(parts, layout=widgets.Layout(max_width="800px", padding="4px"))


def number(words: str) -> float:
    """The number that a learner typed: a decimal, inf, nan, or a power such as 2**-24. ValueError for anything else.

    >>> number("2**-24") == 2**-24, number("-1e5")
    (True, -100000.0)
    """
    base, power, exponent = words.replace("^", "**").replace("−", "-").partition("**")
    try:
        return float(base) ** int(exponent) if power else float(base)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise ValueError(f"{words.strip()!r} is not a number. Type one as 0.1, 1e-8 or 2**-24.") from None
