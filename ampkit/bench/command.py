"""What `ampkit bench` does: choose, measure with progress, print, write."""

from __future__ import annotations

import sys
from pathlib import Path

from ampkit.bench.measure import run as measure
from ampkit.bench.measure import table
from ampkit.bench.overhead import overhead as measure_overhead
from ampkit.bench.overhead import overhead_table
from ampkit.bench.suites import own_suite, suite
from ampkit.errors import BenchError
from ampkit.output import writable, write, write_json
from ampkit.precision import default_device

__all__ = ["run"]


def run(
    name: str | None,
    model: str | None,
    input: str | None,
    batch_size: int,
    device: str | None,
    compiled: bool,
    overhead: bool,
    to_json: Path | None,
    to_plot: Path | None,
) -> None:
    """Measure, print the table, write the files. Raises BenchError for options that do not go together."""
    if name and (model or overhead):
        raise BenchError("--suite goes with neither --model nor --overhead: a suite says its models itself.")
    if overhead and to_plot:
        raise BenchError("--overhead has a table and no plot. Leave --plot out.")
    if device and not (model or overhead):
        raise BenchError("--device goes with --model and --overhead; a suite says its device itself.")
    if input and (overhead or not model):
        raise BenchError("--input says what a model of your own takes, so it goes with --model.")
    writable({"--json": to_json, "--plot": to_plot})
    if overhead:
        device = device or default_device()
        model = model or ("bert_base" if device == "cuda" else "bert_tiny")
        result = measure_overhead(device, model, batch_size, say=_say)
        print(overhead_table(result))
    else:
        device = device or default_device()
        chosen = (
            own_suite(model, batch_size, device, input=input, compiled=compiled)
            if model
            else suite(name or ("headline" if device == "cuda" else "quick"))
        )
        result = measure(chosen, say=_say)
        print(table(result))
    if to_json is not None:
        write_json(result, to_json)
    if to_plot is not None:
        from ampkit.bench.picture import plot

        png = plot(result).png
        assert png is not None  # a plot is a picture
        write(png, to_plot)


def _say(words: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)
    else:
        print(words, file=sys.stderr, flush=True)
