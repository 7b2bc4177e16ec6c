"""DDP on two processes: one rank's overflow is everybody's skip, and two halves make the whole batch's gradient."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ampkit import LoopError, checkpoint, models, read_reports
from ampkit.data import Batches
from ampkit.loops import accumulated
from ampkit.loops.run import reports

# What both ranks run: the results of rank R lie in R.pt afterwards.
WORKER = """
import sys
import gc
import torch
import torch.distributed.nn.functional  # before there is a group, as ampkit.loops.run says
from torch import distributed as dist, nn
from ampkit import checkpoint, models
from ampkit.data import Batches, Dataset
from ampkit.loops import ddp
from ampkit.loops.run import reports

folder, results = sys.argv[1], {}
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()

def model(seed=0, dropout=0.0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 3))

def flat(net):
    return nn.utils.parameters_to_vector(net.parameters()).detach().clone()

def batches(count=23, batch_size=5):
    inputs = torch.randn(count, 12, generator=torch.Generator().manual_seed(1))
    return Batches(inputs, torch.arange(count) % 3, batch_size)

def overflow_on_rank_1(calls=[]):
    def loss_fn(logits, targets):
        calls.append(1)
        loss = models.cross_entropy(logits, targets)
        return loss * 1e36 if rank == 1 and len(calls) == 3 else loss  # 1e36 times a scale of 1024 is an inf
    return loss_fn

net, weights, records = model(), [], []
for record in ddp.train(net, batches(20), device="cpu", steps=5, lr=0.1, accumulate=1, init_scale=1024.0,
                        loss_fn=overflow_on_rank_1()):
    records.append((record.skipped, record.scale, record.grad_norm))
    weights.append(flat(net))
results["overflow"] = records, weights

net = model()  # one window of 5 and 2, shared as 3 + 2 and 1 + 1, then an epoch's end
records = list(ddp.train(net, batches(7), device="cpu", steps=3, lr=0.5, accumulate=3, max_norm=1e9))
results["whole"] = [(r.loss, r.grad_norm, r.samples) for r in records], flat(net)

net = model()  # the last batch of an epoch is one example: less than there are ranks
records = list(ddp.train(net, batches(6), device="cpu", steps=4, lr=0.5, accumulate=3))
results["one_left"] = [r.samples for r in records], flat(net)

def a_run(net, file, steps=6):
    data = batches(23)
    dataset = Dataset(data._inputs, data._targets, data._inputs[:0], data._targets[:0])
    return reports("ddp", net, dataset=dataset, device="cpu", steps=steps, batch_size=5, lr=0.1, accumulate=2,
                   init_scale=2.0**20, checkpoint=f"{folder}/{file}", save_every=3)

net = model(dropout=0.3)
never_stopped = [r.loss for r in a_run(net, "never_stopped.pt")]
stream = a_run(model(dropout=0.3), "killed.pt")
for _ in range(5):
    next(stream)
stream.close()
dist.barrier()
torch.manual_seed(999 + rank)
other = model(seed=7, dropout=0.3)
gone_on = [r.loss for r in a_run(other, "killed.pt")]
results["resumed"] = never_stopped, gone_on, flat(net), flat(other)
results["dropout"] = torch.rand(4)
torch.save(results, f"{folder}/{rank}.pt")
dist.destroy_process_group()
gc.collect()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where two gloo ranks have left their results."""
    folder = tmp_path_factory.mktemp("ddp")
    ranks = []
    for rank in range(2):
        place = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port(rank))}
        command = [sys.executable, "-W", "error", "-c", WORKER, str(folder)]
        ranks.append(subprocess.Popen(command, env=os.environ | place, stderr=subprocess.PIPE, text=True))
    try:
        said = [rank.communicate(timeout=300)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(said)
    return folder


_port = []


def _free_port(rank: int) -> int:
    if rank == 0:
        import socket

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            _port[:] = [probe.getsockname()[1]]
    return _port[0]


@pytest.fixture
def results(folder) -> list[dict]:
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


def flat(model):
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


def alone(count, **options):
    """The same training on one process, with the loop that ddp is a small diff away from."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.Tanh(), torch.nn.Dropout(0.0), torch.nn.Linear(16, 3))
    inputs = torch.randn(count, 12, generator=torch.Generator().manual_seed(1))
    batches = Batches(inputs, torch.arange(count) % 3, 5)
    return list(accumulated.train(model, batches, device="cpu", **options)), flat(model)


def test_an_overflow_on_one_rank_makes_all_of_them_skip_and_halve(results):
    (first, first_weights), (second, second_weights) = (result["overflow"] for result in results)
    assert repr(first) == repr(second)  # repr: the gradient norm may be nan
    assert [skipped for skipped, _, _ in first] == [False, False, True, False, False]
    assert [scale for _, scale, _ in first] == [1024, 1024, 1024, 512, 512]
    assert all(torch.equal(a, b) for a, b in zip(first_weights, second_weights, strict=True))
    assert torch.equal(first_weights[1], first_weights[2]) and not torch.equal(first_weights[2], first_weights[3])


def test_two_ranks_make_the_gradient_that_one_process_makes_of_the_whole_window(results):
    whole, weights = alone(7, steps=3, lr=0.5, accumulate=3, max_norm=1e9)
    eps = torch.finfo(torch.float16).eps
    for result in results:
        records, shared = result["whole"]
        assert [samples for _, _, samples in records] == [record.samples for record in whole] == [7, 7, 7]
        for (loss, norm, _), record in zip(records, whole, strict=True):
            assert loss == pytest.approx(record.loss, rel=2 * eps) and norm == pytest.approx(
                record.grad_norm, rel=4 * eps
            )
        assert (shared - weights).norm() < 4 * eps * weights.norm()
    assert torch.equal(results[0]["whole"][1], results[1]["whole"][1])


def test_a_last_batch_with_less_examples_than_ranks_is_left_out_on_all_of_them(results):
    (samples, one), (_, two) = (result["one_left"] for result in results)
    assert samples == [5] * 4 and torch.equal(one, two) and one.isfinite().all()


def test_two_ranks_that_were_killed_go_on_bit_for_bit_each_with_its_own_dropout(results, folder):
    for result in results:
        never_stopped, gone_on, one, two = result["resumed"]
        assert gone_on == never_stopped[3:] and torch.equal(one, two)
    assert not torch.equal(results[0]["dropout"], results[1]["dropout"])
    state = checkpoint.load(folder / "killed.pt")
    assert len(state["rng"]) == 2 and state["settings"]["ranks"] == 2
    assert not torch.equal(state["rng"][0]["torch"], state["rng"][1]["torch"])


@pytest.mark.slow
def test_torchrun_trains_on_two_processes_and_one_of_them_speaks(tmp_path):
    log = tmp_path / "run.jsonl"
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--master-port",
        str(_free_port(0)),
    ]
    command += ["-m", "--", "ampkit.loops.ddp", "--device", "cpu", "--steps", "12", "--log", str(log)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert said.returncode == 0, said.stderr[-3000:]
    (line,) = [line for line in said.stdout.splitlines() if line.startswith("ddp: loss 2.3")]
    assert re.search(r"in 12 steps.*test accuracy", line) and "one process" not in said.stdout
    assert [record.samples for record in read_reports(log)] == [512, 512, 376] * 4


@pytest.mark.skipif(sys.platform != "linux", reason="requires Linux, which lists a process's threads")
def test_no_thread_outlives_the_group_and_could_ask_for_python_while_it_shuts_down(tmp_path):
    script = """
from pathlib import Path
import torch
from ampkit.loops.run import run

def threads():
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]

torch.set_num_threads(1)
seen = []
inner = torch.distributed.all_reduce
torch.distributed.all_reduce = lambda tensor: (inner(tensor), seen.extend(threads()))
run("ddp", device="cpu", steps=2, batch_size=16)
print("during:", seen.count("pt_gloo_runloop"), "after:", threads().count("pt_gloo_runloop"))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(r"during: [1-9]\d* after: 0$", done.stdout.strip()), done.stdout


def test_without_torchrun_it_is_one_process_and_says_so(tmp_path, capsys):
    from ampkit.loops.run import run

    run("ddp", device="cpu", steps=2, batch_size=16)
    assert (
        "This was one process. For two: torchrun --nproc-per-node 2 -m -- ampkit.loops.ddp" in capsys.readouterr().out
    )
    assert not torch.distributed.is_initialized()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="requires an NVIDIA GPU")
def test_one_rank_with_nccl_learns():
    torch.manual_seed(0)
    stream = reports("ddp", models.mlp(), device="cuda", steps=40)
    first = next(stream)
    assert torch.distributed.get_backend() == "nccl"
    assert list(stream)[-1].loss < first.loss / 2


def test_a_loop_that_accumulates_is_asked_for_what_it_does_not_have():
    with pytest.raises(LoopError, match="ddp has no precision"):
        reports("ddp", models.mlp(), device="cpu", precision="fp32")
