"""How the answers of assignment 2 are probed.

Where an answer computes in FP16 or BF16, each number is a single product, or a sum that those dtypes hold exactly in any
order: the evidence is the same bits on every machine. Only softmax of FP32 scores is compared with a tolerance.
"""

from contextlib import contextmanager

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from autograder import trace
from autograder.probes import Exercise

LOW = {torch.float16: "FP16", torch.bfloat16: "BF16"}
TAIL = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}  # half an ulp of a number just above 1


def word(dtype):
    return str(dtype).removeprefix("torch.")


def other(dtype):
    return torch.bfloat16 if dtype is torch.float16 else torch.float16


def on_grid(p, *shape, largest=8):
    """Whole numbers between -largest and largest, none of them 0."""
    signs = torch.randint(0, 2, shape, generator=p.torch) * 2.0 - 1
    return signs * torch.randint(1, largest + 1, shape, generator=p.torch)


def fine(p, *shape):
    """Numbers of magnitude 1 to 2 that neither FP16 nor BF16 holds."""
    signs = torch.randint(0, 2, shape, generator=p.torch) * 2.0 - 1
    return signs * (1.05 + torch.rand(shape, generator=p.torch) * 0.9)


def autocast_state():
    """Whether autocast is on and in which dtype, in words."""
    return f"on, {word(torch.get_autocast_dtype('cpu'))}" if torch.is_autocast_enabled("cpu") else "off"


# ---------------------------------------------------------------------------------------------------------------- 1

# The truth is what the solution reads from PyTorch where the grade is computed. Neither it nor a verdict exists where
# answers run: evidence is what the answer says, put into one spelling.
OPERATIONS = (
    "linear", "embedding", "layer_norm", "softmax", "batch_norm", "relu", "mul", "pow", "cat", "sum", "cross_entropy",
    "sdpa",
)  # fmt: skip
PREDICTED = Exercise(
    "PREDICTED",
    parts={"four": 1, "eight": 1, "twelve": 1},
    labels={name: f"the dtype of {name}" for name in OPERATIONS},
    counted=True,
)
UNTOLD = "cannot be told"
NO_KEY = "no such key"
SPELLINGS = {
    "half": "float16",
    "fp16": "float16",
    "float": "float32",
    "single": "float32",
    "fp32": "float32",
    "bf16": "bfloat16",
}


def spelled(value):
    """A dtype in any usual spelling as torch names it."""
    said = str(value).strip().lower().removeprefix("torch.")
    return SPELLINGS.get(said, said)


@PREDICTED.probe()
def predictions(answer, p):
    """the twelve operations of the table"""
    if not isinstance(answer, dict):
        raise TypeError(f"PREDICTED is to be a dict, and is of type {type(answer).__name__}")
    if not any(answer.values()):
        raise NotImplementedError("nothing is predicted yet")
    # The solution says so where its PyTorch cannot tell, and what it does not see is not compared.
    untold = [name for name in OPERATIONS if answer.get(name) == UNTOLD]
    told = [name for name in OPERATIONS if name not in untold]
    p.given(
        f"{len(told)} operations on CUDA under FP16 autocast"
        + (f" (the PyTorch that grades is built without CUDA and cannot tell {' and '.join(untold)})" if untold else "")
    )
    for name in told:
        p.see(name, spelled(answer.get(name, NO_KEY)))


def said(failed):
    return {c.key: c.got for c in failed}


@PREDICTED.symptom("missing_key")
def a_key_is_missing(failed):
    return NO_KEY in said(failed).values()


@PREDICTED.symptom("batch_norm_fp32")
def batch_norm_fails(failed):
    return said(failed).get("batch_norm") == "float32"


@PREDICTED.symptom("cpu_lists")
def as_on_the_cpu(failed):
    return sum(said(failed).get(name) == "float16" for name in ("layer_norm", "softmax", "pow", "sum")) >= 2


@PREDICTED.symptom("pow_like_mul")
def pow_fails(failed):
    return said(failed).get("pow") in ("float16", "float32")


@PREDICTED.symptom("mixed_cat_fp16")
def cat_fails(failed):
    return said(failed).get("cat") in ("float16", "float32")


@PREDICTED.symptom("embedding_fp16")
def embedding_fails(failed):
    return said(failed).get("embedding") in ("float16", "float32")


@PREDICTED.symptom("sdpa_fp32")
def sdpa_fails(failed):
    return said(failed).get("sdpa") in ("float16", "float32")


@PREDICTED.symptom("sum_fp16")
def sum_fails(failed):
    return said(failed).get("sum") in ("float16", "float32")


@PREDICTED.symptom("cross_entropy_fp16")
def cross_entropy_fails(failed):
    return said(failed).get("cross_entropy") in ("float16", "float32")


# ---------------------------------------------------------------------------------------------------------------- 2

amp_forward_backward = Exercise(
    "amp_forward_backward",
    parts={"step": 1, "after": 1},
    keys={"graph": "after", "autocast": "after", "cache": "after"},
    labels={
        "computed_in": "the dtypes of the model's two results",
        "loss_in": "what loss_fn computes in",
        "returned": "the returned loss",
        "graph": "whether the returned loss still hangs on its graph",
        "gradients": "the gradients",
        "weights": "the parameters, which nothing has stepped yet",
        "autocast": "the caller's autocast",
        "cache": "autocast's cache of cast weights",
    },
    ulps=16,
)
CLASSES = 6


class Scored(nn.Module):
    """Scores (N, CLASSES) for x (N, 1) in autocast's dtype, behind a gain that is on no list. Notes the dtypes of both."""

    def __init__(self, p):
        super().__init__()
        self.gain = nn.Parameter(fine(p, 1).abs())
        self.layer = nn.Linear(1, CLASSES, bias=False)
        with torch.no_grad():
            self.layer.weight.copy_(fine(p, CLASSES, 1))
        self.computed_in = []

    def forward(self, x):
        amplified = x * self.gain
        if not self.training:
            amplified = amplified / 2  # another number in evaluation mode, as with dropout
        scores = self.layer(amplified)
        self.computed_in += [word(amplified.dtype), word(scores.dtype)]
        return scores


class Picked:
    """The mean of the scores of the right classes, negative. Autocast has it on its FP32 list, on every device. Notes a loss
    that comes out in low precision: rounding it afterwards gives the same number."""

    def __init__(self):
        self.low = None

    def __call__(self, scores, y):
        loss = nn.functional.nll_loss(scores, y)
        if loss.dtype in LOW:
            self.low = LOW[loss.dtype]
        return loss


def scored(p, dtype):
    """A model, a batch of four, each of another class, whose mean loss dtype cannot hold, and the loss_fn."""
    while True:
        model = Scored(p)
        x = on_grid(p, 4, 1, largest=4)
        y = torch.randperm(CLASSES, generator=p.torch)[:4]
        with torch.no_grad():
            amplified = (x * model.gain).to(dtype).double()
            products = (model.layer.weight[y].to(dtype).double() * amplified).to(dtype).double()
        mean = products.mean()
        if abs(float(mean)) > 0.5 and abs(float(mean.to(dtype)) / float(mean) - 1) > 2e-4:
            return model, x, y, Picked()


def see_step(p, model, loss_fn, returned, call="", gradients=True):
    p.see(f"computed_in{call}", model.computed_in[-2:])
    p.see(f"loss_in{call}", loss_fn.low or "FP32")
    if gradients:
        p.see(f"gradients{call}", [w.grad for w in model.parameters()])
    p.see(f"weights{call}", [w.detach() for w in model.parameters()])
    p.see(f"returned{call}", returned)
    p.see(
        f"graph{call}", isinstance(returned, torch.Tensor) and (returned.requires_grad or returned.grad_fn is not None)
    )
    p.see(f"autocast{call}", autocast_state())
    p.see(f"cache{call}", "kept" if torch.is_autocast_cache_enabled() else "switched off")


@amp_forward_backward.probe(draws=2)
def in_fp16(answer, p):
    """FP16"""
    model, x, y, loss_fn = scored(p, torch.float16)
    p.given("a batch of four, FP16")
    see_step(p, model, loss_fn, answer(model, x, y, loss_fn, "cpu", torch.float16))


@amp_forward_backward.probe(draws=2)
def in_bf16(answer, p):
    """BF16"""
    model, x, y, loss_fn = scored(p, torch.bfloat16)
    p.given("a batch of four, BF16")
    see_step(p, model, loss_fn, answer(model, x, y, loss_fn, "cpu", torch.bfloat16))


@amp_forward_backward.probe("after")
def gradients_that_are_there(answer, p):
    """gradients that are there already"""
    dtype = p.random.choice(list(LOW))
    model, x, y, loss_fn = scored(p, dtype)
    for weight in model.parameters():
        weight.grad = on_grid(p, *weight.shape)
    p.given(f"gradients that are there already, {LOW[dtype]}")
    see_step(p, model, loss_fn, answer(model, x, y, loss_fn, "cpu", dtype))


@amp_forward_backward.probe("after")
def two_calls(answer, p):
    """two calls on one model"""
    dtype = p.random.choice(list(LOW))
    model, x, y, loss_fn = scored(p, dtype)
    p.given(f"the same model and batch twice, {LOW[dtype]}, and no step between")
    see_step(p, model, loss_fn, answer(model, x, y, loss_fn, "cpu", dtype), " in call 1")
    see_step(p, model, loss_fn, answer(model, x, y, loss_fn, "cpu", dtype), " in call 2")


@amp_forward_backward.probe("after", draws=2)
def in_a_region_of_the_caller(answer, p):
    """a call from inside a region of the caller's"""
    dtype = p.random.choice(list(LOW))
    model, x, y, loss_fn = scored(p, dtype)
    p.given(f"{LOW[dtype]}, and a caller whose own region is open in {LOW[other(dtype)]}")
    with torch.autocast("cpu", dtype=other(dtype)):
        returned = answer(model, x, y, loss_fn, "cpu", dtype)
        # Backward after the answer's region runs in the caller's, and rounds as that does: both are right.
        see_step(p, model, loss_fn, returned, gradients=False)


def first_of_each(failed):
    """One failed comparison a draw, the first."""
    first = {}
    for c in failed:
        first.setdefault((c.probe, c.draw), c)
    return list(first.values())


def keys_of(failed, *probes):
    return {c.key.partition(" ")[0] for c in failed if not probes or c.probe in probes}


@amp_forward_backward.symptom("model_converted")
def converted(failed):
    return any(
        c.key.startswith("weights") and isinstance(c.got, list) and any(w.dtype != torch.float32 for w in c.got)
        for c in failed
    )


@amp_forward_backward.symptom("no_autocast")
def computed_in_fp32(failed):
    return any(c.key.startswith("computed_in") and c.got == ["float32", "float32"] for c in failed)


@amp_forward_backward.symptom("no_backward")
def no_gradient_at_all(failed):
    found = [c.got for c in failed if c.key == "gradients" and c.probe in ("in_fp16", "in_bf16")]
    return bool(found) and all(
        isinstance(got, list) and not any(isinstance(g, torch.Tensor) for g in got) for got in found
    )


@amp_forward_backward.symptom("not_detached")
def only_the_graph(failed):
    return keys_of(failed) == {"graph"} and all(c.got is True for c in failed)


@amp_forward_backward.symptom("loss_outside_autocast")
def loss_in_low_precision(failed):
    return "loss_in" in keys_of(failed) and "computed_in" not in keys_of(failed)


# ---------------------------------------------------------------------------------------------------------------- 3

# 128 ulps of FP32 on outputs up to 10: an error of 1e-4. FP16 makes one of 4e-3.
attention_fp32_scores = Exercise(
    "attention_fp32_scores",
    parts={"overflow": 2, "precision": 1},
    keys={"dtype": "precision", "autocast": "precision"},
    labels={"output": "the output", "dtype": "its dtype", "autocast": "the caller's autocast"},
    ulps=128,
)


class Products(TorchFunctionMode):
    """Puts the products of an answer into the record of calls: an inf does not tell who made its factors FP16."""

    NAMES = ("matmul", "__matmul__", "einsum", "bmm", "baddbmm", "scaled_dot_product_attention")

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") in self.NAMES:
            factor = next(value for value in args if isinstance(value, torch.Tensor))
            autocast = autocast_state().partition(",")[0]
            products = 2 if function.__name__ == "scaled_dot_product_attention" else 1
            for _ in range(products):
                trace.recorded(f"{word(factor.dtype)} product, autocast {autocast}", lambda: None)()
        return function(*args, **(kwargs or {}))


def in_fp16_region(answer, p, q, k, v, *, coarse):
    """Call the answer in a region. coarse: compare outputs to 4e-3, so that rounding them to FP16 does not show."""
    with torch.autocast("cpu", dtype=torch.float16), Products():
        output = answer(q.half(), k.half(), v.half(), "cpu")
        is_tensor = isinstance(output, torch.Tensor)
        p.see("shape", list(output.shape) if is_tensor else output)
        if is_tensor:
            seen = output.detach().float()
            if coarse and seen.dim():
                # The tolerance is relative to the largest number that is expected, and this one is always there.
                seen = torch.cat([seen, torch.full_like(seen[..., :1], 256.0)], dim=-1)
        p.see("output", seen if is_tensor else output)
        p.see("dtype", word(output.dtype) if is_tensor else "no tensor")
        p.see("autocast", autocast_state())


def large_scores(p, dim, tokens, spread):
    """q and k (2, 3, tokens, dim) of whole numbers whose products are all above 65504, exact in FP32 in any order, and
    differ by `spread` from token to token when they are divided by sqrt(dim)."""
    root = round(dim**0.5)
    query = p.random.choice([40, 48, 56, 64])
    key = -(-72000 // ((dim - 1) * query))
    signs = torch.randint(0, 2, (2, 3, 1, dim), generator=p.torch) * 2.0 - 1
    q, k = signs * query * torch.ones(2, 3, tokens, dim), signs * key * torch.ones(2, 3, tokens, dim)
    at = p.random.randrange(dim)
    q[..., at] = root * torch.tensor([1.0, -1.0, 2.0]).repeat(tokens)[:tokens]
    order = torch.stack([torch.randperm(tokens, generator=p.torch) for _ in range(6)]).reshape(2, 3, tokens)
    k[..., at] = order * float(spread)
    return q, k


@attention_fp32_scores.probe(draws=2)
def overflowing_scores(answer, p):
    """raw products that are all above 65504"""
    dim = p.random.choice([16, 64])
    q, k = large_scores(p, dim, p.random.randint(3, 5), 1)
    p.given(f"FP16 inputs with {dim} numbers a head, whose raw products are all above 65504")
    in_fp16_region(answer, p, q, k, p.normal(*q.shape).clamp(-3, 3), coarse=True)


@attention_fp32_scores.probe()
def overflowing_scores_of_one_token(answer, p):
    """raw products of which some are above 65504"""
    q, k = large_scores(p, 64, 4, 1)
    k[:, :, p.random.randrange(4)] *= 0.5  # far below the others: its weight is 0
    p.given("FP16 inputs with 64 numbers a head; the raw products of all tokens but one are above 65504")
    in_fp16_region(answer, p, q, k, p.normal(*q.shape).clamp(-3, 3), coarse=True)


@attention_fp32_scores.probe()
def overflowing_scores_of_all_queries_but_one(answer, p):
    """scores of one query that lie far below those of the others"""
    q, k = large_scores(p, 64, 4, 1)
    q[:, :, p.random.randrange(4)] *= 0.25
    p.given("FP16 inputs with 64 numbers a head; the raw products of all queries but one are above 65504")
    in_fp16_region(answer, p, q, k, p.normal(*q.shape).clamp(-3, 3), coarse=True)


@attention_fp32_scores.probe(draws=2)
def ordinary_scores(answer, p):
    """inputs of an ordinary size"""
    tokens, dim = p.random.randint(4, 7), p.random.choice([8, 16, 32])
    values = p.normal(2, 2, tokens, dim).clamp(-3, 3)
    values[..., :tokens] = torch.eye(tokens)  # so that the output tells the weights, which symptoms look at
    p.given(f"FP16 inputs of an ordinary size and shape {tuple(values.shape)}")
    q, k = 2 * p.normal(*values.shape), p.normal(*values.shape)
    in_fp16_region(answer, p, q, k, values, coarse=True)


@attention_fp32_scores.probe("precision", draws=2)
def values_that_cancel(answer, p):
    """values of both signs, whose weighted sum shows how exact the weights are"""
    shape = (2, 3, 12, p.random.choice([24, 40]))  # FP16 holds neither root
    values = 16 * fine(p, *shape)
    p.given(f"FP16 inputs of shape {shape}, values of both signs up to 32")
    in_fp16_region(answer, p, p.normal(*shape), p.normal(*shape), values, coarse=False)


def outputs(failed, *probes):
    return [c.got for c in failed if c.key == "output" and isinstance(c.got, torch.Tensor) and c.probe in probes]


@attention_fp32_scores.symptom("still_autocast")
def nan_and_fp16(failed):
    dtypes = {c.got for c in failed if c.key == "dtype"}
    bad = outputs(failed, "overflowing_scores")
    return bool(bad) and all(bool(got.isnan().any()) for got in bad) and "float16" in dtypes


@attention_fp32_scores.symptom("no_scaling")
def scores_of_another_size(failed):
    """Nothing overflows, and in every draw that is wrong the weights are those of the expected scores times one number."""
    ordinary = [c for c in failed if c.key == "output" and c.probe == "ordinary_scores"]
    finite = all(bool(got.isfinite().all()) for got in outputs(failed, "ordinary_scores", "overflowing_scores"))
    return bool(ordinary) and finite and all(factor(c.expected, c.got) is not None for c in ordinary)


def factor(expected, got):
    """By which number all differences between scores are multiplied, judged by the weights in outputs of ordinary_scores; None
    if that is no one number, or 1."""
    if got.shape != expected.shape:
        return None
    tokens = expected.shape[-2]
    right, weights = expected[..., :tokens].double(), got[..., :tokens].double()
    plain = (right > 1e-4) & (weights > 1e-3)  # large enough to have digits
    pairs = plain[..., :, None] & plain[..., None, :]
    logs, found = torch.where(plain, right, 1.0).log(), torch.where(plain, weights, 1.0).log()
    a = (logs[..., :, None] - logs[..., None, :])[pairs]
    b = (found[..., :, None] - found[..., None, :])[pairs]
    times = float((a * b).sum() / (a * a).sum())
    return times if abs(times - 1) > 0.03 and float((b - times * a).abs().max()) < 0.1 else None


@attention_fp32_scores.symptom("wrong_dtype")
def only_rounded_at_the_end(failed):
    return {c.probe for c in failed if c.key == "output"} <= {"values_that_cancel"} and any(
        c.key == "dtype" and c.got in ("float16", "bfloat16") for c in failed
    )


# ---------------------------------------------------------------------------------------------------------------- 4

evaluate = Exercise(
    "evaluate",
    parts={"averages": 1, "mode": 1, "precision": 1},
    keys={"computed_in": "precision", "graph": "precision"},
    labels={
        "keys": "the keys of the dict",
        "computed_in": "the dtype of the model's output",
        "graph": "whether the outputs hang on a graph",
        "flags": "the training flags of the modules",
        "buffers": "the running statistics",
        "error": "the error that comes out",
        "type": "the type of the error that comes out",
        "frozen": "the parameters that require no grad afterwards",
        "grad_mode": "whether gradients are enabled afterwards",
        "state": "the caller's autocast afterwards",
    },
)


class Notes(set):
    """What a model notes; a copy of the model writes into the same."""

    def __deepcopy__(self, memo):
        return self


class Guesser(nn.Module):
    """Scores (N, CLASSES) for x (N, 1). Weights and inputs have so few bits that the scores are the same in every dtype."""

    def __init__(self, p, depends_on_mode):
        super().__init__()
        # running statistics of 0 and 1 and this eps: evaluation mode changes nothing
        self.norm = nn.BatchNorm1d(1, eps=2.0**-60) if depends_on_mode else nn.Identity()
        self.body = nn.Sequential(nn.Linear(1, CLASSES, bias=False), nn.Dropout(0.5 if depends_on_mode else 0.0))
        order = torch.randperm(CLASSES, generator=p.torch)
        with torch.no_grad():
            self.body[0].weight.copy_((order[:, None] - 2.25) / 2)
        self.computed_in = Notes()

    def forward(self, x):
        scores = self.body(self.norm(x))
        self.computed_in.add(word(scores.dtype))
        return scores


class Surprise:
    """Mean cross-entropy, in FP64 whatever comes in. Keeps whether its inputs required grad. Raises where a sample of class
    `refuses` is among others, in whatever call it comes."""

    def __init__(self, refuses=None):
        self.graphs, self.refuses = set(), refuses

    def __call__(self, scores, y):
        if self.refuses is not None and bool((y == self.refuses).any()):
            raise ArithmeticError("the loss of this batch cannot be computed")
        self.graphs.add(scores.requires_grad)
        scores = scores.double()
        return (scores.exp().sum(-1).log() - scores.gather(-1, y[:, None])[:, 0]).mean().float()


def guesses(p, model, sizes):
    """Batches of these sizes, of which the first is right and the last wrong, with the right class second or last: the mean of
    the batches' means is another number than the mean over all samples."""
    weight = model.body[0].weight.detach()
    batches = []
    for number, size in enumerate(sizes):
        x = torch.tensor([[p.random.choice([-1.0, 1.0, 2.0, -2.0])] for _ in range(size)])
        scores = x @ weight.T
        right = size if number == 0 else 0 if number == len(sizes) - 1 else size // 2
        wrong = torch.where(torch.arange(size) % 2 == right % 2, scores.argsort(-1)[:, -2], scores.argmin(-1))
        y = torch.where(torch.arange(size) < right, scores.argmax(-1), wrong)
        shuffled = torch.randperm(size, generator=p.torch)
        batches.append((x[shuffled], y[shuffled]))
    return batches


def unequal(p):
    """Sizes of which the first and the last differ much."""
    return p.random.choice([(7, 2), (2, 7), (8, 3, 1), (1, 4, 6), (6, 1), (1, 5, 3, 8)])


def flags_of(model):
    return {name or "model": module.training for name, module in model.named_modules()}


def see_result(p, result):
    if not isinstance(result, dict):
        p.see("keys", result)
        return
    p.see("keys", sorted(str(key) for key in result))
    p.see("loss", result.get("loss"))
    p.see("accuracy", result.get("accuracy"))


def see_state(p, model):
    p.see("flags", flags_of(model))
    p.see("buffers", list(model.buffers()))
    p.see("grad_mode", torch.is_grad_enabled())
    p.see("frozen", [name for name, weight in model.named_parameters() if not weight.requires_grad])
    p.see("state", autocast_state())


@evaluate.probe(draws=3)
def batches_of_unequal_size(answer, p):
    """batches of unequal size"""
    model, loss_fn, sizes = Guesser(p, False), Surprise(), unequal(p)
    dtype = p.random.choice(list(LOW))
    p.given(f"batches of {', '.join(map(str, sizes))} samples, {LOW[dtype]}")
    see_result(p, answer(model, guesses(p, model, sizes), loss_fn, "cpu", dtype))
    p.see("computed_in", sorted(model.computed_in))
    p.see("graph", sorted(loss_fn.graphs))


@evaluate.probe()
def one_batch(answer, p):
    """a single batch"""
    model, loss_fn = Guesser(p, False), Surprise()
    batches = guesses(p, model, (1, 4))[1:] if p.random.random() < 0.5 else guesses(p, model, (5, 1))[:1]
    p.given(f"one batch of {len(batches[0][0])} samples, BF16")
    see_result(p, answer(model, batches, loss_fn, "cpu", torch.bfloat16))


@evaluate.probe("precision")
def both_dtypes(answer, p):
    """FP16, then BF16"""
    model, loss_fn = Guesser(p, False), Surprise()
    p.given("a model that is evaluated in FP16, then in BF16")
    for dtype in LOW:
        model.computed_in.clear()
        answer(model, guesses(p, model, (3, 2)), loss_fn, "cpu", dtype)
        p.see(f"computed_in {word(dtype)}", sorted(model.computed_in))
        p.see(f"graph {word(dtype)}", sorted(loss_fn.graphs))


@evaluate.probe("mode", draws=2)
def training_model(answer, p):
    """a model with dropout and batch norm in training mode"""
    model, loss_fn, sizes = Guesser(p, True).train(), Surprise(), unequal(p)
    p.given(f"a model with dropout and batch norm in training mode, batches of {', '.join(map(str, sizes))}")
    see_result(p, answer(model, guesses(p, model, sizes), loss_fn, "cpu", p.random.choice(list(LOW))))
    see_state(p, model)


@evaluate.probe("mode")
def evaluation_model(answer, p):
    """a model that is in evaluation mode already"""
    model = Guesser(p, True).eval()
    p.given("a model that is in evaluation mode already")
    see_result(p, answer(model, guesses(p, model, (4, 2)), Surprise(), "cpu", torch.float16))
    see_state(p, model)


@evaluate.probe("mode", draws=2)
def frozen_modules(answer, p):
    """a model in training mode of which some modules are in evaluation mode"""
    model = Guesser(p, True).train()
    frozen = ["body.1", *p.random.choice([["norm"], ["body.0"], []])]
    for name in frozen:
        model.get_submodule(name).eval()
    p.given(f"a model in training mode, but for {' and '.join(frozen)}")
    see_result(p, answer(model, guesses(p, model, (4, 2)), Surprise(), "cpu", torch.bfloat16))
    see_state(p, model)


def see_a_failure(answer, p, who):
    """What comes out, and what is left behind, where `who` raises for the second of three batches."""
    model = Guesser(p, True).train()
    model.norm.eval()
    batches, loss_fn = guesses(p, model, (4, 2, 3)), Surprise()
    if who == "loss_fn":
        # guesses() leaves this class out; it is marked by what it is, since an answer may call loss_fn once for all batches
        loss_fn.refuses = int(model.body[0].weight.detach().flatten().argsort()[2])
        batches[1][1][0] = loss_fn.refuses
    else:
        batches[1] = (torch.ones(2, 3), batches[1][1])
    p.given(f"a second batch for which {who} raises; module norm is in evaluation mode")
    try:
        answer(model, batches, loss_fn, "cpu", torch.float16)
    except NotImplementedError:  # a RuntimeError as well, and the released cell's
        raise
    except (ArithmeticError, RuntimeError, ValueError) as error:
        p.see("error", "the batch's own")
        p.see("type", "ArithmeticError" if isinstance(error, ArithmeticError) else "RuntimeError or ValueError")
    else:
        p.see("error", "none")
    see_state(p, model)


@evaluate.probe("mode")
def the_model_raises(answer, p):
    """a batch for which the model raises"""
    see_a_failure(answer, p, "the model")


@evaluate.probe("mode")
def loss_fn_raises(answer, p):
    """a batch for which loss_fn raises"""
    see_a_failure(answer, p, "loss_fn")


@evaluate.symptom("mean_of_means")
def averages_of_unequal_batches_only(failed):
    core = {c.probe for c in failed if evaluate.part_of(evaluate.probes[c.probe], c.key) == "averages"}
    numbers = [c for c in failed if c.key in ("loss", "accuracy")]
    return core == {"batches_of_unequal_size"} and all(isinstance(c.got, float) for c in numbers)


@evaluate.symptom("no_autocast")
def scores_in_fp32(failed):
    return any(c.key.startswith("computed_in") and c.got == ["float32"] for c in failed)


@evaluate.symptom("builds_graph")
def outputs_require_grad(failed):
    return any(c.key.startswith("graph") and isinstance(c.got, list) and True in c.got for c in failed)


@evaluate.symptom("train_mode")
def dropout_at_work(failed):
    wrong = [c for c in failed if c.key == "loss" and c.probe == "training_model" and isinstance(c.got, float)]
    return bool(wrong) and "batches_of_unequal_size" not in {c.probe for c in failed}


@evaluate.symptom("mode_not_restored")
def flags_differ(failed):
    return any(c.key == "flags" and isinstance(c.got, dict) for c in failed)


# ---------------------------------------------------------------------------------------------------------------- 5

MatMul = Exercise(
    "MatMul",
    parts={"fp32": 1, "forward": 1, "backward": 1},
    labels={
        "function": "whether MatMul is a torch.autograd.Function",
        "output": "the product",
        "a": "the gradient of a",
        "b": "the gradient of b",
    },
    ulps=4,
)


def note_decorators(answer):
    """Into the record of calls, which words a hint: no number tells which of the two decorators is missing."""
    for method in ("forward", "backward"):
        if hasattr(getattr(answer, method, None), "__wrapped__"):
            trace.recorded(f"custom_{method}", lambda: None)()


def leaves(p, largest=3, needs=(True, True)):
    """Two matrices of whole numbers, of no two equal sizes."""
    rows, inner, columns = p.random.sample([2, 3, 4, 5], 3)
    a, b = on_grid(p, rows, inner, largest=largest), on_grid(p, inner, columns, largest=largest)
    return a.requires_grad_(needs[0]), b.requires_grad_(needs[1])


def see_gradients(p, a, b):
    p.see("a", a.grad)
    p.see("b", b.grad)


@MatMul.probe(draws=2)
def outside_autocast(answer, p):
    """FP32 matrices outside autocast"""
    note_decorators(answer)
    a, b = leaves(p)
    p.given(f"whole numbers of shape {tuple(a.shape)} and {tuple(b.shape)}, no autocast")
    p.see("function", isinstance(answer, type) and issubclass(answer, torch.autograd.Function))
    output = answer.apply(a, b)
    p.see("output", output)
    output.backward(on_grid(p, *output.shape, largest=2))
    see_gradients(p, a, b)


@MatMul.probe()
def full_fp32(answer, p):
    """FP32 numbers outside autocast that FP16 does not hold"""
    a, b = fine(p, 3, 1).requires_grad_(), fine(p, 1, 2).requires_grad_()
    p.given("FP32 numbers that FP16 does not hold, shapes (3, 1) and (1, 2), no autocast")
    output = answer.apply(a, b)
    p.see("output", output)
    output.backward(on_grid(p, 3, 2, largest=1).abs() * torch.tensor([1.0, 0.0]))
    see_gradients(p, a, b)


@MatMul.probe()
def one_leaf(answer, p):
    """a matrix that needs no gradient"""
    p.given("matrices of which only a needs a gradient, then matrices of which only b does, no autocast")
    for number, needs in enumerate([(True, False), (False, True)], 1):
        a, b = leaves(p, needs=needs)
        output = answer.apply(a, b)
        p.see(f"output in call {number}", output)
        output.backward(on_grid(p, *output.shape, largest=2))
        p.see(f"a in call {number}", a.grad)
        p.see(f"b in call {number}", b.grad)


@MatMul.probe("forward", draws=2)
def rounded_inputs(answer, p):
    """FP32 numbers under autocast"""
    dtype = p.random.choice(list(LOW))
    a, b = fine(p, 3, 2), fine(p, 2, 4)
    a[:, p.random.randrange(2)] = 0.0  # each sum is one product, so that its order does not matter
    p.given(f"FP32 numbers that {LOW[dtype]} does not hold, shapes (3, 2) and (2, 4), under {LOW[dtype]} autocast")
    with torch.autocast("cpu", dtype=dtype):
        p.see("output", answer.apply(a, b))


@MatMul.probe("forward")
def both_dtypes_in_turn(answer, p):
    """FP16, BF16 and no autocast in turn"""
    a, b = leaves(p)
    p.given("the same matrices under FP16 autocast, under BF16 autocast and outside")
    for dtype in LOW:
        with torch.autocast("cpu", dtype=dtype):
            p.see(f"output {word(dtype)}", answer.apply(a, b))
            p.see(f"output {word(dtype)}, again", answer.apply(a, b))
    p.see("output outside", answer.apply(a, b))


@MatMul.probe("forward", draws=2)
def differences_that_round_away(answer, p):
    """numbers whose difference autocast's dtype does not see"""
    dtype = p.random.choice(list(LOW))
    step = TAIL[dtype] * p.random.uniform(0.2, 0.6)
    a = torch.tensor([[1.0 + step, -1.0], [-1.0, 1.0 + step]])
    b = torch.ones(2, 1) * on_grid(p, 1, 3, largest=4)
    p.given(f"rows 1 + {step:.2g} and -1, whose sum is zero in {LOW[dtype]}, under {LOW[dtype]} autocast")
    with torch.autocast("cpu", dtype=dtype):
        p.see("output", answer.apply(a, b))


def under_autocast(answer, p, dtype, inside):
    note_decorators(answer)
    a, b = leaves(p)
    p.given(
        f"whole numbers of shape {tuple(a.shape)} and {tuple(b.shape)} under {LOW[dtype]} autocast, backward "
        f"{'inside' if inside else 'outside'} the region"
    )
    gradient = on_grid(p, a.shape[0], b.shape[1], largest=2)
    with torch.autocast("cpu", dtype=dtype):
        output = answer.apply(a, b)
        p.see("called", True)
        if inside:
            output.backward(gradient.to(output.dtype))
    if not inside:
        output.backward(gradient.to(output.dtype))
    see_gradients(p, a, b)


@MatMul.probe("backward", draws=2)
def backward_outside_the_region(answer, p):
    """backward outside the region"""
    under_autocast(answer, p, p.random.choice(list(LOW)), inside=False)


@MatMul.probe("backward")
def backward_inside_the_region(answer, p):
    """backward inside the region"""
    under_autocast(answer, p, p.random.choice(list(LOW)), inside=True)


@MatMul.probe("backward")
def in_a_chain(answer, p):
    """two products one after another, in a loss"""
    note_decorators(answer)
    dtype = p.random.choice(list(LOW))
    a, b, c = on_grid(p, 2, 3, largest=2), on_grid(p, 3, 4, largest=2), on_grid(p, 4, 2, largest=2)
    for matrix in (a, b, c):
        matrix.requires_grad_()
    p.given(f"MatMul of a MatMul, under {LOW[dtype]} autocast, the sum of which is the loss")
    with torch.autocast("cpu", dtype=dtype):
        product = answer.apply(answer.apply(a, b).float(), c)
        loss = product.float().sum()
    p.see("called", True)
    loss.backward()
    see_gradients(p, a, b)
    p.see("gradient of c", c.grad)


@MatMul.symptom("wrong_gradient")
def gradients_fail_in_fp32(failed):
    core = [c for c in failed if MatMul.probes[c.probe].part == "fp32"]
    return bool(core) and all(
        c.key.partition(" ")[0] in ("a", "b")
        and (c.got is None or isinstance(c.got, torch.Tensor) or raised(c, "invalid gradient", "shape", "size"))
        for c in core
    )


def raised(c, *words):
    """Whether it is not there because of a RuntimeError that says one of the words."""
    return c.was_raised and c.error["type"] == "RuntimeError" and any(said in c.error["message"] for said in words)


@MatMul.symptom("forces_fp32")
def fp32_under_autocast(failed):
    outputs_ = [
        c for c in failed if c.key.startswith("output") and c.probe in ("rounded_inputs", "both_dtypes_in_turn")
    ]
    return bool(outputs_) and all(isinstance(c.got, torch.Tensor) and c.got.dtype == torch.float32 for c in outputs_)


@MatMul.symptom("no_custom_fwd")
def bwd_without_fwd(failed):
    return any(
        c.error and c.error["type"] == "AttributeError" and "_fwd_used_autocast" in c.error["message"] for c in failed
    )


@MatMul.symptom("no_custom_bwd")
def dtypes_meet_in_backward(failed):
    return bool(failed) and all(
        MatMul.probes[c.probe].part == "backward" and raised(c, "dtype", "scalar type") for c in failed
    )


# ---------------------------------------------------------------------------------------------------------------- 6

# A forward pass in FP32 differs by half a percent from one in BF16, stale weights by tens of percents.
train_bf16 = Exercise(
    "train_bf16",
    parts={"updates": 1, "precision": 1},
    keys={"computed_in": "precision", "held_in": "precision", "scaler": "precision"},
    labels={
        "returned": "the returned losses",
        "passes": "how many training passes the model made",
        "outputs": "the model's outputs, batch by batch",
        "parameters": "the parameters at the end",
        "computed_in": "the dtype of the model's output",
        "held_in": "the dtype of the model's weights while it computes",
        "scaler": "GradScaler",
    },
    ulps=2.0**16,
)
WIDTH = 5


class Layer(nn.Module):
    """One layer, (1, 1) -> (1, WIDTH)."""

    def __init__(self, p):
        super().__init__()
        self.layer = nn.Linear(1, WIDTH, bias=False)
        with torch.no_grad():
            self.layer.weight.copy_(fine(p, WIDTH, 1))
        self.computed_in, self.held_in, self.outputs = set(), set(), []

    def forward(self, x):
        output = self.layer(x)
        if not self.training:
            output = output / 2  # another number in evaluation mode, as with dropout
        if not torch.is_grad_enabled():
            return output  # a look at the model, between the steps
        self.computed_in.add(word(output.dtype))
        self.held_in.add(word(self.layer.weight.dtype))
        self.outputs.append(output.detach().float())
        return output


def half_square(output, y):
    """Half the squared distance, in FP64 whatever comes in."""
    return ((output.double() - y) ** 2).sum().float() / 2


@contextmanager
def scalers_watched():
    """The list grows with every loss that is scaled by a GradScaler whose maker did not switch it off."""
    kind, scaled = torch.amp.GradScaler, []
    make, scale = kind.__init__, kind.scale

    def __init__(self, *args, **kwargs):
        make(self, *args, **kwargs)
        # On a machine without a GPU one for CUDA switches itself off, and would scale elsewhere.
        self._asked_for = kwargs.get("enabled", args[5] if len(args) > 5 else True)

    def watched(self, outputs):
        if getattr(self, "_asked_for", True):
            scaled.append(True)
        return scale(self, outputs)

    kind.__init__, kind.scale = __init__, watched
    try:
        yield scaled
    finally:
        kind.__init__, kind.scale = make, scale


def training(answer, p, count, *, momentum=0.0, left_over=False, words=""):
    model = Layer(p)
    optimizer = trace.watch(torch.optim.SGD(model.parameters(), lr=p.random.choice([0.25, 0.5]), momentum=momentum))
    # The aims change side: each step is a large one.
    batches = [
        (torch.tensor([[p.random.choice([-1.0, 1.0])]]), on_grid(p, 1, WIDTH, largest=2) * 2 + 1) for _ in range(count)
    ]
    if left_over:
        model.layer.weight.grad = on_grid(p, WIDTH, 1, largest=4)
    p.given(f"{count} batches of one sample, SGD with lr {optimizer.param_groups[0]['lr']}{words}")
    with scalers_watched() as scaled:
        returned = answer(model, batches, optimizer, half_square, "cpu")
    p.see("passes", len(model.outputs))
    p.see("outputs", model.outputs)
    p.see("returned", returned)
    p.see("parameters", [w.detach() for w in model.parameters()])
    p.see("dtypes", [word(w.dtype) for w in model.parameters()])
    p.see("computed_in", sorted(model.computed_in))
    p.see("held_in", sorted(model.held_in))
    p.see("scaler", "scales the loss" if scaled else "is not used")


@train_bf16.probe(draws=2)
def several_steps(answer, p):
    """several steps"""
    training(answer, p, p.random.randint(3, 5))


@train_bf16.probe()
def one_step(answer, p):
    """a single batch"""
    training(answer, p, 1)


@train_bf16.probe()
def with_momentum(answer, p):
    """SGD with momentum"""
    training(answer, p, 4, momentum=0.5, words=" and momentum 0.5")


@train_bf16.probe()
def gradients_left_over(answer, p):
    """gradients that are left over on entry"""
    training(
        answer, p, p.random.randint(1, 3), left_over=True, words="; the gradients of an earlier run are still there"
    )


@train_bf16.probe("precision")
def a_default_of_fp16(answer, p):
    """autocast whose default dtype is FP16, as on CUDA"""
    torch.set_autocast_dtype("cpu", torch.float16)
    training(answer, p, 2, words="; the default dtype of autocast is FP16 here, as on CUDA")


@train_bf16.symptom("no_autocast")
def forward_in_fp32(failed):
    return any(c.key == "computed_in" and c.got == ["float32"] for c in failed)


@train_bf16.symptom("uses_scaler")
def a_scaler_at_work(failed):
    return any(c.key == "scaler" and c.got == "scales the loss" for c in failed)


@train_bf16.symptom("one_region")
def outputs_do_not_change(failed):
    """The weights of the first step are seen again: outputs of later batches have the first one's magnitudes."""
    found = [c.got for c in failed if c.key == "outputs" and c.probe == "several_steps" and isinstance(c.got, list)]
    return bool(found) and all(
        len(got) > 1 and all(torch.equal(later.abs(), got[0].abs()) for later in got[1:]) for got in found
    )
