"""CUDA's cast policy on CPU tensors: the dtypes of a GPU, real FP16 numbers, and nothing left behind."""

import re
import threading
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._pytree import tree_flatten

from ampkit import models
from ampkit.doctor import examine
from ampkit.doctor.cuda_policy import _overload, casts_on_cuda, cuda_autocast, cuda_policy
from ampkit.ops import inspect

HEADER = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
HALF, FLOAT = torch.float16, torch.float32


def listed(macro):
    """The aten ops of one of the lists in PyTorch's own header."""
    text = HEADER.read_text().replace("\\\n", " ")
    line = next(line for line in text.splitlines() if line.startswith(f"#define {macro}(_)"))
    names = re.findall(r'"(norm[^"]*)"', line) or re.findall(r"\b_\(([^)]*)\)", line.split("(_)", 1)[1])
    return ["aten::" + ".".join(part.strip() for part in name.split(",")) for name in names]


def arguments(op, dtype):
    """Something of the right type for every argument; the casts come before any look at shapes."""
    values = {"Tensor": torch.zeros(2, 2, dtype=dtype), "int": 1, "float": 1.0, "bool": False, "number": 1.0}
    values["str"] = "none"
    made = []
    for argument in op._schema.arguments:
        kind = str(argument.type)
        if argument.kwarg_only or argument.has_default_value():
            break
        if kind.startswith("Optional"):
            made.append(None)
            continue
        element = re.fullmatch(r"List\[(?:Optional\[)?(\w+)\]*", kind)
        made.append([values[element[1]]] * 2 if element else values[kind])
    return made


def casts(name, dtype):
    op = _overload(name)
    leaves, tree = tree_flatten((tuple(arguments(op, dtype)), {}))
    found = casts_on_cuda(op, leaves, tree, HALF)
    return {to for leaf, to in zip(leaves, found.dtypes, strict=True) if isinstance(leaf, torch.Tensor)}, found


@pytest.mark.skipif(not HEADER.exists(), reason="requires PyTorch's headers, which this build left out")
def test_every_op_of_pytorchs_lists_is_cast_as_its_list_says():
    lower, fp32 = listed("AT_FORALL_LOWER_PRECISION_FP"), listed("AT_FORALL_FP32")
    result = listed("AT_FORALL_FP32_SET_OPT_DTYPE") + listed("AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE")
    promote = listed("AT_FORALL_PROMOTE")
    assert min(len(lower), len(fp32), len(result), len(promote)) > 10  # the header was read
    for name in lower:
        assert casts(name, FLOAT)[0] == {HALF}, name
    for name in fp32:
        assert casts(name, HALF)[0] == {FLOAT}, name
    for name in result:
        dtypes, found = casts(name, HALF)
        assert dtypes == {None} and found.result is FLOAT, name
        assert casts(name, torch.float64)[1].result is None, name
    for name in promote:
        dtypes, found = casts(name, HALF)
        assert dtypes == {None} and found.result is None, name
    names = torch._C._dispatch_get_all_op_names()
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    registered = {name for name in names if name.startswith("aten::") and has(name, "AutocastCUDA")}
    rest = registered - {*lower, *fp32, *result, *promote}
    assert "aten::binary_cross_entropy" in rest and len(rest) < 8


def test_a_call_that_mixes_dtypes_is_promoted_to_the_widest():
    with cuda_policy(), cuda_autocast(HALF):
        index = torch.zeros(2, 2, dtype=torch.int64)
        assert torch.zeros(2, 2).scatter_add(0, index, torch.ones(2, 2, dtype=HALF)).dtype is FLOAT
        assert torch.atan2(torch.ones(2, dtype=HALF), torch.ones(2)).dtype is FLOAT


def test_the_policy_is_that_of_cuda_and_not_of_the_cpu():
    h = torch.randn(4, 8, generator=torch.Generator().manual_seed(0)).half()
    with torch.autocast("cpu", dtype=HALF):
        on_cpu = {op: op(h).dtype for op in (F.softplus, torch.exp, torch.sum, torch.rsqrt)}
    with cuda_policy(), cuda_autocast(HALF):
        as_on_cuda = {op: op(h).dtype for op in on_cpu}
        assert F.layer_norm(h, (8,)).dtype is FLOAT and h.softmax(-1).dtype is FLOAT
        assert (h**2).dtype is FLOAT and (h * h).dtype is HALF
        assert (1 / h).dtype is FLOAT and (h / h).dtype is HALF
        assert h.norm().dtype is FLOAT and torch.norm(h, dim=1).dtype is FLOAT
        assert F.cross_entropy(h, torch.zeros(4, dtype=torch.int64)).dtype is FLOAT
        assert torch.cat([h, h.float()]).dtype is FLOAT
        assert nn.BatchNorm1d(8)(h).dtype is HALF and h.mean().dtype is HALF
        assert F.embedding(torch.tensor([0]), h.float()).dtype is FLOAT
    assert set(on_cpu.values()) == {HALF} and set(as_on_cuda.values()) == {FLOAT}


@pytest.mark.parametrize("rnn", [nn.LSTM, nn.GRU, nn.RNN, nn.LSTMCell])
def test_a_recurrent_layer_is_half_from_input_to_output_as_in_cudnn(rnn):
    with cuda_policy(), cuda_autocast(HALF):
        out = rnn(8, 8)(torch.zeros(3, 8))
    assert (out[0] if isinstance(out, tuple) else out).dtype is HALF


def test_binary_cross_entropy_is_banned_with_pytorchs_own_words():
    p = torch.full((4,), 0.5)
    with cuda_policy(), cuda_autocast(HALF), pytest.raises(RuntimeError, match="unsafe to autocast"):
        F.binary_cross_entropy(p, p)
    with torch.autocast("cpu", dtype=HALF):
        assert F.binary_cross_entropy(p, p).isfinite()


@pytest.mark.parametrize("device_type", ["cuda", "cpu"])
def test_an_island_is_left_alone(device_type):
    x, weight = torch.ones(2, 2), torch.ones(2, 2)
    with cuda_policy(), cuda_autocast(HALF):
        assert F.linear(x, weight).dtype is HALF
        with torch.autocast(device_type, enabled=False):
            assert F.linear(x, weight).dtype is FLOAT
            assert F.cross_entropy(x.half(), torch.tensor([0, 1])).dtype is HALF
        assert F.linear(x, weight).dtype is HALF


def test_an_inner_region_changes_the_dtype():
    x = torch.ones(2, 2)
    with cuda_policy(), cuda_autocast(HALF), torch.autocast("cuda", dtype=torch.bfloat16):
        assert F.linear(x, x).dtype is torch.bfloat16


def test_a_region_that_is_entered_again_for_the_cpus_tensors_follows_cudas_policy_too():
    x = torch.ones(2, 2)
    with cuda_policy(), torch.autocast("cpu", dtype=HALF):  # as checkpointing enters it in backward
        assert F.linear(x, x).dtype is HALF and x.half().softmax(-1).dtype is FLOAT
    with cuda_policy(), cuda_autocast(HALF), torch.autocast("cpu", dtype=torch.bfloat16):
        assert F.linear(x, x).dtype is torch.bfloat16
    with torch.autocast("cpu", dtype=HALF):
        assert x.half().softmax(-1).dtype is HALF


def test_a_custom_function_computes_forward_and_backward_in_half():
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=HALF)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            seen.append(a.dtype)
            return a @ b

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            seen.append((grad @ b.t()).dtype)
            return grad @ b.t(), a.t() @ grad

    x, weight = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
    with cuda_policy():
        with cuda_autocast(HALF):
            loss = Product.apply(x, weight).float().sum()
        loss.backward()
    assert seen == [HALF, HALF] and weight.grad.dtype is FLOAT


@pytest.mark.parametrize("name", ["mlp", "cnn", "bert_tiny", "gpt_tiny"])
def test_each_op_of_a_model_computes_in_the_dtype_that_the_op_inspector_says(name):
    model = models.build(name).eval()
    inputs, _ = models.example(name, 2)
    inspection = inspect(model, *inputs, device_type="cuda", dtype=HALF)
    said = [
        (record.module, kernel.name, kernel.outputs[0])
        for record in inspection.records
        for kernel in record.kernels
        if record.op != "scaled_dot_product_attention"  # on a CPU it is one kernel
    ]
    ran = [(op.module, op.name, op.output.dtype) for op in examine(model, inputs, device="cpu").ops if not op.label]
    # normalisation and pooling are other kernels on a CPU, and the inspector leaves copies out
    names = {one[1] for one in said} & {one[1] for one in ran} - {"_to_copy", "native_batch_norm"}
    said, ran = (list(dict.fromkeys(one for one in ops if one[1] in names)) for ops in (said, ran))
    if inspection.stopped:  # a build for CPUs cannot follow fake CUDA tensors to the end
        ran = ran[: len(said)]
    assert said == ran and len(ran) >= 2
    assert HALF in {one[2] for one in ran}


def test_a_weight_is_cast_once_so_that_its_gradients_add_up_in_half():
    weight = torch.ones(1, 1, requires_grad=True)
    x = torch.ones(1, 1)

    def gradient(second):
        weight.grad = None
        with cuda_policy():
            with cuda_autocast(HALF):
                loss = 2048 * F.linear(x, weight).float().sum() + F.linear(x, second(weight)).float().sum()
            loss.backward()
        return weight.grad.item()

    assert gradient(lambda w: w) == 2048  # 2048 + 1 has no place in FP16
    assert gradient(lambda w: w * 1) == 2049  # no leaf, and so not cached: added in FP32


def test_nothing_is_left_behind_after_an_error():
    x = torch.ones(2, 2)
    before = torch.get_autocast_dtype("cuda"), torch.get_autocast_dtype("cpu"), torch.cuda.is_bf16_supported
    with pytest.raises(ZeroDivisionError), cuda_policy(), cuda_autocast(torch.bfloat16):
        raise ZeroDivisionError
    assert before == (torch.get_autocast_dtype("cuda"), torch.get_autocast_dtype("cpu"), torch.cuda.is_bf16_supported)
    assert not torch.is_autocast_enabled("cuda") and not torch.is_autocast_enabled("cpu")
    assert F.linear(x, x).dtype is FLOAT
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert x.bfloat16().softmax(0).dtype is torch.bfloat16 and F.linear(x, x).dtype is torch.bfloat16


def test_another_thread_computes_as_it_always_did():
    seen = []
    with cuda_policy(), cuda_autocast(HALF):
        thread = threading.Thread(target=lambda: seen.append(F.linear(torch.ones(2, 2), torch.ones(2, 2)).dtype))
        thread.start()
        thread.join()
    assert seen == [FLOAT]
