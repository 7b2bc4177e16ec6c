"""The models that loops and instruments know by name, and anybody's own by import path."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ampkit.errors import ModelError
from ampkit.models.digits import cnn, mlp
from ampkit.models.spec import imported, is_import_path, made, normal, parse_input, whole
from ampkit.models.transformers import Bert, Gpt

__all__ = ["MODELS", "Entry", "build", "cnn", "cross_entropy", "example", "loss", "mlp", "parse_input"]


@dataclass(frozen=True)
class Entry:
    """A registered model: how it is made, what goes in, and which data train it.

    takes       "images" (FP32, N × image) or "tokens" (int64, N × length)
    image       shape (channels, height, width) of one image; None for tokens
    vocabulary  how many tokens there are, and length, how many make an example; None for images
    classes     how many logits there are to an example, or to each token of it where each_token is set
    data        the data sets of ampkit.data that fit it
    lr          a learning rate at which SGD with momentum 0.9 trains it from scratch, at this batch_size
    """

    name: str
    about: str
    make: Callable[[], nn.Module]
    classes: int
    data: tuple[str, ...]
    lr: float
    batch_size: int
    image: tuple[int, int, int] | None = None
    vocabulary: int | None = None
    length: int | None = None
    each_token: bool = False

    @property
    def takes(self) -> str:
        """What goes in: "images" or "tokens"."""
        return "images" if self.image else "tokens"


def _resnet18() -> nn.Module:
    from torchvision.models import resnet18  # seconds to import

    return resnet18()


def _resnet50() -> nn.Module:
    from torchvision.models import resnet50

    return resnet50()


def _bert_tiny() -> nn.Module:
    return Bert(layers=2, width=64, heads=4, vocabulary=256, length=64, std=0.1)


def _gpt_tiny() -> nn.Module:
    return Gpt(layers=2, width=64, heads=4, vocabulary=256, length=64)


_ENTRIES = (
    Entry("mlp", "6 linear layers with tanh, for the digits", mlp, 10, ("digits", "synthetic"), 0.1, 128, (1, 8, 8)),
    Entry(
        "cnn", "2 convolutions with BatchNorm, for the digits", cnn, 10, ("digits", "synthetic"), 0.1, 128, (1, 8, 8)
    ),
    Entry("resnet18", "torchvision's", _resnet18, 1000, ("cifar10", "synthetic"), 0.05, 64, (3, 224, 224)),
    Entry("resnet50", "torchvision's", _resnet50, 1000, ("cifar10", "synthetic"), 0.05, 64, (3, 224, 224)),
    Entry(
        name="bert_base",
        about="an encoder of BERT-base's size with a classification head",
        make=Bert,
        classes=2,
        data=("text", "synthetic"),
        lr=0.01,
        batch_size=16,
        vocabulary=30522,
        length=128,
    ),
    Entry(
        name="bert_tiny",
        about="2 layers of width 64 of the same encoder, for bytes",
        make=_bert_tiny,
        classes=2,
        data=("text", "synthetic"),
        lr=0.01,
        batch_size=32,
        vocabulary=256,
        length=64,
    ),
    Entry(
        name="gpt2",
        about="a decoder of GPT-2's size",
        make=Gpt,
        classes=50257,
        data=("text", "synthetic"),
        lr=0.05,
        batch_size=4,
        vocabulary=50257,
        length=1024,
        each_token=True,
    ),
    Entry(
        name="gpt_tiny",
        about="2 layers of width 64 of the same decoder, for bytes",
        make=_gpt_tiny,
        classes=256,
        data=("text", "synthetic"),
        lr=0.2,
        batch_size=32,
        vocabulary=256,
        length=64,
        each_token=True,
    ),
)
MODELS = {entry.name: entry for entry in _ENTRIES}


def build(spec: str) -> nn.Module:
    """A new model: a registered name, `package.module:callable` or `path/to/file.py:callable`.

    The callable takes no arguments and returns an nn.Module. Inside `torch.device("meta")` and FakeTensorMode the
    parameters take no memory. Raises ModelError.

    >>> sum(p.numel() for p in build("mlp").parameters())
    6634
    """
    if is_import_path(spec):
        return made(spec, imported(spec))
    return _entry(spec).make()


def example(
    spec: str, batch_size: int, device: str = "cpu", seed: int = 0, *, length: int | None = None
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Inputs and targets of a registered model, drawn at random from seed alone: ((inputs,), targets).

    Images are FP32 (batch_size, channels, height, width) with targets int64 (batch_size,). Tokens are int64
    (batch_size, length) with targets int64 (batch_size,), or (batch_size, length) for a model that predicts the next
    token. length is by default the entry's (128 for bert_base, 1024 for gpt2). Raises ModelError.

    >>> (tokens,), targets = example("bert_base", 2, device="meta")
    >>> tuple(tokens.shape), tuple(targets.shape)
    ((2, 128), (2,))
    """
    if is_import_path(spec):
        raise ModelError(f"What {spec} takes is not known. Describe it with --input, as in --input 'f32[8,3,224,224]'.")
    entry = _entry(spec)
    if length is not None and entry.image is not None:
        raise ModelError(f"{spec} takes images, which have no length. Leave length out.")
    if batch_size < 1 or (length is not None and length < 1):
        raise ModelError(f"batch_size and length are 1 or more, not {batch_size} and {length}.")
    generator = torch.Generator().manual_seed(seed)
    if entry.image is not None:
        inputs = normal((batch_size, *entry.image), generator, device)
        return (inputs,), whole((batch_size,), entry.classes, generator, device)
    assert entry.vocabulary is not None and entry.length is not None  # so it takes tokens
    length = entry.length if length is None else length
    tokens = whole((batch_size, length + 1), entry.vocabulary, generator, device)
    if entry.each_token:
        return (tokens[:, :-1],), tokens[:, 1:]
    return (tokens[:, :-1],), whole((batch_size,), entry.classes, generator, device)


def loss(spec: str) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss that the model is trained with: a function of logits and targets that returns a scalar.

    It is cross_entropy for every model, somebody's own too. Raises ModelError for a name that does not exist.
    """
    if not is_import_path(spec):
        _entry(spec)
    return cross_entropy


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy in nats: logits (N, C) with targets int64 (N,), or (N, T, V) with (N, T).

    It computes in the dtype of the logits; a loop that wants FP32 says `.float()`.

    >>> cross_entropy(torch.zeros(2, 5, 256), torch.zeros(2, 5, dtype=torch.int64)).item()  # log(256)
    5.545177459716797
    """
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())


def _entry(name: str) -> Entry:
    if name in MODELS:
        return MODELS[name]
    close = difflib.get_close_matches(name.lower().replace("-", "_"), MODELS, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise ModelError(
        f"There is no model {name!r}.{hint} The models are: {', '.join(MODELS)}; or name your own as "
        "package.module:callable or path/to/file.py:callable."
    )
