"""Fake CUDA: tensors with a device, a dtype and a shape but no data, so that CUDA autocast can be seen without a GPU.

The casts of CUDA autocast are made by kernels of PyTorch's dispatcher (AutocastCUDA, in aten/src/ATen/autocast_mode.cpp)
that are in every build of PyTorch, also where there is no GPU. What runs here is those kernels, on FakeTensors
(torch/_subclasses/fake_tensor.py): every dtype and shape is PyTorch's own answer, and no value exists.
"""

import copy
import functools
import heapq
import itertools
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map

from ampkit.errors import FakeError

__all__ = ["FakeDevice", "FakeLimits", "fake_backward", "fake_cuda", "fake_cuda_limits"]


@dataclass(frozen=True)
class FakeDevice:
    """What `fake_cuda` hands out: it makes models and inputs that live on its device and have no data.

    device_type    "cuda" or "cpu"
    dtype          what autocast computes the listed ops in; None where autocast is off
    mode           the FakeTensorMode
    requires_grad  False on a CPU-only build of PyTorch, which cannot have a fake CUDA tensor that requires grad: there
                   the parameters of `module` and `build` are frozen, so that nothing is saved for a backward pass
    """

    device_type: str
    dtype: torch.dtype | None
    mode: FakeTensorMode
    requires_grad: bool

    def module(self, model: nn.Module) -> nn.Module:
        """A copy of the model whose parameters and buffers are fake and on this device; the model stays as it is.

        Tied weights stay tied, dtypes, strides and requires_grad stay. The model may be on any device, "meta" too.
        """
        memo: dict[int, Any] = {}
        for tensor in [*model.parameters(), *model.buffers()]:
            if id(tensor) not in memo:
                memo[id(tensor)] = self._like(tensor)
        for tensor in _plain_tensors(model):
            memo.setdefault(id(tensor), self.mode.from_tensor(tensor))  # stays where it is, as with model.to("cuda")
        return copy.deepcopy(model, memo)

    def build(self, make: Callable[[], nn.Module]) -> nn.Module:
        """The model that make() returns, made on this device: no memory is allocated, however large it is.

        Raises FakeError if make() needs the value of a tensor, as `[rate.item() for rate in torch.linspace(…)]` does.
        """
        from torch._subclasses.fake_tensor import DataDependentOutputException

        try:
            with self.mode, torch.enable_grad():  # on the fake CPU, then moved, as model.to("cuda") would
                return self.module(make())
        except DataDependentOutputException as error:
            raise FakeError(
                f"The model cannot be made without memory: its constructor reads the value of a tensor ({error.func}), "
                "and a fake tensor has none. Make it outside, on the CPU, and pass it to module()."
            ) from None

    def tensors(self, values: Any) -> Any:
        """The tensors in values (nested lists, tuples and dicts are followed) as fake ones on this device."""
        return tree_map(lambda value: self._like(value) if isinstance(value, Tensor) else value, values)

    def empty(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """A fake tensor of this shape on this device."""
        with self.mode:
            return torch.empty(shape, dtype=dtype, device=self.device_type)

    def _like(self, tensor: Tensor) -> Tensor:
        with self.mode, torch.no_grad():
            fake = torch.empty_strided(
                tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device=self.device_type
            )
            requires_grad = tensor.requires_grad and self.requires_grad
            if isinstance(tensor, nn.Parameter):
                return nn.Parameter(fake, requires_grad=requires_grad)
            return fake.requires_grad_() if requires_grad else fake


@contextmanager
def fake_cuda(dtype: torch.dtype | None, device_type: str = "cuda") -> Iterator[FakeDevice]:
    """Autocast of device_type with dtype (torch.float16 or torch.bfloat16; None: off) over tensors without data.

    Inside, the real autocast kernels cast what they would cast on a GPU, with or without one in this machine:

        >>> with fake_cuda(torch.float16) as fake:
        ...     model = fake.module(nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64)))
        ...     hidden = model[0](fake.empty(8, 64))
        ...     print(hidden.dtype, model[1](hidden).dtype, hidden.device)
        torch.float16 torch.float32 cuda:0

    A model that enters `torch.autocast("cuda", …)` itself does so here too: PyTorch is told for the time of the context
    that CUDA is there and knows BF16 (two flags of the process, so use one thread). torch.cuda.is_available() is not
    touched. On leaving, everything is as it was, and the fake tensors that are left over must not be computed with.

    Recurrent layers run op by op here; on a GPU cuDNN computes an nn.LSTM as one op, in the same dtype.

    What has no answer: the values (`.item()`, `if x > 0`, boolean masks raise), time, memory of a kernel's workspace.
    What a build of PyTorch cannot do, `fake_cuda_limits()` says. For backward, see `fake_backward`.

    Raises FakeError for another device_type or dtype.
    """
    if device_type not in ("cuda", "cpu"):
        raise FakeError(f"Tensors without data are made for 'cuda' and 'cpu' here, and not for {device_type!r}.")
    if dtype not in (None, torch.float16, torch.bfloat16):
        raise FakeError(
            f"Autocast computes in torch.float16 or torch.bfloat16, and not in {dtype}. None switches it off."
        )
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with ExitStack() as stack:
        stack.enter_context(_replaced(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False))
        stack.enter_context(_replaced(torch.cuda, "is_bf16_supported", lambda *a, **k: True))
        stack.callback(torch.clear_autocast_cache)  # inside somebody else's autocast, fake copies would stay in it
        if device_type == "cuda":
            _recurrent_layers_without_a_gpu(stack)
        stack.enter_context(warnings.catch_warnings())  # copy.deepcopy of a fake tensor looks for its data pointer
        warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
        stack.enter_context(mode)
        if dtype is None:
            stack.enter_context(_autocast_off(device_type))
        else:
            stack.enter_context(torch.autocast(device_type, dtype=dtype))
        yield FakeDevice(device_type, dtype, mode, device_type == "cpu" or _has_cuda_kernels())


def fake_backward(loss: Tensor, gradient: Tensor | None = None, *, after: Callable[[Any], None] | None = None) -> None:
    """`loss.backward()` for a loss on fake CUDA: fills `.grad` of the leaves, whose dtype and shape are PyTorch's own.

    Where there is no GPU, autograd's engine cannot start a thread for it and loss.backward() raises RuntimeError
    ("hasPrimaryContext expects a valid device index"). The formulas need no GPU: here the nodes of the real graph
    (loss.grad_fn) are called one by one in the engine's order, with what the engine does between two nodes (gradients
    that meet are added, cast to the dtype and summed to the shape that the node expects).

    loss is a scalar, or gradient has its shape and dtype. As in loss.backward(), gradients add to those already there.
    Hooks of tensors and nodes are not run, and the graph is kept until the last reference to it goes. after(node) is
    called when a node has run and its gradients have gone on: who has packed what that node saved can let go of it.
    Raises FakeError if loss is not fake or has no graph. Source: torch/csrc/autograd/engine.cpp, evaluate_function.
    """
    if not isinstance(loss, FakeTensor):
        raise FakeError("fake_backward is for a loss made under fake_cuda. A real one has loss.backward().")
    if loss.grad_fn is None:
        raise FakeError(
            "This loss has no graph, so nothing can flow back from it. Either no parameter requires grad, or this is a "
            "CPU-only build of PyTorch, whose fake CUDA cannot have gradients: see fake_cuda_limits()."
        )
    if gradient is None and loss.numel() != 1:
        raise FakeError(f"The loss has shape {tuple(loss.shape)}: reduce it to a scalar, or pass its gradient.")
    waiting = _edges_into(loss.grad_fn)
    with loss.fake_mode, torch.no_grad(), _autocast_off(loss.device.type):
        gradient = torch.ones_like(loss) if gradient is None else gradient  # alive to the end, as in loss.backward()
        arrived = {loss.grad_fn: {loss.output_nr: gradient}}
        order = itertools.count()
        ready = [(0, next(order), loss.grad_fn)]
        while ready:
            node = heapq.heappop(ready)[-1]
            _run(node, arrived)
            for following, _ in node.next_functions:
                if following is None:
                    continue
                waiting[following] -= 1
                if waiting[following] == 0:  # the node made last runs first; AccumulateGrad before all others
                    heapq.heappush(ready, (-following._sequence_nr(), next(order), following))
            if after is not None:
                after(node)


def _run(node: Any, arrived: dict[Any, dict[int, Tensor]]) -> None:
    """Call the node with the gradients that have arrived at it, and bring its own to the nodes that follow."""
    gradients = arrived.pop(node, {})
    if not gradients:
        return
    if hasattr(node, "variable"):
        _accumulate(node.variable, gradients[0])
        return
    outputs = _call(node, [gradients.get(number) for number in range(len(node._input_metadata))])
    for (following, number), output in zip(node.next_functions, outputs, strict=False):
        if following is None or output is None:
            continue
        output = _fitted(output, following._input_metadata[number])
        there = arrived.setdefault(following, {})
        there[number] = output if number not in there else there[number] + output


def _accumulate(leaf: Tensor, new: Tensor) -> None:
    """As AccumulateGrad: in place into a gradient that is there, else the new one itself, or a copy if it is shared."""
    if leaf.grad is not None:
        leaf.grad += new
    elif any(stride == 0 and size > 1 for stride, size in zip(new.stride(), new.shape, strict=True)):
        leaf.grad = new.clone(memory_format=torch.contiguous_format)
    else:
        leaf.grad = new.detach()


def _plain_tensors(model: nn.Module) -> list[Tensor]:
    """The tensors that a module holds as ordinary attributes, neither parameter nor buffer."""
    values = [value for module in model.modules() for name, value in vars(module).items() if name not in _REGISTERED]
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


_REGISTERED = ("_parameters", "_buffers", "_modules")


def _edges_into(root: Any) -> dict[Any, int]:
    """How many edges of the graph below root lead to each of its nodes: a node is called after all have brought theirs."""
    edges = {root: 0}
    found = [root]
    while found:
        for following, _ in found.pop().next_functions:
            if following is None:
                continue
            if following not in edges:
                edges[following] = 0
                found.append(following)
            edges[following] += 1
    return edges


def _call(node: Any, gradients: list[Tensor | None]) -> tuple[Tensor | None, ...]:
    is_python = isinstance(node, torch.autograd.function.BackwardCFunction)  # a torch.autograd.Function
    outputs = node.apply(*gradients) if is_python else node(*gradients)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _fitted(gradient: Tensor, expected: Any) -> Tensor:
    if gradient.shape != expected.shape:
        gradient = gradient.sum_to_size(expected.shape)
    return gradient if gradient.dtype == expected.dtype else gradient.to(expected.dtype)


@dataclass(frozen=True)
class FakeLimits:
    """What fake CUDA can and cannot tell with the PyTorch that is installed here: tried out, not looked up.

    build      "CUDA build with a GPU", "CUDA build without a GPU" or "CPU-only build"
    failures   what does not work -> how it failed: the first line of the error, or "aborts the process"
    """

    build: str
    failures: dict[str, str]

    def can(self, what: str) -> bool:
        """Whether this works: one of "autocast", "grad", "batch_norm", "attention", "embedding", "to", "backward"
        (loss.backward() itself) and "fake_backward". Raises FakeError for another name."""
        if what not in _TRIALS:
            raise FakeError(f"Nothing is known about {what!r}. Ask for one of: {', '.join(_TRIALS)}.")
        return what not in self.failures

    def __str__(self) -> str:
        lines = [f"Fake CUDA on PyTorch {torch.__version__}, {self.build}:"]
        for name, (meaning, _) in _TRIALS.items():
            lines.append(f"  {'no ' if name in self.failures else 'yes'}  {name:14} {meaning}")
            if name in self.failures:
                lines.append(f"       {self.failures[name]}")
        return "\n".join(lines)


# name -> (what it would tell, the code that is run under fake_cuda(torch.float16) as fake)
_TRIALS = {
    "autocast": (
        "which dtype a matrix product is computed in",
        "assert (fake.empty(2, 2) @ fake.empty(2, 2)).dtype is torch.float16",
    ),
    "embedding": (
        "embedding, gather and views",
        "nn.functional.embedding(fake.empty(3, dtype=torch.int64), fake.empty(9, 4)).unsqueeze(0).transpose(1, 2)",
    ),
    "to": ("moving a tensor to the GPU inside the model", "torch.zeros(3).to('cuda')"),
    "batch_norm": (
        "models with BatchNorm",
        "nn.functional.batch_norm(fake.empty(2, 3, 4, 4), fake.empty(3), fake.empty(3), training=True)",
    ),
    "attention": (
        "models with scaled_dot_product_attention",
        "nn.functional.scaled_dot_product_attention(*[fake.empty(1, 2, 8, 16) for _ in range(3)])",
    ),
    "grad": (
        "what autograd saves for the backward pass",
        "assert nn.Linear(2, 2, device='cuda')(fake.empty(2, 2)).grad_fn is not None",
    ),
    "fake_backward": (
        "dtypes and shapes of gradients, by ampkit.fake.fake_backward",
        "fake_backward(nn.Linear(2, 2, device='cuda')(fake.empty(2, 2)).float().sum())",
    ),
    "backward": (
        "the same by loss.backward() itself",
        "nn.Linear(2, 2, device='cuda')(fake.empty(2, 2)).float().sum().backward()",
    ),
}


@functools.cache
def fake_cuda_limits() -> FakeLimits:
    """What the installed PyTorch can do on fake CUDA, tried out in other processes, because some of it aborts.

    Takes as long as an import of torch, twice that or more where a trial aborts; asked once in a process.
    """
    failures: dict[str, str] = {}
    left = list(_TRIALS)
    while left:
        output, ended_well = _try(left)
        answers = dict(line.split("\t", 1) for line in output.splitlines() if "\t" in line)
        failures |= {name: answer for name, answer in answers.items() if answer != "ok"}
        left = [name for name in left if name not in answers]
        if left and ended_well:
            raise FakeError(f"The trial of fake CUDA left these out: {', '.join(left)}. It printed: {output[-500:]}")
        if left:
            failures[left.pop(0)] = "aborts the process"
    if torch.cuda.is_available():
        build = "CUDA build with a GPU"
    else:
        build = "CUDA build without a GPU" if _has_cuda_kernels() else "CPU-only build"
    return FakeLimits(build, failures)


def _try(names: list[str]) -> tuple[str, bool]:
    """What a process printed that tried these, and whether it came to its end."""
    code = ["import torch", "from torch import nn", "from ampkit.fake import fake_backward, fake_cuda"]
    for name in names:
        code += [
            "try:",
            "    with fake_cuda(torch.float16) as fake:",
            f"        {_TRIALS[name][1]}",
            f"    print('{name}', 'ok', sep='\\t', flush=True)",
            "except Exception as error:",
            "    words = f'{type(error).__name__}: {error}'.splitlines()[0]",
            f"    print('{name}', words, sep='\\t', flush=True)",
        ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONWARNINGS": "ignore"}
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(code)], capture_output=True, text=True, timeout=300, env=environment
    )
    return run.stdout, run.returncode == 0


def _has_cuda_kernels() -> bool:
    return torch.backends.cuda.is_built()


def _recurrent_layers_without_a_gpu(stack: ExitStack) -> None:
    """Let nn.LSTM, nn.GRU and nn.RNN run on fake CUDA: cuDNN asks the driver, and the fused GRU cell has no meta kernel.

    cuDNN is switched off for these layers alone, because batch_norm saves other tensors without it.
    """
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        stack.enter_context(_replaced(torch._VF, name, _without_cudnn(getattr(torch._C._VariableFunctions, name))))
    if not torch._C._dispatch_has_kernel_for_dispatch_key("aten::_thnn_fused_gru_cell", "Meta"):
        library = torch.library.Library("aten", "IMPL")
        stack.callback(library._destroy)
        library.impl("_thnn_fused_gru_cell", _gru_cell_shapes, "Meta")
        library.impl("_thnn_fused_gru_cell_backward", _gru_cell_backward_shapes, "Meta")


def _without_cudnn(function: Callable) -> Callable:
    def call(*arguments):
        with torch.backends.cudnn.flags(enabled=False):
            return function(*arguments)

    return call


# Shapes as in aten/src/ATen/native/cuda/RNN.cu: the workspace holds five gates of the hidden size for each row.
def _gru_cell_shapes(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    return torch.empty_like(hx), hx.new_empty(hx.shape[0], 5 * hx.shape[1])


def _gru_cell_backward_shapes(grad_hy, workspace, has_bias):
    rows, hidden = grad_hy.shape
    gates = [workspace.new_empty(rows, 3 * hidden) for _ in range(2)]
    biases = [workspace.new_empty(3 * hidden) if has_bias else None for _ in range(2)]
    return *gates, torch.empty_like(grad_hy), *biases


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """owner.name is value for a while; an attribute that owner did not have of its own is gone again afterwards."""
    own = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


def _autocast_off(device_type: str) -> AbstractContextManager:
    """Autocast off; nothing where it is off, because a region around others keeps the weight copies of those alive."""
    if torch.is_autocast_enabled(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()
