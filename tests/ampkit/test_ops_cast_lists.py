"""The cast lists are found by asking, and agree op by op with the header that PyTorch installs."""

import doctest
import re
from pathlib import Path

import pytest
import torch

import ampkit.ops.cast_lists
from ampkit.errors import OpsError
from ampkit.ops import CATEGORIES, DEVICE_TYPES, listed_ops, policies, policy

HEADER = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
EVERY_DEVICE = pytest.mark.parametrize("device_type", DEVICE_TYPES)


def test_the_examples_in_the_docstrings_run():
    result = doctest.testmod(ampkit.ops.cast_lists)
    assert result.attempted >= 5 and result.failed == 0


@EVERY_DEVICE
def test_every_op_with_an_autocast_kernel_is_in_one_category_and_none_is_left_unprobed(device_type):
    found = policies(device_type)
    assert set(found) == set(CATEGORIES) - {"unlisted"}
    names = [name for category in found.values() for name in category]
    assert sorted(names) == list(listed_ops(device_type)) and len(names) > 90
    assert [str(policy(name, device_type)) for name in found["not probed"]] == []


def macros():
    """{macro: the ops that it lists} of the installed header: "pow.Tensor_Scalar" and so on."""
    text = HEADER.read_text().replace("\\\n", " ")
    found = {}
    for macro, body in re.findall(r"#define (AT_FORALL_\w+)\(_[^)]*\)(.*)", text):
        pairs = re.findall(r"_\(\s*(\w+)\s*(?:,\s*(\w+)\s*)?\)", body)
        if macro == "AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE":  # (function, name, schema, schema, policy)
            pairs = [tuple(name.split(".")) for name in re.findall(r'"(norm\.\w+)"', body)]
        found[macro] = {f"{op}.{overload}" if overload else op for op, overload in pairs}
    return found


@pytest.mark.skipif(not HEADER.exists(), reason="requires PyTorch's headers (torch/include)")
@pytest.mark.parametrize(
    ("macro", "categories"),
    [
        ("AT_FORALL_LOWER_PRECISION_FP", {"lower precision"}),
        ("AT_FORALL_FP32", {"fp32"}),
        ("AT_FORALL_FP32_SET_OPT_DTYPE", {"fp32 result"}),
        ("AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE", {"fp32 result"}),
        ("AT_FORALL_PROMOTE", {"promote"}),
    ],
)
def test_the_categories_are_those_of_the_installed_header(macro, categories):
    ops = macros()[macro]
    assert len(ops) >= {"AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE": 1}.get(macro, 10)
    differs = {name: policy(name).category for name in ops if policy(name).category not in categories}
    assert differs == {}


@pytest.mark.skipif(not HEADER.exists(), reason="requires PyTorch's headers (torch/include)")
def test_what_is_found_beyond_the_header_is_what_pytorch_registers_in_its_source_file():
    in_header = set().union(*macros().values())
    pytorchs = [name for name in listed_ops("cuda") if "::" not in name]  # torchvision's are listed once it is imported
    beyond = {name: policy(name).category for name in pytorchs if name not in in_header}
    beyond.pop("norm.Scalar", None), beyond.pop("norm.ScalarOpt_dim", None)
    assert beyond.pop("binary_cross_entropy") == "banned"
    assert beyond.pop("linalg_matrix_sqrth", "fp32") == "fp32"  # from PyTorch 2.14 on
    assert set(beyond) <= {"cudnn_convolution", "cudnn_convolution_transpose", "_cudnn_rnn"}
    assert set(beyond.values()) <= {"lower precision"}


# Facts that PyTorch's documentation and source state, and that CPU autocast is known to differ in.
@pytest.mark.parametrize(
    ("op", "cuda", "cpu"),
    [
        ("linear", "lower precision", "lower precision"),
        ("conv2d", "lower precision", "lower precision"),
        ("matmul", "lower precision", "lower precision"),
        ("einsum", "lower precision", "unlisted"),
        ("softmax", "fp32 result", "unlisted"),
        ("layer_norm", "fp32", "unlisted"),
        ("exp", "fp32", "unlisted"),
        ("pow", "fp32", "unlisted"),
        ("sum", "fp32 result", "unlisted"),
        ("mse_loss", "fp32", "fp32"),
        ("fft_fft", "unlisted", "fp32"),
        ("scatter_add", "promote", "unlisted"),
        ("cat", "unlisted", "promote"),
        ("binary_cross_entropy", "banned", "fp32"),
        ("embedding", "unlisted", "unlisted"),
        ("batch_norm", "unlisted", "unlisted"),
        ("relu", "unlisted", "unlisted"),
        ("mean", "unlisted", "unlisted"),
    ],
)
def test_cpu_autocast_is_no_stand_in_for_cuda_autocast(op, cuda, cpu):
    assert (policy(op, "cuda").category, policy(op, "cpu").category) == (cuda, cpu)


def test_mps_lists_batch_norm_and_bans_nothing():
    assert policy("batch_norm", "mps").category == "fp32"
    assert policies("mps")["banned"] == ()


def test_an_op_may_be_named_in_each_way_that_pytorch_has():
    names = ["softmax", "softmax.int", "aten::softmax.int", torch.ops.aten.softmax, torch.ops.aten.softmax.int]
    assert {policy(name).op for name in names} == {"softmax.int"}
    assert policy("linear").op == policy("linear.default").op == policy(torch.ops.aten.linear.default).op == "linear"
    assert policy("add").category == "unlisted"


def test_a_composed_op_says_that_its_parts_are_cast():
    assert "composes it of other ops" in policy("cross_entropy_loss").reason
    assert policy("relu").reason == ""


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        ("mm", (torch.float32, torch.float32), None),
        ("mm", (torch.float32, "lower"), None),
        ("exp", ("lower",), torch.float32),
        ("sum", ("lower",), torch.float32),
        ("atan2", ("lower", torch.float32), torch.float32),
        ("atan2", ("lower", "lower"), None),
        ("mul", ("lower", torch.float32), torch.float32),
        ("mul", ("lower", "lower"), None),
    ],
)
def test_the_dtype_that_a_policy_promises_is_the_one_that_comes_out(dtype, op, inputs, expected):
    """Promised by the category, against the op really called on fake CUDA."""
    from ampkit.fake import fake_cuda

    dtypes = tuple(dtype if each == "lower" else each for each in inputs)
    promised = policy(op).compute_dtype(dtypes, dtype)
    assert promised is (expected or dtype)
    with fake_cuda(dtype) as fake:
        assert getattr(torch, op)(*[fake.empty(4, 4, dtype=each) for each in dtypes]).dtype is promised


def test_what_cannot_be_told_is_an_error_that_says_what_can():
    with pytest.raises(OpsError, match="Did you mean"):
        policy("sofmax")
    with pytest.raises(OpsError, match="cuda, cpu, mps, xpu"):
        policies("tpu")
    assert policy("binary_cross_entropy").compute_dtype((torch.float32,), torch.float16) is None
    assert "unsafe to autocast" in policy("binary_cross_entropy").reason


def test_asking_leaves_autocast_and_the_log_as_they_were():
    import logging

    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    ampkit.ops.cast_lists._probed.cache_clear()
    policies("cuda")
    assert (torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")) == before
    assert not logging.getLogger("torch._subclasses.fake_tensor").disabled
