"""diagnose: what a log of step records says about a training run, in one state with its evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median

from ampkit.doctor.findings import Diagnosis, Finding
from ampkit.errors import ReportError
from ampkit.report import StepReport

__all__ = ["diagnose", "diagnose_log", "read_log"]

GROWTH_INTERVAL = 2000  # GradScaler's own
RUN = 4  # so many skipped steps in a row happen to no settled scaler
OFTEN = 0.05  # share of skipped steps; a settled scaler skips about one in growth_interval steps
MOSTLY = 0.5


def read_log(path: str | Path) -> tuple[list[StepReport], str | None]:
    """The records of a JSONL log, and its last line if that was cut off in the middle, as when a run is killed.

    Raises ReportError for a file that cannot be read, has no record, or has another line that is none.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    except OSError as error:
        raise ReportError(f"The log {path} cannot be read: {error.strerror}. Name the FILE of --log.") from None
    reports: list[StepReport] = []
    for number, line in enumerate(lines, start=1):
        try:
            reports.append(StepReport.from_json(line))
        except ReportError as error:
            if reports and number == len(lines) and not line.endswith("\n"):
                return reports, line
            raise ReportError(f"{path}, line {number}: {error}") from None
    if not reports:
        raise ReportError(f"{path} holds no step: the run ended before its first one. Train for some steps with --log.")
    return reports, None


def diagnose_log(
    path: str | Path, *, growth_interval: int = GROWTH_INTERVAL, max_norm: float | None = None
) -> Diagnosis:
    """diagnose what read_log reads; a line that was cut off is left out, and a note says so. Raises ReportError."""
    reports, torn = read_log(path)
    diagnosis = diagnose(reports, growth_interval=growth_interval, max_norm=max_norm, subject=str(path))
    if torn is None:
        return diagnosis
    note = f"The last line is cut off after {len(torn)} characters, as when a run is killed; it was left out."
    return Diagnosis(diagnosis.subject, diagnosis.state, diagnosis.findings, (*diagnosis.notes, note))


def diagnose(
    reports: Iterable[StepReport],
    *,
    growth_interval: int = GROWTH_INTERVAL,
    max_norm: float | None = None,
    subject: str = "the run",
) -> Diagnosis:
    """The state of a run, from its step records, and what is wrong with it.

    growth_interval  the GradScaler's; after twice as many good steps in a row without growth something is wrong
    max_norm         what the true gradient was clipped to, if it was: the records hold the norm before clipping

    States without a finding: "healthy" (no scaler), "calibrating" (the scaler still looks for its first scale), and
    "settled". Every other state is the cause of the first finding. Raises ReportError if there is no record.

    >>> steps = [StepReport(k, 2.3 - 0.01 * k, 0.5, 65536.0 / 2 ** min(k, 3), k < 3, 8, 0.1, None) for k in range(40)]
    >>> diagnose(steps).state
    'settled'
    >>> diagnose(steps[:3]).state
    'calibrating'
    """
    run = _Log(tuple(reports), growth_interval, max_norm)
    if not run.steps:
        raise ReportError("There is no step record to diagnose. Train for some steps first.")
    findings: list[Finding] = []
    for look in LOOKS:
        found = look(run)
        if found is not None:
            findings.append(found)
            if found.cause in FINAL:
                break  # everything else in such a log is a consequence
    state = findings[0].cause if findings else run.state()
    return Diagnosis(subject, state, tuple(findings), tuple(_notes(run)))


@dataclass(frozen=True)
class _Log:
    steps: tuple[StepReport, ...]
    growth_interval: int
    max_norm: float | None

    @property
    def scaled(self) -> bool:
        return self.steps[-1].scale is not None

    @property
    def done(self) -> list[StepReport]:
        """The steps that changed the weights."""
        return [step for step in self.steps if not step.skipped]

    @property
    def tail(self) -> list[StepReport]:
        """The skipped steps at the end of the log."""
        return _trailing(self.steps, lambda step: step.skipped)

    @property
    def settled(self) -> tuple[StepReport, ...]:
        """The steps from the first one on that was not skipped."""
        first = next((index for index, step in enumerate(self.steps) if not step.skipped), len(self.steps))
        return self.steps[first:]

    def state(self) -> str:
        if not self.scaled:
            return "healthy"
        looking = len(self.settled) < RUN and len(self.settled) < len(self.steps)
        return "calibrating" if looking else "settled"


def _trailing(steps: Sequence[StepReport], holds: Callable[[StepReport], bool]) -> list[StepReport]:
    found: list[StepReport] = []
    for step in reversed(steps):
        if not holds(step):
            break
        found.insert(0, step)
    return found


# What is looked for, in this order


def _weights_poisoned(run: _Log) -> Finding | None:
    bad = next((step for step in run.steps if not step.skipped and not math.isfinite(step.grad_norm)), None)
    if bad is None or not math.isfinite(bad.loss):
        return None
    later = [step for step in run.steps if step.step > bad.step]
    nan = [step for step in later if not math.isfinite(step.loss)]
    if later and not nan:
        return None  # an inf norm of finite gradients: FP32 squares overflow too
    if run.scaled:
        why = (
            "A scaler looks for inf and nan in unscale_. What became bad after it, in a clip or a penalty, is applied."
        )
        cure = "Keep the order unscale_, clip, step, and change no gradient in between. Load the last good checkpoint."
    else:
        why = "Without a GradScaler nothing stands between a bad gradient and the weights."
        cure = "Load the last good checkpoint and train in fp16-mixed with a GradScaler, or in bf16-mixed or FP32."
    then = (
        f"The loss is not finite in {len(nan)} of the {len(later)} steps after it." if later else "It is the last one."
    )
    what = f"Step {bad.step} had the gradient norm {bad.grad_norm:g} and was not skipped. {then}"
    evidence = {"step": bad.step, "grad_norm": bad.grad_norm, "nan_losses_after": len(nan)}
    return Finding("weights_poisoned", f"step {bad.step}", what, why, cure, evidence=evidence)


def _forward_nan(run: _Log) -> Finding | None:
    tail = _trailing(run.steps, lambda step: not math.isfinite(step.loss))
    if not tail or (tail[0].loss == math.inf and len(run.steps) > len(tail)):
        return None  # a loss that has grown to inf diverges
    first = tail[0]
    if (grown := _grew(run.steps[: len(run.steps) - len(tail)])) is not None:
        return _blown_up(run, grown, f"then {first.loss:g} from step {first.step} to the end")
    what = f"The loss is {first.loss:g} in step {first.step} and in all {len(tail)} steps from there to the end."
    if run.scaled:
        skips = sum(step.skipped for step in tail)
        what += f" {skips} of them were skipped; the scale fell from {first.scale:g} to {tail[-1].scale:g}."
        why = (
            "The printed loss is not scaled, so no scale makes it nan: the forward pass does (an overflow, broken data, or "
            "broken weights or buffers). The scaler skips such steps and halves for ever."
        )
    else:
        why = "The forward pass gives nan: an overflow, broken data, or weights that an earlier step broke."
    cure = (
        "Find the first op that makes it, with the weights of just before: ampkit doctor MODEL --weights FILE.pt. Do not "
        "lower init_scale."
    )
    evidence = {"step": first.step, "steps": len(tail), "scales": [first.scale, tail[-1].scale]}
    return Finding("forward_nan", _steps(tail), what, why, cure, evidence=evidence)


def _nan_batches(run: _Log) -> Finding | None:
    bad = [step for step in run.steps if math.isnan(step.loss)]
    if not bad or math.isnan(run.steps[-1].loss):
        return None
    what = f"The loss is nan in {len(bad)} of {len(run.steps)} steps ({_some(bad)}), and finite again after them."
    why = "Training came through because such a step was skipped, but some batches break the forward pass."
    cure = (
        "Look at those batches: inputs that are not finite, rows that are masked altogether, or rare large activations."
    )
    return Finding("nan_batches", _some(bad), what, why, cure, evidence={"steps": [step.step for step in bad]})


def _collapsing(run: _Log) -> Finding | None:
    tail = run.tail
    lowest = tail[-1].scale if tail else None
    if lowest is None:  # the last step was not skipped, or there is no scaler
        return None
    begun = len(tail) < len(run.steps)
    if len(tail) < RUN if begun else lowest >= 1:
        return None
    if begun and (grown := _grew(run.steps[: len(run.steps) - len(tail)])) is not None:
        return _blown_up(run, grown, f"and all steps from {tail[0].step} on were skipped")
    what = (
        f"The last {len(tail)} steps were all skipped, and the scale fell from {tail[0].scale:g} to {lowest:g}, while the loss "
        f"was finite ({tail[-1].loss:.4g})."
    )
    why = (
        "Halving does not help: backward makes an inf or nan at every scale, so that no step changes the weights, and the "
        "scale has no floor."
    )
    cure = (
        "Find the op: ampkit doctor MODEL --weights FILE.pt. The usual ones are the gradient of a root or norm at 0, a "
        "hidden branch of torch.where, or a weight's gradient beyond 65504."
    )
    evidence = {"skips": len(tail), "scales": [tail[0].scale, lowest]}
    return Finding("collapsing", _steps(tail), what, why, cure, evidence=evidence)


def _scale_below_1(run: _Log) -> Finding | None:
    last = run.steps[-1]
    if last.scale is None or last.scale >= 1 or len(run.tail) >= RUN:
        return None
    below = _trailing(run.steps, lambda step: step.scale is not None and step.scale < 1)
    what = f"The scale has been below 1 for the last {len(below)} steps and is {last.scale:g}."
    why = (
        "Scaling makes gradients larger so that FP16 holds the small ones. Below 1 it makes them smaller: some gradient is "
        "beyond 65504 at scale 1, or an earlier nan has driven the scale down."
    )
    cure = (
        "Make the loss smaller (mean instead of sum), or train in bf16-mixed. After a nan is repaired, begin with a new "
        "scaler: from here it takes growth_interval good steps for each doubling."
    )
    return Finding("stuck_below_1", _steps(below), what, why, cure, evidence={"scale": last.scale, "steps": len(below)})


def _underflowing(run: _Log) -> Finding | None:
    zero = [step for step in run.done if step.grad_norm == 0 and step.loss != 0]
    if len(zero) <= MOSTLY * len(run.done) or not zero:
        return None
    what = (
        f"The gradient norm is exactly 0 in {len(zero)} of {len(run.done)} steps, and the loss went from "
        f"{run.steps[0].loss:.4f} to {run.steps[-1].loss:.4f}."
    )
    if run.scaled:
        why = f"Every gradient is 0 at scale {run.steps[-1].scale:g}: they underflow still, or the graph is cut."
        cure = "Begin with a larger init_scale, or train in bf16-mixed; if it stays 0, look for a .detach() or frozen weights."
    else:
        why = "Gradients below 3e-8 are 0 in FP16, and there is no GradScaler to lift them. No error says so."
        cure = "Train in fp16-mixed with a GradScaler, or in bf16-mixed. In FP32 a norm of exactly 0 means a cut graph."
    return Finding("underflowing", _some(zero), what, why, cure, evidence={"zero": len(zero), "steps": len(run.done)})


def _skipping_often(run: _Log) -> Finding | None:
    settled = run.settled
    skips = [step for step in settled if step.skipped]
    if len(skips) < 2 * RUN or len(skips) <= OFTEN * len(settled) or len(run.tail) >= RUN:
        return None
    grown = 0
    for before, step in pairwise(settled):
        if step.skipped and before.scale is not None and step.scale is not None:
            grown += step.scale > before.scale
    share = len(skips) / len(settled)
    what = f"After the first scale was found, {len(skips)} of {len(settled)} steps were skipped ({share:.0%})."
    if grown >= MOSTLY * len(skips):
        why = (
            f"{grown} of them came right after the scale had doubled: it grows too soon, and each growth costs a step."
        )
        cure = "Raise growth_interval (2000 is PyTorch's own: one step in 2000 is then lost)."
    else:
        why = f"Only {grown} of them came right after the scale had doubled: gradients spike by themselves."
        cure = "Look at the data of those steps, clip after unscale_, lower the learning rate, or train in bf16-mixed."
    evidence = {"skips": len(skips), "steps": len(settled), "after_growth": grown}
    return Finding("skipping_often", _some(skips), what, why, cure, evidence=evidence)


def _never_grows(run: _Log) -> Finding | None:
    longest = current = 0
    for before, step in pairwise(run.steps):
        current = current + 1 if not step.skipped and step.scale == before.scale else 0
        longest = max(longest, current)
    if not run.scaled or longest < 2 * run.growth_interval:
        return None
    what = (
        f"{longest} good steps in a row left the scale at {run.steps[-1].scale:g}; with a growth_interval of "
        f"{run.growth_interval} it doubles at least once in that time."
    )
    why = "scaler.update() is not called, its argument fixes the scale, or growth_interval is far larger."
    cure = "Call scaler.update() after scaler.step(), without an argument; if the interval is meant, say --growth-interval."
    return Finding("scale_never_grows", _steps(run.steps), what, why, cure, evidence={"steps": longest})


def _norm_is_scaled(run: _Log) -> Finding | None:
    """Each change of the scale changes the norm by as much: so it is the norm of scaled gradients."""
    good = [
        (step.scale, step.grad_norm)
        for step in run.done
        if step.scale and math.isfinite(step.grad_norm) and step.grad_norm > 0
    ]
    same_scale = [(scale, [norm for _, norm in pairs]) for scale, pairs in groupby(good, key=lambda pair: pair[0])]
    ratios = []
    for (scale, norms), (next_scale, next_norms) in pairwise(same_scale):
        of_norm = math.log2(median(next_norms[:8])) - math.log2(median(norms[-8:]))
        of_scale = math.log2(next_scale) - math.log2(scale)
        ratios.append(abs(of_norm - of_scale))
    if len(ratios) < 3 or max(ratios) > 0.8 or sum(ratios) > 0.4 * len(ratios):
        return None
    what = f"The scale changed {len(ratios)} times, and each time the gradient norm changed by about the same factor."
    why = (
        "The norm is that of scaled gradients. A clip at this place compares them with a max_norm meant for true ones."
    )
    cure = "Call scaler.unscale_(optimizer) before the norm is taken or clipped, once a step."
    return Finding("norm_is_scaled", _steps(run.steps), what, why, cure, evidence={"changes": len(ratios)})


def _grew(steps: Sequence[StepReport]) -> tuple[StepReport, StepReport] | None:
    """The lowest and the last step, if the loss has grown more than tenfold between them, and above where it began."""
    finite = [step for step in steps if math.isfinite(step.loss)]
    if not finite:
        return None
    low = min(finite, key=lambda step: step.loss)
    grew = finite[-1].loss > 10 * max(abs(low.loss), 1e-3) and finite[-1].loss > 2 * abs(finite[0].loss)
    return (low, finite[-1]) if grew else None


def _blown_up(run: _Log, grown: tuple[StepReport, StepReport], then: str) -> Finding:
    low, last = grown
    what = f"The loss grew from {low.loss:.4g} (step {low.step}) to {last.loss:.4g} (step {last.step}), {then}."
    why = (
        "The steps went the wrong way until the numbers left the range: that is the learning rate or the data, and the "
        "overflow at the end only its consequence."
    )
    cure = "Load the checkpoint before it; lower the learning rate or warm it up, clip after unscale_; see if FP32 does it too."
    evidence = {"lowest": low.loss, "last": last.loss, "step": last.step}
    return Finding("diverging", f"steps {low.step} to {run.steps[-1].step}", what, why, cure, evidence=evidence)


def _diverging(run: _Log) -> Finding | None:
    losses = [step.loss for step in run.steps]
    width = max(3, len(losses) // 10)
    if len(losses) < 3 * width and losses[-1] != math.inf:
        return None
    finite = [loss for loss in losses if math.isfinite(loss)]
    if not finite:
        return None
    windows = [median(losses[at : at + width]) for at in range(0, len(losses) - width + 1, width)] or finite
    first, last, best = windows[0], median(losses[-width:]), min(windows)
    room = max(abs(first), abs(best))
    if not (losses[-1] == math.inf or (last > first + 0.5 * abs(first) and last > best + room and last > windows[-2])):
        return None
    low = min(run.steps, key=lambda step: step.loss if math.isfinite(step.loss) else math.inf)
    what = (
        f"The loss was {low.loss:.4g} at its lowest (step {low.step}) and is {losses[-1]:.4g} at the end; the median of the "
        f"first {width} steps is {first:.4g}, of the last {width} {last:.4g}."
    )
    why = (
        "The steps are finite and go the wrong way: that is the learning rate or the data, and no matter of the scale."
    )
    cure = (
        "Lower the learning rate or warm it up, clip after unscale_, and see whether FP32 does the same with this seed."
    )
    evidence = {"first": first, "best": best, "last": last}
    return Finding("diverging", f"steps {low.step} to {run.steps[-1].step}", what, why, cure, evidence=evidence)


def _always_clipped(run: _Log) -> Finding | None:
    if run.max_norm is None:
        return None
    over = [step for step in run.done if step.grad_norm > run.max_norm]
    if len(run.done) < 20 or len(over) < 0.95 * len(run.done):
        return None
    middle = median(step.grad_norm for step in over)
    if middle < 10 * run.max_norm:
        return None  # clipped each time, and by little: a choice
    what = (
        f"The gradient norm was above max_norm ({run.max_norm:g}) in {len(over)} of {len(run.done)} steps, and {middle:.4g} as "
        "a rule."
    )
    why = (
        f"Every step is shortened about {middle / run.max_norm:.0f} times, so that the learning rate is lower than it says. "
        "Where max_norm is right, the norm is likely that of scaled gradients."
    )
    cure = "Clip after scaler.unscale_(optimizer); if you do, choose max_norm near the usual norm, or raise the learning rate."
    evidence = {"over": len(over), "steps": len(run.done), "median": middle, "max_norm": run.max_norm}
    return Finding("clipping_everything", _some(over), what, why, cure, evidence=evidence)


def _flat(run: _Log) -> Finding | None:
    losses = [step.loss for step in run.steps]
    if len(losses) < 100 or not all(map(math.isfinite, losses)):
        return None
    tenth = len(losses) // 10
    first, last = median(losses[:tenth]), median(losses[-tenth:])
    if first == 0 or abs(last - first) > 0.002 * abs(first) or max(losses) - min(losses) > 0.2 * abs(first):
        return None
    what = f"The loss was {first:.5g} in the first {tenth} steps and is {last:.5g} in the last; gradients are not 0."
    why = "The weights change too little, or the forward pass does not see that they do."
    cure = (
        "Look at the learning rate; at autocast, which must be entered anew for each forward pass (its cast of a weight "
        "is kept until it is left); and at FP16 or BF16 weights, which lose small updates."
    )
    return Finding("flat", _steps(run.steps), what, why, cure, evidence={"first": first, "last": last})


LOOKS = (
    _weights_poisoned,
    _forward_nan,
    _nan_batches,
    _collapsing,
    _scale_below_1,
    _underflowing,
    _skipping_often,
    _never_grows,
    _norm_is_scaled,
    _diverging,
    _always_clipped,
    _flat,
)
FINAL = ("weights_poisoned", "forward_nan", "collapsing", "underflowing", "diverging")


def _notes(run: _Log) -> list[str]:
    notes = [_summary(run)]
    moved = [after.lr != step.lr for step, after in pairwise(run.steps) if step.skipped and step.lr is not None]
    if moved and all(moved):
        notes.append(
            f"The learning rate went on after each of {len(moved)} skipped steps. Step the scheduler only where the scale did "
            "not fall: the schedule runs ahead of the weights otherwise."
        )
    return notes


def _summary(run: _Log) -> str:
    first, last = run.steps[0], run.steps[-1]
    words = f"{len(run.steps)} steps, loss {first.loss:.4f} -> {last.loss:.4f}, gradient norm {last.grad_norm:.3g}"
    if not run.scaled:
        return words + ", no GradScaler."
    skips = sum(step.skipped for step in run.steps)
    began = len(run.steps) - len(run.settled)
    return (
        words
        + f", scale {first.scale:g} -> {last.scale:g}, {skips} skipped, {began} of them before the first good step."
    )


def _steps(steps: Sequence[StepReport]) -> str:
    return f"step {steps[0].step}" if len(steps) == 1 else f"steps {steps[0].step} to {steps[-1].step}"


def _some(steps: Sequence[StepReport]) -> str:
    numbers = [str(step.step) for step in steps[:5]]
    more = f" and {len(steps) - 5} more" if len(steps) > 5 else ""
    return f"step{'s' * (len(steps) > 1)} {', '.join(numbers)}{more}"
