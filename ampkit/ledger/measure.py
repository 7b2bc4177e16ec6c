"""The same training step on a real GPU, with the allocator's own count beside the prediction, term by term."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from ampkit import gpu, lowvram
from ampkit.bench.stamp import stamp, stamp_line
from ampkit.errors import LedgerError
from ampkit.ledger.planning import Plan
from ampkit.ledger.recipe import OPTIMIZERS, Recipe
from ampkit.ledger.rehearsal import PHASES, Rehearsal
from ampkit.ledger.sizes import MIB
from ampkit.ledger.subject import Subject
from ampkit.precision import Precision

__all__ = ["comparison_text", "measured_run", "measured_step"]


def measured_run(subject: Subject, plan: Plan) -> dict[str, Any]:
    """A stored measurement of kind "ledger": the stamp, the prediction and the measurement of plan's recipe, in bytes.

    Raises LedgerError if the step does not fit the GPU, DeviceError if the GPU cannot compute in the precision.
    """
    shared = gpu.sharing()
    predicted = _predicted(plan.ledger.rehearsal)
    measured = measured_step(subject, plan.recipe)
    row = {
        "model": subject.name,
        "recipe": asdict(plan.recipe),
        "predicted": predicted,
        "measured": measured,
    }
    return {"kind": "ledger", **stamp(shared), "results": [row]}


def _predicted(rehearsal: Rehearsal) -> dict[str, int]:
    step = rehearsal.peaks["step"]
    forward = rehearsal.peaks["forward"]
    terms = {
        "weights": forward.of("weights") + forward.of("master weights"),
        "inputs": forward.of("inputs"),
        "gradients": step.of("gradients"),
        "optimizer state": step.of("optimizer state"),
        "kept from forward to backward": sum(rehearsal.kept.values()) - rehearsal.kept_inputs,
    }
    peaks = {f"peak of {phase}": rehearsal.peaks[phase].blocks for phase in PHASES}
    return {**terms, **peaks, "peak": rehearsal.peak.blocks}


def measured_step(subject: Subject, recipe: Recipe) -> dict[str, int]:
    """Bytes of the allocator for one training step of this recipe on the current GPU: the third one, when all is made.

    The same terms and peaks as the prediction's, and "workspaces": what stays allocated though no tensor of the step
    holds it (cuBLAS). "reserved" is max_memory_reserved(), "context" what the device has in use beyond that, other
    processes included.
    """
    if not torch.cuda.is_available():
        raise LedgerError("A measurement needs a CUDA GPU, and PyTorch sees none here. The prediction needs none.")
    precision = Precision(recipe.precision)
    precision.check("cuda")
    gc.collect()
    torch.cuda.empty_cache()
    try:
        with precision.float32_math("cuda"):
            return _measured(subject, recipe, precision)
    except torch.cuda.OutOfMemoryError as error:
        raise LedgerError(
            f"The step does not fit this GPU, so there is nothing to compare: {str(error).splitlines()[0]} "
            "Choose the largest batch that the plan names."
        ) from None
    finally:
        gc.collect()
        torch.cuda.empty_cache()


def _measured(subject: Subject, recipe: Recipe, precision: Precision) -> dict[str, int]:
    start = torch.cuda.memory_allocated()
    model = subject.make().to("cuda", precision.param_dtype).train()
    if recipe.checkpointing:
        lowvram.checkpoint_blocks(model)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    masters = [nn.Parameter(p.detach().float()) for p in trained] if recipe.master_weights else []
    found = {"weights": torch.cuda.memory_allocated() - start}
    inputs, target = _on_gpu(subject.batch(recipe.micro_batch), precision)
    found["inputs"] = torch.cuda.memory_allocated() - start - found["weights"]
    made = lowvram.eight_bit_adamw if recipe.optimizer == "adamw8bit" else OPTIMIZERS[recipe.optimizer]
    optimizer = made(masters or trained)
    for _ in range(3):
        for _ in range(recipe.accumulate):
            before = _reset()
            with precision.autocast("cuda"):
                loss = subject.loss(model(*inputs), target)
            found["kept from forward to backward"] = torch.cuda.memory_allocated() - before
            found["peak of forward"] = torch.cuda.max_memory_allocated() - start
            _reset()
            loss.backward()
            del loss
            found["peak of backward"] = torch.cuda.max_memory_allocated() - start
        _reset()
        for master, parameter in zip(masters, trained, strict=False):
            if parameter.grad is not None:
                master.grad = parameter.grad.float()
        optimizer.step()
        with torch.no_grad():
            for master, parameter in zip(masters, trained, strict=False):
                parameter.copy_(master)
        found["peak of step"] = torch.cuda.max_memory_allocated() - start
        found["gradients"] = _bytes(p.grad for p in [*trained, *masters] if p.grad is not None)
        for master in masters:
            master.grad = None
        optimizer.zero_grad()
        for parameter in trained:
            parameter.grad = None
    state = [v for values in optimizer.state.values() for v in values.values() if isinstance(v, Tensor) and v.is_cuda]
    found["optimizer state"] = _bytes(state)
    found["peak"] = max(found[f"peak of {phase}"] for phase in PHASES)
    held = found["weights"] + found["inputs"] + found["optimizer state"]
    found["workspaces"] = max(0, torch.cuda.memory_allocated() - start - held)
    found["reserved"] = torch.cuda.max_memory_reserved()
    free, total = torch.cuda.mem_get_info()
    found["context"] = total - free - torch.cuda.memory_reserved()
    return found


def _reset() -> int:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors)


def _on_gpu(
    batch: tuple[tuple[Tensor, ...], Tensor | None], precision: Precision
) -> tuple[tuple[Tensor, ...], Tensor | None]:
    """Zeros of these shapes: they are valid token numbers, classes and images alike."""
    inputs, target = batch
    made = [torch.zeros(value.shape, dtype=value.dtype, device="cuda") for value in inputs]
    made = [value.to(precision.param_dtype) if value.is_floating_point() else value for value in made]
    return tuple(made), None if target is None else torch.zeros(target.shape, dtype=target.dtype, device="cuda")


def comparison_text(run: dict[str, Any]) -> str:
    """The prediction beside the measurement, term by term, in MiB, with the stamp below."""
    (row,) = run["results"]
    lines = [f"{'':<34}{'predicted':>12}{'measured':>12}{'difference':>12}   MiB"]
    for term, measured in row["measured"].items():
        predicted = row["predicted"].get(term)
        if predicted is None:
            lines.append(f"{term:<34}{'':>12}{measured / MIB:>12,.1f}")
            continue
        off = f"{predicted / measured - 1:>+12.1%}" if measured else f"{'':>12}"
        lines.append(f"{term:<34}{predicted / MIB:>12,.1f}{measured / MIB:>12,.1f}{off}")
    return "\n".join([*lines, stamp_line(run)])
