"""The result of a bench as a picture: speed as a ratio to the first setting, and the allocator's peak, for each model."""

from __future__ import annotations

import textwrap
from typing import Any

from ampkit.bench.stamp import stamp_line
from ampkit.gpu import not_to_be_trusted
from ampkit.show import BLACK, BLUE, ORANGE, SKY, Shown, picture

__all__ = ["plot"]


def plot(result: dict[str, Any]) -> Shown:
    """Bars for every model and setting, with the quartiles of the blocks as whiskers; the stamp stands below."""
    from matplotlib.figure import Figure

    models = list(dict.fromkeys(row["model"] for row in result["rows"]))
    has_memory = any(row["peak_allocated_bytes"] for row in result["rows"])
    most = max(sum(row["model"] == model for row in result["rows"]) for model in models)
    figure = Figure(figsize=(9, (0.34 * most + 0.75) * len(models) + 0.5), layout="constrained")
    axes = figure.subplots(len(models), 2 if has_memory else 1, squeeze=False)
    said = []
    for model, line in zip(models, axes, strict=True):
        rows = [row for row in result["rows"] if row["model"] == model]
        base = rows[0]["samples_per_s"]
        speeds = [row["samples_per_s"] / base for row in rows]
        whiskers = [
            [row["samples_per_s"] / base - row["samples_per_s_quartiles"][0] / base for row in rows],
            [row["samples_per_s_quartiles"][1] / base - row["samples_per_s"] / base for row in rows],
        ]
        names = [f"{row['setting']} ({row['batch_size']})" for row in rows]
        _bars(line[0], names, speeds, [f"{value:.2f}" for value in speeds], BLUE, whiskers)
        line[0].set_title(f"{model}: samples/s, ratio to {rows[0]['setting']}", loc="left", fontsize=10)
        if has_memory:
            peaks = [row["peak_allocated_bytes"] / 2**30 for row in rows]
            _bars(line[1], [""] * len(rows), peaks, [f"{value:.2f}" for value in peaks], ORANGE, None)
            line[1].set_title("peak of the allocator, GiB", loc="left", fontsize=10)
        best = max(range(len(rows)), key=lambda i: speeds[i])
        said.append(f"{model} is fastest in {rows[best]['setting']}, {speeds[best]:.2f} times {rows[0]['setting']}")
    stamped = "\n".join(textwrap.fill(line, 150) for line in stamp_line(result).splitlines())
    figure.supxlabel(stamped, fontsize=8, x=0.01, ha="left")
    warning = f" {not_to_be_trusted(result['shared'])}" if result.get("shared") else ""
    return picture(figure, f"{'; '.join(said)}.{warning}")


def _bars(axis, names, values, labels, color, whiskers) -> None:
    places = range(len(values))
    error = {"xerr": whiskers, "error_kw": {"ecolor": BLACK, "elinewidth": 1, "capsize": 2}} if whiskers else {}
    axis.barh(places, values, color=[SKY if i == 0 else color for i in places], **error)
    axis.set_yticks(places, names, fontsize=9)
    axis.invert_yaxis()
    ends = [value + (whiskers[1][place] if whiskers else 0) for place, value in zip(places, values, strict=True)]
    axis.set_xlim(0, max(ends) * 1.2)
    for place, end, label in zip(places, ends, labels, strict=True):
        axis.text(end + max(ends) * 0.02, place, label, va="center", fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
