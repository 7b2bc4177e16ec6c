"""The data: what each set holds, what fits which model, and batches whose position a checkpoint can keep."""

import hashlib
import pickle
import subprocess
import sys
from itertools import islice

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torchvision.datasets import CIFAR10

from ampkit import DataError, ModelError, data, models
from ampkit.data import Batches, Dataset


def test_the_digits_are_standardised_fp32_images_with_a_test_split_held_out():
    digits = data.digits()
    assert digits.train_images.shape == (1400, 1, 8, 8) and digits.test_images.shape == (397, 1, 8, 8)
    assert digits.train_images.dtype is torch.float32 and digits.train_labels.dtype is torch.int64
    assert abs(digits.train_images.mean().item()) < 1e-5
    assert digits.train_images.std().item() == pytest.approx(1, abs=1e-5)
    assert set(digits.test_labels.tolist()) == set(range(10))


def test_the_text_is_english_and_its_targets_are_the_bytes_that_follow():
    text = data.text(32)
    assert text.train_inputs.shape[1:] == text.train_targets.shape[1:] == (32,)
    assert torch.equal(text.train_inputs[:, 1:], text.train_targets[:, :-1])
    assert text.train_inputs.max() < 256 and len(text.train_inputs) > 5 * len(text.test_inputs) > 1000
    english = bytes(text.train_inputs[:500].flatten().tolist()).decode(errors="replace")
    assert english.count(" the ") > 50


def test_the_text_for_a_classifier_is_half_english_and_half_code():
    text = data.text(64, next_token=False)
    for targets in (text.train_targets, text.test_targets):
        assert targets.float().mean().item() == pytest.approx(0.5, abs=0.01)
    code, english = (text.train_inputs[text.train_targets == which] for which in (1, 0))
    words = [bytes(part.flatten().tolist()).decode(errors="replace").count("self.") for part in (code, english)]
    assert words[0] > 20 * words[1]


def test_the_same_python_always_has_the_same_text():
    again = subprocess.run(
        [sys.executable, "-c", "from ampkit import data; print(data.text(64).train_inputs.sum().item())"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert int(again.stdout) == data.text(64).train_inputs.sum().item()


def test_synthetic_data_are_as_many_examples_as_asked_and_hold_nothing_out():
    synthetic = data.load("synthetic", "gpt_tiny", rows=6)
    assert synthetic.train_inputs.shape == synthetic.train_targets.shape == (6, 64)
    assert len(synthetic.test_inputs) == len(synthetic.test_targets) == 0
    assert data.load("synthetic", "resnet18", rows=2, device="meta").train_inputs.shape == (2, 3, 224, 224)


def test_cifar10_is_read_from_where_it_is_and_standardised(tmp_path, monkeypatch):
    a_cifar10(tmp_path, monkeypatch)
    cifar = data.load("cifar10", "resnet18", folder=tmp_path)
    assert cifar.train_inputs.shape == (50, 3, 32, 32) and cifar.test_inputs.shape == (10, 3, 32, 32)
    assert cifar.train_inputs.dtype is torch.float32 and cifar.train_targets.dtype is torch.int64
    assert cifar.train_inputs.mean((0, 2, 3)).abs().max() < 1e-4
    assert (cifar.train_inputs.std((0, 2, 3)) - 1).abs().max() < 1e-4


def a_cifar10(folder, monkeypatch):
    """CIFAR-10 as torchvision keeps it, with ten images a file, and torchvision told their checksums."""
    base = folder / CIFAR10.base_folder
    base.mkdir()
    random = numpy.random.default_rng(0)

    def write(name, content):
        (base / name).write_bytes(pickle.dumps(content))
        return hashlib.md5((base / name).read_bytes()).hexdigest()

    for which in ("train_list", "test_list"):
        files = []
        for name, _ in getattr(CIFAR10, which):
            images = random.integers(0, 256, (10, 3072), dtype=numpy.uint8)
            files.append([name, write(name, {"data": images, "labels": list(range(10))})])
        monkeypatch.setattr(CIFAR10, which, files)
    md5 = write(CIFAR10.meta["filename"], {"label_names": [str(label) for label in range(10)]})
    monkeypatch.setattr(CIFAR10, "meta", {**CIFAR10.meta, "md5": md5})


@pytest.mark.parametrize("folder", [None, "empty"])
def test_cifar10_that_is_not_there_is_an_error_that_says_how_to_get_it_and_nothing_is_downloaded(folder, tmp_path):
    with pytest.raises(DataError, match=r"Nothing is downloaded.*download=True.*--data synthetic"):
        data.load("cifar10", "resnet18", folder=folder and tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "model", "words"),
    [
        ("digit", "mlp", "no data 'digit'. The data are: digits, text, cifar10, synthetic"),
        ("text", "cnn", r"cnn does not take text\. .*fit cnn: digits, synthetic\. .*fit text: bert_base, .*gpt_tiny"),
        ("digits", "resnet18", r"fit resnet18: cifar10, synthetic\. Models that fit digits: mlp, cnn\."),
    ],
)
def test_data_that_do_not_fit_the_model_are_an_error_that_names_what_does(name, model, words):
    with pytest.raises(DataError, match=words):
        data.load(name, model)


def test_every_registered_model_fits_the_data_that_it_names():
    looked = 0
    for name, entry in models.MODELS.items():
        assert set(entry.data) <= set(data.DATA) and "synthetic" in entry.data
        for kind in set(entry.data) - {"cifar10"}:
            with torch.device("meta"):
                model = models.build(name)
            loaded = data.load(kind, name, rows=2, device="meta")
            inputs, targets = loaded.train_inputs[:2].to("meta"), loaded.train_targets[:2]
            assert model(inputs).shape == (*targets.shape, entry.classes)
            if not targets.is_meta:
                assert targets.max() < entry.classes
            looked += 1
    assert looked == 14


# Somebody's own model


def test_somebodys_own_model_that_fits_the_data_is_left_as_it_was():
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Dropout(), nn.Linear(64, 12))
    before = [b.clone() for b in model.buffers()]
    data.fits("own.py:make", model, Dataset(*data.digits()))
    assert model.training and all(torch.equal(a, b) for a, b in zip(before, model.buffers(), strict=True))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 9)), r"logits of shape \(2, 9\).*need \(2, 10\)"),
        (nn.Conv2d(1, 10, 3), r"logits of shape"),
        (nn.Linear(7, 10), r"does not take inputs of shape \(2, 1, 8, 8\) and torch\.float32: "),
        (nn.LSTM(8, 8), r"does not take inputs|returns tuple"),
    ],
)
def test_somebodys_own_model_that_does_not_fit_is_an_error_that_says_what_does_not(model, words):
    with pytest.raises(DataError, match=words):
        data.fits("own.py:make", model, Dataset(*data.digits()))


def test_somebodys_own_model_is_given_what_its_user_described_and_targets_that_fit_its_logits():
    described = data.described("own.py:make", nn.Linear(5, 7), "f32[40,3,5]", "synthetic")
    assert described.train_inputs.shape == (40, 3, 5) and described.train_targets.shape == (40, 3)
    assert set(described.train_targets.flatten().tolist()) == set(range(7))


@pytest.mark.parametrize(
    ("model", "text", "name", "words"),
    [
        ("own.py:make", "f32[40,5];f32[40,5]", "synthetic", "one input"),
        ("own.py:make", "f32[]", "synthetic", "one input"),
        ("own.py:make", "f32[40,6]", "synthetic", r"does not take inputs of shape \(2, 6\)"),
        ("own.py:make", "f32[40,5]", "digits", "Leave --input out"),
        ("mlp", "f32[40,5]", "synthetic", "Leave --input out"),
    ],
)
def test_an_input_that_a_loop_cannot_use_is_an_error(model, text, name, words):
    with pytest.raises(DataError, match=words):
        data.described(model, nn.Linear(5, 7), text, name)


def test_synthetic_data_for_somebodys_own_model_have_to_be_described():
    with pytest.raises(ModelError, match="--input"):
        data.load("synthetic", "own.py:make")


# Batches


def some(count, batch_size, seed=0):
    return Batches(torch.arange(float(count)), torch.arange(count), batch_size, seed=seed)


def test_an_epoch_of_batches_has_each_example_once_in_an_order_that_the_seed_decides():
    inputs, targets = torch.arange(12.0).reshape(12, 1, 1, 1), torch.arange(12)

    def order(seed, epochs=1):
        return torch.cat([y for _, y in islice(data.batches(inputs, targets, 4, seed=seed), 3 * epochs)])

    assert sorted(order(0).tolist()) == list(range(12))
    assert torch.equal(order(0), order(0)) and not torch.equal(order(0), order(1))
    assert not torch.equal(order(0, epochs=2)[:12], order(0, epochs=2)[12:])
    with pytest.raises(ValueError, match="between 1 and the number of examples, 12"):
        data.batches(inputs, targets, 13)


def test_next_leaves_out_the_ragged_batch_and_take_gives_it():
    batches = some(10, 4)
    assert [len(y) for _, y in islice(batches, 6)] == [4] * 6
    batches = some(10, 4)
    assert [[len(y) for _, y in batches.take(2)] for _ in range(4)] == [[4, 4], [2], [4, 4], [2]]
    batches = some(9, 4)
    assert [[len(y) for _, y in batches.take(2, smallest=2)] for _ in range(3)] == [[4, 4]] * 3


@settings(max_examples=60, deadline=None)
@given(count=st.integers(1, 40), batch_size=st.integers(1, 40), take=st.integers(1, 5), seed=st.integers(0, 9))
def test_windows_of_an_epoch_hold_each_example_once(count, batch_size, take, seed):
    batches = some(count, min(batch_size, count), seed)
    seen, windows = [], 0
    while len(seen) < 2 * count:
        window = batches.take(take)
        assert 1 <= len(window) <= take
        assert all(torch.equal(x, y.float()) for x, y in window)
        seen += torch.cat([y for _, y in window]).tolist()
        windows += 1
    assert sorted(seen[:count]) == sorted(seen[count:]) == list(range(count))
    assert windows == 2 * -(-count // (min(batch_size, count) * take))


@settings(max_examples=60, deadline=None)
@given(count=st.integers(1, 30), batch_size=st.integers(1, 30), moves=st.lists(st.integers(0, 3), max_size=12))
def test_from_a_saved_position_the_same_batches_follow(count, batch_size, moves):
    def move(batches, how):
        return torch.cat([y for _, y in batches.take(how)]) if how else next(batches)[1]

    batches = some(count, min(batch_size, count), seed=3)
    for how in moves:
        move(batches, how)
    other = some(count, min(batch_size, count), seed=8)
    other.load_state_dict(batches.state_dict())
    for how in (1, 0, 2, 3, 0):
        assert torch.equal(move(batches, how), move(other, how))


def test_a_position_in_other_data_is_refused():
    with pytest.raises(ValueError, match="a position in 10 examples, and these are 11"):
        some(11, 2).load_state_dict(some(10, 2).state_dict())
