"""The plots of the lessons: gradients over the formats' ranges, the scale over time, loss curves, what a scale costs.

Each function returns a `Shown`: `.figure` is the matplotlib figure, `.alt` one sentence on what to see in it.
matplotlib is imported when something is drawn, not before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from ampkit.formats import BF16, E4M3, E5M2, FP16, Format
from ampkit.show import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION, Shown, picture, power

SMALLEST = -25  # 2**-25 and below rounds to zero in FP16
NORMAL = -14  # 2**-14 is the smallest normal number
OVERFLOW = math.log2(65520)  # from here on FP16 rounds to inf
ZONES = ("lost", "subnormal", "normal", "overflow")
# Colour, dash and width of each curve: the first is wide and pale, so that one on top of it leaves both visible.
LINES = ((SKY, "-", 6), (VERMILLION, "--", 2), (BLACK, "-", 1.4), (GREEN, "-.", 2), (PURPLE, ":", 2), (ORANGE, "-", 2))


def gradient_histogram(
    grads: Iterable[torch.Tensor], scales: Sequence[float] = (1.0,), name: str = "gradients"
) -> Shown:
    """A histogram of log2 |g * scale| over the zones of FP16, one panel for each scale.

    grads: FP32 tensors of any shape, unscaled; exact zeros are left out and counted in the title.
    """
    flat = torch.cat([g.detach().flatten().float().cpu() for g in grads]).abs()
    finite = flat[(flat > 0) & flat.isfinite()].double()
    if not len(finite):
        raise ValueError("Every gradient is zero or not finite, so there is no histogram to draw.")
    exponents = finite.log2()
    low = min(-32, math.floor(exponents.min().item()))
    high = max(22, math.ceil(exponents.max().item() + math.log2(max(scales))))
    figure = _figure(1.9 + 1.9 * (len(scales) - 1) + 0.55)
    panels = figure.subplots(len(scales), 1, sharex=True, squeeze=False)[:, 0]
    counts = [torch.histc((exponents + math.log2(s)).float(), bins=high - low, min=low, max=high) for s in scales]
    tallest = max(count.max().item() for count in counts) / len(exponents)
    said = []
    for panel, scale, count in zip(panels, scales, counts, strict=True):
        shares = _shares(exponents + math.log2(scale))
        _zones(panel, low, high, shares)
        panel.bar(range(low, high), (count / len(exponents)).tolist(), width=0.86, align="edge", color=BLUE)
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_ylim(0, tallest * 1.42)
        panel.set_xlim(low, high)
        panel.set_ylabel("share of elements")
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        panel.set_title(f"scale {power(scale)}", loc="left", fontsize=10, fontweight="bold")
        said.append(f"at scale {power(scale)} {shares['lost']:.1%} become zero and {shares['overflow']:.1%} overflow")
    panels[-1].set_xlabel("log2 |gradient × scale|")
    figure.suptitle(f"{len(finite):,} nonzero {name}, in the range of FP16", x=0.012, ha="left", fontsize=12)
    return picture(figure, f"Where the {name} fall in FP16: {'; '.join(said)}.")


def range_histogram(
    tensors: Iterable[torch.Tensor], formats: Sequence[Format] = (FP16, BF16, E5M2, E4M3), name: str = "gradients"
) -> Shown:
    """A histogram of log2 of the magnitudes, and below it where each format has numbers, with what would get lost.

    tensors: FP32, of any shape; exact zeros and what is not finite are left out. "lost" counts the nonzero values whose
    nearest number in the format is zero, "overflow" those at or beyond its overflow_at. ValueError if nothing is left.
    """
    flat = torch.cat([t.detach().flatten().double().cpu() for t in tensors]).abs()
    finite = flat[(flat > 0) & flat.isfinite()]
    if not len(finite):
        raise ValueError(f"All {name} are zero or not finite, so there is no histogram to draw.")
    exponents = finite.log2()
    low = min(-34, math.floor(exponents.min().item()) - 1)
    high = max(18, math.ceil(exponents.max().item()) + 1)
    counts = torch.histc(exponents.float(), bins=high - low, min=low, max=high) / len(finite)
    figure = _figure(2.6 + 0.34 * len(formats))
    top, rows = figure.subplots(2, 1, sharex=True, height_ratios=(2.0, 0.36 * len(formats)))
    top.bar(range(low, high), counts.tolist(), width=0.86, align="edge", color=BLUE)
    top.set_ylabel("share of elements")
    top.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    top.set_title(f"{len(finite):,} nonzero {name}", loc="left")
    said = []
    for row, fmt in enumerate(formats):
        lost = (finite <= fmt.smallest_subnormal / 2).double().mean().item()  # the tie goes to zero, which is even
        over = (finite >= fmt.overflow_at).double().mean().item()
        start, normal, end = (math.log2(x) for x in (fmt.smallest_subnormal, fmt.smallest_normal, fmt.max))
        for left, right, colour, hatch in ((start, normal, ORANGE, "//"), (normal, end, GREEN, "")):
            left, right = max(left, low), min(right, high)
            if left < right:
                rows.barh(row, right - left, left=left, height=0.62, color=colour, hatch=hatch, edgecolor="white")
        lost_words = f"{lost:.1%} lost" if lost or start > low else ""
        rows.text(low + 0.4, row, lost_words, va="center", ha="left", fontsize=9)
        if over or end < high - 8:
            rows.text(high - 0.4, row, f"{over:.1%} overflow", va="center", ha="right", fontsize=9)
        said.append(f"{fmt.name} loses {lost:.1%} to zero and {over:.1%} to overflow")
    rows.set_yticks(range(len(formats)), [fmt.name for fmt in formats])
    rows.set_ylim(len(formats) - 0.4, -0.6)
    rows.set_xlim(low, high)
    rows.set_ylabel("format")
    rows.set_title("where each format has numbers: subnormal (hatched), normal (plain)", loc="left", fontsize=10)
    rows.set_xlabel(f"log2 |{name}|")
    for axis in (top, rows):
        axis.spines[["top", "right"]].set_visible(False)
    return picture(figure, f"The {name} against the range of each format: {'; '.join(said)}.")


def rounding_error(formats: Sequence[Format] = (FP16, BF16, E5M2, E4M3), low: int = -32, high: int = 18) -> Shown:
    """The largest relative error that PyTorch's cast makes, for numbers of each size from 2**low to 2**high.

    Of each binade 8191 evenly spaced FP32 numbers are cast. A line is at 100 % where every number becomes zero, and ends
    where numbers overflow. ValueError for a format that PyTorch has no dtype for (TF32).
    """
    if any(fmt.dtype is None for fmt in formats):
        raise ValueError("Only formats with a dtype in PyTorch can be cast to: leave TF32 out.")
    exponents = torch.arange(low, high).double()
    numbers = (exponents.exp2()[:, None] * torch.linspace(1, 2, 8192).double()[:-1]).float()
    figure = _figure(3.3)
    axis = _axis(figure)
    said = []
    for fmt, (colour, dash, width) in zip(formats, LINES, strict=False):
        back = numbers.to(fmt.dtype).float()
        error = ((back - numbers) / numbers).abs().amax(1).double()
        ends = (numbers >= fmt.overflow_at).any(
            1
        )  # E4M3 saturates there in newer PyTorch; it is an overflow all the same
        axis.plot(
            (exponents[~ends] + 0.5).tolist(),
            error[~ends].tolist(),
            dash,
            color=colour,
            linewidth=width,
            label=fmt.name,
        )
        said.append(f"{error[~ends].min().item():.2g} ({fmt.name})")
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    axis.set_xlabel("log2 |number|")
    axis.set_ylabel("largest relative error (log axis)")
    axis.set_title("What a cast from FP32 costs, by the size of the number", loc="left")
    axis.legend(frameon=False, loc="lower left")
    return picture(
        figure,
        f"Each error is flat at its best, {', '.join(said)}, doubles with every step down through the subnormals, "
        "reaches 100% where all becomes zero, and ends on the right at overflow.",
    )


def scale_history(scales: Sequence[float], skipped: Sequence[bool], title: str = "The scale, step by step") -> Shown:
    """The scale in use at each step on a log2 axis, with a cross at each step that was skipped."""
    figure = _figure(2.7)
    axis = _axis(figure)
    steps = range(1, len(scales) + 1)
    axis.step(steps, [math.log2(scale) for scale in scales], where="post", color=BLUE, linewidth=2)
    hit = [(step, math.log2(scale)) for step, scale, skip in zip(steps, scales, skipped, strict=True) if skip]
    if hit:
        axis.plot(*zip(*hit, strict=True), "X", color=VERMILLION, markersize=9, linestyle="none", label="step skipped")
        axis.legend(frameon=False)
    axis.yaxis.get_major_locator().set_params(integer=True)
    axis.yaxis.set_major_formatter(lambda value, _: f"$2^{{{value:g}}}$")
    axis.set_xlabel("step")
    axis.set_ylabel("scale (log2 axis)")
    axis.set_title(title, loc="left")
    taken = len(scales) - len(hit)
    see = f"{len(hit)} of {len(scales)} steps are skipped and {taken} taken"
    return picture(figure, f"{see}; the scale goes from {power(scales[0])} to {power(scales[-1])}.")


def loss_curves(runs: Mapping[str, Sequence[float]], title: str = "Training loss", smooth: int = 1) -> Shown:
    """The losses of several runs over their steps on a log axis, each averaged over the last `smooth` steps."""
    figure = _figure(3.2)
    axis = _axis(figure)
    ends = {}
    for (name, losses), (colour, dash, width) in zip(runs.items(), LINES, strict=False):
        values = [sum(losses[max(0, i - smooth + 1) : i + 1]) / min(i + 1, smooth) for i in range(len(losses))]
        axis.plot(range(1, len(values) + 1), values, dash, color=colour, linewidth=width, label=name)
        ends[name] = values[-1]
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "235" else "")
    axis.set_xlabel("step")
    axis.set_ylabel("loss (nats, log axis)" if smooth == 1 else f"loss (nats, log axis, mean of {smooth} steps)")
    axis.set_title(title, loc="left")
    axis.legend(frameon=False)
    return picture(figure, "The loss ends at " + ", ".join(f"{end:.3g} ({name})" for name, end in ends.items()) + ".")


def learning_rates(runs: Mapping[str, Sequence[float]], title: str = "The learning rate, step by step") -> Shown:
    """The learning rates of several schedules over their steps, on a linear axis: a rate of 0 has its place there."""
    figure = _figure(3.0)
    axis = _axis(figure)
    said = []
    for (name, rates), (colour, dash, width) in zip(runs.items(), LINES, strict=False):
        axis.plot(range(1, len(rates) + 1), rates, dash, color=colour, linewidth=width, label=name)
        turns = sum((b - a) * (c - b) < 0 for a, b, c in zip(rates, rates[1:], rates[2:], strict=False))
        said.append(f"from {rates[0]:.3g} to {rates[-1]:.3g} with {turns} turns ({name})")
    axis.set_xlabel("step")
    axis.set_ylabel("learning rate")
    axis.set_title(title, loc="left")
    axis.margins(y=0.08)
    axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=len(runs))
    return picture(figure, f"The learning rate goes {'; '.join(said)}.")


def init_scale_cost(costs: Mapping[float, tuple[int, int]], ceiling: float) -> Shown:
    """What a first scale costs: steps skipped above the ceiling, steps taken with too low a scale below it.

    costs: for each first scale, these two counts. ceiling: the largest scale at which no gradient overflows.
    """
    figure = _figure(3.0)
    axis = _axis(figure)
    scales = sorted(costs)
    skipped, waiting = ([costs[scale][part] for scale in scales] for part in (0, 1))
    places = [math.log2(scale) for scale in scales]
    axis.bar(places, waiting, 0.7, color=SKY, label="taken with too low a scale")
    axis.bar(places, skipped, 0.7, color=VERMILLION, hatch="//", label="skipped, scale too high")
    axis.axvline(math.log2(ceiling), color=BLACK, linewidth=1.2, linestyle="--", label=f"ceiling {power(ceiling)}")
    axis.set_yscale("symlog", linthresh=1)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.xaxis.set_major_formatter(lambda value, _: f"$2^{{{value:g}}}$")
    axis.set_xlabel("init_scale (log2 axis)")
    axis.set_ylabel("steps (log axis)")
    axis.set_title("What a first scale costs until the ceiling is reached", loc="left")
    axis.set_ylim(0, 60 * max(*waiting, *skipped, 1))
    axis.legend(frameon=False, loc="upper right", ncols=3)
    worst_low, worst_high = max(waiting), max(skipped)
    return picture(
        figure,
        f"Too high costs at most {worst_high:,} skipped steps; too low costs up to {worst_low:,} steps with a scale "
        "below the ceiling.",
    )


def _shares(exponents: torch.Tensor) -> dict[str, float]:
    edges = (-math.inf, SMALLEST, NORMAL, OVERFLOW, math.inf)
    last = exponents <= SMALLEST
    shares = {"lost": last.double().mean().item()}
    for name, start, end in zip(ZONES[1:], edges[1:], edges[2:], strict=False):
        inside = (exponents >= start) & (exponents < end) & ~last
        shares[name] = inside.double().mean().item()
    return shares


def _zones(panel: Any, low: float, high: float, shares: Mapping[str, float]) -> None:
    edges = (low, SMALLEST, NORMAL, OVERFLOW, high)
    faces = ((VERMILLION, 0.16, "xx"), (ORANGE, 0.16, ""), (GREEN, 0.13, ""), (VERMILLION, 0.16, "//"))
    for name, start, end, (colour, alpha, hatch) in zip(ZONES, edges, edges[1:], faces, strict=False):
        panel.axvspan(start, end, facecolor=colour, alpha=alpha, hatch=hatch, edgecolor=colour, linewidth=0)
        label = f"{name}\n{shares[name]:.1%}"
        panel.text(
            (start + end) / 2, 0.97, label, transform=panel.get_xaxis_transform(), ha="center", va="top", fontsize=9
        )


def _axis(figure: Any) -> Any:
    axis = figure.subplots()
    axis.spines[["top", "right"]].set_visible(False)
    return axis


def _figure(height: float) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    return figure


__all__ = [
    "gradient_histogram",
    "init_scale_cost",
    "learning_rates",
    "loss_curves",
    "range_histogram",
    "rounding_error",
    "scale_history",
]
