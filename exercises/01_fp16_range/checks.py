"""How the answers of assignment 1 are probed.

Inputs are made of Python's own random numbers and powers of two, never of exp2 or randn, so that they are the same bits on
every machine; counts and fates are then compared exactly. No draw lies where two right ways of rounding could part.
"""

import ast
import contextlib
import dis
import functools
import linecache
import math
import sys
import types

import torch

from autograder.probes import Exercise


def sized(p, low, high):
    """A number of random sign whose exponent is one of low, …, high - 1; in the lower nine tenths of its binade."""
    return p.random.choice([1, -1]) * math.ldexp(p.random.uniform(1, 1.9), p.random.randrange(low, high))


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# ---------------------------------------------------------------------------------------------------------------- 1

decode_half = Exercise(
    "decode_half",
    parts={"normal": 1, "special": 1},
    labels={"value": "the value of", "sign": "the sign of", "uses": "the library that it uses"},
    ulps=0.001,  # next to nothing: a float holds every FP16 number, so there is nothing to be tolerant about
)


def see_values(answer, p, about, patterns):
    p.given(f"{about}: {', '.join(f'0x{bits:04X}' for bits in patterns)}")
    for bits in patterns:
        p.see(f"value 0x{bits:04X}", answer(bits))


def pattern(sign, exponent, mantissa):
    return sign << 15 | exponent << 10 | mantissa


@decode_half.probe(draws=3)
def normal_numbers(answer, p):
    """patterns of normal numbers of both signs, above and below 1"""
    see_values(
        answer,
        p,
        "patterns of normal numbers",
        [
            pattern(0, p.random.randint(15, 29), p.random.randint(1, 1022)),
            pattern(1, p.random.randint(15, 29), p.random.randint(1, 1022)),
            pattern(0, p.random.randint(2, 14), p.random.randint(1, 1022)),
            pattern(1, p.random.randint(2, 14), p.random.randint(1, 1022)),
        ],
    )


@decode_half.probe()
def powers_of_two(answer, p):
    """patterns whose mantissa is zero, and the smallest and the largest normal number"""
    exponents = [p.random.randint(2, 14), 15, p.random.randint(16, 29)]
    patterns = [pattern(p.random.randint(0, 1), exponent, 0) for exponent in exponents]
    see_values(answer, p, "patterns of normal numbers", [*patterns, 0x0400, 0x8400, 0x7BFF, 0xFBFF])


@decode_half.probe("special", draws=2)
def subnormal_numbers(answer, p):
    """patterns with exponent field 0"""
    odd = [pattern(sign, 0, p.random.randint(2, 1022)) for sign in (0, 1)]
    see_values(answer, p, "patterns with exponent field 0", [*odd, 0x0001, 0x8001, 0x03FF, 0x83FF])


@decode_half.probe("special")
def two_zeros(answer, p):
    """the patterns of +0.0 and -0.0"""
    p.given("the patterns of +0.0 and -0.0: 0x0000, 0x8000")
    for bits in p.random.sample([0x0000, 0x8000], 2):
        value = answer(bits)
        p.see(f"value 0x{bits:04X}", value)
        p.see(f"sign 0x{bits:04X}", ("-" if math.copysign(1, value) < 0 else "+") if is_number(value) else None)


@decode_half.probe("special")
def infinities(answer, p):
    """patterns with exponent field 31 and mantissa 0"""
    see_values(answer, p, "patterns with exponent field 31 and mantissa 0", p.random.sample([0x7C00, 0xFC00], 2))


@decode_half.probe("special")
def not_a_number(answer, p):
    """patterns with exponent field 31 and a mantissa that is not 0"""
    patterns = [0x7C01, 0x7E00, 0xFFFF, *(pattern(sign, 31, p.random.randint(2, 1022)) for sign in (0, 1))]
    see_values(answer, p, "patterns with exponent field 31 and a mantissa that is not 0", patterns)


@decode_half.probe()
def pure_python(answer, p):
    """the bits of a normal number, with an eye on what the answer calls"""
    bits = pattern(p.random.randint(0, 1), p.random.randint(2, 29), p.random.randint(1, 1022))
    p.given(f"the pattern 0x{bits:04X}")
    used = libraries_in(answer)
    with watching(used):
        value = answer(bits)
    p.see(f"value 0x{bits:04X}", value)
    p.see("uses", " and ".join(sorted(used)) or "none")


def wrong_in(failed, *probes):
    return [c for c in failed if c.probe in probes]


@decode_half.symptom("wrong_result")
def only_the_library_is_wrong(failed):
    return {c.key for c in failed} == {"uses"}


@decode_half.symptom("sign_ignored")
def only_the_sign_is_wrong(failed):
    normal = wrong_in(failed, "normal_numbers", "powers_of_two")
    values = [c for c in normal or failed if c.key.startswith("value")]
    return all(is_number(c.got) and c.got == -c.expected for c in values)


@decode_half.symptom("flushes_subnormals")
def subnormal_numbers_are_zero(failed):
    subnormal = wrong_in(failed, "subnormal_numbers")
    return len(subnormal) >= 6 and all(is_number(c.got) and c.got == 0 for c in subnormal)


@decode_half.symptom("subnormal_exponent")
def off_by_a_power_of_two_or_a_leading_one(failed):
    subnormal = [c for c in wrong_in(failed, "subnormal_numbers") if is_number(c.got)]
    ratios = {c.got / c.expected for c in subnormal}
    ones = {(abs(c.got) - abs(c.expected)) * 2**14 for c in subnormal}
    only_there = not wrong_in(failed, "normal_numbers", "powers_of_two")
    return bool(subnormal) and only_there and (len(ratios) == 1 or ones == {1.0})


@decode_half.symptom("no_inf_nan")
def only_exponent_field_31_is_wrong(failed):
    return len(failed) == len(wrong_in(failed, "infinities", "not_a_number"))


# Which library an answer uses. It is refused for what its code reaches and for what it calls, not for what stands beside it:
# an import that is not used, or a test against PyTorch below the function, is no part of the answer.

LIBRARIES = {"torch": "torch", "numpy": "numpy", "struct": "struct", "_struct": "struct"}
LIBRARIES |= {"ctypes": "ctypes", "_ctypes": "ctypes", "ampkit": "ampkit"}
OWN = "__main__"  # the module that a notebook's cells are


def origin(thing):
    """The library that a module, function, class or object belongs to; None where it is none of LIBRARIES."""
    kinds = [*type(thing).__mro__, *(thing.__mro__ if isinstance(thing, type) else ())]
    names = [kind.__module__ for kind in kinds]
    if isinstance(thing, types.ModuleType):
        names.append(thing.__name__)
    elif isinstance(thing, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        names.append(thing.__module__)
        owner = getattr(thing, "__self__", None)
        names.append(owner.__name__ if isinstance(owner, types.ModuleType) else type(owner).__module__)
        names += [kind.__module__ for kind in owner.__mro__] if isinstance(owner, type) else []
    roots = [name.partition(".")[0] for name in names if isinstance(name, str)]
    return next((LIBRARIES[root] for root in roots if root in LIBRARIES), None)


@contextlib.contextmanager
def watching(used):
    """Add to `used` the libraries that the notebook's own code calls, by whatever road it got hold of them."""

    def note(frame, event, called):
        if event == "c_call":
            caller, library = frame, origin(called)
        elif event == "call":
            module = str(frame.f_globals.get("__name__"))
            caller, library = frame.f_back, LIBRARIES.get(module.partition(".")[0])
        else:
            return
        if library and caller is not None and caller.f_globals.get("__name__") == OWN:
            used.add(library)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def libraries_in(answer):
    """The libraries that the code of an answer refers to: by global names, imports, defaults and closures, in the functions
    and classes of the notebook that it uses, and in the lines that made the tables that it reads."""
    used, seen, todo = set(), {}, [answer]
    while todo:
        thing = todo.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if origin(thing):
            used.add(origin(thing))
        elif isinstance(thing, types.FunctionType) and thing.__globals__.get("__name__") == OWN:
            todo += [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
            todo += closed_over(thing)
            if "<locals>" in thing.__qualname__:  # another function made it: what went into that?
                for name in [name for name, value in thing.__globals__.items() if value is thing]:
                    todo += behind(name, thing.__code__, thing.__globals__, set(), made=True)
            for code in codes(thing.__code__):
                for instruction in dis.get_instructions(code):
                    if instruction.opname == "IMPORT_NAME":
                        used |= {LIBRARIES[root] for root in {instruction.argval.partition(".")[0]} & LIBRARIES.keys()}
                    elif instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                        todo += behind(instruction.argval, code, thing.__globals__, set())
        elif isinstance(thing, types.MethodType):
            todo += [thing.__func__, thing.__self__]
        elif isinstance(thing, functools.partial):
            todo += [thing.func, *thing.args, *thing.keywords.values()]
        elif isinstance(thing, (staticmethod, classmethod)) or hasattr(type(thing), "cache_info"):
            todo.append(thing.__wrapped__)  # functools.lru_cache
        elif isinstance(thing, property):
            todo += [thing.fget]
        elif isinstance(thing, type) and thing.__module__ == OWN:
            todo += [*vars(thing).values(), *thing.__bases__]
        elif type(thing).__module__ == OWN:
            todo += [type(thing), *getattr(thing, "__dict__", {}).values()]
        elif isinstance(thing, (list, tuple)):
            todo += thing[:100]
        elif isinstance(thing, dict):
            todo += list(thing.values())[:100]
    return used


def codes(code):
    """A code object and those of the functions and comprehensions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def closed_over(function):
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # a cell that is still empty
            yield cell.cell_contents


def behind(name, code, space, followed, made=False):
    """The object that a global name stands for; if that is data, or `made`, also all that its cell computed it from."""
    if name not in space or name in followed:
        return
    followed.add(name)
    yield space[name]
    if not made and (callable(space[name]) or isinstance(space[name], types.ModuleType)):
        return
    try:
        statements = ast.parse("".join(linecache.getlines(code.co_filename))).body
    except SyntaxError:
        return
    for statement in statements:
        if writes(statement, name):
            for other in {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}:
                yield from behind(other, code, space, followed)


def writes(statement, name):
    """Whether a statement of a cell's top level gives `name` a value, or puts something into it."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return False
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        base = getattr(node, "value", None)
        if isinstance(base, ast.Name) and base.id == name:
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                return True
            if isinstance(node, ast.Attribute) and node.attr in ("append", "extend", "insert", "update", "setdefault"):
                return True
    return False


# ---------------------------------------------------------------------------------------------------------------- 2

fp16_fate = Exercise(
    "fp16_fate",
    parts={"sizes": 1, "borders": 1},
    labels={"length": "the number of names", "returned": "the list"},
)

# Between 2**-14 - 2**-25 and 2**-14 a number is stored as 2**-14: a normal number that came from below all normal numbers. No
# draw lies there, since some call it by where it came from.


def see_fates(answer, p, about, numbers):
    """Ask for the fates of numbers, in an order of its own, and record them by number."""
    numbers = p.random.sample(numbers, len(numbers))
    p.given(about)
    x = torch.tensor(numbers, dtype=torch.float32)
    names = [f"{value:.9g}" for value in x.tolist()]
    fates = answer(x)
    is_list = isinstance(fates, (list, tuple))
    matches = is_list and len(fates) == len(names)
    p.see("length", len(fates) if is_list else fates)
    p.see("returned", dict(zip(names, fates, strict=True)) if matches else fates)


@fp16_fate.probe(draws=3)
def all_sizes(answer, p):
    """numbers of all sizes and both signs"""
    numbers = [0.0]
    for low, high in ((-60, -26), (-23, -14), (-13, 16), (17, 100)):
        magnitudes = [abs(sized(p, low, high)) for _ in range(p.random.randint(6, 9))]
        numbers += [x if i % 2 else -x for i, x in enumerate(magnitudes)]
    see_fates(answer, p, f"{len(numbers)} numbers of all sizes and both signs", numbers)


def both_signs(numbers):
    return [*numbers, *(-x for x in numbers)]


def next_fp32(x, towards):
    return torch.nextafter(torch.tensor(x), torch.tensor(towards)).item()


@fp16_fate.probe("borders", draws=2)
def upper_border(answer, p):
    """numbers around the largest FP16 number"""
    numbers = [65504.0, 65505.0, p.random.uniform(65506, 65518), 65519.0, next_fp32(65520.0, 0.0)]
    numbers += [65520.0, next_fp32(65520.0, 1e9), p.random.uniform(65521, 65535), 65536.0]
    see_fates(answer, p, "numbers around the largest FP16 number, 65504, and both signs", both_signs(numbers))


@fp16_fate.probe("borders", draws=2)
def lower_border(answer, p):
    """numbers around the smallest FP16 number"""
    half = 2.0**-25
    numbers = [half, next_fp32(half, 1.0), next_fp32(half, 0.0), p.random.uniform(1.1, 1.9) * half, 2 * half]
    numbers += [p.random.uniform(0.5, 0.9) * half, p.random.uniform(2.1, 2.9) * half]
    see_fates(
        answer, p, "numbers around the smallest positive FP16 number, 2**-24, and both signs", both_signs(numbers)
    )


@fp16_fate.probe("borders")
def smallest_normal(answer, p):
    """numbers around the smallest normal FP16 number"""
    numbers = [2.0**-14, 2.0**-14 - 2.0**-24, 2.0**-14 + p.random.randint(1, 9) * 2.0**-24, 2.0**-15]
    see_fates(answer, p, "numbers around the smallest normal FP16 number, 2**-14, and both signs", both_signs(numbers))


@fp16_fate.probe("borders")
def special_values(answer, p):
    """inf, nan, the two zeros, and the ends of FP32"""
    fp32 = torch.finfo(torch.float32)
    numbers = [*both_signs([math.inf, 0.0, fp32.max, fp32.tiny, 1e-42]), math.nan, p.random.uniform(1, 2)]
    see_fates(answer, p, "inf, -inf, nan, 0.0, -0.0, and the largest and the smallest numbers of FP32", numbers)


@fp16_fate.probe("borders")
def short_tensors(answer, p):
    """an empty tensor, and one of a single element"""
    p.given("an empty tensor, then one of a single element")
    p.see("returned for the empty one", answer(torch.empty(0)))
    p.see("returned for the other", answer(torch.tensor([sized(p, -10, 10)])))


def fates(failed):
    """For each number whose fate is wrong: the number, its fate, and what the answer said."""
    for c in failed:
        if isinstance(c.expected, dict) and isinstance(c.got, dict):
            for name in c.expected.keys() & c.got.keys():
                if c.expected[name] != c.got[name]:
                    yield float(name), c.expected[name], c.got[name]


@fp16_fate.symptom("sign_ignored")
def negative_numbers_are_wrong(failed):
    wrong = list(fates(failed))
    return bool(wrong) and all(x < 0 for x, *_ in wrong)


@fp16_fate.symptom("flushes_subnormals")
def subnormal_numbers_are_called_zero(failed):
    wrong = [(x, fate, said) for x, fate, said in fates(failed) if 2.0**-24 <= abs(x) < 2.0**-15]
    return len(wrong) >= 6 and all((fate, said) == ("subnormal", "zero") for _, fate, said in wrong)


@fp16_fate.symptom("overflow_at_65504")
def called_infinite_too_early(failed):
    infinite = [abs(x) for x, _, said in fates(failed) if said == "inf"]
    return bool(infinite) and all(65504 <= x < 65520 for x in infinite)


@fp16_fate.symptom("tie_to_even")
def only_numbers_that_round_are_wrong(failed):
    wrong = list(fates(failed))
    return bool(wrong) and all(2.0**-26 < abs(x) < 2.0**-24 or 65520 <= abs(x) < 65536 for x, *_ in wrong)


# ---------------------------------------------------------------------------------------------------------------- 3

count_lost_updates = Exercise(
    "count_lost_updates",
    parts={"count": 1, "rounding": 1},
    labels={"returned": "the count", "inputs": "weight and update afterwards"},
)
MANTISSA = {torch.float16: 10, torch.bfloat16: 7, torch.float32: 23}
NAMES = {torch.float16: "FP16", torch.bfloat16: "BF16", torch.float32: "FP32"}


class Pairs:
    """Pairs of weight and update, made so that it is known of each what becomes of it in `dtype`.

    How many there are of each kind is chosen so that what a wrong answer counts in excess never makes up for what it misses.
    """

    def __init__(self, p, dtype):
        self.p, self.bits, self.dtype = p, MANTISSA[dtype], dtype
        self.pairs = []

    def add(self, count, update, exponents=(-2, 3), mantissa=None, beside=0.0):
        """`count` pairs: a weight on the grid of the dtype and `beside` spacings more, with an update of update() spacings,
        which moves it away from zero if positive."""
        low, high = mantissa or (1, 2**self.bits - 2)
        for _ in range(count):
            sign = self.p.random.choice([1, -1])
            steps = 2**self.bits + self.p.random.randint(low, high)
            spacing = math.ldexp(1.0, self.p.random.randint(*exponents) - self.bits)
            self.pairs.append((sign * (steps + beside) * spacing, sign * update() * spacing))

    def add_parity(self, count, update, odd):
        """`count` pairs of which the last bit of the weight is `odd`."""
        for _ in range(count):
            half = self.p.random.randint(1, 2 ** (self.bits - 1) - 2)
            self.add(1, update, mantissa=(2 * half + odd, 2 * half + odd))

    def between(self, low, high, signed=True):
        return lambda: self.p.random.uniform(low, high) * (self.p.random.choice([1, -1]) if signed else 1)

    def either(self, size):
        return lambda: size * self.p.random.choice([1, -1])

    def tensors(self, *shape):
        pairs = self.p.random.sample(self.pairs, len(self.pairs))
        weight, update = (torch.tensor(column, dtype=torch.float32) for column in zip(*pairs, strict=True))
        return (weight.reshape(shape), update.reshape(shape)) if shape else (weight, update)


def tiny_updates(p, pairs):
    """Weights of `pairs` with updates that are not zero, and only just: of about 1e-20, and below FP32's normal numbers."""
    return [(pairs[0][0], sized(p, -68, -65)), (pairs[1][0], sized(p, -132, -127))]


def see_count(answer, p, weight, update, dtype):
    given = weight.clone(), update.clone()
    p.see("returned", answer(weight, update, dtype))
    same = torch.equal(weight, given[0]) and torch.equal(update, given[1])
    p.see("inputs", "unchanged" if same else "changed")


def ordinary_updates(answer, p, dtype):
    pairs = Pairs(p, dtype)
    pairs.add(p.random.randint(4, 6), pairs.between(0.05, 0.4))  # lost against the weight
    # lost, but in FP32 the sum of the two would be nearer to the next number of the dtype
    pairs.add(p.random.randint(3, 4), pairs.between(0.2, 0.2, signed=False), beside=0.4)
    pairs.add(p.random.randint(4, 6), pairs.between(0.7, 30))
    pairs.add(p.random.randint(14, 18), pairs.between(0.7, 1.9), exponents=(-8, -5))
    # lands, but is less than eps times the weight
    pairs.add(p.random.randint(3, 5), pairs.either(0.7), mantissa=(int(0.9 * 2**pairs.bits), 2**pairs.bits - 2))
    zeros = p.random.randint(20, 25)
    pairs.add(zeros, lambda: 0.0)
    pairs.pairs += tiny_updates(p, pairs.pairs)
    if dtype is torch.float16:  # lost by itself: less than half of the smallest FP16 number
        vanishing = p.random.randint(3, 5)
        weights = [pair[0] for pair in pairs.pairs[:vanishing]]
        pairs.pairs += [(weight, sized(p, -30, -26)) for weight in weights]
    weight, update = pairs.tensors()
    p.given(f"{len(weight)} weights and updates, {zeros} of the updates zero, held in {NAMES[dtype]}")
    see_count(answer, p, weight, update, dtype)


@count_lost_updates.probe(draws=2)
def in_fp16(answer, p):
    """weights and updates in FP16"""
    ordinary_updates(answer, p, torch.float16)


@count_lost_updates.probe(draws=2)
def in_bf16(answer, p):
    """weights and updates in BF16"""
    ordinary_updates(answer, p, torch.bfloat16)


@count_lost_updates.probe()
def small_matrix(answer, p):
    """a matrix of weights, with more lost updates than a row has room for"""
    pairs = Pairs(p, torch.float16)
    pairs.add(5, pairs.between(0.1, 0.4))
    pairs.add(7, pairs.between(1.5, 40))
    p.given("a matrix of 3 by 4 weights of which five keep their value, held in FP16")
    see_count(answer, p, *pairs.tensors(3, 4), torch.float16)


def rounded_updates(answer, p, dtype):
    pairs = Pairs(p, dtype)
    pairs.add_parity(p.random.randint(6, 8), pairs.either(0.5), odd=0)  # a tie that goes back to the weight
    pairs.add_parity(p.random.randint(6, 8), pairs.either(0.5), odd=1)  # a tie that goes to the next number
    # a tie once the update itself is rounded
    pairs.add_parity(p.random.randint(3, 4), pairs.either(0.5 * (1 + 2.0 ** -(pairs.bits + 2))), odd=0)
    # below a power of two the numbers are twice as dense
    pairs.add(p.random.randint(2, 3), lambda: -0.25, mantissa=(0, 0))
    pairs.add(p.random.randint(2, 3), lambda: -0.3, mantissa=(0, 0))
    pairs.add(p.random.randint(1, 9), lambda: 0.0)
    p.given(
        f"{len(pairs.pairs)} weights, most updates about half of the distance to the next number, held in {NAMES[dtype]}"
    )
    see_count(answer, p, *pairs.tensors(), dtype)


@count_lost_updates.probe("rounding")
def ties_in_fp16(answer, p):
    """updates of about half of the distance between FP16 numbers"""
    rounded_updates(answer, p, torch.float16)


@count_lost_updates.probe("rounding")
def ties_in_bf16(answer, p):
    """updates of about half of the distance between BF16 numbers"""
    rounded_updates(answer, p, torch.bfloat16)


@count_lost_updates.probe("rounding")
def zero_weights(answer, p):
    """weights that are zero, or become zero in FP16"""
    # No -0.0: whether it is changed when it becomes 0.0 depends on how one looks.
    pairs = [(0.0, sized(p, -40, -26)) for _ in range(p.random.randint(3, 5))]
    pairs += [(abs(sized(p, -40, -26)), sized(p, -40, -26)) for _ in range(2)]
    pairs += [(0.0, sized(p, -9, 3)) for _ in range(p.random.randint(6, 9))]
    pairs.append((0.0, 0.0))
    weight, update = (torch.tensor(column) for column in zip(*p.random.sample(pairs, len(pairs)), strict=True))
    p.given(f"{len(pairs)} weights that are zero in FP16, some of their updates too small for it, held in FP16")
    see_count(answer, p, weight, update, torch.float16)


@count_lost_updates.probe("rounding")
def in_fp32(answer, p):
    """weights and updates in FP32"""
    pairs = Pairs(p, torch.float32)
    pairs.add(p.random.randint(3, 6), pairs.between(0.1, 0.4))
    pairs.add(p.random.randint(8, 12), pairs.between(0.7, 9))
    pairs.add(p.random.randint(3, 6), lambda: 0.0)
    pairs.pairs += tiny_updates(p, pairs.pairs)
    p.given(f"{len(pairs.pairs)} weights and updates held in FP32")
    see_count(answer, p, *pairs.tensors(), torch.float32)


# ---------------------------------------------------------------------------------------------------------------- 4

# One ulp of the result, as the exercise says. The draws lie where all right answers round to the same number.
fp16_mean = Exercise("fp16_mean", parts={"mean": 1, "range": 1}, ulps=1, labels={"returned": "the mean"})


def near(p, size, low, high, *shape, negative=False, spread=1):
    """FP16 numbers between low * size and high * size, whose mean is nowhere near a tie of FP16; evenly spread, or with a
    larger `spread` mostly small.

    low and high are multiples of 1/1024 between 1 and 2, size is a power of two, so that FP16 holds every number.
    """
    low, high = round(low * 1024), round(high * 1024)
    high -= (low + high) % 2  # else the middle is a tie, which the mean of many numbers never leaves
    while True:
        steps = torch.randint(low, high + 1, shape, generator=p.torch)
        if spread != 1:
            steps = (low + (high - low) * ((steps - low) / (high - low)) ** spread).round().long()
        mean = steps.double().mean().item()
        if abs(mean - round(mean)) < 0.3:
            return (steps * (size / 1024) * (-1 if negative else 1)).half()


@fp16_mean.probe(draws=3)
def ordinary_numbers(answer, p):
    """numbers of an ordinary size"""
    shape = p.random.choice([(9,), (4, 7), (2, 3, 5), (1, 1, 3, 4)])
    x = near(p, 2.0 ** p.random.randint(-4, 4), 1, 1.9, *shape, negative=p.random.random() < 0.3)
    p.given(f"a tensor of shape {shape}, numbers between {x.min().item():.4g} and {x.max().item():.4g}")
    p.see("returned", answer(x))


@fp16_mean.probe()
def one_number(answer, p):
    """a 0-dim tensor"""
    x = near(p, 2.0 ** p.random.randint(-4, 4), 1, 1.9)
    p.given(f"the 0-dim tensor {x.item():g}")
    p.see("returned", answer(x))


@fp16_mean.probe()
def zeros(answer, p):
    """nothing but zeros"""
    p.given("nothing but zeros")
    p.see("returned", answer(torch.zeros(p.random.randint(2, 5), 3, dtype=torch.float16)))


@fp16_mean.probe()
def zeros_and_negative_numbers(answer, p):
    """zeros among negative numbers"""
    zeros, size = p.random.choice([4, 6]), 2.0 ** p.random.randint(-4, 4)
    while True:
        steps = torch.tensor([p.random.randint(1024, 1900) for _ in range(10)] + [0] * zeros)
        mean = 2 * steps.double().mean().item()  # in ulps of the result, which lies below 1024 steps
        if 1024 < mean < 2048 and abs(mean - round(mean)) < 0.3:
            break
    x = (-size / 1024 * steps[torch.randperm(len(steps), generator=p.torch)]).half().reshape(2, -1, 1)
    p.given(
        f"in shape {tuple(x.shape)} ten numbers between {-1.9 * size:.4g} and {-size:.4g}, and {zeros} zeros among them"
    )
    p.see("returned", answer(x))


@fp16_mean.probe()
def thousands(answer, p):
    """thousands of numbers, too many to be added up one by one in FP16"""
    # 37 * 173 is one more than 6400: cut into pieces of 32, 64, 100, 256 or 1000, a short one is left over, whose mean must not
    # count like the others'. It holds the largest numbers, and most are small.
    shape = p.random.choice([(37, 173), (173, 37)])
    x = near(p, 1.0, 1, 1.98, 37 * 173, spread=4).sort().values.reshape(shape)
    p.given(f"a tensor of shape {shape}, numbers that rise from 1 to {x.max().item():.4g}")
    p.see("returned", answer(x))


@fp16_mean.probe()
def many_small_numbers(answer, p):
    """more numbers than FP16 can count, all of them small"""
    x = near(p, 2.0**-11, 1, 1.9, p.random.randint(280, 300), 250)
    p.given(f"a tensor of shape {tuple(x.shape)}, numbers between {2.0**-11:.3g} and {1.9 * 2.0**-11:.3g}")
    p.see("returned", answer(x))


@fp16_mean.probe()
def more_bits_than_bf16(answer, p):
    """numbers that differ in bits that BF16 does not have"""
    # In units of 1/1024 above 1: BF16 rounds 4 down to 0 and 11 to 8, and their mean, 7, to 0.
    steps = p.random.sample([4] * 147 + [11] * 110, 257)
    x = (2.0 ** p.random.randint(-3, 3) * (1 + torch.tensor(steps) / 1024)).half()
    p.given(f"257 numbers, each {x.min().item():g} or {x.max().item():g}")
    p.see("returned", answer(x))


@fp16_mean.probe("range", draws=2)
def large_numbers(answer, p):
    """numbers whose sum is beyond FP16"""
    x = near(p, 2.0 ** p.random.randint(13, 15), 1, 1.9, p.random.randint(4, 6), 10, negative=p.random.random() < 0.5)
    p.given(f"a tensor of shape {tuple(x.shape)}, numbers between {x.min().item():g} and {x.max().item():g}")
    p.see("returned", answer(x))


@fp16_mean.probe("range")
def two_large_numbers(answer, p):
    """two numbers near the end of FP16"""
    x = near(p, 2.0**15, 1.8, 1.99, 2)
    p.given(f"the numbers {x[0].item():g} and {x[1].item():g}")
    p.see("returned", answer(x))


@fp16_mean.probe("range")
def many_numbers(answer, p):
    """so many numbers that their sum is beyond FP16"""
    sign = p.random.random() < 0.5
    x = near(p, 2.0 ** p.random.randint(0, 2), 1.9, 1.95, p.random.randint(270, 280), 260, negative=sign)
    p.given(f"a tensor of shape {tuple(x.shape)}, numbers between {x.min().item():.4g} and {x.max().item():.4g}")
    p.see("returned", answer(x))


def tensors_of(failed):
    return [(c, c.got) for c in failed if isinstance(c.got, torch.Tensor) and isinstance(c.expected, torch.Tensor)]


@fp16_mean.symptom("fp16_sum_overflow")
def infinite_or_nan(failed):
    overflowed = {"large_numbers", "two_large_numbers", "many_numbers"}
    ordinary = [(c.expected.double(), got.double()) for c, got in tensors_of(failed) if c.probe == "ordinary_numbers"]
    near = all(got.shape == right.shape and torch.isclose(got, right, rtol=2.0**-6) for right, got in ordinary)
    return near and any(c.probe in overflowed and not got.isfinite().all() for c, got in tensors_of(failed))


@fp16_mean.symptom("wrong_dtype")
def right_but_for_the_type(failed):
    def value(got):
        return got.double().item() if isinstance(got, torch.Tensor) and got.numel() == 1 else got

    return all(
        is_number(value(c.got))
        and not (isinstance(c.got, torch.Tensor) and c.got.dtype is torch.float16)
        and math.isclose(value(c.got), c.expected.double().item(), rel_tol=2.0**-7)
        for c in failed
    )


# ---------------------------------------------------------------------------------------------------------------- 5

# Right answers multiply and round in different orders, and may then be 1.5 eps of the largest element apart.
rms_norm = Exercise(
    "rms_norm",
    parts={"norm": 1, "range": 1, "eps": 1},
    ulps=6,
    labels={"returned": "the result", "far": "how many elements are more than two ulps away"},
)


def rows_of(p, dtype, sizes, width, exact=1024):
    """One row for each size, of `width` numbers between 1/4 and 2 times the size, a fifth of them negative.

    Their mean is far from zero, so that subtracting it shows, and they are not all alike.
    """
    steps = torch.randint(exact // 4, 2 * exact, (len(sizes), width), generator=p.torch) / exact
    signs = torch.where(torch.rand(len(sizes), width, generator=p.torch) < 0.2, -1.0, 1.0)
    signs[:, 0], signs[:, 1] = 1.0, -1.0
    return (steps * signs * torch.tensor(sizes)[:, None]).to(dtype)


def weights(p, width):
    """FP32 weights between 1/2 and 2 of either sign; never near 1 throughout."""
    steps = torch.randint(2**15, 2**17, (width,), generator=p.torch) / 2**16
    signs = torch.where(torch.rand(width, generator=p.torch) < 0.3, -1.0, 1.0)
    steps[0] = 1.75
    return steps * signs


def see_norm(answer, p, about, x, eps, key="returned"):
    weight = weights(p, x.shape[-1])
    p.given(f"{about}, {str(x.dtype).removeprefix('torch.')} of shape {tuple(x.shape)}, eps {eps:g}")
    p.see(key, answer(x, weight, eps))


@rms_norm.probe(draws=2)
def fp16_rows(answer, p):
    """FP16 rows of ordinary, different sizes"""
    sizes = p.random.sample([0.125, 0.5, 2.0, 8.0], 4)
    x = rows_of(p, torch.float16, sizes, p.random.randint(6, 12))
    see_norm(answer, p, f"rows of sizes {', '.join(map(str, sizes))}", x, p.random.choice([1e-5, 1e-6]))


@rms_norm.probe(draws=2)
def bf16_rows(answer, p):
    """BF16 rows of ordinary, different sizes"""
    sizes = p.random.sample([0.125, 0.5, 2.0, 8.0], 4)
    x = rows_of(p, torch.bfloat16, sizes, p.random.randint(6, 12), exact=64)
    see_norm(answer, p, f"rows of sizes {', '.join(map(str, sizes))}", x, p.random.choice([1e-5, 1e-6]))


@rms_norm.probe()
def one_row(answer, p):
    """a tensor of one dimension"""
    x = rows_of(p, p.random.choice([torch.float16, torch.bfloat16]), [p.random.choice([0.25, 4.0])], 8, exact=64)
    see_norm(answer, p, "one row", x[0], 1e-6)


@rms_norm.probe()
def batch_of_matrices(answer, p):
    """more than two dimensions"""
    rows = rows_of(p, p.random.choice([torch.float16, torch.bfloat16]), [4.0, 0.25, 1.0, 0.5, 2.0, 0.25], 8, exact=64)
    shape = p.random.choice([(2, 3, 8), (3, 2, 8), (1, 3, 2, 8)])
    see_norm(answer, p, "rows of ordinary sizes", rows.reshape(shape), 1e-6)


# Six numbers whose mean square is 1024**2. BF16 has nothing nearer to 1028/1024 and 1036/1024 than four ulps of FP16.
ROUND = (1028, 1036, 904, 788, 404, 1600)


def far(y, exact, ulp):
    comparable = isinstance(y, torch.Tensor) and y.shape == exact.shape
    return int(((y.double() - exact).abs() > 2 * ulp).sum()) if comparable else None


def see_exact(p, y, exact, ulp):
    p.see("returned", y)
    p.see("far", far(y, exact, ulp))


@rms_norm.probe()
def exact_rows(answer, p):
    """FP16 rows for which every step of the formula is exact, so that the ulps can be counted"""
    steps = torch.tensor([p.random.sample(ROUND, 6), p.random.sample(ROUND, 6)]) / 1024
    size = 2.0 ** p.random.randint(-2, 3)
    x = (steps * torch.tensor([[size], [-4 * size]])).half()
    weight = torch.tensor([p.random.choice([-2.0, -0.5, 0.5, 1.0, 2.0]) for _ in ROUND])
    exact = (steps * torch.tensor([[1.0], [-1.0]]) * weight).double()
    p.given(f"FP16 rows of sizes {size:g} and {4 * size:g}, weights that are powers of two, eps 1e-12")
    see_exact(p, answer(x, weight, 1e-12), exact, 2.0**-10 * exact.abs())


@rms_norm.probe("range", draws=2)
def large_rows(answer, p):
    """FP16 rows up to 60000"""
    sizes = [2.0, 29000.0, 512.0, p.random.choice([2048.0, 8192.0])]
    x = rows_of(p, torch.float16, p.random.sample(sizes, 4), p.random.randint(6, 12))
    see_norm(answer, p, f"rows with numbers up to {x.abs().max().item():g}", x, 1e-6)


# FP16 numbers whose reciprocal is subnormal in FP16. Rounded there, it gives 1 + 1.6 ulps or more when it is multiplied again.
EDGE = (54560, 57952, 58144, 59168, 59808)


@rms_norm.probe("range")
def one_size_near_the_end(answer, p):
    """an FP16 row of one magnitude near 60000, and of both signs, so that the ulps can be counted"""
    size, width = p.random.choice(EDGE), p.random.choice([6, 8])
    signs = torch.tensor([p.random.sample([1.0, -1.0] * (width // 2), width)])
    weight = torch.tensor([p.random.choice([1, -1]) * p.random.randint(112, 127) / 64 for _ in range(width)])
    p.given(f"an FP16 row of {size} and -{size}, weights between 1.75 and 2 and their negatives, eps 1e-6")
    see_exact(p, answer((signs * size).half(), weight, 1e-6), (signs * weight).double(), 2.0**-10)


@rms_norm.probe("range")
def small_weights(answer, p):
    """FP32 weights of which FP16 keeps hardly a bit"""
    # One element of 64 is not zero: it becomes 8 exactly. The weight is 1.5 of FP16's smallest steps, the result 12 of them.
    x, at = torch.zeros(2, 64), p.random.sample(range(64), 2)
    for row in range(2):
        x[row, at[row]] = p.random.choice([1, -1]) * 2.0 ** p.random.randint(-2, 8)
    step = 2.0**-24
    weight = torch.full((64,), 1.5 * step)
    p.given("FP16 rows with one element that is not zero, FP32 weights of 1.5 * 2**-24, eps 1e-12")
    y, exact = answer(x.half(), weight, 1e-12), 12.0 * step * x.sign().double()
    p.see("shape", list(y.shape) if isinstance(y, torch.Tensor) else y)
    p.see("far", far(y, exact, step))


@rms_norm.probe("range")
def one_large_element(answer, p):
    """FP16 rows with one element whose square is beyond FP16, while the mean of squares is not"""
    x = rows_of(p, torch.float16, [1.0, 1.0, 1.0], 16)
    for row in range(3):
        x[row, p.random.randrange(16)] = p.random.choice([1, -1]) * p.random.randint(280, 700)
    see_norm(answer, p, f"rows with one large element, up to {x.abs().max().item():g}", x, 1e-6)


@rms_norm.probe("range")
def large_bf16_rows(answer, p):
    """BF16 rows up to 60000"""
    x = rows_of(p, torch.bfloat16, [16384.0, 28672.0, 512.0], p.random.randint(6, 12), exact=64)
    see_norm(answer, p, f"rows with numbers up to {x.abs().max().item():g}", x, 1e-6)


@rms_norm.probe("eps", draws=2)
def zero_row(answer, p):
    """a row of zeros beside others"""
    x = rows_of(p, torch.float16, [1.0, 0.0, p.random.choice([0.5, 4.0])], p.random.randint(6, 12))
    see_norm(answer, p, "a row of zeros between two others", x, 1e-8)


@rms_norm.probe("eps")
def zero_row_and_smaller_eps(answer, p):
    """a row of zeros in each dtype, with an eps whose root is small, too"""
    eps = p.random.choice([1e-10, 1e-12])  # FP16 holds neither, nor 1 / sqrt(eps)
    for dtype in (torch.bfloat16, torch.float16):
        x = rows_of(p, dtype, [0.0, 2.0], p.random.randint(6, 12), exact=64)
        see_norm(answer, p, "a row of zeros above another", x, eps, f"returned {NAMES[dtype]}")
    p.given(f"a row of zeros above another, in BF16 and then in FP16, eps {eps:g}")


@rms_norm.probe("eps", draws=2)
def eps_that_counts(answer, p):
    """FP16 rows whose mean square is about as large as eps"""
    eps = p.random.choice([1e-5, 1e-6])
    size = 2.0**-8 if eps == 1e-5 else 2.0**-10
    x = rows_of(p, torch.float16, [size, size / 2, 1.0], p.random.randint(6, 12))
    see_norm(answer, p, f"rows of sizes {size:.2g}, {size / 2:.2g} and 1", x, eps)


@rms_norm.probe("eps")
def squares_that_vanish(answer, p):
    """FP16 rows whose squares are all zero in FP16"""
    x = rows_of(p, torch.float16, [2.0**-14, 2.0**-14, 1.0], p.random.randint(6, 12), exact=256)
    see_norm(answer, p, f"rows of sizes {2.0**-14:.2g}, {2.0**-14:.2g} and 1", x, 1e-12)


@rms_norm.probe("eps")
def subnormal_rows(answer, p):
    """FP16 rows of subnormal numbers, whose root mean square FP16 does not hold"""
    # Two of eight numbers are 3 steps, the others 0: the root of the mean of squares is 1.5 steps, which FP16 rounds to 2.
    step = 2.0**-24
    steps = torch.tensor([p.random.sample([3.0, -3.0, *[0.0] * 6], 8) for _ in range(2)])
    weight = torch.tensor([p.random.choice([-2.0, -0.5, 0.5, 1.0, 2.0]) for _ in range(8)])
    p.given("FP16 rows of two numbers of 3 * 2**-24 and six zeros, weights that are powers of two, eps 1e-20")
    exact = (steps / 1.5 * weight).double()
    see_exact(p, answer((steps * step).half(), weight, 1e-20), exact, 2.0**-10 * exact.abs())


def broken(failed, *probes):
    """Whether one of these probes got a row that is not finite, or zero throughout, where it should be neither."""
    for c, got in tensors_of(failed):
        if c.probe in probes and got.shape == c.expected.shape and got.dim():
            lost = ~got.isfinite().all(dim=-1) | (~got.bool().any(dim=-1) & c.expected.bool().any(dim=-1))
            if lost.any():
                return True
    return False


@rms_norm.symptom("square_overflow")
def loses_a_single_square(failed):
    return broken(failed, "one_large_element")


@rms_norm.symptom("eps_underflow")
def divides_zero_by_zero(failed):
    return broken(failed, "zero_row")


@rms_norm.symptom("square_overflow")
def loses_the_mean_of_squares(failed):
    return broken(failed, "large_rows")


@rms_norm.symptom("wrong_dtype")
def dtypes_differ(failed):
    return all(got.dtype != c.expected.dtype for c, got in tensors_of(failed)) and len(tensors_of(failed)) == len(
        failed
    )
