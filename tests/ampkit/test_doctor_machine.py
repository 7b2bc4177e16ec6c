"""environment: machines that are not here, described, get the findings that they need; this one is looked at for real."""

import json
import sys
import types
from dataclasses import replace

import pytest
import torch

from ampkit.doctor import environment
from ampkit.doctor.machine import Gpu, Machine, look, verdict

A100 = Gpu("NVIDIA A100-SXM4-80GB", (8, 0), 80 * 2**30)
T4 = Gpu("Tesla T4", (7, 5), 15 * 2**30)
P40 = Gpu("Tesla P40", (6, 1), 24 * 2**30)
GTX1660 = Gpu("NVIDIA GeForce GTX 1660 Ti", (7, 5), 6 * 2**30)
ARCHES = ("sm_75", "sm_80", "sm_86", "sm_90", "compute_90")

CPU_ONLY = Machine(torch="2.14.1", cpus=4, threads=4, shm_bytes=2**33)
WITH_GPU = replace(
    CPU_ONLY,
    torch="2.14.1+cu130",
    cuda_build="13.0",
    cuda_available=True,
    driver="580.65.06",
    driver_cuda=(13, 0),
    nvml=True,
    gpus=(A100,),
    arch_list=ARCHES,
)


def causes(machine):
    return [finding.cause for finding in verdict(machine).findings]


def only(machine):
    (finding,) = verdict(machine).findings
    return finding


@pytest.mark.parametrize("machine", [CPU_ONLY, WITH_GPU, replace(WITH_GPU, gpus=(T4,))])
def test_a_machine_that_is_as_it_should_be_is_ready(machine):
    found = verdict(machine)
    assert found.healthy and found.state == "ready"
    assert len(found.notes) >= 3


def test_a_gpu_says_what_it_computes_in():
    assert any("FP16, BF16 and TF32" in note for note in verdict(WITH_GPU).notes)
    assert any("no BF16 and no TF32" in note for note in verdict(replace(WITH_GPU, gpus=(T4,))).notes)
    found = only(replace(WITH_GPU, gpus=(P40,), arch_list=("sm_61", *ARCHES)))
    assert found.cause == "no_tensor_cores" and "1/64" in found.why


@pytest.mark.parametrize(
    ("changes", "cause", "words"),
    [
        ({"torch": "2.4.0+cu121"}, "old_torch", "pip install --upgrade"),
        ({"cuda_available": False, "cuda_build": None, "gpus": ()}, "cpu_build", "CUDA build"),
        (
            {"cuda_available": False, "driver": "550.54", "driver_cuda": (12, 4), "gpus": ()},
            "old_driver",
            "580 or newer",
        ),
        ({"cuda_available": False, "gpus": (), "cuda_error": "unknown error"}, "cuda_unavailable", "--gpus all"),
        ({"cuda_available": False, "gpus": (), "variables": {"CUDA_VISIBLE_DEVICES": ""}}, "gpus_hidden", "unset"),
        (
            {"cuda_available": False, "gpus": (), "driver": None, "release": "4.4.0-19041-Microsoft"},
            "wsl1",
            "wsl --set",
        ),
        ({"gpus": (GTX1660,)}, "gtx_16", "examine"),
        ({"gpus": (replace(A100, used_bytes=60 * 2**30),)}, "gpu_in_use", "nvidia-smi"),
        ({"variables": {"NVIDIA_TF32_OVERRIDE": "0"}}, "tf32_forced", "unset NVIDIA_TF32_OVERRIDE"),
        (
            {"variables": {"PYTORCH_CUDA_ALLOC_CONF": "garbage_collection_threshold:0.8"}},
            "old_allocator_name",
            "PYTORCH_ALLOC_CONF=garbage_collection_threshold:0.8",
        ),
        (
            {"variables": {"PYTORCH_CUDA_ALLOC_CONF": "a:1", "PYTORCH_ALLOC_CONF": "b:1"}},
            "allocator_conflict",
            "Unset PYTORCH_CUDA_ALLOC_CONF",
        ),
        (
            {"variables": {"PYTORCH_ALLOC_CONF": "max_split_size_mb:256"}},
            "max_split_size",
            "expandable_segments:True",
        ),
        (
            {"variables": {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, "system": "Windows"},
            "no_expandable_segments",
            "WSL 2",
        ),
        ({"variables": {"CUDA_LAUNCH_BLOCKING": "1"}}, "debug_setting", "unset CUDA_LAUNCH_BLOCKING"),
        ({"shm_bytes": 64 * 2**20}, "small_shm", "--shm-size"),
        ({"threads": 64, "cpus": 2.5}, "too_many_threads", "OMP_NUM_THREADS=2"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_cure(changes, cause, words):
    found = only(replace(WITH_GPU, **changes))
    assert found.cause == cause
    assert words in found.cure


@pytest.mark.parametrize(
    ("capability", "arches", "runs"),
    [
        ((8, 6), ("sm_80",), True),
        ((8, 0), ("sm_86",), False),
        ((9, 0), ("sm_80", "sm_86"), False),
        ((12, 0), ("sm_90", "compute_90"), True),
        ((9, 0), ("sm_90a",), True),
        ((6, 1), ARCHES, False),
    ],
)
def test_a_build_runs_on_the_gpus_that_it_has_code_for(capability, arches, runs):
    machine = replace(WITH_GPU, gpus=(replace(A100, capability=capability),), arch_list=arches)
    assert ("arch_not_built" not in causes(machine)) is runs


def test_a_minor_version_that_differs_is_no_fault():
    assert verdict(replace(WITH_GPU, cuda_build="13.2")).healthy
    assert "old_driver" not in causes(replace(WITH_GPU, cuda_build="12.6"))


def test_settings_of_wsl_2_are_a_note():
    notes = verdict(replace(WITH_GPU, release="6.6.87.2-microsoft-standard-WSL2")).notes
    assert any(note.startswith("WSL 2") for note in notes)


def test_a_gpu_without_nvidia_ml_py_is_said_and_is_no_fault():
    found = verdict(replace(WITH_GPU, nvml=False, driver=None, driver_cuda=None))
    assert found.healthy and any("pip install nvidia-ml-py" in note for note in found.notes)


def test_the_speed_of_fp16_on_this_cpu_is_told_as_measured():
    notes = verdict(replace(CPU_ONLY, fp32_ms=1.0, fp16_ms=200.0, bf16_ms=0.5)).notes
    assert "FP16 200.00 ms (200 times slower), BF16 0.50 ms (2.0 times faster)" in notes[-1]
    assert notes[-1].endswith("keep models on this CPU small")


# This machine


def test_this_machine_is_looked_at_without_changing_anything(monkeypatch):
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128")
    before = torch.get_num_threads(), torch.backends.cuda.matmul.fp32_precision
    machine = look()
    assert machine.torch == torch.__version__ and machine.threads == before[0] and machine.cpus > 0
    assert min(machine.fp32_ms, machine.fp16_ms, machine.bf16_ms) > 0
    assert machine.cuda_available is torch.cuda.is_available()
    assert len(machine.gpus) == torch.cuda.device_count()
    assert {"old_allocator_name", "max_split_size"} <= set(causes(machine))
    assert before == (torch.get_num_threads(), torch.backends.cuda.matmul.fp32_precision)
    assert look(measure=False).fp16_ms is None


def test_the_driver_is_asked_of_nvidia_ml_py(monkeypatch):
    nvml = types.ModuleType("pynvml")
    nvml.NVMLError = type("NVMLError", (Exception,), {})
    nvml.nvmlInit = nvml.nvmlShutdown = lambda: None
    nvml.nvmlSystemGetDriverVersion = lambda: "550.54.15"
    nvml.nvmlSystemGetCudaDriverVersion = lambda: 12040
    nvml.nvmlDeviceGetCount = lambda: 0
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    machine = look(measure=False)
    assert machine.nvml and machine.driver == "550.54.15" and machine.driver_cuda == (12, 4)

    def fails():
        raise nvml.NVMLError("no driver")

    nvml.nvmlInit = fails
    assert look(measure=False).nvml and look(measure=False).driver_cuda is None
    monkeypatch.setitem(sys.modules, "pynvml", None)  # not installed
    assert look(measure=False).nvml is False


def test_the_report_has_a_line_for_each_thing_and_fits_the_width():
    machine = replace(WITH_GPU, shm_bytes=1, threads=99, cpus=1.0)
    found = verdict(machine)
    lines = found.text(80).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("fix ") for line in lines) == len(found.findings) == 2
    assert sum(line.startswith("ok ") for line in lines) == len(found.notes)
    assert lines[-1] == "this machine: 2 things to repair."
    assert json.loads(found.to_json())["healthy"] is False


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="requires an NVIDIA GPU")
def test_a_real_gpu_is_seen_with_its_capability():
    machine = look(measure=False)
    assert machine.gpus[0].capability == torch.cuda.get_device_capability(0)
    assert "arch_not_built" not in causes(machine)
    assert any(note.startswith("GPU 0:") for note in environment().notes)
