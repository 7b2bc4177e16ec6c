"""Precision: names, dtypes, contexts, scalers, and the errors that stand where PyTorch would only warn."""

import pytest
import torch

from ampkit import DeviceError, Precision, PrecisionError
from ampkit.precision import PRECISIONS, default_device

HAS_CUDA = torch.cuda.is_available()
needs_no_gpu = pytest.mark.skipif(HAS_CUDA, reason="requires a machine without a CUDA GPU")
ON_CPU = [name for name in PRECISIONS if name != "tf32"]


@pytest.mark.parametrize(
    ("name", "computes", "holds"),
    [
        ("fp32", torch.float32, torch.float32),
        ("tf32", torch.float32, torch.float32),
        ("bf16-mixed", torch.bfloat16, torch.float32),
        ("fp16-mixed", torch.float16, torch.float32),
        ("bf16-true", torch.bfloat16, torch.bfloat16),
        ("fp16-true", torch.float16, torch.float16),
    ],
)
def test_a_precision_says_what_is_computed_in_and_what_the_weights_are_held_in(name, computes, holds):
    precision = Precision(name)
    assert (precision.compute_dtype, precision.param_dtype) == (computes, holds)


def test_only_fp16_mixed_scales_its_loss():
    assert [name for name in PRECISIONS if Precision(name).scales_loss] == ["fp16-mixed"]


def test_an_unknown_precision_is_an_error_that_names_the_known_ones():
    with pytest.raises(PrecisionError, match=r"'fp8'.*fp32, tf32, bf16-mixed"):
        Precision("fp8")


@pytest.mark.parametrize("name", ON_CPU)
def test_autocast_computes_in_the_compute_dtype(name):
    precision = Precision(name)
    layer = torch.nn.Linear(4, 4, dtype=precision.param_dtype)
    with precision.autocast("cpu"):
        assert layer(torch.ones(2, 4, dtype=precision.param_dtype)).dtype is precision.compute_dtype
    assert layer.weight.dtype is precision.param_dtype


def test_a_precision_that_is_not_mixed_switches_an_outer_autocast_off():
    with torch.autocast("cpu", dtype=torch.bfloat16), Precision("fp32").autocast("cpu"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32


def test_the_scaler_of_fp16_mixed_is_switched_on_and_takes_pytorchs_arguments():
    scaler = Precision("fp16-mixed").scaler("cpu", init_scale=8.0, growth_interval=3)
    assert scaler.is_enabled()
    assert (scaler.get_scale(), scaler.get_growth_interval()) == (8.0, 3)


@pytest.mark.parametrize("name", [name for name in PRECISIONS if name != "fp16-mixed"])
def test_a_scaler_for_another_precision_is_an_error_that_names_fp16_mixed(name):
    with pytest.raises(PrecisionError, match="fp16-mixed"):
        Precision(name).scaler("cpu")


@needs_no_gpu
@pytest.mark.parametrize("ask", ["check", "autocast", "scaler"])
def test_cuda_without_a_gpu_is_an_error_and_not_a_warning(ask):
    with pytest.raises(DeviceError, match=r"no CUDA GPU here.*'cpu'"):
        getattr(Precision("fp16-mixed"), ask)("cuda")


@needs_no_gpu
def test_the_default_device_without_a_gpu_is_the_cpu():
    assert default_device() == Precision("fp16-mixed").check() == "cpu"


def test_tf32_on_the_cpu_is_an_error_that_names_what_the_cpu_can_do():
    with pytest.raises(DeviceError, match="fp32, bf16-mixed, fp16-mixed, bf16-true and fp16-true"):
        Precision("tf32").check("cpu")


@pytest.mark.parametrize("device", ["tpu", "meta", "mps"])
def test_a_device_that_the_course_does_not_use_is_an_error(device):
    with pytest.raises(DeviceError, match="'cuda' and 'cpu'"):
        Precision("fp32").check(device)


@pytest.fixture
def an_old_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (7, 5))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: "Tesla T4")


@pytest.mark.parametrize("name", ["tf32", "bf16-mixed", "bf16-true"])
def test_a_gpu_before_ampere_is_refused_what_it_would_emulate(an_old_gpu, name):
    with pytest.raises(DeviceError, match=r"Tesla T4 .* 7\.5.* fp32, fp16-mixed and fp16-true"):
        Precision(name).check("cuda")


def test_a_gpu_before_ampere_does_fp16(an_old_gpu):
    assert Precision("fp16-mixed").check("cuda:0") == "cuda"
    with pytest.raises(DeviceError, match="no cuda:1"):
        Precision("fp16-mixed").check("cuda:1")


@pytest.mark.parametrize(("name", "inside"), [("tf32", "tf32"), ("fp32", "ieee"), ("fp16-mixed", "ieee")])
def test_float32_math_sets_the_flags_of_cuda_and_puts_them_back(monkeypatch, name, inside):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))
    flags = (torch.backends.cuda.matmul, torch.backends.cudnn.conv)
    before = [flag.fp32_precision for flag in flags]
    with Precision(name).float32_math("cuda"):
        assert [flag.fp32_precision for flag in flags] == [inside, inside]
    assert [flag.fp32_precision for flag in flags] == before


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_CUDA, reason="requires an NVIDIA GPU")
def test_autocast_and_the_scaler_are_switched_on_on_a_gpu():
    precision = Precision("fp16-mixed")
    with precision.autocast("cuda"):
        assert (torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")).dtype is torch.float16
    assert precision.scaler("cuda").is_enabled()
