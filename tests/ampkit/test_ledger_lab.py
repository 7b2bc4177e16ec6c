"""The ledger's bar shows what a rehearsal counts, for every batch, and needs no kernel for its first view."""

import xml.etree.ElementTree as ElementTree

import pytest
import torch

from ampkit.ledger import Recipe, Rehearsals, Subject
from ampkit.widgets.ledger_lab import LedgerLab, bar_alt, bar_svg, ledger_lab

pytestmark = pytest.mark.skipif(
    not torch.backends.cuda.is_built(), reason="requires a CUDA build of PyTorch (it needs no GPU)"
)


@pytest.mark.parametrize(("precision", "optimizer"), [("fp32", "adamw"), ("fp16-mixed", "momentum")])
def test_a_batch_between_and_beyond_the_rehearsed_ones_is_shown_as_it_would_be_rehearsed(precision, optimizer):
    lab = LedgerLab("cnn", 32, precision, optimizer)
    with Rehearsals(Subject.of("cnn")) as stage:
        for batch, off in ((32, 0), (128, 0.01), (2048, 0.001)):
            lab.batch = batch
            shown = sum(size for name, size in lab.terms.items() if name != "estimates")
            assert shown == pytest.approx(stage.run(Recipe(batch, precision, optimizer)).peak.total, rel=off)


def test_more_examples_take_more_and_an_optimizer_without_state_less():
    lab = LedgerLab("cnn", 64)
    small, state = lab.needs, lab.terms["optimizer state"]
    lab.batch = 4096
    assert lab.needs > small and lab.terms["optimizer state"] == state
    lab.optimizer = "sgd"
    assert "optimizer state" not in lab.terms


def test_the_drawing_is_well_formed_and_says_in_words_what_the_colours_say():
    lab = LedgerLab("cnn", 4096, card_gib=4)
    root = ElementTree.fromstring(bar_svg(lab))
    words = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert "saved activations" in words and "workspaces, CUDA context: estimate" in words
    assert any("Fits" in word for word in words)
    assert root.attrib["aria-label"] == bar_alt(lab)
    lab.card_gib = 0.25
    assert "Does not fit" in bar_alt(lab)


def test_the_first_view_is_a_picture_with_alt_text_and_the_controls_redraw():
    bar = ledger_lab("cnn", 64)
    bundle = bar._repr_mimebundle_()
    assert 'alt="Memory of a training step of cnn' in bundle["text/html"] and "<svg" not in bundle["text/html"]
    rows = bar.widget.children
    picture = rows[2]
    before = picture.value
    batch, card, _ = rows[1].children
    batch.value = 1024
    assert bar.lab.batch == 1024 and picture.value != before
    card.value = 80
    assert "80 GiB card" in picture.value
    rows[1].children[2].value = True  # the cnn has no repeated blocks to compute twice
    assert "no repeated blocks" in rows[3].value
