"""A rehearsal without data keeps alive what a real training step does: compared, byte for byte, with real ones."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from ampkit.errors import LedgerError
from ampkit.ledger import Recipe, Rehearsals, Subject
from ampkit.ledger.live import LiveBytes
from ampkit.ledger.recipe import OPTIMIZERS
from ampkit.ledger.rehearsal import PHASES
from ampkit.lowvram import checkpoint_blocks
from ampkit.models.transformers import Gpt
from ampkit.precision import Precision

pytestmark = pytest.mark.skipif(
    not torch.backends.cuda.is_built(), reason="requires a CUDA build of PyTorch (it needs no GPU)"
)
MIB = 2**20


class Residual(nn.Module):
    """Branches, a layer used once more, views, norms: what makes lifetimes hard."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 32)
        self.up, self.gate, self.down, self.norm = (
            nn.Linear(32, 64),
            nn.Linear(32, 64),
            nn.Linear(64, 32),
            nn.LayerNorm(32),
        )

    def forward(self, tokens):
        x = self.embed(tokens)
        h = self.norm(x)
        x = x + self.down(F.gelu(self.up(h)) * torch.sigmoid(self.gate(h)))
        a, b = x.transpose(1, 2).chunk(2, dim=1)
        return torch.cat([a.relu(), b], dim=1).mean(2)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.drop = nn.Linear(32, 128), nn.Linear(128, 32), nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.down(F.gelu(self.up(x))))


def own(make, *inputs, loss=lambda output, target: output.float().square().mean(), name="own"):
    """A subject whose batch is made of meta tensors of these (shape, dtype)."""

    def batch(size):
        return tuple(torch.empty(size, *shape, dtype=dtype, device="meta") for shape, dtype in inputs), None

    return Subject(name, make, batch, loss)


SUBJECTS = {
    "mlp": lambda: Subject.of("mlp"),
    "cnn": lambda: Subject.of("cnn"),
    "residual": lambda: own(Residual, ((7,), torch.int64)),
    "blocks": lambda: own(lambda: nn.Sequential(Block(), Block(), Block(), nn.Linear(32, 4)), ((32,), torch.float32)),
    "gpt": lambda: own(
        lambda: Gpt(layers=2, width=64, heads=2, vocabulary=50, length=32, dropout=0.0), ((32,), torch.int64)
    ),
}


def real_peaks(subject, recipe):
    """Bytes of blocks at the peak of each phase of the second real training step, on the CPU."""
    precision = Precision(recipe.precision)
    model = subject.make().to(precision.param_dtype).train()
    if recipe.checkpointing:
        checkpoint_blocks(model)
    inputs, target = subject.batch(recipe.micro_batch)
    inputs = [torch.zeros_like(value, device="cpu") for value in inputs]
    inputs = [value.to(precision.param_dtype) if value.is_floating_point() else value for value in inputs]
    target = None if target is None else torch.zeros_like(target, device="cpu")
    optimizer = OPTIMIZERS[recipe.optimizer](model.parameters())
    peaks = {}
    with LiveBytes("cpu") as live:
        live.call("weights", [*model.parameters(), *model.buffers(), *inputs, *([] if target is None else [target])])
        for _ in range(2):
            for _ in range(recipe.accumulate):
                live.start_phase()
                with precision.autocast("cpu"):
                    loss = subject.loss(model(*inputs), target)
                peaks["forward"] = live.peak.blocks
                live.start_phase()
                loss.backward()
                del loss
                peaks["backward"] = live.peak.blocks
            live.start_phase()
            optimizer.step()
            peaks["step"] = live.peak.blocks
            optimizer.zero_grad()
    return peaks


def rehearsed(subject, recipe):
    with Rehearsals(subject) as stage:
        return stage.run(recipe)


@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        ("mlp", Recipe(64, optimizer="momentum")),
        ("mlp", Recipe(64, optimizer="sgd", accumulate=4)),
        ("mlp", Recipe(64, "bf16-mixed", "momentum")),
        ("mlp", Recipe(64, "bf16-true", "momentum")),
        ("cnn", Recipe(64, optimizer="momentum")),
        ("cnn", Recipe(63, optimizer="momentum", accumulate=2)),
        ("residual", Recipe(16, optimizer="momentum")),
        ("residual", Recipe(16, "bf16-true", "sgd")),
        ("blocks", Recipe(64, optimizer="momentum", checkpointing=True)),
        ("blocks", Recipe(64, "bf16-mixed", "momentum", checkpointing=True)),
    ],
    ids=str,
)
def test_a_rehearsal_peaks_where_the_real_step_does_to_the_byte(name, recipe):
    subject = SUBJECTS[name]()
    torch.manual_seed(0)
    rehearsal = rehearsed(subject, recipe)
    assert {phase: rehearsal.peaks[phase].blocks for phase in PHASES} == real_peaks(subject, recipe)


def test_attention_keeps_no_scores_and_two_numbers_of_the_random_generator_more_than_on_the_cpu():
    recipe = Recipe(4, optimizer="momentum")
    rehearsal, real = rehearsed(SUBJECTS["gpt"](), recipe), real_peaks(SUBJECTS["gpt"](), recipe)
    layers, seed_and_offset = 2, 2 * 512
    assert rehearsal.peaks["forward"].blocks - real["forward"] == layers * seed_and_offset
    assert rehearsal.peaks["step"].blocks == real["step"]
    assert any("flash attention" in note for note in rehearsal.notes)


def test_resnet50_saves_5244_mib_in_fp32_and_2720_under_fp16_autocast_at_batch_64():
    with Rehearsals(Subject.of("resnet50")) as stage:
        fp32, fp16 = stage.run(Recipe(64)), stage.run(Recipe(64, "fp16-mixed"))
    assert round(sum(fp32.kept.values()) / MIB) == 5244
    assert round(sum(fp16.kept.values()) / MIB) == 2720
    assert fp32.kept_casts == 0
    weights = [p.numel() for p in Subject.of("resnet50").make().parameters() if p.dim() > 1]
    assert fp16.kept_casts == 2 * sum(weights)  # the FP16 copies of what convolutions and the last layer multiply by
    assert fp16.peaks["forward"].of("weights") == fp32.peaks["forward"].of("weights")  # AMP halves no weight
    assert fp16.peaks["step"] == fp32.peaks["step"]  # nor a gradient, nor the optimizer's state


# bytes per parameter: weights, master weights, gradients, optimizer state
PER_PARAMETER = {
    Recipe(8): (4, 0, 4, 8),
    Recipe(8, "fp16-mixed"): (4, 0, 4, 8),
    Recipe(8, "bf16-mixed"): (4, 0, 4, 8),
    Recipe(8, "bf16-true"): (2, 0, 2, 4),
    Recipe(8, "fp16-true", master_weights=True): (2, 4, 2 + 4, 8),
    Recipe(8, "fp16-mixed", "momentum"): (4, 0, 4, 4),
    Recipe(8, "fp16-mixed", "sgd"): (4, 0, 4, 0),
    Recipe(8, "fp16-mixed", "adamw8bit"): (4, 0, 4, 2),
}


@pytest.mark.parametrize("recipe", PER_PARAMETER, ids=str)
def test_the_ledger_per_parameter_is_that_of_its_regime(recipe):
    parameters = 4096 * 256
    subject = own(lambda: nn.Linear(4096, 256, bias=False), ((4096,), torch.float32))
    step = rehearsed(subject, recipe).peaks["step"]
    expected = [each * parameters for each in PER_PARAMETER[recipe]]
    if recipe.optimizer == "adamw8bit":  # two moments, each with a scale for 256 elements and a table of 256
        expected[3] += 2 * (4 * parameters // 256 + 4 * 256)
    assert [step.of(term) for term in ("weights", "master weights", "gradients", "optimizer state")] == expected


def test_the_weight_copies_of_autocast_live_from_forward_to_backward_and_cover_the_listed_ops_alone():
    subject = own(
        lambda: nn.Sequential(nn.Linear(64, 64, bias=False), nn.LayerNorm(64), nn.Linear(64, 64, bias=False)),
        ((64,), torch.float32),
    )
    rehearsal = rehearsed(subject, Recipe(8, "fp16-mixed"))
    both = 2 * (64 * 64 * 2)
    assert rehearsal.peaks["forward"].of("cast copies") == both
    assert rehearsal.kept_casts == both // 2  # the first layer's input needs no gradient, so its weight is not kept
    assert rehearsal.peaks["step"].of("cast copies") == 0


def test_adamw_takes_one_more_copy_of_the_weights_in_its_step_unless_it_is_fused():
    subject = own(lambda: nn.Linear(1024, 1024, bias=False), ((1024,), torch.float32))
    with Rehearsals(subject) as stage:
        plain, fused = (stage.run(Recipe(1, optimizer=name)).peaks["step"] for name in ("adamw", "adamw-fused"))
    assert plain.of("temporaries") >= plain.of("weights")
    assert fused.of("temporaries") == 0
    assert plain.of("optimizer state") == 8 * 1024 * 1024
    assert fused.of("optimizer state") == 8 * 1024 * 1024 + 4  # fused keeps its step counter on the GPU


def test_accumulation_keeps_gradients_through_the_forward_and_the_micro_batch_decides():
    subject = SUBJECTS["residual"]()
    with Rehearsals(subject) as stage:
        whole, parts, small = (stage.run(recipe) for recipe in (Recipe(64), Recipe(64, accumulate=4), Recipe(16)))
    assert parts.kept == small.kept != whole.kept
    assert small.peaks["forward"].of("gradients") == 0
    assert parts.peaks["forward"].of("gradients") == parts.peaks["step"].of("gradients") > 0


def test_checkpointing_keeps_the_inputs_of_the_blocks_alone():
    subject = SUBJECTS["blocks"]()
    with Rehearsals(subject) as stage:
        plain, checkpointed = (stage.run(Recipe(64, checkpointing=on)) for on in (False, True))
    of_a_block = 64 * 32 * 4
    assert sum(checkpointed.kept.values()) == 4 * of_a_block + 64 * 4 * 4  # three inputs, the last layer's, the loss's
    assert sum(plain.kept.values()) > 6 * sum(checkpointed.kept.values())
    assert checkpointed.peaks["backward"].blocks > checkpointed.peaks["forward"].blocks  # a block computed again


def test_frozen_weights_have_neither_gradient_nor_state():
    def lora():
        model = nn.Sequential(nn.Linear(256, 256, bias=False), nn.Linear(256, 4, bias=False))
        model[0].weight.requires_grad_(False)
        return model

    step = rehearsed(own(lora, ((256,), torch.float32)), Recipe(4)).peaks["step"]
    assert step.of("gradients") == 256 * 4 * 4 and step.of("optimizer state") == 8 * 256 * 4
    with pytest.raises(LedgerError, match="nothing to train"):
        rehearsed(own(lambda: nn.Linear(2, 2).requires_grad_(False), ((2,), torch.float32), name="frozen"), Recipe(4))
