"""Which of the known causes it is: from the record of the op that made the first inf or nan to words and a cure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ampkit.doctor.findings import Finding
from ampkit.doctor.recorder import Op

__all__ = ["DIVISIONS", "WHYS", "Why", "evidence", "explain", "place", "short", "where"]

FP16_MAX = torch.finfo(torch.float16).max

PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "convolution", "einsum", "linear")
SOFTMAX = ("_softmax", "_safe_softmax", "_log_softmax")
FILLS = (
    *("full", "full_like", "new_full", "fill", "fill_", "masked_fill", "masked_fill_", "scalar_tensor", "where"),
    *("lift_fresh", "lift_fresh_copy", "index_fill", "index_fill_", "index_put", "index_put_", "zeros", "ones"),
)
ARITHMETIC = ("add", "add_", "sub", "sub_", "rsub", "mul", "mul_", "addcmul", "addcdiv")
MOVES = ("_to_copy", "copy", "copy_", "clone", "contiguous", "_unsafe_view", "triu", "tril", "cat", "stack", "slice")
SQUARES = ("pow", "square", "linalg_vector_norm", "norm", "var", "var_mean", "std", "std_mean", "_cdist_forward")
REDUCTIONS = ("sum", "mean", "cumsum", "prod", "cumprod", "nansum", "logcumsumexp")
EXPONENTIALS = ("exp", "exp_", "exp2", "expm1", "sinh", "cosh", "softplus")
LOGARITHMS = ("log", "log_", "log2", "log10", "log1p", "logit", "xlogy")
DIVISIONS = ("div", "div_", "reciprocal", "rsqrt", "rsqrt_", "true_divide")
ROOTS = ("sqrt", "sqrt_", "rsqrt", "rsqrt_", "pow")
SPREADS = ("std", "std_mean", "var", "var_mean")


@dataclass(frozen=True)
class Why:
    """The part of a finding that the cause alone decides."""

    cause: str
    why: str
    cure: str


_FP32_ISLAND = (
    "switch autocast off around it and cast its inputs, "
    "`with torch.autocast(device_type, enabled=False): … x.float() …`"
)

WHYS = {
    why.cause: why
    for why in (
        Why(
            "data_nonfinite",
            "The data were already broken before the model saw them. No precision, scale or clipping repairs that.",
            "Look at the data: `assert inputs.isfinite().all()` in the loader, and drop or repair those examples.",
        ),
        Why(
            "data_out_of_range",
            "An input is larger than FP16's largest number, 65504, so the cast that autocast makes turns it to inf.",
            "Normalise the inputs (mean 0, standard deviation 1) before the model.",
        ),
        Why(
            "weights_nonfinite",
            "The weights are broken, so every output is. An earlier step wrote the inf or nan: a GradScaler would have "
            "skipped it, unless the gradients were changed after unscale_, or there was no scaler.",
            "Load the last good checkpoint. Then read the log of the steps before (`ampkit doctor LOG.jsonl`) for where "
            "it began. Nothing repairs the weights in place.",
        ),
        Why(
            "weights_out_of_range",
            "A weight is larger than FP16's largest number, 65504, so its cast under autocast is inf.",
            "Train in bf16-mixed, or find out why the weight has grown so far (weight decay, learning rate).",
        ),
        Why(
            "batchnorm_poisoned",
            "An inf activation once went through this BatchNorm in training. The GradScaler skipped that step and kept "
            "the weights; it does not restore buffers. Training uses batch statistics and looks fine; evaluation is nan.",
            "Recalibrate: `bn.reset_running_stats()`, then a few hundred batches in train mode without a step. Then stop "
            "the overflow that did it, or restore the buffers whenever a step is skipped.",
        ),
        Why(
            "buffer_nonfinite",
            "A buffer of the module holds an inf or nan, and it reaches the result.",
            "Load the last good checkpoint, or build the buffer anew; find what writes to it in forward.",
        ),
        Why(
            "attention_overflow",
            "The product of queries and keys is larger than FP16's largest number, 65504. Softmax itself runs in FP32, "
            "but it is given an inf, and the softmax of an inf is nan.",
            "Scale before the product, (q / sqrt(d)) @ k^T, or use F.scaled_dot_product_attention, which keeps the scores in "
            "FP32; or compute the scores in FP32: " + _FP32_ISLAND + "; or train in bf16-mixed.",
        ),
        Why(
            "activation_overflow",
            "The result is larger than FP16's largest number, 65504. No scale cures it: the loss is scaled, and the forward "
            "pass is not. A GradScaler skips every such step and halves its scale for ever.",
            "Train in bf16-mixed, which has FP32's range; or run this module in FP32: "
            + _FP32_ISLAND
            + ". Do not clamp: "
            "that changes the function.",
        ),
        Why(
            "mask_overflow",
            "The number that fills masked places does not exist in FP16, whose largest is 65504: it becomes -inf (or an "
            "error). A row in which all places are masked is then nan after softmax.",
            "Fill with `torch.finfo(scores.dtype).min` of the scores' own dtype, or give a bool mask to "
            "F.scaled_dot_product_attention; see to it that no row is masked altogether.",
        ),
        Why(
            "all_masked_row",
            "Softmax of a row that is -inf everywhere is nan, in FP32 as in FP16: no precision cures it.",
            "Leave at least one place of each row unmasked (an example that is all padding is the usual culprit), or fill with "
            "`torch.finfo(scores.dtype).min` instead of -inf, and leave those rows out of the loss.",
        ),
        Why(
            "exp_overflow",
            "exp grows out of the range: in FP16 from x = 11.09 on (65504), in FP32 from x = 88.7 on.",
            "Subtract the largest value first, as torch.softmax and torch.logsumexp do, and use those; keep the result of "
            "exp away from FP16 ops.",
        ),
        Why(
            "log_of_zero",
            "log(0) is -inf, and its gradient 1/0.",
            "Stay with logits: F.log_softmax, F.logsigmoid or F.binary_cross_entropy_with_logits instead of a log of a "
            "softmax or sigmoid. Otherwise clamp the argument in FP32 with an eps that FP16 never touches.",
        ),
        Why(
            "log_of_negative",
            "The logarithm of a negative number is nan.",
            "Look at what makes the argument negative: a difference of close FP16 numbers can, where FP32's does not.",
        ),
        Why(
            "eps_underflow",
            "The eps that should keep the divisor from 0 is 0 in FP16: half of its smallest number, 2**-25 = 3e-8, and all "
            "below rounds to 0. So 1e-8 protects nothing.",
            "Compute this in FP32: " + _FP32_ISLAND + "; or take an eps that FP16 has (1e-4 keeps most of its digits).",
        ),
        Why(
            "divisor_underflow",
            "The divisor is 0 only because it underflowed: FP32 holds it, FP16 rounds all below 2**-25 = 3e-8 to 0.",
            "Compute divisor and quotient in FP32: " + _FP32_ISLAND + ".",
        ),
        Why(
            "division_by_zero",
            "The divisor is 0 in this dtype whatever the range: x/0 is inf and 0/0 nan.",
            "Add an eps to the divisor (in FP32), or leave those elements out before dividing.",
        ),
        Why(
            "division_overflow",
            "The quotient is larger than FP16's largest number, 65504: the divisor is too small.",
            "Divide in FP32: " + _FP32_ISLAND + "; or bound the divisor from below.",
        ),
        Why(
            "zero_variance",
            "The standard deviation of a constant is 0, and dividing by it is 0/0. In FP16, values closer than an eps of "
            "2**-10 are a constant.",
            "Use a norm layer (its eps is inside the root, and autocast runs it in FP32), or write (x - mean) * "
            "torch.rsqrt(var + eps) in FP32.",
        ),
        Why(
            "negative_root",
            "The root of a negative number is nan. E[x²] − E[x]² is never negative on paper; rounding makes it so where "
            "both are large and close.",
            "Use torch.var, which subtracts the mean first, or clamp at 0 in FP32 before the root.",
        ),
        Why(
            "square_overflow",
            "A square leaves FP16 from |x| = 256 on (256² = 65536). Autocast saves x**2 and norm(), which it computes in "
            "FP32; x * x it does not.",
            "Cast first: `x = x.float()`, then square, mean and root in FP32; or use F.rms_norm, F.layer_norm, x.norm().",
        ),
        Why(
            "reduction_overflow",
            "The sum of many FP16 numbers leaves the range, though each of them and their mean is inside.",
            "Sum in FP32: `x.sum(dtype=torch.float32)`, `x.float().mean()`.",
        ),
        Why(
            "loss_unreduced",
            "The loss still has one FP16 number for each example. Times the scale it stays FP16, and overflows; a loss "
            "reduced to one number is promoted to FP32.",
            "Reduce first, in FP32, then scale: `scaler.scale(loss.float().mean())`.",
        ),
        Why(
            "bce_banned",
            "The gradient of binary_cross_entropy of a probability near 0 or 1 does not fit FP16, so CUDA's autocast "
            "refuses it. CPU autocast allows it: a test on a CPU does not show this.",
            "Drop the sigmoid and use F.binary_cross_entropy_with_logits; or, where probabilities are a must, an FP32 "
            "island with .float() on the inputs.",
        ),
        Why(
            "dtype_mismatch",
            "Two tensors of different dtypes meet in an op that autocast does not cast for: in an island, a custom "
            "Function, an in-place assignment, or a half module.",
            "Cast at the border: `.float()` on what enters an FP32 island, `.to(other.dtype)` on what is written into a "
            "buffer, custom_fwd(cast_inputs=…) on a custom Function.",
        ),
        Why(
            "fft_half",
            "FFTs in half precision exist on CUDA only, and for sizes that are powers of two; autocast lists no FFT.",
            "Compute the transform in FP32: " + _FP32_ISLAND + ".",
        ),
        Why(
            "raises_in_this_precision",
            "The same model runs in FP32, so it is the precision that this op does not take.",
            "Run this module in FP32: " + _FP32_ISLAND + ".",
        ),
        Why(
            "fp16_parameters",
            'A GradScaler refuses FP16 gradients ("Attempting to unscale FP16 gradients."), and an update smaller than '
            "half a step of FP16 is lost.",
            "Keep trainable parameters in FP32 (`model.float()`); autocast casts them where it pays. Frozen ones may be "
            "FP16.",
        ),
        Why(
            "gradient_at_zero",
            "A root or a norm has no gradient at 0: its slope there is inf, and inf times 0 is nan. The forward pass is "
            "fine, so the loss does not show it.",
            "Keep away from 0 inside the root, sqrt(x² + eps), in FP32; or take the squared distance.",
        ),
        Why(
            "where_trap",
            "torch.where hides the bad branch in forward only. Backward multiplies its gradient, which is 0, by the "
            "branch's inf or nan, and 0 × inf is nan.",
            "Make the argument safe before the op, not the result after it: log(where(x > 0, x, 1)), then where again.",
        ),
        Why(
            "gradient_overflow",
            "The gradient itself, not scaled at all, is larger than FP16's largest number. The GradScaler goes below 1, and "
            "has no floor.",
            "Make the loss smaller (mean instead of sum, a smaller weight), look at the learning rate before it, or train in "
            "bf16-mixed.",
        ),
        Why(
            "gradient_underflow",
            "What is below half of FP16's smallest number, 2**-25 = 3e-8, becomes 0 on its way back. These weights learn "
            "nothing, and no error says so.",
            "",
        ),
        Why(
            "activation_underflow",
            "All of it is below half of FP16's smallest number, 2**-25 = 3e-8, so nothing of it goes on, and no gradient "
            "comes back.",
            "Bring the numbers into range before (normalise), or run this module in FP32: " + _FP32_ISLAND + ".",
        ),
        Why(
            "backward_overflow",
            "This step of backward leaves the range at every scale.",
            "Run the module's forward in FP32 (its backward follows): " + _FP32_ISLAND + ".",
        ),
        Why(
            "nonfinite",
            "The op made an inf or nan of finite inputs, and it is none of the causes that this doctor knows.",
            "Look at the inputs' magnitudes below, and try the op alone on such numbers.",
        ),
    )
}


def explain(chain: list[Op], *, fp32_is_fine: bool | None) -> Finding:
    """The finding for a bad value whose history is chain, from the op that made it to where it was noticed.

    fp32_is_fine: whether the whole model in FP32 has no inf or nan at that place (None: not known).
    """
    root = chain[0]
    why = WHYS[_cause(chain, fp32_is_fine)]
    return Finding(
        cause=why.cause,
        where=where(root),
        what=_what(chain, fp32_is_fine),
        why=why.why,
        cure=why.cure,
        op=None if root.label else root.name,
        module=root.module,
        dtype=str(root.dtype),
        evidence=evidence(root) | {"reaches": [f"{op.module}:{op.name}" for op in chain[1:]][:12]},
    )


def where(op: Op) -> str:
    """The place in words: `forward, bmm in attn, computed in FP16`."""
    if op.label:
        return f"the {op.name} {op.label}"
    node = f" ({op.node})" if op.node else ""
    return f"{op.phase}, {op.name}{node} in {place(op.module)}, computed in {short(op.dtype)}"


def place(module: str) -> str:
    """The module in words."""
    return {"": "the model's own forward", "loss": "the loss"}.get(module, module)


def short(dtype: torch.dtype) -> str:
    """FP16, BF16, FP32, or the dtype's own name."""
    names = {torch.float16: "FP16", torch.bfloat16: "BF16", torch.float32: "FP32"}
    return names.get(dtype, str(dtype).removeprefix("torch."))


def evidence(op: Op) -> dict[str, Any]:
    """The numbers of one op as plain data."""
    plain: dict[str, Any] = {"inputs": [one.words() for one in op.inputs], "output": op.output.words()}
    plain |= {"largest_input": max((one.largest for one in op.inputs), default=None)}
    plain |= {"nans": op.output.nans, "infs": op.output.infs, "minus_infs": op.output.minus_infs}
    if op.fp32 is not None:
        plain |= {"largest_in_fp32": op.fp32.largest}
    return plain


def _what(chain: list[Op], fp32_is_fine: bool | None) -> str:
    root = chain[0]
    counts = [(root.output.nans, "nan"), (root.output.infs, "inf"), (root.output.minus_infs, "-inf")]
    bad = " and ".join(f"{count} {kind}" for count, kind in counts if count)
    if root.label:
        words = f"{root.label} holds {bad} in {root.output.numel} numbers."
    else:
        inputs = " and ".join(f"{one.words()}" for one in root.inputs) or "no tensor"
        words = f"From {inputs}: {bad} in {root.output.numel} results."
        if root.fp32 is not None and not root.fp32.bad:
            words += f" In FP32 the same op gives |x| up to {root.fp32.largest:.6g}."
        elif root.fp32 is not None or root.dtype is torch.float32:
            words += " Given these numbers in FP32, the op gives it too."
    turn = next((op for op in chain[1:] if op.output.nans), None)
    if turn is not None and not root.output.nans:
        words += f" It turns to nan in {turn.name} of {place(turn.module)}."
    if len(chain) > 1:
        last = chain[-1]
        there = "" if last.output.bad else ", which makes a finite number of it, and a wrong one"
        words += f" It reaches {last.name} of {place(last.module)}{there}."
    if fp32_is_fine is not None and (root.fp32 is None or root.fp32.bad):
        words += " The whole model in FP32 is finite there." if fp32_is_fine else " The whole model in FP32 has it too."
    return words


def _cause(chain: list[Op], fp32_is_fine: bool | None) -> str:
    root, later = chain[0], chain[1:]
    softmax = next((op for op in later if op.name in SOFTMAX), None)
    if root.label:
        return _cause_of_what_was_there(root, softmax)
    if root.phase == "backward":
        return _cause_in_backward(root)
    if chain[-1].phase == "backward":
        return "where_trap"  # finite in forward, so it was hidden there
    if _deliberate(root):
        return "all_masked_row" if softmax is not None else "nonfinite"
    if root.out_of_range:
        return _cause_of_overflow(root, later, softmax)
    return _cause_in_every_range(root)


def _cause_of_what_was_there(root: Op, softmax: Op | None) -> str:
    if root.name == "input":
        only_mask = root.output.minus_infs and not root.output.nans and not root.output.infs
        return "all_masked_row" if only_mask and softmax is not None else "data_nonfinite"
    if root.name == "parameter":
        return "weights_nonfinite"
    if root.label.endswith(("running_mean", "running_var")):
        return "batchnorm_poisoned"
    only_mask = root.output.minus_infs and not root.output.nans and not root.output.infs
    return "all_masked_row" if only_mask and softmax is not None else "buffer_nonfinite"


def _deliberate(op: Op) -> bool:
    """An inf that the model asked for by name."""
    return op.name in FILLS and any(abs(number) == float("inf") for number in op.scalars)


def _constant(op: Op) -> bool:
    """A fill, or arithmetic with a number, beyond FP16: as in (1 - mask) * -1e9."""
    return op.name in FILLS + ARITHMETIC and any(abs(number) > FP16_MAX for number in op.scalars)


def _origin(op: Op | None) -> Op | None:
    """The op behind casts and copies."""
    while op is not None and op.name in MOVES and op.sources:
        op = op.sources[0]
    return op


def _made_by_constant(op: Op, depth: int = 4) -> bool:
    if _constant(op):
        return True
    return depth > 0 and any(
        source is not None
        and not source.label
        and source.name in MOVES + FILLS + ARITHMETIC
        and _made_by_constant(source, depth - 1)
        for source in op.sources
    )


def _cause_of_overflow(root: Op, later: list[Op], softmax: Op | None) -> str:
    name = root.name
    if name in PRODUCTS:
        if softmax is None or softmax.name == "_log_softmax" or name not in ("bmm", "baddbmm", "mm"):
            return "activation_overflow"
        scores = later[: later.index(softmax)]
        return "activation_overflow" if any(op.name in PRODUCTS for op in scores) else "attention_overflow"
    if name in MOVES:
        source = _origin(root.sources[0]) if root.sources else None
        if source is not None and source.name == "input":
            return "data_out_of_range"
        if source is not None and source.name == "parameter":
            return "weights_out_of_range"
        if source is not None and source.name in EXPONENTIALS:
            return "exp_overflow"
        if source is not None and source.name in SQUARES:
            return "square_overflow"
        if _made_by_constant(root):
            return "mask_overflow"
        return "activation_overflow"
    if name in FILLS + ARITHMETIC and _made_by_constant(root):
        return "mask_overflow"
    if name in SQUARES or (name in ("mul", "mul_") and root.same_input):
        return "square_overflow"
    if name in REDUCTIONS:
        return "reduction_overflow"
    if name in EXPONENTIALS:
        return "exp_overflow"
    if name in DIVISIONS:
        return "division_overflow"
    return "activation_overflow"


def _cause_in_every_range(root: Op) -> str:
    name, inputs = root.name, root.inputs
    divisor = (1 if len(inputs) > 1 else 0) if name in DIVISIONS else None
    if name in ROOTS and inputs and inputs[0].low < 0 and root.output.nans:
        return "negative_root"
    if name == "pow" and inputs and inputs[0].zeros and any(number < 0 for number in root.scalars):
        divisor = 0
    if name in ("div", "div_") and len(inputs) == 1 and 0 in root.scalars:
        return "division_by_zero"
    if divisor is not None and inputs and inputs[divisor].zeros:
        return _cause_of_zero_divisor(root.sources[divisor] if root.sources else None)
    if name in LOGARITHMS and inputs:
        if inputs[0].low < (-1 if name == "log1p" else 0):
            return "log_of_negative"
        source = root.sources[0]
        vanished = source.vanished if source is not None else None
        return "eps_underflow" if vanished is not None and vanished.name in ARITHMETIC + FILLS else "log_of_zero"
    if name in EXPONENTIALS:
        return "exp_overflow"
    return "nonfinite"


def _cause_of_zero_divisor(source: Op | None) -> str:
    if source is None:
        return "division_by_zero"
    if source.vanished is not None:
        lost = source.vanished
        tiny = any(0 < abs(number) < 2**-14 for number in lost.scalars)
        return "eps_underflow" if tiny or lost.name in (*FILLS, "_to_copy") else "divisor_underflow"
    behind: Op | None = source
    depth = 0
    while behind is not None and depth < 4:
        if behind.name in SPREADS:
            return "zero_variance"
        behind, depth = (behind.sources[0] if behind.sources else None), depth + 1
    return "division_by_zero"


def _cause_in_backward(root: Op) -> str:
    node = (root.node or "").removesuffix("0")
    if any(part in node for part in ("Sqrt", "Norm", "Pow", "Cdist", "Dist")) and "LayerNorm" not in node:
        return "gradient_at_zero"
    if root.out_of_range:
        return "backward_overflow"
    if any(part in node for part in ("Div", "Reciprocal", "Log")):
        return "where_trap"
    return "nonfinite"
