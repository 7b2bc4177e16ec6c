"""What a lesson puts on the page: pictures with alt text, tables, diffs between loops, the line about this machine.

Everything here shows itself as HTML in JupyterLab, as the same HTML on a page without a kernel, as text in a terminal.
"""

from __future__ import annotations

import base64
import html
import io
import json
import math
import os
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from ampkit import gpu

__all__ = [
    "BLACK",
    "BLUE",
    "FAINT",
    "GREEN",
    "INK",
    "MONO",
    "ORANGE",
    "PAPER",
    "PURPLE",
    "RULE",
    "SKY",
    "VERMILLION",
    "YELLOW",
    "Live",
    "Shown",
    "diff",
    "drawing",
    "loop_diff",
    "machine",
    "measured_on",
    "picture",
    "power",
    "stored_runs",
    "table",
]

# Okabe and Ito's palette, which colour-blind readers can tell apart, by what the course uses each colour for.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"

# JupyterLab's own variables make these follow its light and dark themes; the fallbacks serve every other page.
INK = "var(--jp-content-font-color1, #1f1f1f)"
FAINT = "var(--jp-content-font-color2, #595959)"
PAPER = "var(--jp-layout-color1, #ffffff)"
RULE = "var(--jp-border-color1, #9e9e9e)"
MONO = "var(--jp-code-font-family, ui-monospace, Menlo, Consolas, monospace)"


class Shown:
    """Something to look at: HTML where there is HTML, `text` everywhere else.

    alt: one sentence on what there is to see. figure: the matplotlib figure of a plot. png: the same picture as bytes.
    """

    def __init__(
        self,
        markup: str,
        text: str,
        *,
        alt: str = "",
        figure: Any = None,
        png: bytes | None = None,
    ) -> None:
        self.html, self.text, self.alt = markup, text, alt
        self.figure, self.png = figure, png

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": self.text, "text/html": self.html}
        if self.png is not None:
            bundle["image/png"] = base64.b64encode(self.png).decode()
        return bundle


class Live(Shown):
    """Something to press: an ipywidgets widget in a live notebook, and its first view as HTML on every other page.

    The two are two outputs of the cell, because a page that prefers the widget shows nothing where it cannot run it;
    the widget, once it runs, hides the first view.
    """

    widget: Any = None

    def _ipython_display_(self) -> None:
        if self.widget is None:
            raise NotImplementedError  # IPython then asks for the HTML and the text
        import ipywidgets
        from IPython.display import display

        name = f"ampkit-still-{uuid.uuid4().hex[:8]}"
        rule = f".jp-OutputArea-child:has(.{name}), .{name} {{ display: none !important; }}"
        hide = ipywidgets.HTML(f"<style>{rule}</style>", layout=ipywidgets.Layout(display="none"))
        view = ipywidgets.VBox([self.widget, hide])._repr_mimebundle_()
        still = {**self._repr_mimebundle_(), "text/html": f'<div class="{name}">{self.html}</div>'}
        display({**view, "text/plain": "", "text/html": ""}, raw=True)
        display(still, raw=True)


def picture(figure: Any, see: str, width_px: int = 760) -> Shown:
    """A matplotlib figure with `see`, one sentence on what there is to see, as its caption and its alt text."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=2 * width_px / figure.get_figwidth(), facecolor="white")
    png = buffer.getvalue()
    source = base64.b64encode(png).decode()
    words = html.escape(see)
    markup = (
        f'<figure style="margin:0.4em 0;max-width:{width_px}px">'
        f'<img alt="{words}" src="data:image/png;base64,{source}" width="{width_px}" '
        'style="max-width:100%;height:auto;background:#ffffff;border-radius:6px">'
        f'<figcaption style="color:{FAINT};font-size:0.95em;margin-top:0.3em">{words}</figcaption></figure>'
    )
    return Shown(markup, see, alt=see, figure=figure, png=png)


def drawing(svg: str, alt: str, note: str = "") -> Shown:
    """An SVG as a picture that no page's sanitiser drops, with its alt text and an optional note below it."""
    source = base64.b64encode(svg.encode()).decode()
    below = f'<p style="color:{FAINT};margin:0.3em 0">{html.escape(note)}</p>' if note else ""
    markup = f'<img alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{source}" style="max-width:100%">{below}'
    return Shown(markup, f"{alt}\n{note}".rstrip(), alt=alt)


def power(value: float) -> str:
    """A power of two as one writes it, 2¹⁶; any other number, and 1, in short decimal form."""
    exponent = math.log2(value) if value > 0 else math.nan
    if not exponent.is_integer() or exponent == 0:
        return f"{value:g}"
    return "2" + f"{exponent:.0f}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def table(header: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> Shown:
    """A table of computed values; numbers are aligned to the right, floats are shown with four significant digits."""
    shown = [[_cell(value) for value in row] for row in rows]
    align = [
        "right" if shown and all(_is_number(row[column]) for row in shown) else "left" for column in range(len(header))
    ]
    widths = [max(len(str(header[c])), *(len(row[c]) for row in shown)) if shown else 0 for c in range(len(header))]

    def line(values: Sequence[str]) -> str:
        pairs = zip(values, widths, align, strict=True)
        return "  ".join(v.rjust(w) if side == "right" else v.ljust(w) for v, w, side in pairs).rstrip()

    style = f"padding:0.25em 0.9em;border-bottom:1px solid {RULE};text-align:"
    head = "".join(
        f'<th scope="col" style="{style}{a}">{html.escape(h)}</th>' for h, a in zip(header, align, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{style}{a}">{html.escape(v)}</td>' for v, a in zip(row, align, strict=True))
        + "</tr>"
        for row in shown
    )
    title = f'<caption style="caption-side:bottom;text-align:left;color:{FAINT};padding-top:0.4em">' if caption else ""
    title += f"{html.escape(caption)}</caption>" if caption else ""
    markup = f'<table style="border-collapse:collapse;color:{INK}">{title}<thead><tr>{head}</tr></thead>'
    markup += f"<tbody>{body}</tbody></table>"
    lines = [line(list(header)), *(line(row) for row in shown)]
    return Shown(markup, "\n".join([*lines, caption] if caption else lines), alt=caption)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e9 else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def diff(text: str, title: str = "") -> Shown:
    """A unified diff in colour; the signs stay, so that the colours carry nothing alone."""
    tint = {"+": "rgba(0,114,178,0.20)", "-": "rgba(213,94,0,0.20)"}
    bar = {"+": BLUE, "-": VERMILLION}
    lines = []
    for line in text.splitlines():
        sign = line[:1]
        style = "display:block;padding:0 0.6em;border-left:4px solid transparent;"
        if line.startswith(("+++", "---")):
            style += "font-weight:bold;"
        elif sign == "@":
            style += f"color:{FAINT};"
        elif sign in tint:
            style += f"background:{tint[sign]};border-left-color:{bar[sign]};"
        lines.append(f'<span style="{style}">{html.escape(line) or "&nbsp;"}</span>')
    label = f"Difference {title}".strip()
    markup = (
        f'<pre aria-label="{html.escape(label)}" style="color:{INK};background:{PAPER};border:1px solid {RULE};'
        f'border-radius:6px;padding:0.5em 0;overflow-x:auto;white-space:pre;line-height:1.4;font-family:{MONO}">'
    )
    return Shown(markup + "".join(lines) + "</pre>", text, alt=label)


def loop_diff(a: str, b: str) -> Shown:
    """What changes from `ampkit/loops/<a>.py` to `ampkit/loops/<b>.py`, for example `loop_diff("fp16", "clipped")`."""
    from ampkit import loops

    return diff(loops.diff(a, b), f"from {a} to {b}")


def stored_runs(folder: str | Path = "measured") -> list[dict[str, Any]]:
    """The stored runs of a GPU in `folder`, each with its stamp: gpu, driver, torch, date, commit.

    ValueError: a file lacks a part of its stamp, so its numbers must not be shown.
    """
    runs = []
    for path in sorted(Path(folder).glob("*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        missing = [key for key in ("gpu", "driver", "torch", "date", "commit") if not run.get(key)]
        if missing:
            raise ValueError(f"{path.name} does not say its {', '.join(missing)}; measure again, or delete the file.")
        runs.append({**run, "file": path.name})
    return runs


def _shared(run: dict[str, Any]) -> str:
    return ", on a shared GPU and not to be trusted" if run.get("shared") else ""


def measured_on(device: str) -> str:
    """What stands under a time or a size that was just measured: the GPU or CPU, PyTorch, and whether others took part."""
    if torch.device(device).type == "cuda":
        where, shared = torch.cuda.get_device_name(device), gpu.sharing(device)
    else:
        threads = torch.get_num_threads()
        where, shared = f"this CPU, {threads} thread{'s' * (threads > 1)}", None
    words = f"{where}, PyTorch {torch.__version__}."
    return f"{words} {gpu.not_to_be_trusted(shared)}" if shared else words


def machine(folder: str | Path = "measured") -> Shown:
    """One line on what this machine can show: device, PyTorch, what is measured here, what is read from stored runs."""
    shared = gpu.sharing()  # before CUDA starts here: what is in use now is others'
    if torch.cuda.is_available():
        where = f"{torch.cuda.get_device_name()} (CUDA {torch.version.cuda})"
        here = "FP16 runs on this GPU. Every number below is computed on this machine, while you watch."
        if shared:
            here += f" What is measured on a shared GPU is not to be trusted. {shared}"
    else:
        where = f"CPU, {os.cpu_count()} cores, no CUDA GPU"
        here = (
            "FP16 is real on a CPU: the same format, the same overflow, the same GradScaler. "
            "A GPU's speed and memory are not shown."
        )
    runs = stored_runs(folder)
    if runs:
        stamps = "; ".join(
            f"{r['gpu']}, driver {r['driver']}, PyTorch {r['torch']}, {r['date']}{_shared(r)}" for r in runs
        )
        stored = f"Stored GPU runs: {stamps}."
    else:
        stored = (
            f"Stored GPU runs: none yet in {Path(folder).as_posix()}/, so no number of a GPU is shown. "
            "To see a GPU's, run this notebook on a machine that has one."
        )
    text = f"This machine: {where}; PyTorch {torch.__version__}.\n{here}\n{stored}"
    markup = (
        f'<div style="border-left:4px solid {BLUE};padding:0.3em 0.9em;color:{INK};max-width:760px">'
        f"<strong>This machine:</strong> {html.escape(where)}; PyTorch {html.escape(torch.__version__)}.<br>"
        f"{html.escape(here)}<br><span style='color:{FAINT}'>{html.escape(stored)}</span></div>"
    )
    return Shown(markup, text)
