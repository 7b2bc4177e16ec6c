"""How the answers of assignment 3 are probed.

Gradients pass through a real FP16 tensor: `fp16_loss` has any gradient one likes, times the scale, rounded to FP16 on its
way back, so that it underflows and overflows as on a GPU. No sum is ever taken in FP16, hence the evidence is the same bits
on every machine.
"""

import math
from functools import partial
from itertools import pairwise

import torch

from autograder import trace
from autograder.probes import Exercise


def fp16_loss(weights, gradients):
    """A loss whose gradient in weights[i] is gradients[i], computed in FP16: scaled by S it arrives as half(S * g)."""
    return sum(((w.half()).float() * g).sum() for w, g in zip(weights, gradients, strict=True))


def total_norm(gradients):
    return math.sqrt(sum(float(g.double().square().sum()) for g in gradients))


def clear(*optimizers):
    for optimizer in optimizers:
        optimizer.zero_grad(set_to_none=True)


def power(scale):
    return f"2**{round(math.log2(scale))}"


def finite(number):
    """A returned norm as evidence: on a skipped step inf and nan are the same."""
    return "inf or nan" if isinstance(number, float) and not math.isfinite(number) else number


def refused_in_a_later_call(failed):
    """The scaler said in a second call or later that something was done already: nobody told it that a step is over."""
    return any(
        c.error and "has already been called" in c.error["message"] and not c.key.endswith(" call 1")
        for c in first_failures(failed)
    )


def first_failures(failed):
    """One failed comparison a draw, the first: one wrong step spoils everything that comes after it."""
    first = {}
    for c in failed:
        first.setdefault((c.probe, c.draw), c)
    return list(first.values())


# ---------------------------------------------------------------------------------------------------------------- 1

choose_init_scale = Exercise("choose_init_scale", parts={"scale": 2, "edges": 1}, labels={"returned": "the scale"})


def spread(p, largest, sizes=(60, 100, 40)):
    """Gradient tensors with one element `largest`; the magnitudes of the others are at most half of it."""
    tensors = [p.normal(size).clamp(-3, 3) * (largest / 6) for size in sizes]
    tensors[p.random.randrange(len(tensors))][p.random.randrange(30)] = largest
    return tensors


@choose_init_scale.probe(draws=4)
def ordinary_gradients(answer, p):
    """gradients of an ordinary size"""
    largest = 2.0 ** p.random.uniform(-6, 9)
    gradients = spread(p, largest)
    p.given(f"three gradient tensors, the largest magnitude {largest:.4g}")
    p.see("returned", answer(gradients))
    p.see("returned for the same tensors in reverse order", answer(gradients[::-1]))


@choose_init_scale.probe(draws=2)
def largest_is_negative(answer, p):
    """gradients whose largest magnitude is negative"""
    largest = 2.0 ** p.random.uniform(-5, 5)
    gradients = [p.normal(5, 4).abs() * largest / 60, -p.normal(8).abs() * largest / 60]
    gradients[1][3] = -largest
    p.given(f"gradients between {-largest:.4g} and {float(gradients[0].max()):.4g}")
    p.see("returned", answer(gradients))


@choose_init_scale.probe("edges")
def last_finite_product(answer, p):
    """a largest gradient that the right scale brings between 65504 and 65520, which FP16 rounds to 65504"""
    k = p.random.randint(3, 14)
    largest = p.random.choice([65505.0, 65510.0, 65519.0]) / 2.0**k
    p.given(f"gradients of which the largest magnitude times 2**{k} is {largest * 2.0**k:g}")
    p.see("returned", answer([p.normal(7) * largest / 50, torch.tensor([largest])]))


@choose_init_scale.probe("edges")
def first_infinite_product(answer, p):
    """a largest gradient that a power of two brings to exactly 65520, which FP16 rounds to inf"""
    k = p.random.randint(3, 14)
    p.given(f"gradients of which the largest magnitude times 2**{k} is 65520")
    p.see("returned", answer([torch.tensor([65520.0 / 2.0**k, 1e-3 / 2.0**k]), p.normal(3, 2) / 2.0**k]))


@choose_init_scale.probe("edges")
def all_zero(answer, p):
    """gradients that are all zero"""
    p.given("gradients that are all zero")
    p.see("returned", answer([torch.zeros(p.random.randint(1, 5)), torch.zeros(2, 3)]))


def never_65536(p):
    """A largest magnitude for which 65536, the scale for nothing but zeros, is not right by accident."""
    return 2.0 ** p.random.choice([p.random.uniform(-5, -1.5), p.random.uniform(0.5, 5)])


@choose_init_scale.probe("edges")
def one_tensor_of_zeros(answer, p):
    """a tensor of zeros beside one that is not"""
    largest = never_65536(p)
    p.given(f"a tensor of zeros and one whose largest magnitude is {largest:.4g}")
    p.see("returned", answer([torch.zeros(3), torch.tensor([largest, -largest / 7])]))


@choose_init_scale.probe("edges")
def gradients_that_cancel(answer, p):
    """gradients that are not zero and whose sum is"""
    largest = never_65536(p)
    p.given(f"gradients up to {largest:.4g}, each beside its negative")
    p.see("returned", answer([torch.tensor([largest, -largest]), torch.tensor([[-largest / 4], [largest / 4]])]))


@choose_init_scale.probe("edges")
def largest_without_dimensions(answer, p):
    """a largest gradient in a tensor of shape ()"""
    largest = 2.0 ** p.random.uniform(-5, 5)
    gradients = [
        p.normal(5).clamp(-3, 3) * largest / 30,
        torch.tensor(-largest),
        p.normal(2).clamp(-3, 3) * largest / 30,
    ]
    p.given(f"three gradient tensors, the largest magnitude {largest:.4g} in one of shape ()")
    p.see("returned", answer(gradients))


@choose_init_scale.probe("edges", draws=2)
def too_large_for_any_scale(answer, p):
    """gradients that overflow FP16 as they are"""
    largest = p.random.choice([65520.0, 1e5, 3e7, 2e38])
    p.given(f"gradients up to {largest:g}")
    p.see("returned", answer([p.normal(6), torch.tensor([[1.0, -largest]])]))


@choose_init_scale.probe("edges", draws=2)
def small_enough_for_every_scale(answer, p):
    """gradients so small that 2**24 itself does not overflow"""
    largest = 2.0 ** p.random.uniform(-40, -9)
    p.given(f"gradients of which the largest magnitude is {largest:.4g}")
    p.see("returned", answer(spread(p, largest)))


@choose_init_scale.probe("edges")
def scale_one_fits_and_two_does_not(answer, p):
    """gradients that fit into FP16 as they are and not when doubled"""
    p.given("gradients up to 40000")
    p.see("returned", answer([torch.tensor([1e-6, 40000.0]), p.normal(4)]))


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@choose_init_scale.symptom("constant")
def the_same_every_time(failed):
    values = {c.got for c in failed if is_number(c.got)}
    return len(values) == 1 and len(failed) >= 6


@choose_init_scale.symptom("not_power_of_two")
def no_power_of_two(failed):
    return any(is_number(c.got) and c.got > 0 and math.isfinite(c.got) and math.frexp(c.got)[0] != 0.5 for c in failed)


@choose_init_scale.symptom("zero_gradients")
def only_zeros_fail(failed):
    return {c.probe for c in failed} <= {"all_zero", "one_tensor_of_zeros"}


@choose_init_scale.symptom("sign_ignored")
def only_negative_fails(failed):
    return "largest_is_negative" in {c.probe for c in failed} and "ordinary_gradients" not in {c.probe for c in failed}


@choose_init_scale.symptom("uses_norm")
def depends_on_the_other_elements(failed):
    ratios = {c.got / c.expected for c in failed if c.probe == "ordinary_gradients" and is_number(c.got)}
    return bool(ratios) and (min(ratios) >= 4 or (len(ratios) > 1 and max(ratios) <= 0.5))


@choose_init_scale.symptom("too_small")
def always_smaller(failed):
    return all(is_number(c.got) and c.got < c.expected for c in failed if c.probe != "all_zero")


@choose_init_scale.symptom("too_large")
def always_larger(failed):
    return all(is_number(c.got) and c.got > c.expected for c in failed if c.probe != "all_zero")


# ---------------------------------------------------------------------------------------------------------------- 2

underflow_report = Exercise("underflow_report", parts={"fractions": 1, "edges": 1})
FATES = ("lost", "subnormal", "normal", "overflow")


def see_report(p, report):
    if isinstance(report, dict):
        p.see("keys", sorted(str(key) for key in report))
        for fate in FATES:
            p.see(fate, report.get(fate))
    else:
        p.see("keys", report)


def log_uniform(p, size, low, high):
    """FP32 numbers of random sign whose log2 is uniform between low and high."""
    exponents = torch.rand(size, generator=p.torch) * (high - low) + low
    signs = torch.randint(0, 2, (size,), generator=p.torch) * 2.0 - 1
    return signs * torch.exp2(exponents)


@underflow_report.probe(draws=3)
def mixed_sizes(answer, p):
    """tensors of different sizes whose elements have all four fates"""
    scale = p.random.choice([2.0**6, 2.0**10, 1000.0, 2.0**13])
    shift = -math.log2(scale)
    gradients = [
        log_uniform(p, 200, -30 + shift, 18 + shift),
        log_uniform(p, 24, -16 + shift, 10 + shift).reshape(4, 6),
        log_uniform(p, 60, -29 + shift, -12 + shift),
    ]
    p.given(f"three tensors of 200, 24 and 60 nonzero elements, scale {scale:g}")
    see_report(p, answer(gradients, scale))


@underflow_report.probe(draws=2)
def with_zeros(answer, p):
    """tensors some of whose elements are zero"""
    scale = p.random.choice([1.0, 2.0**12])
    gradients = [log_uniform(p, 80, -32, 16) / scale, torch.cat([torch.zeros(70), log_uniform(p, 30, -20, 2) / scale])]
    gradients[0][::3] = 0.0
    p.given(f"two tensors with many zeros among their elements, scale {scale:g}")
    see_report(p, answer(gradients, scale))


@underflow_report.probe("edges")
def nothing_but_zeros(answer, p):
    """elements that are all zero"""
    p.given("elements that are all zero")
    see_report(p, answer([torch.zeros(3), torch.zeros(2, 2)], 2.0 ** p.random.randint(0, 16)))


@underflow_report.probe("edges")
def one_zero_tensor(answer, p):
    """a tensor of zeros beside one that is not"""
    p.given("a tensor of zeros beside one that is not")
    see_report(p, answer([torch.zeros(50), log_uniform(p, 16, -30, 4)], 8.0))


@underflow_report.probe("edges", draws=2)
def borders(answer, p):
    """products at the borders: 65504 to 65520, 2**-14, 2**-24, 2**-25"""
    scale = 2.0 ** p.random.randint(0, 14)
    products = [
        65504.0,
        65519.0,
        -65510.0,
        65520.0,
        -65520.0,
        2.0**-14,
        -(2.0**-14),
        2.0**-14 - 2.0**-24,
        2.0**-24,
        2.0**-25,
        -(2.0**-25),
        2.0**-25 * (1 + 2.0**-20),
        1.5 * 2.0**-25,
        2.0**-26,
    ]
    products += p.random.sample(products, 3)
    p.random.shuffle(products)
    p.given(f"products at the borders of the four ranges (65504, 65520, 2**-14, 2**-24, 2**-25), scale {power(scale)}")
    see_report(p, answer([torch.tensor(products[:5]) / scale, torch.tensor(products[5:]) / scale], scale))


@underflow_report.symptom("counts_zeros")
def only_zeros_matter(failed):
    return {"with_zeros"} <= {c.probe for c in failed} <= {"with_zeros", "one_zero_tensor", "nothing_but_zeros"}


@underflow_report.symptom("flushes_subnormals")
def never_subnormal(failed):
    subnormal = [c.got for c in failed if c.key == "subnormal"]
    lost = [is_number(c.got) and c.got > c.expected for c in failed if c.key == "lost"]
    return len(subnormal) >= 5 and not any(subnormal) and bool(lost) and all(lost)


# ---------------------------------------------------------------------------------------------------------------- 3

simulate_scale = Exercise(
    "simulate_scale",
    parts={"history": 1, "range": 1},
    labels={"returned": "the history", "log2": "log2 of the history"},
)


@simulate_scale.probe(draws=4)
def random_overflows(answer, p):
    """overflows here and there"""
    interval = p.random.randint(2, 5)
    growth, backoff = p.random.choice([(2.0, 0.5), (4.0, 0.5), (2.0, 0.25), (1.5, 0.75)])
    init = 2.0 ** p.random.randint(4, 16)
    found = [p.random.random() < 0.15 for _ in range(30)]
    found[1], found[interval + 2 : 2 * interval + 3] = True, [False] * (interval + 1)
    p.given(
        f"init_scale {init:g}, growth_factor {growth}, backoff_factor {backoff}, growth_interval {interval} and "
        f"{len(found)} steps, of which {', '.join(str(i + 1) for i, f in enumerate(found) if f)} overflow"
    )
    p.see("returned", answer(found, init, growth, backoff, interval))


@simulate_scale.probe(draws=2)
def no_overflow(answer, p):
    """steps without an overflow"""
    interval, steps = p.random.randint(2, 6), p.random.randint(20, 30)
    p.given(f"{steps} steps without an overflow, growth_interval {interval}")
    p.see("returned", answer([False] * steps, init_scale=1024.0, growth_interval=interval))


@simulate_scale.probe()
def overflow_just_before_growth(answer, p):
    """an overflow one step before the scale would have grown"""
    interval = p.random.randint(3, 6)
    found = [False] * (interval - 1) + [True] + [False] * (2 * interval)
    p.given(f"growth_interval {interval} and an overflow at step {interval}")
    p.see("returned", answer(found, init_scale=256.0, growth_interval=interval))


@simulate_scale.probe()
def defaults(answer, p):
    """GradScaler's own defaults"""
    found = [False] * 2003
    found[p.random.randint(0, 2)] = True
    history = answer(found)
    p.given("one overflow at the beginning and about 2000 more steps, all arguments at their defaults")
    p.see("returned", history[:4] + history[1990:] if isinstance(history, list) else history)
    p.see("length", len(history) if isinstance(history, list) else None)


@simulate_scale.probe()
def growth_at_every_step(answer, p):
    """growth_interval 1"""
    found = [False, False, True, False, True, True, False]
    # factors with which the scale is no power of two
    p.given("growth_factor 1.5, backoff_factor 0.75, growth_interval 1")
    p.see("returned", answer(found, 2.0 ** p.random.randint(3, 9), 1.5, 0.75, 1))


@simulate_scale.probe()
def scale_below_one(answer, p):
    """overflows that bring the scale below 1"""
    found = [True] * p.random.randint(3, 5) + [False, False, True]
    p.given(f"init_scale 2, growth_interval 2 and {sum(found)} overflows among {len(found)} steps")
    p.see("returned", answer(found, init_scale=2.0, growth_interval=2))


@simulate_scale.probe("range")
def scale_far_below_one(answer, p):
    """a scale at which FP32 has still a long way down to go"""
    found = [True] * p.random.randint(25, 30) + [False, False, True]
    p.given(f"init_scale 1, backoff_factor 0.25, growth_interval 2 and {sum(found)} overflows among {len(found)} steps")
    history = answer(found, 1.0, 2.0, 0.25, 2)
    p.see(
        "log2",
        [math.log2(x) if is_number(x) and x > 0 else x for x in history] if isinstance(history, list) else history,
    )


@simulate_scale.probe()
def no_steps(answer, p):
    """no steps at all"""
    p.given("an empty list")
    p.see("returned", answer([]))


@simulate_scale.probe("range", draws=2)
def largest_scale(answer, p):
    """a scale at the upper end of FP32"""
    interval, growth = p.random.choice([1, 2]), p.random.choice([2.0, 4.0])
    found = [False] * (4 * interval) + [True] + [False] * (3 * interval)
    p.given(f"init_scale 2**125, growth_factor {growth}, growth_interval {interval}")
    p.see("returned", answer(found, 2.0**125, growth, 0.5, interval))


@simulate_scale.symptom("before_update")
def shifted_by_one(failed):
    lists = [
        c
        for c in failed
        if isinstance(c.got, list) and isinstance(c.expected, list) and c.probe not in ("defaults", "no_steps")
    ]
    return bool(lists) and all(
        len(c.got) >= len(c.expected) > 1 and c.got[1 : len(c.expected)] == c.expected[: len(c.expected) - 1]
        for c in lists
    )


@simulate_scale.symptom("no_backoff")
def never_falls(failed):
    lists = [
        c.got
        for c in failed
        if c.probe == "random_overflows" and isinstance(c.got, list) and len(c.got) == len(c.expected)
    ]
    return bool(lists) and all(all(is_number(a) and is_number(b) and b >= a for a, b in pairwise(got)) for got in lists)


def growths(history):
    return sum(is_number(a) and is_number(b) and b > a for a, b in pairwise(history))


@simulate_scale.symptom("tracker_not_reset")
def count_goes_on(failed):
    wrong = {c.probe: c for c in failed if isinstance(c.got, list)}
    if "no_overflow" in wrong:
        return growths(wrong["no_overflow"].got) > growths(wrong["no_overflow"].expected) + 1
    return "overflow_just_before_growth" in wrong


@simulate_scale.symptom("growth_off_by_one")
def grows_at_another_step(failed):
    return any(
        c.probe == "no_overflow"
        and isinstance(c.got, list)
        and growths(c.got) > 0
        and all(is_number(x) and math.frexp(x)[0] == 0.5 for x in c.got)
        for c in failed
    )


# ---------------------------------------------------------------------------------------------------------------- 4

LossScaler = Exercise(
    "LossScaler",
    parts={"step": 1, "skip": 1, "dynamics": 1, "protocol": 1},
    labels={
        "scaled": "scale(loss)",
        "gradients": "the gradients",
        "parameters": "the parameters",
        "scale": "get_scale()",
        "log2": "log2 of get_scale() at the end",
    },
)


class Rig:
    """Three parameters under SGD, and among them another that no loss depends on."""

    def __init__(self, p, lr=0.5, momentum=0.0, weight_decay=0.0):
        self.weights = [torch.nn.Parameter(p.normal(*shape)) for shape in ((3,), (1, 2), (2,))]
        self.unused = torch.nn.Parameter(p.normal(2))
        self.optimizer = torch.optim.SGD(
            [{"params": [self.weights[0], self.unused, self.weights[1]]}, {"params": [self.weights[2]]}],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )

    def gradients(self, p, size=1.0, spoil=None, where=-1):
        """True gradients of about `size`; `spoil` puts an inf or nan into one element of one of them."""
        gradients = [p.normal(*weight.shape) * size for weight in self.weights]
        if spoil is not None:
            gradients[where].view(-1)[1] = spoil
        return gradients

    def loss(self, gradients):
        clear(self.optimizer)
        return fp16_loss(self.weights, gradients)

    def flat(self):
        return torch.cat([w.detach().reshape(-1) for w in (*self.weights, self.unused)])

    def grads(self):
        return torch.cat([w.grad.reshape(-1) for w in self.weights])


def scaler_of(answer, p, interval=50, factors=None):
    init = 2.0 ** p.random.randint(8, 12)
    growth, backoff = factors or (p.random.choice([2.0, 4.0]), p.random.choice([0.5, 0.25]))
    p.given(f"LossScaler({init:g}, {growth}, {backoff}, {interval})")
    return answer(init, growth, backoff, interval)


def outcome(function, *arguments):
    """What a call that has to be refused does: "RuntimeError", "no error", or the name of another error."""
    try:
        function(*arguments)
    except RuntimeError:
        return "RuntimeError"
    except Exception as error:
        return type(error).__name__
    return "no error"


@LossScaler.probe(draws=2)
def unscale_then_step(answer, p):
    """scale, backward, unscale_, step, update"""
    rig, scaler = Rig(p), scaler_of(answer, p)
    p.see("scale at first", float(scaler.get_scale()))
    for call in (1, 2):
        loss = rig.loss(rig.gradients(p))
        scaled = scaler.scale(loss)
        p.see(f"scaled in step {call}", float(scaled.detach() / loss.detach()))
        scaled.backward()
        scaler.unscale_(rig.optimizer)
        p.see(f"gradients after unscale_ in step {call}", rig.grads())
        scaler.step(rig.optimizer)
        p.see(f"parameters after step {call}", rig.flat())
        scaler.update()
        p.see(f"scale after step {call}", float(scaler.get_scale()))


@LossScaler.probe(draws=2)
def step_unscales(answer, p):
    """scale, backward, step, update, without unscale_"""
    rig, scaler = Rig(p, momentum=0.5), scaler_of(answer, p)
    for call in (1, 2, 3):
        scaler.scale(rig.loss(rig.gradients(p))).backward()
        scaler.step(rig.optimizer)
        scaler.update()
        p.see(f"parameters after step {call}", rig.flat())


def skipping(answer, p, *bad):
    """Ordinary steps, and between them a bad one for each (spoil, where, whether unscale_ is called) of `bad`."""
    rig, scaler = Rig(p, momentum=0.5), scaler_of(answer, p)
    plan = [(None, -1, True)]
    for one in bad:
        plan += [one, (None, -1, one[2])]
    for call, (spoil, where, unscale) in enumerate(plan, 1):
        scaler.scale(rig.loss(rig.gradients(p, spoil=spoil, where=where))).backward()
        if unscale:
            scaler.unscale_(rig.optimizer)
        scaler.step(rig.optimizer)
        scaler.update()
        p.see(f"parameters after step {call}", rig.flat())
        p.see(f"scale after step {call}", float(scaler.get_scale()))


@LossScaler.probe("skip")
def overflow_in_last_parameter(answer, p):
    """an FP16 overflow in the gradient of the last parameter"""
    skipping(answer, p, (1e4, -1, False), (1e4, -1, True))
    p.given(f"{p.words}; in steps 2 and 4 one gradient of the last parameter overflows to inf")


@LossScaler.probe("skip")
def overflow_in_first_parameter(answer, p):
    """an FP16 overflow in the gradient of the first parameter that has one"""
    skipping(answer, p, (1e4, 0, True))
    p.given(f"{p.words}; in step 2 one gradient of the first parameter overflows to inf")


@LossScaler.probe("skip")
def negative_overflow(answer, p):
    """an FP16 overflow to -inf"""
    skipping(answer, p, (-1e4, p.random.choice([0, 1, 2]), True))
    p.given(f"{p.words}; in step 2 one gradient overflows to -inf")


@LossScaler.probe("skip")
def nan_gradient(answer, p):
    """a nan in a gradient"""
    skipping(answer, p, (math.nan, 1, False), (math.nan, 0, True))
    p.given(f"{p.words}; in steps 2 and 4 one gradient is nan")


@LossScaler.probe("dynamics", draws=3)
def growth_and_backoff(answer, p):
    """steps with overflows here and there"""
    interval = p.random.randint(2, 4)
    # factors that are not the usual ones, nor each other's inverse
    rig, scaler = Rig(p, lr=0.01), scaler_of(answer, p, interval, (4.0, 0.125))
    pattern = [False] * (interval + 1) + [True] + [False] * (interval - 1) + [True, True]
    pattern += [False] * (2 * interval + 1) + [p.random.random() < 0.3 for _ in range(4)]
    overflows = ", ".join(str(i + 1) for i, bad in enumerate(pattern) if bad)
    p.given(f"{p.words}; steps {overflows} of {len(pattern)} overflow")
    for step, bad in enumerate(pattern):
        scaler.scale(rig.loss(rig.gradients(p, size=1e-3, spoil=1e9 if bad else None))).backward()
        scaler.step(rig.optimizer)
        scaler.update()
        p.see(f"scale after step {step + 1}", float(scaler.get_scale()))


@LossScaler.probe("dynamics")
def backoff_below_one(answer, p):
    """overflows that bring the scale below 1, then a gradient that is too large for FP16 only when it is not scaled"""
    rig = Rig(p, lr=2.0**-16)
    p.given("LossScaler(2, 2.0, 0.5, 3); steps 1 to 3 overflow, and in step 4 a true gradient of 1e5 does not")
    scaler = answer(2.0, 2.0, 0.5, 3)
    for step, spoil in enumerate((1e9, -1e9, 1e9, 1e5), 1):
        scaler.scale(rig.loss(rig.gradients(p, spoil=spoil))).backward()
        scaler.step(rig.optimizer)
        scaler.update()
        p.see(f"scale after step {step}", float(scaler.get_scale()))
    p.see("parameters after step 4", rig.flat())


@LossScaler.probe("dynamics")
def growth_without_end(answer, p):
    """small gradients, with which the scale grows at every step"""
    rig = Rig(p, lr=2.0**-16)
    p.given("LossScaler(32768, 64.0, 0.5, 1) and three steps of small gradients")
    scaler = answer(2.0**15, 64.0, 0.5, 1)
    for step in range(1, 4):
        scaler.scale(rig.loss(rig.gradients(p, size=2.0**-24))).backward()
        scaler.step(rig.optimizer)
        scaler.update()
        p.see(f"scale after step {step}", float(scaler.get_scale()))


@LossScaler.probe("dynamics")
def backoff_without_end(answer, p):
    """gradients that are inf at any scale"""
    rig = Rig(p, lr=2.0**-16)
    p.given("LossScaler(1, 2.0, 0.001, 2) and four steps with a gradient that is inf at any scale")
    scaler = answer(1.0, 2.0, 0.001, 2)
    for _ in range(4):
        scaler.scale(rig.loss(rig.gradients(p, spoil=math.inf))).backward()
        scaler.step(rig.optimizer)
        scaler.update()
    scale = float(scaler.get_scale())
    p.see("log2", math.log2(scale) if scale > 0 else scale)


@LossScaler.probe("dynamics")
def overflow_without_a_step(answer, p):
    """an overflow that unscale_ finds, and no step before update"""
    rig, scaler = Rig(p), scaler_of(answer, p)
    p.given(f"{p.words}; in round 1 unscale_ finds an overflow, and update follows without a step; round 2 is ordinary")
    for call, spoil in ((1, 1e4), (2, None)):
        scaler.scale(rig.loss(rig.gradients(p, spoil=spoil))).backward()
        scaler.unscale_(rig.optimizer)
        if not spoil:
            scaler.step(rig.optimizer)
        scaler.update()
        p.see(f"scale after round {call}", float(scaler.get_scale()))
    p.see("parameters after round 2", rig.flat())


@LossScaler.probe("protocol")
def second_unscale(answer, p):
    """unscale_ a second time before update"""
    rig, scaler = Rig(p), scaler_of(answer, p)
    scaler.scale(rig.loss(rig.gradients(p))).backward()
    scaler.unscale_(rig.optimizer)
    p.see("second unscale_", outcome(scaler.unscale_, rig.optimizer))
    scaler.step(rig.optimizer)
    p.see("parameters after step", rig.flat())


@LossScaler.probe("protocol")
def unscale_after_step(answer, p):
    """unscale_ after step, before update"""
    rig, scaler = Rig(p), scaler_of(answer, p)
    scaler.scale(rig.loss(rig.gradients(p))).backward()
    scaler.step(rig.optimizer)
    p.see("unscale_ after step", outcome(scaler.unscale_, rig.optimizer))


@LossScaler.probe("protocol")
def second_step(answer, p):
    """step a second time before update"""
    stepping_twice(answer, p, None)


@LossScaler.probe("protocol")
def second_step_after_a_skip(answer, p):
    """step a second time before update, where the first one skipped"""
    stepping_twice(answer, p, 1e4)


def stepping_twice(answer, p, spoil):
    rig, scaler = Rig(p), scaler_of(answer, p)
    scaler.scale(rig.loss(rig.gradients(p, spoil=spoil))).backward()
    scaler.step(rig.optimizer)
    if spoil:
        p.given(f"{p.words} and a step that was skipped because of an overflow, no update after it")
    p.see("second step", outcome(scaler.step, rig.optimizer))
    p.see("parameters after second step", rig.flat())


@LossScaler.probe("protocol")
def unused_parameter(answer, p):
    """a parameter without a gradient, under an optimizer that moves whatever has one"""
    rig, scaler = Rig(p, weight_decay=0.25), scaler_of(answer, p)
    p.given(f"{p.words} and SGD with weight decay; one parameter among the others has no gradient")
    scaler.scale(rig.loss(rig.gradients(p))).backward()
    scaler.unscale_(rig.optimizer)
    scaler.step(rig.optimizer)
    p.see("parameters after step", rig.flat())


@LossScaler.probe("protocol")
def free_again_after_update(answer, p):
    """unscale_ and step again after update"""
    rig, scaler = Rig(p), scaler_of(answer, p)
    for call in (1, 2):
        scaler.scale(rig.loss(rig.gradients(p))).backward()
        p.see(f"unscale_ in step {call}", outcome(scaler.unscale_, rig.optimizer))
        p.see(f"step in step {call}", outcome(scaler.step, rig.optimizer))
        scaler.update()
    p.see("parameters after step 2", rig.flat())


@LossScaler.probe("protocol")
def two_optimizers(answer, p):
    """two optimizers, one of which overflows"""
    a, b, scaler = Rig(p), Rig(p), scaler_of(answer, p, 2)
    p.given(f"{p.words} and two optimizers: the first overflows in round 2, the second in round 5, both in round 6")
    for call, bad in enumerate(("", "a", "", "", "b", "ab"), 1):
        scaler.scale(a.loss(a.gradients(p, size=2.0**-5, spoil=1e4 if "a" in bad else None))).backward()
        scaler.scale(b.loss(b.gradients(p, size=2.0**-5, spoil=1e4 if "b" in bad else None))).backward()
        p.see(f"unscale_ of the second in round {call}", outcome(scaler.unscale_, b.optimizer))
        scaler.step(a.optimizer)
        scaler.step(b.optimizer)
        scaler.update()
        p.see(f"parameters of the first after round {call}", a.flat())
        p.see(f"parameters of the second after round {call}", b.flat())
        p.see(f"scale after round {call}", float(scaler.get_scale()))


@LossScaler.probe("protocol")
def two_scalers(answer, p):
    """two scalers, each with an optimizer of its own, one of which overflows"""
    a, b, first, second = Rig(p), Rig(p), scaler_of(answer, p), scaler_of(answer, p)
    p.given(f"two such scalers, the second made as {p.words}, each with an optimizer; that of the first overflows")
    first.scale(a.loss(a.gradients(p, spoil=1e4))).backward()
    second.scale(b.loss(b.gradients(p))).backward()
    first.unscale_(a.optimizer)
    second.step(b.optimizer)
    second.update()
    p.see("scale of the second", float(second.get_scale()))
    first.step(a.optimizer)
    first.update()
    p.see("scale of the first", float(first.get_scale()))
    p.see("parameters of the first", a.flat())
    p.see("parameters of the second", b.flat())


@LossScaler.symptom("misses_nan")
def only_nan_fails(failed):
    return {c.probe for c in failed} == {"nan_gradient"}


@LossScaler.symptom("not_unscaled")
def step_alone_does_not_divide(failed):
    return any(
        c.probe == "step_unscales" and c.key == "parameters after step 1" and isinstance(c.got, torch.Tensor)
        for c in first_failures(failed)
    ) and "unscale_then_step" not in {c.probe for c in failed}


@LossScaler.symptom("checks_first_param_only")
def only_the_last_parameter_overflows_unseen(failed):
    probes = {c.probe for c in first_failures(failed) if c.key.startswith("parameters")}
    return "overflow_in_last_parameter" in probes and "overflow_in_first_parameter" not in probes


@LossScaler.symptom("steps_on_inf")
def overflow_reaches_the_parameters(failed):
    return any(
        c.probe.startswith("overflow_in") and c.key == "parameters after step 2" and isinstance(c.got, torch.Tensor)
        for c in first_failures(failed)
    ) and "unscale_then_step" not in {c.probe for c in failed}


@LossScaler.symptom("no_backoff")
def scale_stays_after_an_overflow(failed):
    return any(
        c.probe.startswith("overflow_in") and c.key == "scale after step 2" and is_number(c.got) and c.got > c.expected
        for c in first_failures(failed)
    )


@LossScaler.symptom("double_unscale")
def second_division_passes(failed):
    return any(c.key == "second unscale_" and c.got == "no error" for c in failed)


@LossScaler.symptom("no_growth")
def scale_never_rises(failed):
    draws = {}
    for c in failed:
        if c.probe == "growth_and_backoff":
            draws.setdefault(c.draw, []).append(c)
    return (
        bool(draws)
        # from the first growth on, which comes at step 4 at the latest, to the end
        and all(int(draw[0].key.split()[-1]) <= 4 and is_steady(draw) for draw in draws.values())
        and not any(c.probe.startswith(("overflow_in", "nan", "unscale_then", "step_")) for c in failed)
    )


def is_steady(draw):
    """Whether these are the scales of one step after the other, and none is greater than the one before it."""
    steps = [int(c.key.split()[-1]) for c in draw]
    return steps[-1] - steps[0] == len(steps) - 1 and all(
        is_number(a.got) and is_number(b.got) and b.got <= a.got < a.expected for a, b in pairwise([*draw, draw[-1]])
    )


# ---------------------------------------------------------------------------------------------------------------- 5

# Tighter than elsewhere: clipping scaled gradients moves the parameters by a step that is `scale` times too small, which
# must not pass for no step at all.
clipped_step = Exercise(
    "clipped_step",
    parts={"update": 2, "norm": 1},
    keys={"returned": "norm"},
    ulps=64,
    labels={"returned": "the returned norm", "parameters": "the parameters", "scale": "the scale"},
)


def flat(tensors):
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def note(words):
    """Write into the record of calls, which tells apart in words what leaves the same numbers."""
    trace.recorded(words, lambda: None)()


def watch_loss(loss, words=""):
    """Note, when what is given back is called, whether `loss` went backward with the scale."""
    scaled = []
    loss.register_hook(lambda gradient: scaled.append(float(gradient) != 1.0))
    return lambda: note(f"backward {'with' if any(scaled) else 'without'} the scale{words}")


def numbers_of(weights, before, returned):
    moved = float((flat(weights) - before).norm())
    return f"moved {moved:.4g}, returned {returned if is_number(returned) else None}"


def call_noting(own, answer, *arguments):
    """What the answer returns. Where none of its calls is of torch's clipping functions, one that looks like its order of
    calls says nothing of how it clips: own(returned) is noted too."""
    calls, returned = [], None
    try:
        with trace.recording() as calls:
            returned = answer(*arguments)
    finally:
        for call in calls:
            note(call)
        if not {"clip", "clip_value"} & set(calls):
            note(own(returned))
    return returned


def clipping(
    answer, p, sizes, scale, interval=1000, as_generator=False, lr=0.5, momentum=0.0, max_norm=None, unused=False
):
    """Steps whose true gradients have these norms relative to max_norm; a size of inf overflows."""
    max_norm = max_norm or p.random.choice([0.5, 1.0, 2.0])
    weights = [torch.nn.Parameter(p.normal(4)), torch.nn.Parameter(p.normal(2, 3))]
    every = [weights[0], torch.nn.Parameter(p.normal(2)), weights[1]] if unused else weights
    optimizer = trace.watch(torch.optim.SGD(every, lr=lr, momentum=momentum))
    scaler = trace.GradScaler(init_scale=scale, growth_interval=interval)
    norms = []
    for call, size in enumerate(sizes, 1):
        gradients = [p.normal(4), p.normal(2, 3)]
        unit = max_norm / total_norm(gradients)
        gradients = [g * unit * (size if math.isfinite(size) else 3.0) for g in gradients]
        if not math.isfinite(size):
            gradients[1][0, 1] = 1e9
        norms.append(f"{total_norm(gradients):.3g}")
        p.given(
            f"scale {power(scale)}, max_norm {max_norm:g} and true gradients of norm {', '.join(norms)}"
            + (" (an FP16 overflow)" if not math.isfinite(size) else "")
            + ("; one parameter has no gradient" if unused else "")
        )
        clear(optimizer)
        parameters = (w for w in every) if as_generator else every
        loss = fp16_loss(weights, gradients)
        note_scaling, own = watch_loss(loss), partial(numbers_of, weights, flat(weights))
        returned = call_noting(own, answer, scaler, optimizer, loss, parameters, max_norm)
        p.see(f"returned in call {call}", finite(returned))
        note_scaling()
        p.see(f"parameters after call {call}", flat(weights))
        p.see(f"scale after call {call}", scaler.get_scale())


@clipped_step.probe(draws=2)
def above_max_norm(answer, p):
    """true gradients above max_norm"""
    clipping(answer, p, [p.random.uniform(3, 9), p.random.uniform(2, 20)], 2.0 ** p.random.randint(6, 9))


@clipped_step.probe()
def below_max_norm(answer, p):
    """true gradients below max_norm, which are not to be clipped"""
    clipping(answer, p, [p.random.uniform(0.1, 0.5), p.random.uniform(0.3, 0.8)], 2.0 ** p.random.randint(6, 9))


@clipped_step.probe(draws=2)
def overflow_then_recovery(answer, p):
    """an overflow, which is to be skipped, between ordinary steps, SGD with momentum"""
    sizes = [p.random.uniform(2, 6), math.inf, p.random.uniform(2, 6), p.random.uniform(0.3, 0.8)]
    clipping(answer, p, sizes, 2.0 ** p.random.randint(6, 9), momentum=0.5)


@clipped_step.probe()
def parameters_as_generator(answer, p):
    """parameters that come as a generator"""
    clipping(answer, p, [p.random.uniform(2, 6), 3.0], 2.0**8, as_generator=True)


@clipped_step.probe()
def parameter_without_gradient(answer, p):
    """a parameter that the loss does not depend on, so that it has no gradient"""
    clipping(answer, p, [p.random.uniform(2, 6), 0.4], 2.0**7, unused=True)


@clipped_step.probe()
def growing_scale(answer, p):
    """a scale that grows at every second step, SGD with momentum"""
    clipping(answer, p, [4.0, 0.5, 6.0, 2.0], 2.0**5, interval=2, lr=0.1, momentum=0.9)


@clipped_step.probe()
def tiny_gradients(answer, p):
    """true gradients that FP16 loses when they are not scaled"""
    clipping(answer, p, [2.0**-27, 2.0**-28], 2.0**16, max_norm=1.0, lr=2.0**26)


clipped_step.symptom("no_update")(refused_in_a_later_call)


# ---------------------------------------------------------------------------------------------------------------- 6

step_and_schedule = Exercise(
    "step_and_schedule",
    parts={"skip": 1, "growth": 1},
    labels={
        "returned": "the returned value",
        "lr": "the learning rate",
        "parameters": "the parameters",
        "scale": "the scale",
    },
)


def scheduling(answer, p, steps, interval=1000, momentum=0.0, backoff=0.5):
    """Steps: "step", "zero" (all gradients zero), "first" or "last" (an overflow in this one of three parameters), "nan"."""
    scale = 2.0 ** p.random.randint(6, 12)
    weights = [torch.nn.Parameter(p.normal(*shape)) for shape in ((5,), (3,), (2, 2))]
    groups = [{"params": weights[:1]}, {"params": weights[1:]}]
    optimizer = trace.watch(torch.optim.SGD(groups, lr=0.5, momentum=momentum))
    scheduler = trace.watch_scheduler(torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5))
    scaler = trace.GradScaler(init_scale=scale, growth_interval=interval, backoff_factor=backoff)
    words = {
        "step": "an ordinary step",
        "zero": "a step whose gradients are all zero",
        "nan": "a nan in the last of three parameters' gradients",
    }
    words |= {where: f"an overflow in the {where} of three parameters" for where in ("first", "last")}
    p.given(f"scale {power(scale)}, growth_interval {interval}: " + ", then ".join(words[kind] for kind in steps))
    for call, kind in enumerate(steps, 1):
        gradients = [p.normal(*weight.shape) for weight in weights]
        if kind == "zero":
            gradients = [torch.zeros_like(gradient) for gradient in gradients]
        elif kind != "step":
            gradients[0 if kind == "first" else -1].view(-1)[2] = math.nan if kind == "nan" else 1e9
        clear(optimizer)
        p.see(f"returned in call {call}", answer(scaler, optimizer, scheduler, fp16_loss(weights, gradients)))
        p.see(f"lr after call {call}", optimizer.param_groups[0]["lr"])
        p.see(f"parameters after call {call}", flat(weights))
        p.see(f"scale after call {call}", scaler.get_scale())


@step_and_schedule.probe(draws=2)
def ordinary_steps(answer, p):
    """ordinary steps"""
    scheduling(answer, p, ["step"] * p.random.randint(2, 3), momentum=p.random.choice([0.0, 0.9]))


@step_and_schedule.probe(draws=2)
def skipped_steps(answer, p):
    """overflows among ordinary steps"""
    steps = ["step", "last", "step"]
    p.random.shuffle(steps)
    scheduling(answer, p, ["last", *steps, "first", "step", "nan"], backoff=0.25)


@step_and_schedule.probe("growth", draws=2)
def growth_in_the_same_call(answer, p):
    """a scale that grows in the call"""
    scheduling(answer, p, ["step", "last", "step", "step", "step"], interval=p.random.choice([1, 2]))


@step_and_schedule.probe("growth")
def zero_gradients(answer, p):
    """steps that change no parameter because all gradients are zero"""
    scheduling(answer, p, ["zero", "first", "zero", "step"])


@step_and_schedule.probe("growth")
def zero_gradients_with_momentum(answer, p):
    """gradients that are zero while momentum still moves the parameters, and a scale that grows"""
    scheduling(answer, p, ["step", "zero", "last", "zero"], interval=2, momentum=0.9)


step_and_schedule.symptom("no_update")(refused_in_a_later_call)


# ---------------------------------------------------------------------------------------------------------------- 7

two_optimizers_step = Exercise(
    "two_optimizers_step",
    parts={"steps": 2, "overflow": 1},
    labels={"d": "the parameters of opt_d", "g": "the parameters of opt_g", "scale": "the scale"},
)


def alternating(answer, p, rounds, interval, scale=None, size=1.0):
    """Rounds: "" (both fine), "d", "g" or "dg" (which of them overflows). True gradients are of about `size`."""
    scale = scale or 2.0 ** p.random.randint(6, 11)
    weights = {"d": torch.nn.Parameter(p.normal(4)), "g": torch.nn.Parameter(p.normal(3))}
    optimizers = {
        name: trace.watch(torch.optim.SGD([w], lr=0.5 / size, momentum=0.5), f"({name})") for name, w in weights.items()
    }
    scaler = trace.GradScaler(init_scale=scale, growth_interval=interval)
    scaler.labels = {id(optimizer): f"({name})" for name, optimizer in optimizers.items()}
    words = {"": "both fine", "d": "loss_d overflows", "g": "loss_g overflows", "dg": "both overflow"}
    p.given(
        f"scale {power(scale)}, growth_interval {interval}: "
        + ", then ".join(words[bad] for bad in rounds)
        + ("; FP16 loses these gradients when they are not scaled" if size < 2.0**-25 else "")
    )
    for call, bad in enumerate(rounds, 1):
        losses, notes = {}, []
        for name, weight in weights.items():
            gradient = p.normal(len(weight)) * size
            if name in bad:
                gradient[1] = 1e9
            losses[name] = fp16_loss([weight], [gradient])
            notes.append(watch_loss(losses[name], f" ({name})"))
        clear(*optimizers.values())
        answer(scaler, optimizers["d"], optimizers["g"], losses["d"], losses["g"])
        for note_scaling in notes:
            note_scaling()
        p.see(f"d after call {call}", weights["d"].detach())
        p.see(f"g after call {call}", weights["g"].detach())
        p.see(f"scale after call {call}", scaler.get_scale())


@two_optimizers_step.probe(draws=2)
def ordinary_rounds(answer, p):
    """rounds without an overflow"""
    alternating(answer, p, ["", "", ""], 1000)


@two_optimizers_step.probe(draws=2)
def growing_rounds(answer, p):
    """rounds in which the scale grows"""
    alternating(answer, p, ["", "", "", ""], p.random.choice([1, 2]))


@two_optimizers_step.probe()
def tiny_rounds(answer, p):
    """true gradients that FP16 loses when they are not scaled"""
    alternating(answer, p, ["", ""], 1000, scale=2.0**16, size=2.0**-28)


@two_optimizers_step.probe("overflow", draws=2)
def one_overflows(answer, p):
    """an overflow in the gradients of one of them"""
    alternating(answer, p, p.random.choice([["d", "", "g", ""], ["g", "", "d", ""]]), 1000)


@two_optimizers_step.probe("overflow")
def both_overflow(answer, p):
    """an overflow in the gradients of both, and one that comes just before growth"""
    alternating(answer, p, ["dg", "", "d", "", ""], 2)


@two_optimizers_step.symptom("update_missing")
def only_the_scale_stays(failed):
    stays = {(c.probe, c.draw): c.got for c in failed}
    overflows = any(c.probe == "one_overflows" for c in failed)
    return overflows and all(
        c.key.startswith("scale") and is_number(c.got) and c.got == stays[c.probe, c.draw] for c in failed
    )


two_optimizers_step.symptom("update_missing")(refused_in_a_later_call)
