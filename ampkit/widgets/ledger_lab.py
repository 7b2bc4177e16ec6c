"""The VRAM ledger to play with: a bar of what a training step takes of a card, for any batch, precision and optimizer."""

from __future__ import annotations

import functools
import html
from typing import Any

from ampkit.ledger.estimates import CONTEXT_BYTES, CUBLAS_BYTES
from ampkit.ledger.live import ROLES
from ampkit.ledger.recipe import OPTIMIZERS, Recipe
from ampkit.ledger.rehearsal import PHASES, Rehearsal, Rehearsals
from ampkit.ledger.sizes import GIB, in_words
from ampkit.ledger.subject import Subject
from ampkit.show import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, RULE, SKY, VERMILLION, YELLOW, Live, drawing
from ampkit.widgets import svg

__all__ = ["Bar", "LedgerLab", "bar_alt", "bar_svg", "ledger_lab"]

INVITE = "Run this cell in JupyterLab to move the batch, and to choose model, precision, optimizer and card."
MODELS = ("cnn", "resnet18", "resnet50", "bert_base", "gpt2")
PRECISIONS = ("fp32", "fp16-mixed", "bf16-mixed", "bf16-true")
CARDS_GIB = (4, 6, 8, 10, 12, 16, 24, 40, 48, 80, 141)
BATCHES = tuple(2**power for power in range(13))
KNOTS = (2, 32, 256)  # the batches that are rehearsed; all others are on the lines between them and beyond the last
ESTIMATES = "estimates"
COLOURS = {
    "weights": BLUE,
    "gradients": ORANGE,
    "optimizer state": PURPLE,
    "cast copies": YELLOW,
    "saved activations": SKY,
    "inputs": RULE,
    "temporaries": GREEN,
}
LEFT, PLOT, TOP, BAR = 24, 692, 62, 46  # pixels


@functools.cache
def _rehearsed(model: str, precision: str, optimizer: str, checkpointing: bool) -> tuple[Rehearsal, ...]:
    with Rehearsals(Subject.of(model)) as stage:
        return tuple(stage.run(Recipe(n, precision, optimizer, checkpointing=checkpointing)) for n in KNOTS)


class LedgerLab:
    """What is chosen, and the bytes of each term for it; it draws nothing.

    A phase's peak is a constant and a part in proportion to the batch as long as the same moment has it, so that a few
    rehearsals give all batches; they are made when a model, precision or optimizer is first chosen, and kept.
    """

    def __init__(
        self,
        model: str = "resnet18",
        batch: int = 64,
        precision: str = "fp32",
        optimizer: str = "adamw",
        card_gib: int = 8,
    ) -> None:
        self.model, self.batch, self.precision, self.optimizer = model, batch, precision, optimizer
        self.card_gib, self.checkpointing = card_gib, False

    @property
    def phase(self) -> str:
        """The phase that takes the most at this batch."""
        return max(PHASES, key=lambda phase: sum(self._in(phase).values()))

    @property
    def terms(self) -> dict[str, int]:
        """Term -> bytes at the peak, without zeros; the last are the estimates (workspaces, CUDA context)."""
        conv = _between([rehearsal.conv_bytes for rehearsal in self._rehearsals], self.batch)
        return {**self._in(self.phase), ESTIMATES: CUBLAS_BYTES + CONTEXT_BYTES + conv}

    @property
    def needs(self) -> int:
        """Bytes in all, with the estimates."""
        return sum(self.terms.values())

    @property
    def verdict(self) -> str:
        """One sentence: whether it fits the card."""
        card = self.card_gib * GIB
        word, gap = ("Fits", "left") if self.needs <= card else ("Does not fit", "too much")
        return f"{word}: {in_words(self.needs)} of {self.card_gib} GiB, {in_words(abs(card - self.needs))} {gap}."

    @property
    def _rehearsals(self) -> tuple[Rehearsal, ...]:
        return _rehearsed(self.model, self.precision, self.optimizer, self.checkpointing)

    def _in(self, phase: str) -> dict[str, int]:
        peaks = [rehearsal.peaks[phase] for rehearsal in self._rehearsals]
        lines = {role: _between([peak.of(role) for peak in peaks], self.batch) for role in ROLES}
        return {role: size for role, size in lines.items() if size > 0}


def _between(sizes: list[int], batch: int) -> int:
    """The size at this batch on the line through the two knots around it, or the last two beyond them."""
    left = max(index for index in range(len(KNOTS) - 1) if index == 0 or KNOTS[index] <= batch)
    share = (batch - KNOTS[left]) / (KNOTS[left + 1] - KNOTS[left])
    return max(0, round(sizes[left] + (sizes[left + 1] - sizes[left]) * share))


def bar_svg(lab: LedgerLab) -> str:
    """One bar from left to right, a piece for each term, and the card as a line; below it the terms in words."""
    terms, card, needs = lab.terms, lab.card_gib * GIB, lab.needs
    widest = max(needs, card) * 1.04
    parts = [svg.opened(250, bar_alt(lab)), _hatch(lab)]
    title = f"{lab.model}, batch {lab.batch}, {lab.precision}, {lab.optimizer}"
    title += ", checkpointing" if lab.checkpointing else ""
    parts.append(svg.text(LEFT, 26, title, size=14, anchor="start", bold=True))
    fits = needs <= card
    parts.append(svg.text(LEFT + PLOT, 26, f"{'✓' if fits else '✗'} {lab.verdict}", size=13, anchor="end", bold=True))
    x = float(LEFT)
    for name, size in terms.items():
        wide = PLOT * size / widest
        fill = COLOURS.get(name, f"url(#{_hatch_name(lab)})")
        parts.append(
            f'<rect x="{x:.1f}" y="{TOP}" width="{max(wide, 0.5):.1f}" height="{BAR}" '
            f'style="fill:{fill};stroke:{RULE};stroke-width:0.6"><title>{html.escape(f"{name}: {in_words(size)}")}'
            "</title></rect>"
        )
        x += wide
    at = LEFT + PLOT * card / widest
    parts.append(
        f'<path d="M{at:.1f},{TOP - 12} V{TOP + BAR + 12}" style="stroke:{VERMILLION};stroke-width:3" fill="none"/>'
    )
    anchor = "end" if at > LEFT + PLOT / 2 else "start"
    parts.append(svg.text(at, TOP - 17, f"{lab.card_gib} GiB card", size=12, anchor=anchor, ink=INK))
    parts.append(svg.text(LEFT, TOP + BAR + 24, f"at the peak, in {lab.phase}", size=12, anchor="start", ink=FAINT))
    for place, (name, size) in enumerate(terms.items()):
        column, row = divmod(place, 4)
        left, y = LEFT + 360 * column, TOP + BAR + 52 + 22 * row
        fill = COLOURS.get(name, f"url(#{_hatch_name(lab)})")
        parts.append(
            f'<rect x="{left}" y="{y - 11}" width="14" height="14" style="fill:{fill};stroke:{RULE};stroke-width:0.6"/>'
        )
        words = "workspaces, CUDA context: estimate" if name == ESTIMATES else name
        parts.append(svg.text(left + 22, y, words, size=12, anchor="start"))
        parts.append(svg.text(left + 332, y, in_words(size), size=12, anchor="end", mono=True))
    return "".join(parts) + "</svg>"


def bar_alt(lab: LedgerLab) -> str:
    """The bar in words."""
    terms = ", ".join(f"{name} {in_words(size)}" for name, size in lab.terms.items())
    return (
        f"Memory of a training step of {lab.model} with batch {lab.batch}, {lab.precision} and {lab.optimizer}: {terms}. "
        f"{lab.verdict}"
    )


def _hatch_name(lab: LedgerLab) -> str:
    """Of the fill of estimates, named after the view: a page has several bars, and any may be folded away."""
    return f"ampkit-estimate-{lab.model}-{lab.batch}-{lab.precision}-{lab.optimizer}-{lab.card_gib}-{lab.checkpointing}"


def _hatch(lab: LedgerLab) -> str:
    return (
        f'<defs><pattern id="{_hatch_name(lab)}" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><path d="M0,0 V6" style="stroke:{FAINT};stroke-width:2.4"/></pattern></defs>'
    )


class Bar(Live):
    """The drawn ledger; `lab` is what the controls change."""

    def __init__(self, lab: LedgerLab) -> None:
        still = drawing(bar_svg(lab), bar_alt(lab), INVITE)
        super().__init__(still.html, still.text, alt=still.alt)
        self.lab, self.widget = lab, _controls(lab)


def ledger_lab(
    model: str = "resnet18", batch: int = 64, precision: str = "fp32", optimizer: str = "adamw", card_gib: int = 8
) -> Bar:
    """What a training step takes of a card, term by term, to change by sliders; counted here, without a GPU.

    model, precision and optimizer are those of `ampkit plan`; batch is a power of two up to 4096. Without a kernel the
    first view stands as a picture. Raises LedgerError on a CPU-only build of PyTorch, which cannot count.
    """
    return Bar(LedgerLab(model, batch, precision, optimizer, card_gib))


def _controls(lab: LedgerLab) -> Any:
    try:
        import ipywidgets as widgets
    except ImportError:  # the picture still shows
        return None
    picture, says = widgets.HTML(), widgets.HTML()

    def choice(name: str, options: Any, attribute: str) -> Any:
        value = getattr(lab, attribute)
        options = list(options) if value in options else [value, *options]
        box = widgets.Dropdown(options=options, value=value, description=name)
        box.style.description_width, box.layout.width = "70px", "200px"
        return box

    batch = widgets.SelectionSlider(options=BATCHES, value=lab.batch, description="batch", continuous_update=True)
    batch.style.description_width, batch.layout.width = "70px", "400px"
    checkpointing = widgets.Checkbox(value=lab.checkpointing, description="checkpointing", indent=False)
    checkpointing.layout.width = "150px"
    boxes = {
        "model": choice("model", MODELS, "model"),
        "precision": choice("precision", PRECISIONS, "precision"),
        "optimizer": choice("optimizer", OPTIMIZERS, "optimizer"),
        "card_gib": choice("card (GiB)", CARDS_GIB, "card_gib"),
        "batch": batch,
        "checkpointing": checkpointing,
    }

    def draw() -> None:
        from ampkit.errors import AmpkitError

        try:
            picture.value, says.value = bar_svg(lab), ""
        except AmpkitError as error:
            says.value = f'<span role="alert" style="color:{INK}">✗ {html.escape(str(error))}</span>'

    def set_one(attribute: str, change: Any) -> None:
        setattr(lab, attribute, change["new"])
        says.value = f'<span role="status" style="color:{FAINT}">rehearsing a step without a GPU …</span>'
        draw()

    for attribute, box in boxes.items():
        box.observe(functools.partial(set_one, attribute), names="value")
    wrap = widgets.Layout(flex_flow="row wrap", align_items="center")
    draw()
    rows = [
        widgets.Box([boxes["model"], boxes["precision"], boxes["optimizer"]], layout=wrap),
        widgets.Box([boxes["batch"], boxes["card_gib"], boxes["checkpointing"]], layout=wrap),
    ]
    return widgets.VBox([*rows, picture, says], layout=widgets.Layout(max_width="800px", padding="4px"))
