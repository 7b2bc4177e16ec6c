"""The models: registered ones are what their names say, somebody's own are found or the error says why not."""

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from ampkit import ModelError, models
from ampkit.models import MODELS, build, example, loss, parse_input

# Parameters of the published models, and of ours by arithmetic.
PARAMETERS = {
    "mlp": 64 * 32 + 32 + 4 * (32 * 32 + 32) + 32 * 10 + 10,
    "cnn": 72 + 16 + 1152 + 32 + 650,
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "bert_base": 109_482_240 + 768 * 2 + 2,  # with pooler, and a head for two classes
    "gpt2": 124_439_808,
}
TINY = ["mlp", "cnn", "bert_tiny", "gpt_tiny"]


def count(model):
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_a_registered_model_fits_its_example_and_its_loss_without_memory(name):
    with torch.device("meta"):
        model = build(name)
    assert count(model) == PARAMETERS.get(name, count(model)) and all(p.is_meta for p in model.parameters())
    inputs, targets = example(name, 4, device="meta")
    logits = model(*inputs)
    assert logits.shape == (*targets.shape, MODELS[name].classes)
    assert loss(name)(logits, targets).shape == ()


@pytest.mark.parametrize("name", ["bert_base", "gpt2", "resnet50"])
def test_a_large_model_is_built_and_run_on_fake_tensors(name):
    with FakeTensorMode():
        model = build(name)
        inputs, targets = example(name, 2)
        assert model(*inputs).shape == (*targets.shape, MODELS[name].classes)


@pytest.mark.parametrize("name", TINY)
def test_an_example_is_real_data_that_a_tiny_model_has_a_gradient_for(name):
    torch.manual_seed(0)
    model = build(name)
    inputs, targets = example(name, 4)
    value = loss(name)(model(*inputs), targets)
    value.backward()
    assert value.isfinite() and all(p.grad.isfinite().all() and p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_an_example_depends_on_its_seed_alone(name):
    (one,), first = example(name, 2, seed=1, **({} if MODELS[name].image else {"length": 16}))
    torch.manual_seed(5)
    (same,), again = example(name, 2, seed=1, **({} if MODELS[name].image else {"length": 16}))
    (other,), _ = example(name, 2, seed=2, **({} if MODELS[name].image else {"length": 16}))
    assert torch.equal(one, same) and torch.equal(first, again) and not torch.equal(one, other)


def test_the_length_of_an_example_is_the_models_or_the_one_asked_for():
    for name, length in (("bert_base", 128), ("gpt2", 1024)):
        assert example(name, 1)[0][0].shape == (1, length)
        assert example(name, 1, length=7)[0][0].shape == (1, 7)
    with pytest.raises(ModelError, match="images, which have no length"):
        example("cnn", 1, length=7)


def test_a_decoder_is_asked_for_the_next_token_and_cannot_see_it():
    (tokens,), targets = example("gpt_tiny", 2)
    assert torch.equal(tokens[:, 1:], targets[:, :-1])
    torch.manual_seed(0)
    model = build("gpt_tiny").eval()
    changed = tokens.clone()
    changed[:, 40:] = (changed[:, 40:] + 1) % 256
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    assert torch.equal(before[:, :40], after[:, :40]) and not torch.equal(before[:, 40:], after[:, 40:])


def test_an_encoder_sees_every_token():
    (tokens,), _ = example("bert_tiny", 2)
    torch.manual_seed(0)
    model = build("bert_tiny").eval()
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 256
    with torch.no_grad():
        assert not torch.equal(model(tokens), model(changed))


def test_the_loss_of_a_decoder_is_the_mean_over_all_its_tokens():
    logits, targets = (
        torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0)),
        torch.tensor([[0, 1, 2], [3, 4, 0]]),
    )
    each = [-logits[n, t].log_softmax(0)[targets[n, t]] for n in range(2) for t in range(3)]
    torch.testing.assert_close(models.cross_entropy(logits, targets), torch.stack(each).mean())


def test_torchvision_is_imported_by_a_resnet_and_by_nothing_else():
    code = (
        "import sys\nfrom ampkit import models\nmodels.build('gpt_tiny'); models.example('resnet50', 1)\n"
        "assert 'torchvision' not in sys.modules\nmodels.build('resnet18')\nassert 'torchvision' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# Somebody's own

OWN = """
from dataclasses import dataclass
from neighbour import WIDTH
from torch import nn

@dataclass
class Config:
    width: int = WIDTH

class Net(nn.Linear):
    def __init__(self):
        super().__init__(Config().width, 2)

class Deep(nn.Module):
    Part = Net

def make(): return Net()
def wide(width, depth=2): return nn.Linear(width, depth)
def broken(): raise RuntimeError("no luck")
def number(): return 7
ready = Net()
constant = 3
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own_model.py").write_text(OWN)
    (tmp_path / "neighbour.py").write_text("WIDTH = 4\n")
    yield tmp_path / "own_model.py"
    for name in ("neighbour", "own_model", "_model_in_own_model"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["make", "Net", "Deep.Part"])
def test_somebodys_own_model_comes_from_a_file(own, name):
    path = list(sys.path)
    model = build(f"{own}:{name}")
    assert isinstance(model, nn.Linear) and model.in_features == 4
    assert sys.path == path


def test_somebodys_own_model_comes_from_a_module_of_the_current_folder(own, monkeypatch):
    monkeypatch.chdir(own.parent)
    assert build("own_model:make").in_features == 4
    with torch.device("meta"):
        assert build("own_model:make").weight.is_meta


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mak", r"has no 'mak'\. Did you mean make\?"),
        ("wide", r"needs arguments: width\..*def make\(\): return wide\(\.\.\.\)"),
        ("broken", "raised RuntimeError when it was called: no luck"),
        ("number", r"returned an int, and not an nn\.Module"),
        ("ready", "is a model already"),
        ("constant", "is an int, which cannot be called"),
    ],
)
def test_a_callable_that_makes_no_model_is_an_error_that_says_why(own, name, words):
    with pytest.raises(ModelError, match=words):
        build(f"{own}:{name}")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("resnet5O", r"no model 'resnet5O'\. Did you mean resnet50\?.*mlp, cnn, resnet18.*package\.module:callable"),
        ("gpt-2", r"Did you mean gpt2\?"),
        ("no_such_package.net:make", "no module 'no_such_package'"),
        ("torch.no_such_module:make", r"no module 'torch\.no_such_module'"),
        ("no/such/file.py:make", "no file 'no/such/file.py'"),
        (":make", "is no import path"),
        ("torch.nn:", "is no import path"),
    ],
)
def test_a_model_that_is_not_there_is_an_error_that_says_what_is(spec, words):
    with pytest.raises(ModelError, match=words):
        build(spec)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_dependency", "raised ModuleNotFoundError when it was imported: .*no_such_dependency"),
        ("def make(:", "raised SyntaxError when it was imported"),
    ],
)
def test_a_file_that_cannot_be_imported_is_an_error_with_what_python_said(tmp_path, text, words):
    file = tmp_path / "bad_model.py"
    file.write_text(text)
    with pytest.raises(ModelError, match=words):
        build(f"{file}:make")
    assert "_model_in_bad_model" not in sys.modules


def test_what_somebodys_own_model_takes_has_to_be_described():
    with pytest.raises(ModelError, match="Describe it with --input"):
        example("package.module:make", 4)
    assert loss("package.module:make") is models.cross_entropy
    with pytest.raises(ModelError, match="no model 'nope'"):
        loss("nope")


# Inputs in a word


def test_inputs_are_parsed_to_their_dtypes_shapes_and_ranges():
    tensors = parse_input("f32[8,3]; f16[2]; bf16[2] ;i64[1000]<7; i64[100]; bool[50]; f32[]")
    assert [x.dtype for x in tensors] == [
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int64,
        torch.bool,
        torch.float32,
    ]
    assert [tuple(x.shape) for x in tensors] == [(8, 3), (2,), (2,), (1000,), (100,), (50,), ()]
    assert set(tensors[3].tolist()) == set(range(7)) and set(tensors[4].tolist()) == {0, 1}
    assert tensors[5].any() and not tensors[5].all()
    assert all(
        torch.equal(x, y) for x, y in zip(tensors, parse_input("f32[8,3];f16[2];bf16[2];i64[1000]<7"), strict=False)
    )


def test_inputs_on_meta_take_no_memory():
    (x,) = parse_input("f32[1000000,1000000]", device="meta")
    assert x.is_meta and x.shape == (10**6, 10**6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "The input is empty"),
        ("f32[2];", r"'' is no input\. Write dtype\[shape\]"),
        ("f32 2,3", "is no input"),
        ("float[2]", "no dtype 'float'. Choose one of: f32, f16, bf16, i64, bool"),
        ("f32[2,,3]", "whole number from 1 on"),
        ("f32[0]", "whole number from 1 on"),
        ("f32[2]<5", "only i64 has a bound"),
        ("i64[2]<0", "1 or more"),
        ("f32[-1]", "is no input"),
    ],
)
def test_an_input_that_is_none_is_an_error_that_shows_how_to_write_one(text, words):
    with pytest.raises(ModelError, match=words):
        parse_input(text)
