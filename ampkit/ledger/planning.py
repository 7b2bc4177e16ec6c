"""Plan: what fits a card of so many bytes, the largest batch that does, and what to change first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from ampkit.errors import LedgerError, LowVramError
from ampkit.ledger.estimates import Ledger
from ampkit.ledger.recipe import Recipe
from ampkit.ledger.rehearsal import PHASES, Rehearsals
from ampkit.ledger.sizes import in_words
from ampkit.ledger.subject import Subject

__all__ = ["MOST", "Change", "Plan", "plan"]

MOST = 2**20  # examples in a batch, above which the search stops
_LOST = "updates below half a unit in the weight's last place are lost"  # a last resort
STEPS = 4  # changes in a row, after which the plan gives up


@dataclass(frozen=True)
class Change:
    """One change of the recipe, planned anew.

    what    the change in words
    price   what it costs
    recipe  the whole recipe with it
    needs   bytes that the card must have with it
    saves   bytes less than before it
    because the largest term, which decided that this comes now
    """

    what: str
    price: str
    recipe: Recipe
    needs: int
    saves: int
    because: str


@dataclass(frozen=True)
class Plan:
    """The answer of `plan`.

    largest_batch  the largest micro-batch that fits with everything else as it is; 0 if not even one example does,
                   None if more than MOST do
    changes        what to change, in this order, until it fits; if it fits already, the one change that makes most room
    rehearsals     how many training steps were rehearsed for the answer, in how many seconds
    """

    subject: str
    parameters: int
    vram: int
    ledger: Ledger
    largest_batch: int | None
    changes: tuple[Change, ...]
    rehearsals: int
    seconds: float

    @property
    def recipe(self) -> Recipe:
        """How the step is trained."""
        return self.ledger.rehearsal.recipe

    @property
    def needs(self) -> int:
        """Bytes of the card that the step takes, with the estimates."""
        return self.ledger.needs

    @property
    def fits(self) -> bool:
        """Whether the card has as much."""
        return self.needs <= self.vram

    @property
    def verdict(self) -> str:
        """One sentence: whether it fits, and by how much."""
        between = f"needs {in_words(self.needs)} of {in_words(self.vram)}"
        gap = self.vram - self.needs
        if not self.fits:
            return f"Does not fit: {between}, {in_words(-gap)} too much."
        if gap < sum(term.bytes for term in self.ledger.terms if term.estimate) / 2:
            return f"Fits on paper: {between}, and the {in_words(gap)} left are less than the estimates may be off."
        return f"Fits: {between}, {in_words(gap)} left."

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data for JSON; sizes in bytes."""
        rehearsal = self.ledger.rehearsal
        return {
            "model": self.subject,
            "parameters": self.parameters,
            "recipe": asdict(self.recipe),
            "vram": self.vram,
            "needs": self.needs,
            "fits": self.fits,
            "verdict": self.verdict,
            "peak_phase": rehearsal.phase,
            "peaks": {phase: rehearsal.peaks[phase].blocks for phase in PHASES},
            "terms": [asdict(term) for term in self.ledger.terms],
            "saved_for_backward": {_dtype(dtype): size for dtype, size in rehearsal.kept.items()},
            "largest_batch": self.largest_batch,
            "changes": [asdict(change) for change in self.changes],
            "notes": list(rehearsal.notes),
            "rehearsals": self.rehearsals,
            "seconds": round(self.seconds, 3),
        }


def _dtype(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def plan(subject: Subject, recipe: Recipe, vram: int, *, told: Callable[[Recipe], None] | None = None) -> Plan:
    """Plan the training of a subject on a card of vram bytes, without a GPU and without its memory.

    told(recipe) is called before each rehearsal. Raises LedgerError or LowVramError where the recipe cannot be rehearsed.

    >>> small = plan(Subject.of("mlp"), Recipe(128, precision="fp16-mixed"), vram=8 * 2**30)
    >>> small.fits, small.largest_batch is None
    (True, True)
    """
    started = time.perf_counter()
    with Rehearsals(subject) as stage:
        needs = _Needs(stage, told)
        ledger = needs.ledger(recipe)
        changes = []
        for change in _changes(recipe, ledger, needs, vram):
            changes.append(change)
            if change.needs <= vram or len(changes) == STEPS:
                break
        return Plan(
            subject=subject.name,
            parameters=stage.parameters,
            vram=vram,
            ledger=ledger,
            largest_batch=_largest_batch(recipe, needs, vram),
            changes=tuple(changes),
            rehearsals=len(needs.asked),
            seconds=time.perf_counter() - started,
        )


class _Needs:
    """The ledger of a recipe, rehearsed once however often it is asked for."""

    def __init__(self, stage: Rehearsals, told: Callable[[Recipe], None] | None) -> None:
        self.stage, self.told = stage, told
        self.asked: dict[Recipe, Ledger] = {}

    def ledger(self, recipe: Recipe) -> Ledger:
        if recipe not in self.asked:
            if self.told is not None:
                self.told(recipe)
            self.asked[recipe] = Ledger(self.stage.run(recipe))
        return self.asked[recipe]


def _changes(recipe: Recipe, ledger: Ledger, needs: _Needs, vram: int) -> Iterator[Change]:
    """One change after another, each for the largest term that is left; ends where nothing makes that smaller."""
    while True:
        found = []
        for what, price, changed in _candidates(recipe, ledger):
            try:
                after = needs.ledger(changed)
            except (LedgerError, LowVramError):  # this model has no blocks, or this batch is too small: no candidate
                continue
            saves = ledger.needs - after.needs
            if saves > 0:
                found.append(Change(what, price, changed, after.needs, saves, ledger.largest.name))
        if not found:
            return
        enough = [change for change in found if change.needs <= vram < ledger.needs]
        gentle = [change for change in found if change.price is not _LOST]
        # candidates come with the cheapest first: the cheapest that is enough, else the one that saves most
        best = enough[0] if enough else max(gentle or found, key=lambda change: change.saves)
        yield best
        recipe, ledger = best.recipe, needs.ledger(best.recipe)


def _candidates(recipe: Recipe, ledger: Ledger) -> list[tuple[str, str, Recipe]]:
    """Changes that make the largest term smaller: (what, price, the changed recipe), the cheapest first."""
    term = ledger.largest.name
    found: list[tuple[str, str, Recipe]] = []

    def offer(what: str, price: str, **changed: Any) -> None:
        found.append((what, price, replace(recipe, **changed)))

    of_batch = term in ("saved activations", "temporaries", "inputs", "cast copies")
    if term == "temporaries" and ledger.rehearsal.phase == "step" and recipe.optimizer == "adamw":
        offer(
            "step with one fused kernel: AdamW(fused=True)",
            "none; scaler.step() then unscales inside it unless unscale_() came first",
            optimizer="adamw-fused",
        )
    if of_batch and recipe.precision in ("fp32", "tf32"):
        offer(
            "compute in fp16-mixed (bf16-mixed keeps as much)",
            "rounding of the listed ops; a GradScaler for FP16",
            precision="fp16-mixed",
        )
    if of_batch and recipe.micro_batch > 1:
        parts = -(-recipe.batch_size // (recipe.micro_batch // 2))
        if recipe.batch_size // parts >= 1 and -(-recipe.batch_size // parts) < recipe.micro_batch:
            offer(
                f"accumulate: {parts} micro-batches of up to {-(-recipe.batch_size // parts)}",
                "smaller kernels; gradients live through the forward; BatchNorm sees a micro-batch",
                accumulate=parts,
            )
    if of_batch and not recipe.checkpointing:
        offer("checkpoint each block", "about one more forward: a third more arithmetic", checkpointing=True)
    if term == "optimizer state" and recipe.optimizer.startswith("adamw") and recipe.optimizer != "adamw8bit":
        offer("8-bit AdamW (torchao or bitsandbytes)", "moments rounded in blocks of 256", optimizer="adamw8bit")
    if term == "optimizer state" and recipe.optimizer == "momentum":
        offer("SGD without momentum", "another optimizer: slower to converge", optimizer="sgd")
    if term in ("master weights",):
        offer("drop the master weights", _LOST, master_weights=False)
    if term in ("weights", "gradients", "optimizer state", "cast copies") and not recipe.precision.endswith("true"):
        offer("hold the weights in BF16: bf16-true", _LOST, precision="bf16-true")
    if term == "gradients" and recipe.accumulate > 1:
        offer("do not accumulate", "the batch is smaller", accumulate=1, batch_size=recipe.micro_batch)
    return found


def _largest_batch(recipe: Recipe, needs: _Needs, vram: int) -> int | None:
    """The largest micro-batch that fits, proved by rehearsing it and the next one.

    Each phase's peak is a constant and a part in proportion to the batch, so two rehearsals tell about where to look.
    """

    def ledger(size: int) -> Ledger:
        return needs.ledger(replace(recipe, batch_size=size * recipe.accumulate))

    known = {size: ledger(size) for size in {recipe.micro_batch, max(1, recipe.micro_batch // 2)}}
    if len(known) == 1:
        known[2] = ledger(2)
    while True:
        low = max((size for size in known if known[size].needs <= vram), default=0)
        high = min((size for size in known if size > low and known[size].needs > vram), default=MOST + 1)
        if high - low <= 1:
            return low if high <= MOST else None
        guess = min(max(_crossing(known, low, high, vram), low + 1), high - 1)
        before = high - low
        for size in (guess, guess + 1 if ledger(guess).needs <= vram else guess - 1):
            if low < size < high:
                known[size] = ledger(size)
                low, high = (size, high) if known[size].needs <= vram else (low, size)
        if high - low > before // 2 and high - low > 1:  # segments come in steps of 2 and 20 MiB, which mislead a line
            known[(low + high) // 2] = ledger((low + high) // 2)


def _crossing(known: dict[int, Ledger], low: int, high: int, vram: int) -> int:
    """The batch at which the first of the phases crosses vram, on lines through low and high or the two far apart."""
    a, b = (low, high) if low in known and high in known else (min(known), max(known))
    crossings = [MOST]
    for phase in PHASES:
        at_a, at_b = (_needs_in(known[size], phase) for size in (a, b))
        slope = (at_b - at_a) / (b - a)
        if slope > 0:
            crossings.append(int(a + (vram - at_a) / slope))
    return min(crossings)


def _needs_in(ledger: Ledger, phase: str) -> int:
    peaks = ledger.rehearsal.peaks
    return ledger.needs - ledger.rehearsal.peak.segments + peaks[phase].segments
