"""What fits, the largest batch, and the change that the largest term asks for."""

import json
from dataclasses import replace

import pytest
import torch
from torch import nn

from ampkit.errors import LedgerError, PrecisionError
from ampkit.ledger import Ledger, Recipe, Rehearsals, Subject, plan
from ampkit.ledger.estimates import CONTEXT_BYTES, CUBLAS_BYTES
from ampkit.ledger.report import WIDTH, accuracy, plan_text, stored

pytestmark = pytest.mark.skipif(
    not torch.backends.cuda.is_built(), reason="requires a CUDA build of PyTorch (it needs no GPU)"
)
MIB = 2**20
FIXED = CUBLAS_BYTES + CONTEXT_BYTES  # what every plan needs for the runtime alone


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


def blocks(width, count=2):
    def batch(size):
        return (torch.empty(size, width, device="meta"),), None

    return Subject("blocks", lambda: nn.Sequential(*[Block(width) for _ in range(count)]), batch, _loss)


def _loss(output, target):
    return output.float().square().mean()


def needs(subject, recipe):
    with Rehearsals(subject) as stage:
        return Ledger(stage.run(recipe)).needs


def test_the_terms_add_up_to_what_is_needed_and_estimates_are_marked():
    with Rehearsals(Subject.of("cnn")) as stage:
        ledger = Ledger(stage.run(Recipe(256)))
    assert sum(term.bytes for term in ledger.terms) == ledger.needs
    counted = sum(term.bytes for term in ledger.terms if not term.estimate)
    assert counted == ledger.allocated == ledger.rehearsal.peak.blocks
    assert {term.name for term in ledger.terms if term.estimate} == {
        "rounding to segments of 2 and 20 MiB",
        "workspace of cuBLAS and cuDNN",
        "CUDA context, outside the allocator",
    }


@pytest.mark.parametrize(
    "recipe", [Recipe(64), Recipe(64, "fp16-mixed", "momentum"), Recipe(64, accumulate=4)], ids=str
)
def test_the_largest_batch_fits_and_the_next_one_does_not(recipe):
    subject, vram = blocks(64), FIXED + 30 * MIB
    found = plan(subject, recipe, vram)
    largest = found.largest_batch
    assert largest > 1000
    for size, fits in ((largest, True), (largest + 1, False)):
        whole = Recipe(size * recipe.accumulate, recipe.precision, recipe.optimizer, recipe.accumulate)
        assert (needs(subject, whole) <= vram) is fits


def test_no_batch_fits_where_the_weights_alone_do_not_and_any_does_where_the_card_is_huge():
    assert plan(blocks(256), Recipe(8), FIXED + MIB).largest_batch == 0
    assert plan(Subject.of("mlp"), Recipe(8), 2**50).largest_batch is None


def test_the_largest_term_decides_what_comes_first():
    activations = plan(blocks(64, count=4), Recipe(65536), FIXED + 350 * MIB)
    assert activations.changes[0].because == "saved activations"
    assert activations.changes[0].recipe.precision == "fp16-mixed"
    state = plan(blocks(512, count=4), Recipe(8), FIXED + 130 * MIB)
    assert state.changes[0].because == "optimizer state"
    assert state.changes[0].recipe.optimizer == "adamw8bit"


def test_each_change_saves_the_bytes_that_planning_it_anew_says():
    subject, vram = blocks(64), FIXED + 8 * MIB
    found = plan(subject, Recipe(8192), vram)
    before = found.needs
    assert len(found.changes) >= 2
    for change in found.changes:
        assert change.needs == needs(subject, change.recipe)
        assert change.saves == before - change.needs > 0
        before = change.needs


def test_a_plan_that_fits_says_so_and_one_that_does_not_says_by_how_much():
    subject = blocks(64)
    found = plan(subject, Recipe(64), 2**30)
    need = needs(subject, Recipe(64))
    fits, tight, misses = (replace(found, vram=vram) for vram in (need + 2**30, need + MIB, need - MIB))
    assert fits.fits and fits.verdict.startswith("Fits: ") and "1.00 GiB left" in fits.verdict
    assert tight.fits and tight.verdict.startswith("Fits on paper")
    assert not misses.fits and "1.0 MiB too much" in misses.verdict


def test_where_nothing_helps_the_report_says_what_could():
    found = plan(blocks(512, count=1), Recipe(1, "bf16-true", "sgd"), FIXED + MIB)
    assert not found.fits and not found.changes
    text = plan_text(found)
    assert "Does not fit" in text and "LoRA" in text and "none, not even one example" in text


def test_the_report_is_at_most_96_columns_and_says_that_nothing_was_measured():
    text = plan_text(plan(Subject.of("cnn"), Recipe(4096, accumulate=2), FIXED + 2 * MIB))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "has not yet been measured" in " ".join(text.split())
    assert "Largest micro-batch that fits" in text
    for term in ("weights", "saved activations", "in all"):
        assert f"\n{term}" in text


def test_a_plan_is_plain_data():
    data = plan(Subject.of("mlp"), Recipe(32), 2**30).to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["recipe"]["batch_size"] == 32 and data["saved_for_backward"]["float32"] > 0


def test_accuracy_is_read_from_measurements_and_never_made_up(tmp_path):
    stamp = {"gpu": "GPU X", "driver": "1", "torch": "2", "date": "2026-01-01", "commit": "c"}
    row = {"predicted": {"peak": 95}, "measured": {"peak": 100}}
    (tmp_path / "ledger.json").write_text(json.dumps({"kind": "ledger", **stamp, "results": [row]}))
    (tmp_path / "other.json").write_text(json.dumps({"kind": "bench", **stamp}))
    runs = stored(tmp_path)
    assert len(runs) == 1
    assert "GPU X" in accuracy(runs) and "-5.0%" in accuracy(runs)
    assert "not yet been measured" in accuracy(stored(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"optimizer": "lion"}, LedgerError, "Choose one of: sgd"),
        ({"precision": "fp8"}, PrecisionError, "no precision 'fp8'"),
        ({"accumulate": 33}, LedgerError, "each micro-batch needs an example"),
        ({"accumulate": 0}, LedgerError, "1 or more"),
        ({"master_weights": True}, LedgerError, "they are the master weights"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_an_error(options, error, words):
    with pytest.raises(error, match=words):
        Recipe(32, **options)
