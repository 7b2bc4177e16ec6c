"""What autocast does with one op: choose the op and the dtypes of its inputs, and see CUDA beside CPU, and why."""

from __future__ import annotations

import html
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ampkit.errors import OpsError
from ampkit.ops import CATEGORIES, Inspection, OpRecord, inspect
from ampkit.ops.tables import short
from ampkit.show import FAINT, GREEN, INK, ORANGE, PAPER, RULE, SKY, VERMILLION, Live, drawing
from ampkit.widgets import svg

__all__ = ["CALLS", "DTYPES", "Call", "Explorer", "OpPolicy", "op_policy", "policy_alt", "policy_svg"]

INVITE = "Run this cell in JupyterLab to choose another op and other dtypes."
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "fp64": torch.float64}
COLOURS = {"fp32": GREEN, "fp16": ORANGE, "bf16": SKY}
PANEL, GAP, ROW = 352, 12, 132  # of one device: width; between the two; height of one op; pixels


@dataclass(frozen=True)
class Call:
    """One line of PyTorch: how it is written, how many floating-point inputs it takes, and the call itself."""

    text: str
    inputs: int
    run: Callable[..., Any]


def _targets(x: Tensor) -> Tensor:
    return torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)


_CALLS = (
    Call("a @ b", 2, lambda a, b: a @ b),
    Call("F.linear(a, b)", 2, F.linear),
    Call("F.conv2d(a, b)", 2, lambda a, b: F.conv2d(a.view(1, 1, 8, 8), b.view(1, 1, 8, 8))),
    Call("F.scaled_dot_product_attention(a, a, b)", 2, lambda a, b: F.scaled_dot_product_attention(a, a, b)),
    Call("a.addmm_(a, b)", 2, lambda a, b: a.addmm_(a, b)),
    Call("a.softmax(-1)", 1, lambda a: a.softmax(-1)),
    Call("F.cross_entropy(a, classes)", 1, lambda a: F.cross_entropy(a, _targets(a))),
    Call("F.mse_loss(a, b)", 2, F.mse_loss),
    Call("F.binary_cross_entropy(a, b)", 2, F.binary_cross_entropy),
    Call("F.binary_cross_entropy_with_logits(a, b)", 2, F.binary_cross_entropy_with_logits),
    Call("F.layer_norm(a, [8])", 1, lambda a: F.layer_norm(a, [8])),
    Call("F.rms_norm(a, [8])", 1, lambda a: F.rms_norm(a, [8])),
    Call("F.batch_norm(a, mean, var)", 1, lambda a: F.batch_norm(a, *_fp32_pair(a))),
    Call("F.embedding(indices, a)", 1, lambda a: F.embedding(_targets(a), a)),
    Call("F.gelu(a)", 1, F.gelu),
    Call("torch.exp(a)", 1, torch.exp),
    Call("a.exp_()", 1, lambda a: a.exp_()),
    Call("a ** 2", 1, lambda a: a**2),
    Call("a * a", 1, lambda a: a * a),
    Call("1 / a", 1, lambda a: 1 / a),
    Call("a.sum()", 1, torch.sum),
    Call("a.mean()", 1, torch.mean),
    Call("a.norm()", 1, lambda a: torch.linalg.vector_norm(a)),
    Call("a + b", 2, torch.add),
    Call("torch.atan2(a, b)", 2, torch.atan2),
    Call("torch.cat([a, b])", 2, lambda a, b: torch.cat([a, b])),
    Call("torch.stack([a, b])", 2, lambda a, b: torch.stack([a, b])),
    Call("torch.fft.rfft(a)", 1, torch.fft.rfft),
)
CALLS = {call.text: call for call in _CALLS}


def _fp32_pair(a: Tensor) -> tuple[Tensor, Tensor]:
    return torch.zeros(8, device=a.device), torch.ones(8, device=a.device)


class _Line(nn.Module):
    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call

    def forward(self, *inputs: Tensor) -> Any:
        return self.call.run(*inputs)


class OpPolicy:
    """A call, the dtypes of its inputs, and autocast's dtype; the answers are PyTorch's own, on tensors without data.

    Raises OpsError for a call or a dtype that is not offered.
    """

    def __init__(self, call: str = "a.softmax(-1)", a: str = "fp16", b: str = "fp32", lower: str = "fp16") -> None:
        if call not in CALLS:
            raise OpsError(f"There is no call {call!r} here. Choose one of: {', '.join(CALLS)}.")
        for name in (a, b, lower):
            if name not in DTYPES:
                raise OpsError(f"There is no dtype {name!r} here. Choose one of: {', '.join(DTYPES)}.")
        if lower not in ("fp16", "bf16"):
            raise OpsError(f"Autocast computes in fp16 or bf16, and not in {lower}.")
        self.call, self.a, self.b, self.lower = CALLS[call], a, b, lower

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The names of the input dtypes that the call takes: one or two."""
        return (self.a, self.b)[: self.call.inputs]

    def answer(self, device_type: str) -> Inspection:
        """What runs for the call under autocast of "cuda" or "cpu"."""
        inputs = [torch.empty(8, 8, dtype=DTYPES[name], device="meta") for name in self.dtypes]
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # FFTs of FP16 warn that they are experimental
            return inspect(_Line(self.call), *inputs, device_type=device_type, dtype=DTYPES[self.lower])

    def sentences(self, device_type: str) -> list[str]:
        """The answer in words, a sentence for each op that runs."""
        found = self.answer(device_type)
        said = [f"{record.op}: {_why(record)}" for record in found.records]
        if found.stopped:
            said.append(f"{found.stopped.op} raises {found.stopped.words}")
        return said


def _why(record: OpRecord) -> str:
    if record.banned:
        return f"banned. Under autocast it raises: {record.banned}"
    if record.mismatch:
        return f"{record.category}. On a device it raises: {record.mismatch}"
    if record.category == "cast":
        return "a cast that the call makes itself."
    if record.category == "fp32 result" and record.compute is not torch.float32:
        return f"fp32 result, but PyTorch's own code asks it for {short(record.compute)} here, and that is respected."
    return f"{record.category}. {CATEGORIES[record.category][0].upper()}{CATEGORIES[record.category][1:]}."


def policy_svg(state: OpPolicy) -> str:
    """Two panels, CUDA and CPU: for each op that runs what goes in, what it computes in, what comes out, and why."""
    found = {device: state.answer(device) for device in ("cuda", "cpu")}
    rows = max(len(each.records) + (each.stopped is not None) for each in found.values())
    parts = [svg.opened(62 + ROW * rows, policy_alt(state))]
    given = ", ".join(f"{name} in {dtype}" for name, dtype in zip("ab", state.dtypes, strict=False))
    parts.append(svg.text(12, 26, state.call.text, size=16, anchor="start", bold=True, mono=True))
    parts.append(svg.text(svg.WIDTH - 12, 26, f"{given}; autocast to {state.lower}", anchor="end", ink=FAINT))
    for column, (device, each) in enumerate(found.items()):
        left = 12 + column * (PANEL + GAP)
        parts.append(svg.text(left, 52, f"{device.upper()} autocast", size=14, anchor="start", bold=True))
        for row, record in enumerate(each.records):
            parts += _op(left, 62 + ROW * row, record)
        if each.stopped:
            parts += _raised(left, 62 + ROW * len(each.records), each.stopped.words)
    return "".join(parts) + "</svg>"


def policy_alt(state: OpPolicy) -> str:
    """The drawing in words."""
    given = " and ".join(f"{name} in {dtype}" for name, dtype in zip("ab", state.dtypes, strict=False))
    parts = [f"What {state.call.text} computes in for {given}, under autocast to {state.lower}."]
    for device in ("cuda", "cpu"):
        found = state.answer(device)
        ops = [f"{record.op} {_result(record)}" for record in found.records]
        ops += ["it raises"] if found.stopped else []
        parts.append(f"{device.upper()}: {'; '.join(ops)}.")
    return " ".join(parts)


def _result(record: OpRecord) -> str:
    if record.banned:
        return "is banned and raises"
    if record.mismatch:
        return "raises because its inputs differ in dtype"
    returns = short(record.outputs[0].dtype) if record.outputs else "nothing"
    return f"computes in {short(record.compute)} and returns {returns}"


def _op(left: float, top: float, record: OpRecord) -> list[str]:
    raises = bool(record.banned or record.mismatch)
    edge = VERMILLION if raises else RULE
    parts = [
        f'<rect x="{left}" y="{top}" width="{PANEL}" height="{ROW - 10}" rx="6" style="fill:none;stroke:{edge};'
        f'stroke-width:{2 if raises else 1}"/>',
        svg.text(left + 10, top + 20, ("✗ " if raises else "") + record.op, anchor="start", bold=True, mono=True),
    ]
    read = list(dict.fromkeys(short(info.dtype) for info in record.inputs if info.dtype.is_floating_point))
    wrote = short(record.outputs[0].dtype) if record.outputs else "-"
    casts = list(dict.fromkeys(f"{short(cast.source)}→{short(cast.target)}" for cast in record.casts))
    computes = "raises" if raises else short(record.compute)
    boxes = (("in", " ".join(read)), ("computes", computes), ("out", "-" if raises else wrote))
    for index, (name, dtype) in enumerate(boxes):
        x = left + 10 + index * 114
        fill = COLOURS.get(dtype, PAPER)
        ink = "#000000" if dtype in COLOURS else INK
        parts.append(f'<rect x="{x}" y="{top + 42}" width="92" height="24" rx="4" style="fill:{fill};stroke:{RULE}"/>')
        parts.append(svg.text(x + 46, top + 38, name, size=11, ink=FAINT))
        parts.append(svg.text(x + 46, top + 59, dtype, ink=ink, bold=True, mono=True))
        if index:
            parts.append(svg.text(x - 11, top + 59, "→", size=15))
    if casts:
        parts.append(svg.text(left + PANEL - 10, top + 20, f"casts {', '.join(casts)}", size=11, anchor="end", ink=INK))
    return parts + _words(left + 10, top + 84, _why(record))


def _raised(left: float, top: float, words: str) -> list[str]:
    box = (
        f'<rect x="{left}" y="{top}" width="{PANEL}" height="{ROW - 10}" rx="6" '
        f'style="fill:none;stroke:{VERMILLION};stroke-width:2"/>'
    )
    return [
        box,
        svg.text(left + 10, top + 20, "✗ raises", anchor="start", bold=True),
        *_words(left + 10, top + 42, words),
    ]


def _words(x: float, y: float, words: str) -> list[str]:
    lines = textwrap.wrap(words, 58, max_lines=3, placeholder=" …")
    return [svg.text(x, y + 15 * number, line, size=11.5, anchor="start") for number, line in enumerate(lines)]


class Explorer(Live):
    """The drawn answer; `state` is what the controls change."""

    def __init__(self, state: OpPolicy) -> None:
        still = drawing(policy_svg(state), policy_alt(state), INVITE)
        super().__init__(still.html, still.text, alt=still.alt)
        self.state, self.widget = state, _controls(state)


def op_policy(call: str = "a.softmax(-1)", a: str = "fp16", b: str = "fp32", lower: str = "fp16") -> Explorer:
    """What autocast does with one call, CUDA beside CPU: the casts, the dtype that it computes in, what comes out, why.

    call is one of CALLS, a and b the dtypes of its inputs ("fp32", "fp16", "bf16", "fp64"), lower autocast's own.
    Every answer is asked of the installed PyTorch, on tensors without data, so that no GPU is needed. Without a kernel,
    the first view stands as a picture. Raises OpsError for anything that is not offered.
    """
    return Explorer(OpPolicy(call, a, b, lower))


def _controls(state: OpPolicy) -> Any:
    try:
        import ipywidgets as widgets
    except ImportError:  # the picture still shows
        return None
    view, said = widgets.HTML(), widgets.HTML()

    def draw() -> None:
        view.value = policy_svg(state)
        said.value = f'<div role="status" aria-live="polite" style="{_HIDDEN}">{html.escape(policy_alt(state))}</div>'
        second.disabled = state.call.inputs == 1

    def change(name: str, read: Callable[[Any], Any] = lambda value: value) -> Callable[[Any], None]:
        def changed(event: Any) -> None:
            setattr(state, name, read(event["new"]))
            draw()

        return changed

    calls = widgets.Dropdown(options=list(CALLS), value=state.call.text, description="call")
    calls.style.description_width, calls.layout.width = "36px", "340px"
    first, second, lower = (
        widgets.ToggleButtons(options=options, value=value, description=name)
        for options, value, name in (
            (list(DTYPES), state.a, "a"),
            (list(DTYPES), state.b, "b"),
            (["fp16", "bf16"], state.lower, "autocast"),
        )
    )
    for buttons in (first, second, lower):
        buttons.style.button_width = "52px"
        buttons.style.description_width = "60px" if buttons is lower else "36px"
        buttons.layout.margin = "0 18px 4px 0"
    calls.observe(change("call", CALLS.__getitem__), names="value")
    first.observe(change("a"), names="value")
    second.observe(change("b"), names="value")
    lower.observe(change("lower"), names="value")
    wrap = widgets.Layout(flex_flow="row wrap", align_items="center")
    draw()
    return widgets.VBox(
        [widgets.Box([calls, lower], layout=wrap), widgets.Box([first, second], layout=wrap), view, said],
        layout=widgets.Layout(max_width="800px", padding="4px"),
    )


_HIDDEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)"  # for screen readers alone
