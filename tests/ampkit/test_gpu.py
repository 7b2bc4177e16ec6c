"""Who else is on a GPU: seen by NVML, by memory alone, or not at all; and what letting go of it frees."""

import importlib.util
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fake_nvml import FakeGpu, fake_nvml, process
from torch import nn

from ampkit import gpu, show

MIB = 2**20
ME = os.getpid()


@pytest.fixture
def one_gpu(monkeypatch):
    """A machine that has what FakeGpu says; ours: (bytes that our allocator reserves, have we begun, is there a context)."""

    def make(fake=None, nvml=None, ours=(0, False, False), free=None, variables=(), uuid="1", **options):
        fake = fake or FakeGpu(**options)
        monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(fake) if nvml is None else nvml)
        reserved, started, initialized = ours
        stats = {"reserved_bytes.all.current": reserved, "allocated_bytes.all.allocated": reserved if started else 0}
        properties = SimpleNamespace(name=fake.name, uuid=uuid, total_memory=fake.total)
        for name, value in {
            "is_available": lambda: True,
            "is_initialized": lambda: initialized,
            "get_device_properties": lambda device: properties,
            "get_device_name": lambda device=None: fake.name,
            "memory_stats": lambda device: stats,
            "mem_get_info": lambda device=None: (fake.total - fake.used if free is None else free, fake.total),
        }.items():
            monkeypatch.setattr(torch.cuda, name, value)
        for name in ("CUDA_VISIBLE_DEVICES", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", gpu.SAID):
            monkeypatch.delenv(name, raising=False)
        for name, value in dict(variables).items():
            monkeypatch.setenv(name, value)
        return gpu.sharing()

    return make


def test_a_machine_without_a_gpu_has_nobody_to_share_it_with():
    assert gpu.sharing("cpu") is None
    if not torch.cuda.is_available():
        assert gpu.sharing() is None
        assert "shared" not in show.machine().text and "shared" not in show.measured_on("cpu")


@pytest.mark.skipif(not importlib.util.find_spec("pynvml"), reason="requires nvidia-ml-py, whose functions these are")
def test_the_fake_has_the_names_and_the_arguments_of_the_real_nvml():
    import pynvml

    fake, compared = fake_nvml(FakeGpu()), 0
    for name, ours in vars(fake).items():
        if not name.startswith("nvml") or not callable(ours):
            continue
        real = inspect.signature(inspect.unwrap(getattr(pynvml, name)))
        assert list(inspect.signature(ours).parameters) == list(real.parameters), name
        compared += 1
    assert compared == 12
    assert pynvml.nvmlMemory_v2 == fake.nvmlMemory_v2
    wanted = {"pid", "usedGpuMemory", "gpuInstanceId"}
    assert wanted <= {field[0] for field in pynvml.c_nvmlProcessInfo_v3_t._fields_}
    assert wanted <= set(vars(process(1, 2)))
    assert {"gpu"} <= {field[0] for field in pynvml.c_nvmlUtilization_t._fields_}


def test_a_gpu_that_only_we_use_is_not_shared(one_gpu):
    ours = process(ME, 900 * MIB)
    assert one_gpu(compute=(ours,), used=900 * MIB, busy=97, ours=(400 * MIB, True, True)) is None
    assert one_gpu() is None


def test_another_process_is_named_with_its_memory(one_gpu):
    said = one_gpu(compute=(process(ME, 900 * MIB), process(1, 1204 * MIB)), used=2104 * MIB, ours=(1, True, True))
    assert said == "Another process computes on this GPU: pid 1, 1,204 MiB."
    many = tuple(process(pid, None) for pid in range(1, 8))
    assert one_gpu(compute=many).startswith("7 other processes compute on this GPU: pid 1; pid 2; pid 3; pid 4; …")


def test_a_dataloaders_worker_is_ourselves(one_gpu):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as worker:
        both = (process(ME, 500 * MIB), process(worker.pid, 300 * MIB))
        assert one_gpu(compute=both, used=800 * MIB, ours=(1, True, True)) is None
        worker.communicate(b"\n")


def test_in_a_container_the_only_process_on_the_gpu_is_ourselves_and_two_are_not(one_gpu):
    assert one_gpu(compute=(process(1, 700 * MIB),), used=700 * MIB, ours=(300 * MIB, True, True)) is None
    two = (process(1, 700 * MIB), process(2, 700 * MIB))
    said = one_gpu(compute=two, used=1400 * MIB, ours=(300 * MIB, True, True))
    assert said == "2 processes compute on this GPU, and one of them at most is ours: pid 1, 700 MiB; pid 2, 700 MiB."
    # before we have a context, the only one is somebody else
    assert "Another process" in one_gpu(compute=(process(1, 700 * MIB),), used=700 * MIB)


def test_memory_that_nobody_is_listed_for_is_others(one_gpu):
    said = one_gpu(compute=(), used=5000 * MIB, ours=(1000 * MIB, True, True))
    assert said == "Others hold some 4,000 MiB of this GPU, and are not listed (as in a container)."
    assert one_gpu(compute=(), used=1900 * MIB, ours=(1000 * MIB, True, True)) is None  # our context's
    assert "some 300 MiB" in one_gpu(compute=(), used=300 * MIB)  # before we have a context
    assert "some 500 MiB" in one_gpu(compute=(process(ME, 900 * MIB),), used=1400 * MIB, ours=(1, True, True))


def test_an_old_driver_counts_its_own_memory_which_is_nobodys(one_gpu):
    fake = FakeGpu(used=0)
    assert one_gpu(fake, fake_nvml(fake, old=True)) is None
    fake = FakeGpu(used=2000 * MIB)
    assert "some 2,600 MiB" in one_gpu(fake, fake_nvml(fake, old=True))


def test_a_desktop_is_no_neighbour(one_gpu):
    assert one_gpu(graphics=(process(1, 600 * MIB),), used=600 * MIB) is None
    assert one_gpu(used=900 * MIB, display=1) is None


def test_a_gpu_that_was_busy_before_we_began_is_shared_and_a_busy_one_of_our_own_is_not(one_gpu):
    assert one_gpu(busy=83) == "It was 83 % busy before this process put anything on it."
    assert one_gpu(busy=83, compute=(process(ME, 1),), ours=(1, True, True)) is None


def test_mps_is_shared_with_whoever_joins(one_gpu):
    assert "It runs under MPS, which others may join" in one_gpu(mps=(process(ME, 300 * MIB),), used=300 * MIB)
    limited = one_gpu(variables={"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"})
    assert limited == "It runs under MPS, which leaves this process 25 % of the multiprocessors."


def test_what_the_administrator_says_is_believed_as_time_slicing_cannot_be_seen(one_gpu):
    said = one_gpu(variables={gpu.SAID: "time-slicing, 4 to a GPU"})
    assert said == "It is shared by configuration: time-slicing, 4 to a GPU (AMPKIT_GPU_SHARED)."


def test_a_slice_is_named_and_its_neighbours_are_not_ours(one_gpu):
    name = "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
    ours, neighbour, inside = process(ME, 300 * MIB, 7), process(1, 9000 * MIB, 8), process(2, 400 * MIB, 7)
    fake = FakeGpu("MIG-abc", name, compute=(ours, neighbour), used=300 * MIB, busy=None)
    options = {"variables": {"CUDA_VISIBLE_DEVICES": "MIG-abc"}, "ours": (1, True, True)}
    assert one_gpu(fake, **options) is None
    assert gpu.look().mig == "1g.5gb"
    fake.compute = (ours, neighbour, inside)
    assert one_gpu(fake, **options) == "Another process computes on this MIG slice (1g.5gb): pid 2, 400 MiB."


def test_without_nvidia_ml_py_the_memory_in_use_is_what_there_is_to_see(one_gpu):
    fake = FakeGpu(used=3000 * MIB)
    without = fake_nvml(fake, driver=False)
    assert "some 3,000 MiB" in one_gpu(fake, without)
    assert not gpu.look().nvml
    assert one_gpu(fake, without, ours=(1000 * MIB, True, True)) is None  # a context and the driver may be that much


def test_what_a_gpu_does_not_support_is_not_seen_and_no_error(one_gpu):
    assert one_gpu(compute=None, graphics=None, mps=None, busy=None) is None


def test_nvml_is_shut_down_as_often_as_it_is_started(one_gpu):
    fake = FakeGpu()
    nvml = fake_nvml(fake)
    one_gpu(fake, nvml)
    gpu.devices()
    assert nvml.shutdowns == 2


def test_every_gpu_of_the_machine_is_listed_with_who_is_on_it(monkeypatch):
    nvml = fake_nvml(FakeGpu("GPU-1", compute=(process(5, MIB),)), FakeGpu("GPU-2", "NVIDIA T4"))
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    first, second = gpu.devices()
    assert [each.pid for each in first.processes] == [5] and second.name == "NVIDIA T4"
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(driver=False))
    assert gpu.devices() is None


def test_a_caption_says_where_it_was_measured_and_whether_to_trust_it(one_gpu):
    one_gpu()
    assert show.measured_on("cuda") == f"NVIDIA A100-SXM4-40GB, PyTorch {torch.__version__}."
    one_gpu(compute=(process(1, MIB),))
    said = show.measured_on("cuda")
    assert "Measured on a shared GPU: not to be trusted. Another process computes" in said
    assert "not to be trusted" in show.machine().text and "not to be trusted" in show.machine().html


def test_a_stored_run_of_a_shared_gpu_is_marked_on_the_machines_line(tmp_path):
    stamp = {"gpu": "H200", "driver": "580.1", "torch": "2.14.1", "date": "2026-11-29", "commit": "abc"}
    for name, shared in (("alone", None), ("crowded", "Another process computes on this GPU: pid 7.")):
        (tmp_path / f"{name}.json").write_text(json.dumps({**stamp, "shared": shared}))
    assert show.machine(tmp_path).text.count("2026-11-29, on a shared GPU and not to be trusted") == 1


# Letting go


def test_what_holds_tensors_is_let_go_of_and_the_rest_stays():
    def running():
        kept = torch.ones(3)
        yield kept

    generator = running()
    next(generator)
    model = nn.Linear(2, 2)
    holding = {
        "x": torch.ones(2),
        "model": model,
        "adam": torch.optim.Adam(model.parameters()),
        "rows": [{"deep": (torch.ones(1),)}],
        "held": SimpleNamespace(inner=SimpleNamespace(y=torch.ones(1))),
        "generator": generator,
    }
    staying = {"lr": 0.1, "torch": torch, "Linear": nn.Linear, "name": "a", "rows_of_text": [["a", 1]], "f": running}
    names = {**holding, **staying}
    said = gpu.release_gpu(names)
    assert names == staying
    if not torch.cuda.is_available():
        assert said == "No GPU here, so none to free; let go of 6 variables with tensors or models."


def test_a_variable_that_contains_itself_is_no_trouble():
    knot = []
    knot.append(knot)
    names = {"knot": knot}
    gpu.release_gpu(names)
    assert names == {"knot": knot}


def test_outside_of_a_notebook_nothing_is_removed_unasked(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert gpu._notebook() == {}


def test_the_tensors_of_the_last_error_are_let_go_of(monkeypatch):
    import weakref

    def fails():
        held = torch.ones(3)
        alive.append(weakref.ref(held))
        raise ValueError

    alive = []
    try:
        fails()
    except ValueError as error:
        for name, value in (("last_value", error), ("last_traceback", error.__traceback__)):
            monkeypatch.setattr(sys, name, value, raising=False)
    del value
    assert alive[0]() is not None
    gpu.release_gpu({})
    assert alive[0]() is None


def test_the_line_says_what_was_freed_and_what_something_else_still_holds(monkeypatch):
    memory = iter([600 * MIB, 800 * MIB, 100 * MIB, 200 * MIB])
    for name, value in {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "memory_allocated": lambda: next(memory),
        "memory_reserved": lambda: next(memory),
        "empty_cache": lambda: None,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    said = gpu.release_gpu({"x": torch.ones(1)})
    assert said == (
        "GPU: gave 600 MiB back, 500 of them tensors, and let go of 1 variable with tensors or models; 100 MiB of tensors "
        "are still held by something else; the CUDA context goes with the kernel (Kernel, Shut Down)."
    )


def test_in_a_notebook_nothing_is_left_of_a_tensor_that_was_shown_or_that_an_error_saw(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="requires nbclient to start a kernel")
    nbformat = pytest.importorskip("nbformat", reason="requires nbformat")
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("PYTHONPATH", str(Path(gpu.__file__).resolve().parents[1]))
    cells = [
        "import torch, weakref\nfrom ampkit import release_gpu\nx = torch.ones(3)\nalive = weakref.WeakSet([x])\nx",
        "y = torch.ones(4)\nalive.add(y)\ndef fails(t):\n    kept = t * 2\n    alive.add(kept)\n    raise ValueError\ny",
        "fails(y)",
        "before = len(alive)\nsaid = release_gpu()",
        "print(before, len(alive), said)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True).execute()
    (output,) = notebook.cells[-1].outputs
    assert output.text.startswith("3 0 ")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="requires an NVIDIA GPU")
def test_on_a_gpu_what_is_let_go_of_is_free_again():
    before = torch.cuda.memory_allocated()
    names = {"x": torch.ones(64, MIB, device="cuda")}
    assert torch.cuda.memory_allocated() - before == 256 * MIB
    said = gpu.release_gpu(names)
    assert torch.cuda.memory_allocated() == before and "256 of them tensors" in said


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="requires an NVIDIA GPU")
def test_on_a_gpu_a_neighbour_with_two_gib_is_seen():
    torch.ones(1, device="cuda")
    code = (
        "import torch; x = torch.ones(2**29, device='cuda'); torch.cuda.synchronize(); print('on', flush=True); input()"
    )
    # not our child: what comes from us is ours
    neighbour = subprocess.Popen(
        ["setsid", "--fork", sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert neighbour.stdout.readline() == "on\n"
        assert gpu.sharing() is not None
    finally:
        neighbour.stdin.close()
        neighbour.wait()
        neighbour.stdout.close()
