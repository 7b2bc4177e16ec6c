"""The ledger counts models that it has never seen, or says in words what it cannot tell of them."""

from pathlib import Path

import pytest
import torch

from ampkit.errors import LedgerError, LowVramError, ModelError
from ampkit.ledger import Recipe, Rehearsals, Subject

pytestmark = pytest.mark.skipif(
    not torch.backends.cuda.is_built(), reason="requires a CUDA build of PyTorch (it needs no GPU)"
)
FILE = Path(__file__).with_name("own_models.py")
SEEN = {
    "Lstm": ("f32[4,6,32]", "mean"),
    "ConvNeXtLike": ("f32[4,3,32,32]", "cross_entropy"),
    "UNet": ("f32[4,3,32,32]", "pixels"),
    "Vit": ("f32[4,3,32,32]", "cross_entropy"),
    "Masked": ("i64[4,30]<100; bool[4,30]", "cross_entropy"),
    "Spectral": ("f32[4,64]", "mse"),
    "Reentrant": ("f32[4,32]", "mean"),
}


def subject(name, inputs="f32[4,4]", loss=None):
    return Subject.of(f"{FILE}:{name}", inputs, loss)


@pytest.mark.parametrize("name", SEEN)
def test_a_model_of_somebody_else_is_counted_in_every_regime(name):
    with Rehearsals(subject(name, *SEEN[name])) as stage:
        fp32, fp16, bf16, half, twice = (
            stage.run(recipe)
            for recipe in (
                Recipe(16),
                Recipe(16, "fp16-mixed"),
                Recipe(16, "bf16-mixed"),
                Recipe(16, "bf16-true"),
                Recipe(32),
            )
        )
        parameters = stage.parameters
    assert fp32.peaks["step"].of("weights") >= 4 * parameters
    assert fp16.peaks["step"].of("weights") == fp32.peaks["step"].of("weights")
    assert half.peaks["step"].of("gradients") < fp32.peaks["step"].of("gradients")
    kept = [sum(r.kept.values()) - r.kept_casts for r in (fp32, fp16, bf16, half, twice)]
    assert kept[0] > kept[1] == kept[2]
    assert kept[0] > kept[3]
    assert 0.95 * kept[4] < 2 * kept[0] < 1.05 * kept[4]  # what is kept grows with the batch


def test_an_lstm_is_told_to_be_an_estimate_and_attention_which_kernel_is_counted():
    with Rehearsals(subject("Lstm", "f32[4,6,32]")) as stage:
        notes = stage.run(Recipe(4, "fp16-mixed")).notes
    assert any("cuDNN tells the size" in note for note in notes)
    assert any("mean of what the model returns" in note for note in notes)
    with Rehearsals(subject("Vit", "f32[4,3,32,32]", "cross_entropy")) as stage:
        (note,) = stage.run(Recipe(4, "fp16-mixed")).notes
    assert note.startswith("Attention is counted as flash attention")


def test_a_model_whose_constructor_reads_values_is_made_for_real_and_says_so():
    with Rehearsals(subject("ConvNeXtLike", "f32[4,3,32,32]")) as stage:
        assert any("made for real" in note for note in stage.run(Recipe(4)).notes)


@pytest.mark.parametrize(
    ("name", "recipe", "words"),
    [
        ("Decides", Recipe(4), "asks for the value of a tensor"),
        (
            "Mismatched",
            Recipe(4),
            "raised RuntimeError in a training step on fake CUDA: a and b must have same reduction",
        ),
        ("BceLoss", Recipe(4, "fp16-mixed"), "binary_cross_entropy_with_logits"),
    ],
)
def test_what_cannot_be_counted_is_said_in_words(name, recipe, words):
    inputs = "f32[4,16]" if name == "BceLoss" else "f32[4,4]"
    with Rehearsals(subject(name, inputs)) as stage, pytest.raises(LedgerError, match=words):
        stage.run(recipe)


def test_bceloss_is_counted_where_it_trains_and_a_failed_rehearsal_does_not_spoil_the_next():
    with Rehearsals(subject("BceLoss", "f32[4,16]")) as stage:
        with pytest.raises(LedgerError):
            stage.run(Recipe(4, "bf16-mixed"))
        assert stage.run(Recipe(4)).peaks["step"].of("weights") == 17 * 4
    assert not torch.is_autocast_enabled("cuda")


def test_a_model_without_repeated_blocks_names_its_parts():
    with (
        Rehearsals(subject("Masked", "i64[4,30]<100; bool[4,30]")) as stage,
        pytest.raises(LowVramError, match=r"no repeated blocks.*these parts: attention"),
    ):
        stage.run(Recipe(4, checkpointing=True))


def test_the_batch_is_the_first_dimension_of_every_input_that_shares_it():
    made = subject("Masked", "i64[4,30]<100; bool[4,30]; f32[1,30]")
    inputs, target = made.batch(7)
    assert [tuple(tensor.shape) for tensor in inputs] == [(7, 30), (7, 30), (1, 30)]
    assert target is None and all(tensor.device.type == "meta" for tensor in inputs)


def test_a_subject_that_cannot_be_is_an_error_at_once():
    with pytest.raises(LedgerError, match="Describe a batch"):
        Subject.of(f"{FILE}:Vit")
    with pytest.raises(LedgerError, match="There is no loss 'l7'"):
        Subject.of("mlp", None, "l7")
    with pytest.raises(ModelError, match="Did you mean gpt_tiny"):
        Subject.of("gpt_tinny")
    with pytest.raises(ModelError, match="no dtype 'float'"):
        subject("Vit", "float[3]")
