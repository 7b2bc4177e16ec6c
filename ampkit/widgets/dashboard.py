"""The training dashboard: loss, true gradient norm, scale with its skipped steps, samples/s and memory, step by step."""

from __future__ import annotations

import html
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from ampkit import gpu
from ampkit.errors import ReportError
from ampkit.report import StepReport, read_reports
from ampkit.show import FAINT, INK, PURPLE, RULE, VERMILLION, Live, Shown, drawing, power
from ampkit.widgets import svg

__all__ = ["Dashboard", "charts_alt", "charts_svg", "dashboard", "watch"]

COLUMNS = 300  # a longer series is drawn by the smallest and largest value of each column
LEFT, PLOT, HIGH, GAP = 104, 462, 62, 16  # of a chart; a row that has nothing to draw is as high as its line of text
NAMES = ("loss (nats)", "gradient norm", "scale", "samples/s", "peak MiB")
LOG = NAMES[:3]
EMPTY = {"scale": "no GradScaler in this loop", "peak MiB": "measured on CUDA only"}


def dashboard(source: Iterable[StepReport] | str | Path, title: str = "") -> Dashboard:
    """All that a run's step records say, as five charts over its steps.

    source: the records, or the JSONL log of a run (`ampkit train LOOP --log FILE`). A log, also that of a run that still
    trains elsewhere, gets a button that reads it again. Raises ReportError for a log that cannot be read.
    """
    return Dashboard(source, title)


def watch(
    reports: Iterable[StepReport], total: int | None = None, title: str = "", every_s: float = 0.5
) -> Iterator[StepReport]:
    """Passes the reports through, like `progress`, while a dashboard below the cell follows them.

    total: steps to come, if known; the charts then leave room for them. every_s: seconds between two drawings; the last
    step is always drawn, also when the loop ends with an error. Outside of a notebook it draws nothing. On a GPU that
    others use as well it says so below: samples/s is not to be trusted then.
    """
    show, seen, drawn_s, shared = _display(), [], -math.inf, None
    try:
        for report in reports:
            seen.append(report)
            if show is not None and time.monotonic() - drawn_s >= every_s:
                shared = shared or _shared(report)
                show(_still(seen, title, total, shared))
                drawn_s = time.monotonic()
            yield report
    finally:
        if show is not None and seen:
            show(_still(seen, title, total, shared or _shared(seen[-1])))


def _shared(report: StepReport) -> str | None:
    return gpu.sharing() if report.peak_bytes is not None else None  # that is measured on CUDA only


def charts_svg(reports: Sequence[StepReport], title: str = "", total: int | None = None) -> str:
    """The five charts under each other; a cross marks a skipped step, and a value that is inf or nan."""
    series, steps = _series(reports), max(total or 0, len(reports), 2)
    heights = [HIGH if _drawable(name, values) else 22 for name, values in series.items()]
    base = 44 + sum(heights) + GAP * len(heights)
    parts = [svg.opened(base + 42, charts_alt(reports, title))]
    parts.append(svg.text(14, 24, title or "Training, step by step", size=15, anchor="start", bold=True))
    top = 44
    for (name, values), high in zip(series.items(), heights, strict=True):
        parts += _chart(name, values, reports, top, steps) if high == HIGH else _no_chart(name, bool(reports), top)
        top += high + GAP
    first = reports[0].step if reports else 0
    for place in (0, steps // 2, steps - 1):
        parts.append(svg.text(_x(place, steps), base + 4, str(first + place), size=11))
    parts.append(svg.text(LEFT + PLOT + 14, base + 4, "step", size=11, anchor="start", ink=FAINT))
    parts.append(svg.cross(LEFT + 6, base + 24))
    note = "step skipped by the scaler; in the other charts: inf or nan"
    parts.append(svg.text(LEFT + 18, base + 28, note, size=11, anchor="start", ink=FAINT))
    return "".join(parts) + "</svg>"


def charts_alt(reports: Sequence[StepReport], title: str = "") -> str:
    """The charts in words."""
    if not reports:
        return f"{title or 'Training'}: no step yet."
    last, skips = reports[-1], sum(report.skipped for report in reports)
    scale = "no scaler" if last.scale is None else f"scale {last.scale:g}, {skips} skipped"
    return (
        f"{title or 'Training'}, {_steps(reports)}: loss {reports[0].loss:.3g} to {last.loss:.3g}, gradient norm "
        f"{reports[0].grad_norm:.3g} to {last.grad_norm:.3g}, {scale}."
    )


class Dashboard(Live):
    """The drawn run; `reports` are its records, `read()` takes them anew from the log."""

    def __init__(self, source: Iterable[StepReport] | str | Path, title: str = "") -> None:
        self.path = Path(source) if isinstance(source, str | Path) else None
        self.title = title or (self.path.name if self.path else "")
        self.reports: list[StepReport] = [] if self.path else list(source)  # type: ignore[arg-type]
        if self.path:
            self.read()
        still = _still(self.reports, self.title)
        super().__init__(still.html, still.text, alt=still.alt)
        self.widget = _controls(self) if self.path else None

    def read(self) -> None:
        """Takes the records from the log. ReportError if it cannot be read; the records then stay as they were."""
        if self.path is None:
            raise ReportError(
                "These records came without a log, so there is none to read. Give dashboard() a log's path."
            )
        try:
            self.reports = read_reports(self.path)
        except OSError as error:
            message = (
                f"The log {self.path} cannot be read: {error.strerror}. `ampkit train LOOP --log FILE` writes one."
            )
            raise ReportError(message) from None


def _steps(reports: Sequence[StepReport]) -> str:
    return f"{len(reports)} step" + ("" if len(reports) == 1 else "s")


def _still(reports: Sequence[StepReport], title: str, total: int | None = None, shared: str | None = None) -> Shown:
    note = gpu.not_to_be_trusted(shared) if shared else ""
    return drawing(charts_svg(reports, title, total), charts_alt(reports, title), note)


def _display() -> Callable[[Shown], Any] | None:
    """What shows a picture and then replaces it, in the output of the running cell; None outside of a notebook."""
    import sys

    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        return None
    from IPython.display import display

    handle = None

    def show(shown: Shown) -> None:
        nonlocal handle
        if handle is None:
            handle = display(shown, display_id=True)
        else:
            handle.update(shown)

    return show


def _series(reports: Sequence[StepReport]) -> dict[str, list[float | None]]:
    values: tuple[list[float | None], ...] = (
        [report.loss for report in reports],
        [report.grad_norm for report in reports],
        [report.scale for report in reports],
        [report.samples / report.seconds if report.seconds > 0 else None for report in reports],
        [None if report.peak_bytes is None else report.peak_bytes / 2**20 for report in reports],
    )
    return dict(zip(NAMES, values, strict=True))


def _x(place: int, steps: int) -> float:
    return LEFT + PLOT * place / (steps - 1)


def _chart(
    name: str, values: Sequence[float | None], reports: Sequence[StepReport], top: float, steps: int
) -> list[str]:
    log, there = name in LOG, _drawable(name, values)
    parts = [svg.text(LEFT - 10, top + HIGH / 2, name, size=12, anchor="end")]
    parts.append(
        svg.text(LEFT - 10, top + HIGH / 2 + 14, "log axis" if log else "from 0", size=10, anchor="end", ink=FAINT)
    )
    parts.append(f'<path d="M{LEFT},{top + HIGH} h{PLOT}" style="stroke:{RULE};stroke-width:0.8"/>')
    scaled = [math.log2(value) if log else value for value in there]
    low, high = (min(scaled), max(scaled)) if log else (0.0, max(scaled))
    low, high = (low - 0.5, high + 0.5) if high - low < 1e-9 else (low, high)

    def y(value: float) -> float:
        return top + HIGH - 4 - (HIGH - 10) * ((math.log2(value) if log else value) - low) / (high - low)

    skipped = [report.skipped for report in reports]
    colour = PURPLE if name == "scale" else svg.CURVE
    parts.append(_path(name, values, steps, y, colour))
    for place, value in _marked(name, values, skipped):
        parts.append(svg.cross(_x(place, steps), y(value) if value is not None else top + 4))
    write = power if name == "scale" else lambda value: f"{value:.4g}"
    write = (lambda value: f"{value:,.0f}") if name == "samples/s" else write
    parts.append(svg.text(LEFT + PLOT + 14, top + 16, _now(name, values, write), size=14, anchor="start"))
    span = f"{write(min(there))} to {write(max(there))}"
    parts.append(svg.text(LEFT + PLOT + 14, top + 34, span, size=11, anchor="start", ink=FAINT))
    if name == "scale":
        words = f"{sum(skipped)} of {len(skipped)} steps skipped"
        parts.append(svg.text(LEFT + PLOT + 14, top + 50, words, size=11, anchor="start", ink=FAINT))
    return parts


def _no_chart(name: str, begun: bool, top: float) -> list[str]:
    why = EMPTY.get(name, "no finite value") if begun else "no step yet"
    return [
        svg.text(LEFT - 10, top + 14, name, size=12, anchor="end"),
        svg.text(LEFT + 10, top + 14, why, size=12, anchor="start", ink=FAINT),
    ]


def _drawable(name: str, values: Sequence[float | None]) -> list[float]:
    """The values that have a place on the axis: finite, and above 0 on a log axis."""
    return [v for v in values if v is not None and math.isfinite(v) and (v > 0 or name not in LOG)]


def _now(name: str, values: Sequence[float | None], write: Callable[[float], str]) -> str:
    if name == "samples/s":
        return f"median {write(median(value for value in values if value is not None))}"
    return "–" if values[-1] is None else write(values[-1])


def _marked(name: str, values: Sequence[float | None], skipped: Sequence[bool]) -> Iterator[tuple[int, float | None]]:
    """The steps that get a cross, and where: at the scale of a skipped step, at the top for what has no place."""
    for place, (value, skip) in enumerate(zip(values, skipped, strict=True)):
        if name == "scale" and skip:
            yield place, value
        elif value is not None and not math.isfinite(value):
            yield place, None


def _path(name: str, values: Sequence[float | None], steps: int, y: Callable[[float], float], colour: str) -> str:
    """The curve, broken where there is no value; of a long run, the lowest and highest value of each column.

    The scale is drawn in steps: it holds until it changes.
    """
    wide, data, pen = max(1, math.ceil(len(values) / COLUMNS)), "", False
    for start in range(0, len(values), wide):
        some = enumerate(values[start : start + wide], start)
        block = [(i, v) for i, v in some if v is not None and _drawable(name, [v])]
        if not block:
            pen = False
            continue
        ends = {min(block, key=lambda point: point[1]), max(block, key=lambda point: point[1])}
        for place, value in sorted(ends):
            x, level = _x(place, steps), y(value)
            data += (
                f"H{x:.1f} V{level:.1f} " if pen and name == "scale" else f"{'L' if pen else 'M'}{x:.1f},{level:.1f} "
            )
            pen = True
    return f'<path d="{data}" fill="none" style="stroke:{colour};stroke-width:1.8"/>'


def _controls(board: Dashboard) -> Any:
    try:
        import ipywidgets as widgets
    except ImportError:  # the picture still shows
        return None
    picture, says = widgets.HTML(charts_svg(board.reports, board.title)), widgets.HTML()
    again = widgets.Button(description="read the log again", tooltip=f"Read {board.path} again")
    again.layout.width = "auto"

    def read(_: Any) -> None:
        try:
            board.read()
        except ReportError as error:
            says.value = f'<span role="alert" style="color:{VERMILLION}">✗ {html.escape(str(error))}</span>'
            return
        picture.value = charts_svg(board.reports, board.title)
        says.value = f'<span role="status" style="color:{INK}">{_steps(board.reports)}</span>'

    again.on_click(read)
    return widgets.VBox([picture, widgets.HBox([again, says])], layout=widgets.Layout(max_width="800px"))
