"""The op-policy explorer shows PyTorch's own answers, CUDA beside CPU, and why."""

import xml.etree.ElementTree as ElementTree

import pytest
import torch

from ampkit.errors import OpsError
from ampkit.fake import fake_cuda
from ampkit.ops.tables import short
from ampkit.widgets.op_policy import CALLS, DTYPES, OpPolicy, op_policy, policy_alt, policy_svg

needs_cuda_build = pytest.mark.skipif(
    not torch.backends.cuda.is_built(), reason="requires a CUDA build of PyTorch (no GPU)"
)
LOWER = pytest.mark.parametrize("lower", ["fp16", "bf16"])


@LOWER
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.filterwarnings("ignore:ComplexHalf")
@needs_cuda_build
def test_the_dtype_that_is_drawn_is_the_one_that_comes_out(call, lower):
    """The last op's output against the call made without the explorer, under the same autocast."""
    state = OpPolicy(call, lower, "fp32", lower)
    for device_type in ("cuda", "cpu"):
        found = state.answer(device_type)
        with fake_cuda(DTYPES[lower], device_type) as fake:
            inputs = [fake.empty(8, 8, dtype=DTYPES[name]) for name in state.dtypes]
            try:
                with torch.no_grad():
                    expected = state.call.run(*inputs).dtype
            except RuntimeError as error:
                assert found.banned or str(error).splitlines()[0] in found.stopped.words
                continue
        assert found.records[-1].outputs[0].dtype is expected
        assert len(state.sentences(device_type)) == len(found.records)


def test_softmax_is_fp32_on_cuda_and_not_on_the_cpu_and_the_reason_is_said():
    state = OpPolicy("a.softmax(-1)", "fp16")
    cuda, cpu = (state.answer(device_type).records[0] for device_type in ("cuda", "cpu"))
    assert (short(cuda.compute), short(cpu.compute)) == ("fp32", "fp16")
    assert state.sentences("cuda")[0].startswith("softmax: fp32 result. Its inputs are left alone")
    assert state.sentences("cpu")[0].startswith("softmax: unlisted.")


def test_a_ban_and_a_mismatch_are_drawn_as_what_raises():
    banned = OpPolicy("F.binary_cross_entropy(a, b)", "fp16", "fp16")
    assert "✗ binary_cross_entropy" in policy_svg(banned) and "is banned and raises" in policy_alt(banned)
    mixed = OpPolicy("a @ b", "fp64", "fp32")
    assert "✗ matmul" in policy_svg(mixed) and "inputs differ in dtype" in policy_alt(mixed)


@pytest.mark.parametrize("call", CALLS)
def test_every_drawing_is_well_formed_and_says_in_words_what_it_shows(call):
    state = OpPolicy(call, "fp16", "fp32")
    root = ElementTree.fromstring(policy_svg(state))
    words = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"CUDA autocast", "CPU autocast", call} <= set(words)
    assert root.attrib["aria-label"] == policy_alt(state)
    boxes = [element for element in root.iter() if element.tag.endswith("rect")]
    assert all(float(box.attrib["x"]) + float(box.attrib["width"]) <= 740 for box in boxes if "x" in box.attrib)


def test_the_first_view_is_a_picture_with_alt_text_that_needs_no_kernel():
    bundle = op_policy()._repr_mimebundle_()
    assert 'alt="What a.softmax(-1) computes in for a in fp16' in bundle["text/html"]
    assert "<svg" not in bundle["text/html"]  # a data image: sanitisers drop inline SVG
    assert "CUDA: softmax computes in fp32" in bundle["text/plain"]


def test_the_controls_change_the_call_and_the_dtypes():
    pytest.importorskip("ipywidgets", reason="requires ipywidgets")
    explorer = op_policy()
    top, dtypes, view, said = explorer.widget.children
    calls, lower = top.children
    first, second = dtypes.children
    assert second.disabled and "softmax" in view.value
    calls.value = "a @ b"
    assert not second.disabled and "matmul" in view.value and "matmul computes in fp16" in said.value
    lower.value, first.value, second.value = "bf16", "bf16", "fp32"
    assert (explorer.state.a, explorer.state.b, explorer.state.lower) == ("bf16", "fp32", "bf16")
    assert "matmul computes in bf16" in said.value and 'role="status"' in said.value


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"call": "a.softmx()"}, "Choose one of: a @ b"),
        ({"a": "fp8"}, "Choose one of: fp32"),
        ({"lower": "fp32"}, "fp16 or bf16"),
    ],
)
def test_what_is_not_offered_is_an_error_with_what_is(settings, words):
    with pytest.raises(OpsError, match=words):
        op_policy(**settings)
