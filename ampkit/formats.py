"""The number formats of mixed precision, bit by bit: FP32, TF32, FP16, BF16 and the two FP8, from patterns to values.

All arithmetic here is on Python integers and floats, so that nothing is hidden in a cast; the tests prove it equal to
PyTorch's casts. A Python float is an IEEE 754 binary64, which holds every number of these formats exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ampkit.errors import PrecisionError

if TYPE_CHECKING:
    import torch

__all__ = ["BF16", "E4M3", "E5M2", "FORMATS", "FP16", "FP32", "TF32", "Format"]


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: one sign bit, then exponent_bits, then mantissa_bits.

    ieee        True: the exponent of all ones is kept for inf (mantissa 0) and nan. False ("fn", finite): only the
                pattern of all ones is nan, there is no inf, and the rest of that exponent are ordinary numbers.
    dtype_name  the name of the dtype in torch; None for TF32, which is stored as FP32.

    The numbers of a format are derived from the two widths (IEEE 754-2019, section 3.3; for E4M3 and E5M2, Micikevicius
    et al., FP8 Formats for Deep Learning, 2022, table 1):

    >>> FP16.bias, FP16.max, FP16.smallest_normal, FP16.smallest_subnormal, FP16.eps
    (15, 65504.0, 6.103515625e-05, 5.960464477539063e-08, 0.0009765625)
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    ieee: bool = True
    dtype_name: str | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def bits(self) -> int:
        """Width of a pattern. TF32 has 19 bits, and occupies 32 in memory."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bias(self) -> int:
        """What is taken off the exponent field of a normal number: its value is 2**(field - bias) * 1.mantissa."""
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def eps(self) -> float:
        """The distance from 1 to the next larger number, as in torch.finfo."""
        return 2.0**-self.mantissa_bits

    @property
    def smallest_normal(self) -> float:
        """The smallest number with all its bits; below it lie the subnormals."""
        return 2.0 ** (1 - self.bias)

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive number, and the spacing of all subnormals. torch.finfo does not have it."""
        return self.smallest_normal * self.eps

    @property
    def max(self) -> float:
        """The largest finite number."""
        return self.decode(self._max_bits)

    @property
    def overflow_at(self) -> float:
        """The smallest number that round-to-nearest does not bring back to a finite one.

        It lies half a spacing above max. Exactly there it is a tie, which goes to the even mantissa: up and over where
        the mantissa of max is odd (all ones, IEEE), down to max in E4M3, where the next double is the first to overflow.

        >>> FP16.overflow_at
        65520.0
        """
        tie = self.max + self.spacing(self.max) / 2
        return tie if self._max_bits % 2 else math.nextafter(tie, math.inf)

    @property
    def dtype(self) -> torch.dtype | None:
        """PyTorch's dtype; None for TF32, whose tensors are torch.float32 and which exists inside tensor cores only."""
        import torch  # the arithmetic does without

        return None if self.dtype_name is None else getattr(torch, self.dtype_name)

    # From bits to a value.

    def fields(self, bits: int) -> tuple[int, int, int]:
        """Sign, exponent field and mantissa field of a pattern, as integers.

        >>> FP16.fields(0x3C00)
        (0, 15, 0)
        """
        self._check(bits)
        exponent = bits >> self.mantissa_bits & (1 << self.exponent_bits) - 1
        return bits >> (self.bits - 1), exponent, bits & (1 << self.mantissa_bits) - 1

    def decode(self, bits: int) -> float:
        """The value of a pattern, exactly. Raises PrecisionError for a pattern that is too wide or negative.

        >>> FP16.decode(0b0_01111_1000000000), FP16.decode(0x7C00), FP16.decode(1) == 2**-24
        (1.5, inf, True)
        """
        sign, exponent, mantissa = self.fields(bits)
        what = self.classify(bits)
        if what == "nan":
            return math.nan
        if what == "inf":
            value = math.inf
        elif exponent == 0:  # subnormal: no leading one, and the exponent of the smallest normal
            value = mantissa * self.smallest_subnormal
        else:
            value = math.ldexp(1 + mantissa * self.eps, exponent - self.bias)
        return -value if sign else value

    def classify(self, bits: int) -> str:
        """ "zero", "subnormal", "normal", "inf" or "nan".

        >>> [FP16.classify(bits) for bits in (0x8000, 0x03FF, 0x0400, 0x7C00, 0x7C01)]
        ['zero', 'subnormal', 'normal', 'inf', 'nan']
        """
        _, exponent, mantissa = self.fields(bits)
        if exponent == 0:
            return "subnormal" if mantissa else "zero"
        if bits & self._magnitude > self._max_bits:
            return "inf" if self.ieee and mantissa == 0 else "nan"
        return "normal"

    def formula(self, bits: int) -> str:
        """How the fields make the value, in one line.

        >>> FP16.formula(0xC200)
        '−1 × 2^(16 − 15) × (1 + 512/1024)'
        >>> FP16.formula(1)
        '+1 × 2^(1 − 15) × (0 + 1/1024)'
        """
        sign, exponent, mantissa = self.fields(bits)
        what, signed = self.classify(bits), "−1" if sign else "+1"
        if what == "nan":
            kept = "the mantissa is not 0" if self.ieee else "all other bits are 1"
            return f"the exponent is all ones and {kept}: not a number"
        if what == "inf":
            return f"{signed} × ∞: the exponent is all ones and the mantissa is 0"
        leading = 0 if exponent == 0 else 1
        return f"{signed} × 2^({max(exponent, 1)} − {self.bias}) × ({leading} + {mantissa}/{2**self.mantissa_bits})"

    # From a value to bits.

    def encode(self, value: float, *, saturate: bool | None = None) -> int:
        """The pattern of the number nearest to value; a tie goes to the pattern whose last bit is 0.

        This is the cast of PyTorch, value by value, for every value that is an FP32 number. (A torch.float64 tensor is
        rounded twice on its way to a shorter format, first to FP32; here every value is rounded once.) TF32 is rounded
        in the same way; which way a tensor core rounds is the hardware's affair.

        saturate: True gives ±max on overflow, False ±inf, or nan where the format has no inf. By default IEEE formats
        give inf and E4M3 saturates, inf included, as torch.float8_e4m3fn does from PyTorch 2.12 on
        (torch/headeronly/util/Float8_e4m3fn.h); before, its cast gave nan.

        >>> FP16.decode(FP16.encode(0.1)), FP16.decode(FP16.encode(65519)), FP16.decode(FP16.encode(65520))
        (0.0999755859375, 65504.0, inf)
        >>> E4M3.decode(E4M3.encode(1e9)), E4M3.decode(E4M3.encode(1e9, saturate=False))
        (448.0, nan)
        """
        if math.isnan(value):
            return self._nan_bits
        saturate = not self.ieee if saturate is None else saturate
        over = self._max_bits if saturate else self._max_bits + 1  # the pattern after max: inf, or the nan of E4M3
        magnitude = over if math.isinf(value) else min(self._round(abs(value)), over)
        return magnitude | (self._sign if math.copysign(1.0, value) < 0 else 0)

    def round(self, value: float) -> float:
        """The number that storing value in this format leaves: decode(encode(value)).

        >>> FP16.round(1e-5), FP16.round(1e-8), BF16.round(1 - 1e-3)
        (1.0013580322265625e-05, 0.0, 1.0)
        """
        return self.decode(self.encode(value))

    # What lies around a value.

    def spacing(self, value: float) -> float:
        """The distance between neighbouring numbers where value lies, one ulp; at a power of two, the one above it.

        PrecisionError if value is not finite or lies beyond max.

        >>> FP16.spacing(1.0) == FP16.eps, FP16.spacing(2048), FP16.spacing(0.0) == FP16.smallest_subnormal
        (True, 2.0, True)
        """
        if not abs(value) <= self.decode(self._max_bits):
            raise PrecisionError(f"{self.name} ends at {self.max:g}; there is no spacing between numbers at {value}.")
        return math.ldexp(self.eps, self._exponent(value))

    def neighbours(self, value: float) -> tuple[float, float]:
        """The nearest numbers below and above value, neither of them equal to it; -inf and inf where there are none.

        PrecisionError if value is nan.

        >>> FP16.neighbours(2048), FP16.neighbours(65504)[1]
        ((2047.0, 2050.0), inf)
        """
        if math.isnan(value):
            raise PrecisionError("nan lies nowhere on the number line, so it has no neighbours.")
        if math.isinf(value):
            return (self.max, value) if value > 0 else (value, -self.max)
        below, above = self._at_most(value), self._at_least(value)
        held = self._at(below) == value
        return self._at(below - held), self._at(above + held)

    def count(self, low: float, high: float) -> int:
        """How many finite numbers x of the format there are with low <= x <= high; +0 and -0 are one.

        >>> FP16.count(1, 2), FP16.count(-math.inf, math.inf), FP16.count(2, 1)
        (1025, 63487, 0)
        """
        return max(0, self._at_most(high) - self._at_least(low) + 1)

    def between(self, low: float, high: float) -> Iterator[float]:
        """The finite numbers x of the format with low <= x <= high, in order.

        >>> list(E4M3.between(400, 500))
        [416.0, 448.0]
        """
        yield from map(self._at, range(self._at_least(low), self._at_most(high) + 1))

    # The finite numbers in order have places: 0 for zero, 1 for the smallest subnormal, -1 for its negative, …

    def _at(self, place: int) -> float:
        if abs(place) > self._max_bits:
            return math.copysign(math.inf, place)
        return math.copysign(self.decode(abs(place)), place) if place else 0.0

    def _at_most(self, value: float) -> int:
        """The place of the largest finite number that is not above value; one place before all of them if none is."""
        if value >= self.max:
            return self._max_bits
        if value < -self.max:
            return -self._max_bits - 1
        place = self._round(abs(value))
        place = -place if value < 0 else place
        return place - (self._at(place) > value)

    def _at_least(self, value: float) -> int:
        return -self._at_most(-value)  # the numbers are symmetric about zero

    def _round(self, magnitude: float) -> int:
        """The pattern nearest to a finite magnitude, as if exponents went on for ever; ties to even.

        Neighbouring numbers have neighbouring patterns, also from one exponent to the next. So the pattern is the number
        of spacings in the magnitude, plus those of the binades below.
        """
        exponent = self._exponent(magnitude)
        spacings = round(math.ldexp(magnitude, self.mantissa_bits - exponent))  # exact, then half to even
        return spacings + (exponent - (1 - self.bias) << self.mantissa_bits)

    def _exponent(self, value: float) -> int:
        """The exponent of the binade that value lies in; everything below the smallest normal shares its exponent."""
        lowest = 1 - self.bias
        return max(math.frexp(value)[1] - 1, lowest) if value else lowest

    @property
    def _sign(self) -> int:
        return 1 << self.bits - 1

    @property
    def _magnitude(self) -> int:
        return self._sign - 1

    @property
    def _max_bits(self) -> int:
        """The pattern of the largest finite number; the ones above it are inf and nan."""
        return self._magnitude - (1 << self.mantissa_bits if self.ieee else 1)

    @property
    def _nan_bits(self) -> int:
        """The quiet nan: the first bit of the mantissa set; in E4M3 the only one, all ones."""
        return self._max_bits + 1 + (1 << self.mantissa_bits - 1) if self.ieee else self._magnitude

    def _check(self, bits: int) -> None:
        if not 0 <= bits < 1 << self.bits:
            raise PrecisionError(
                f"{self.name} has {self.bits} bits, so its patterns go from 0 to {(1 << self.bits) - 1:#x}; "
                f"{bits:#x} is none of them."
            )


FP32 = Format("FP32", 8, 23, dtype_name="float32")
TF32 = Format("TF32", 8, 10)
FP16 = Format("FP16", 5, 10, dtype_name="float16")
BF16 = Format("BF16", 8, 7, dtype_name="bfloat16")
E4M3 = Format("FP8 E4M3", 4, 3, ieee=False, dtype_name="float8_e4m3fn")
E5M2 = Format("FP8 E5M2", 5, 2, dtype_name="float8_e5m2")
FORMATS = (FP32, TF32, FP16, BF16, E4M3, E5M2)
