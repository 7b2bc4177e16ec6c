"""Draws a ScalerLab: the state diagram, the readings, the strip chart of the scale, and the controls around them."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from typing import Any

from ampkit.show import BLUE, FAINT, GREEN, INK, MONO, PAPER, RULE, VERMILLION, Live, drawing, power
from ampkit.widgets import svg
from ampkit.widgets.scaler_lab import ScalerLab, Update

__all__ = [
    "Machine",
    "chart_alt",
    "chart_svg",
    "message_html",
    "readings_html",
    "scaler_machine",
    "state_alt",
    "state_svg",
]

STAGES = {"READY": 20, "UNSCALED": 285, "STEPPED": 550}
MEANS = {
    "READY": "gradients are scaled",
    "UNSCALED": "gradients are true",
    "STEPPED": "gradients are used up",
}
INVITE = "Run this cell in JupyterLab to drive the scaler: every button makes the call on a real torch.amp.GradScaler."


def state_svg(lab: ScalerLab) -> str:
    """The three stages of one optimizer, the calls between them, and the stage it is in now."""
    parts = [svg.opened(176, state_alt(lab))]
    parts.append(
        f'<defs><marker id="ampkit-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto-start-reverse"><path d="M0,0 L8,4 L0,8 z" style="fill:{FAINT}"/></marker></defs>'
    )
    arrow = f'fill="none" style="stroke:{FAINT};stroke-width:1.6" marker-end="url(#ampkit-tip)"'
    parts += [
        f'<path d="M190,88 H281" {arrow}/>',
        svg.text(236, 79, "unscale_()", mono=True),
        f'<path d="M455,88 H546" {arrow}/>',
        svg.text(500, 79, "step()", mono=True),
        f'<path d="M105,60 C105,14 635,14 635,56" {arrow}/>',
        svg.text(370, 18, "step() unscales by itself if you did not", mono=False),
        f'<path d="M660,120 C660,166 80,166 80,124" {arrow}/>',
        svg.text(370, 170, "update() clears the stage, from wherever it is", mono=False),
    ]
    for name, left in STAGES.items():
        now = name == lab.stage
        fill, edge, ink = (BLUE, BLUE, "#ffffff") if now else (PAPER, RULE, INK)
        parts.append(
            f'<rect x="{left}" y="60" width="170" height="60" rx="10" '
            f'style="fill:{fill};stroke:{edge};stroke-width:{3 if now else 1.5}"/>'
        )
        title = f"▶ {name}" if now else name
        parts.append(svg.text(left + 85, 86, title, size=16, ink=ink, bold=True))
        parts.append(svg.text(left + 85, 107, MEANS[name], size=12, ink=ink))
    return "".join(parts) + "</svg>"


def state_alt(lab: ScalerLab) -> str:
    """The state diagram in words."""
    return (
        "State diagram of one optimizer in GradScaler: READY goes to UNSCALED by unscale_(), UNSCALED to STEPPED by "
        f"step(), update() leads back to READY. The optimizer is {lab.stage} now; the scale is {lab.scale:g}."
    )


def chart_svg(updates: list[Update], init_scale: float) -> str:
    """The scale over the last 60 updates on a log2 axis; a cross where the step was skipped."""
    shown = updates[-60:]
    start = init_scale if len(updates) <= 60 else updates[-61].scale
    levels = [math.log2(u.scale) if u.scale > 0 else -149.0 for u in shown]
    low = math.floor(min([*levels, math.log2(start)])) - 1
    high = math.ceil(max([*levels, math.log2(start)])) + 1
    left, top, wide, tall = 70, 12, svg.WIDTH - 90, 92

    def x(count: int) -> float:
        return left + wide * count / max(len(shown), 20)

    def y(level: float) -> float:
        return top + tall * (high - level) / (high - low)

    parts = [svg.opened(150, chart_alt(updates, init_scale))]
    for line in sorted({low, (low + high) // 2, high}):
        parts.append(f'<path d="M{left},{y(line):.1f} H{left + wide}" style="stroke:{RULE};stroke-width:0.6"/>')
        parts.append(svg.text(left - 8, y(line) + 4, power(2.0**line), size=11, anchor="end", ink=FAINT))
    path, before = f"M{x(0):.1f},{y(math.log2(start)):.1f}", math.log2(start)
    for count, level in enumerate(levels, 1):
        path += f" H{x(count):.1f} V{y(level):.1f}" if level != before else f" H{x(count):.1f}"
        before = level
    parts.append(f'<path d="{path}" fill="none" style="stroke:{BLUE};stroke-width:2.4"/>')
    before = math.log2(start)
    for count, (update, level) in enumerate(zip(shown, levels, strict=True), 1):
        if update.skipped:
            parts.append(svg.cross(x(count), y(level)))
        elif level > before:
            a, b = x(count), y(level)
            parts.append(f'<path d="M{a - 5:.1f},{b + 5:.1f} h10 l-5,-9 z" style="fill:{GREEN}"/>')
        before = level
    parts.append(
        svg.cross(left + 190, 140 - 4)
        + svg.text(left + 202, 140, "step skipped, scale halved", size=11, anchor="start")
    )
    parts.append(f'<path d="M{left + 395},140 h10 l-5,-9 z" style="fill:{GREEN}"/>')
    parts.append(svg.text(left + 412, 140, "scale doubled", size=11, anchor="start"))
    parts.append(svg.text(left, 140, "scale (log2), updates →", size=11, anchor="start", ink=FAINT))
    return "".join(parts) + "</svg>"


def chart_alt(updates: list[Update], init_scale: float) -> str:
    """The chart of the scale in words."""
    now = updates[-1].scale if updates else init_scale
    skipped = sum(update.skipped for update in updates)
    return f"Scale after each update: {len(updates)} updates from {init_scale:g}, {skipped} skipped steps, now {now:g}."


def readings_html(lab: ScalerLab) -> str:
    """What the scaler and the gradients say now, as a table of two columns of pairs."""
    stored, true = lab.stored_norm, lab.true_norm
    ratio = "" if not stored or not true or not math.isfinite(stored / true) else f" ({stored / true:g} × true)"
    found = {None: "not looked yet", 0.0: "0"}.get(lab.found_inf, "1")
    last = {None: "no step yet", True: "skipped", False: "taken"}[lab.skipped]
    pairs = [
        ("get_scale()", f"{lab.scale:g}"),
        ("norm of .grad as stored", "no gradient" if stored is None else f"{stored:.4g}{ratio}"),
        ("growth tracker", f"{lab.tracker} of {lab.growth_interval}"),
        ("norm of the true gradient", f"{true:.4g}"),
        ("found_inf", found),
        ("this step", f"{last}; {lab.steps_taken} taken in all"),
    ]
    cell = f"padding:0.15em 0.8em;border-bottom:1px solid {RULE};"
    rows = ""
    for first, second in zip(pairs[::2], pairs[1::2], strict=True):
        rows += "<tr>" + "".join(
            f'<td style="{cell}color:{FAINT}">{html.escape(name)}</td>'
            f'<td style="{cell}font-family:{MONO};min-width:9em"><strong>{html.escape(value)}</strong></td>'
            for name, value in (first, second)
        )
        rows += "</tr>"
    return f'<table style="border-collapse:collapse;color:{INK};margin:0.2em 0">{rows}</table>'


def message_html(lab: ScalerLab) -> str:
    """The last call with its outcome, or PyTorch's own error, and the calls before it."""
    if not lab.calls:
        return (
            f'<div role="status" style="border-left:5px solid {RULE};padding:0.4em 0.8em;color:{INK};'
            f'min-height:4.6em;line-height:1.45">{html.escape(FIRST)}</div>'
        )
    last = lab.calls[-1]
    colour = VERMILLION if last.error else GREEN
    line = f'<div style="font-family:{MONO}">{html.escape(last.code)}</div>'
    if last.error:
        line += f'<div style="font-family:{MONO};font-weight:700">✗ {html.escape(last.error)}</div>'
    line += f"<div>{html.escape(last.meaning)}</div>"
    before = " → ".join(call.name + (" ✗" if call.error else "") for call in lab.calls[-8:-1])
    line += f'<div style="color:{FAINT};font-size:0.9em">before: {html.escape(before or "nothing")}</div>'
    return (
        f'<div role="status" aria-live="polite" style="border-left:5px solid {colour};padding:0.4em 0.8em;color:{INK};'
        f'max-width:{svg.WIDTH}px;min-height:4.6em;line-height:1.45">{line}</div>'
    )


FIRST = "Start with scaler.scale(loss).backward(). Then try the calls in the wrong order."


class Machine(Live):
    """The drawn scaler; `lab` is the real one behind it."""

    def __init__(self, lab: ScalerLab) -> None:
        still = drawing(state_svg(lab), state_alt(lab), INVITE)
        super().__init__(still.html, still.text, alt=still.alt)
        self.lab, self.widget = lab, _controls(lab)


def scaler_machine(
    init_scale: float = 2.0**16, growth_interval: int = 4, max_norm: float = 1.0, gradient: float = 2.0**-4
) -> Machine:
    """A real torch.amp.GradScaler("cpu") to drive call by call, with its state drawn after each call.

    gradient: size of the largest true gradient at the start, a power of two from 2**-30 to 2**12.
    Without a kernel, the first view stands as a picture.
    """
    lab = ScalerLab(init_scale, growth_interval, max_norm, gradient)
    return Machine(lab)


def _controls(lab: ScalerLab) -> Any:
    try:
        import ipywidgets as widgets
    except ImportError:  # the picture still shows
        return None
    state, readings = widgets.HTML(), widgets.HTML()
    chart, message = widgets.HTML(), widgets.HTML()

    def draw() -> None:
        state.value, readings.value = state_svg(lab), readings_html(lab)
        chart.value, message.value = chart_svg(lab.updates, lab.init_scale), message_html(lab)

    def button(label: str, hint: str, action: Callable[[], Any], style: str = "") -> Any:
        made = widgets.Button(description=label, tooltip=hint, button_style=style)
        made.layout = widgets.Layout(width="auto", margin="2px 6px 2px 0")
        made.style.font_family = "monospace"

        def pressed(_: Any) -> None:
            action()
            draw()

        made.on_click(pressed)
        return made

    sizes = [(power(2.0**exponent), 2.0**exponent) for exponent in range(-30, 13)]
    size = widgets.SelectionSlider(
        options=sizes, value=lab.gradient, description="largest gradient", continuous_update=False
    )
    size.style.description_width, size.layout.width = "104px", "370px"
    nan = widgets.Checkbox(value=False, description="NaN in the forward", indent=False)
    interval = widgets.Dropdown(options=[1, 2, 4, 8, 2000], value=lab.growth_interval, description="growth_interval")
    interval.style.description_width, interval.layout.width = "104px", "176px"
    nan.layout.width = "160px"

    def set_size(change: Any) -> None:
        lab.gradient = change["new"]
        draw()

    def set_nan(change: Any) -> None:
        lab.nan = change["new"]
        draw()

    def set_interval(change: Any) -> None:
        lab.growth_interval = change["new"]
        lab.scaler.set_growth_interval(change["new"])
        draw()

    size.observe(set_size, names="value")
    nan.observe(set_nan, names="value")
    interval.observe(set_interval, names="value")
    calls = [
        button("scale(loss).backward()", "scaler.scale(loss).backward(), after zero_grad()", lab.backward, "primary"),
        button("unscale_", "scaler.unscale_(optimizer)", lab.unscale, "primary"),
        button("clip", f"clip_grad_norm_(model.parameters(), {lab.max_norm:g})", lab.clip, "primary"),
        button("step", "scaler.step(optimizer)", lab.step, "primary"),
        button("update", "scaler.update()", lab.update, "primary"),
    ]
    many = [
        button("1 iteration", "all five calls in the right order", lab.iteration),
        button("10 iterations", "ten times all five calls", lambda: [lab.iteration() for _ in range(10)]),
        button("start again", "a new model, optimizer and scaler", lab.reset),
    ]
    wrap = widgets.Layout(flex_flow="row wrap", align_items="center")
    draw()
    return widgets.VBox(
        [
            widgets.Box([size, nan, interval], layout=wrap),
            widgets.Box(calls, layout=wrap),
            state,
            message,
            readings,
            chart,
            widgets.Box(many, layout=wrap),
        ],
        layout=widgets.Layout(max_width="800px", padding="4px"),
    )
