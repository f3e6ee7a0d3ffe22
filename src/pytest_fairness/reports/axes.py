"""Numbers onto a line: the domain of a picture, its ticks and where a value lies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Below this a picture shows nothing, and the arithmetic of ticks runs out of digits.
_SMALLEST = 1e-9


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from *low* to *high* laid out from *left* to *right*, in the picture's units."""

    low: float
    high: float
    left: float
    right: float

    def at(self, value: float) -> float:
        """Where *value* lies, held inside the picture; two decimals are more than a screen shows."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.left + share * (self.right - self.left), 2)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def ticks(self, about: int = 6) -> Sequence[float]:
        """Round values across the scale: 1, 2 or 5 times a power of ten apart."""
        rough = (self.high - self.low) / about
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if rough <= power * factor * 1.000001)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def scale(values: Iterable[float | None], left: float, right: float, *, zero: bool = False) -> Scale:
    """A scale around the finite *values* with a little air, from 0 on with *zero*."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if zero:
        low = min(0.0, low)
    spread = high - low
    if spread <= abs(high) * 1e-9 or spread < _SMALLEST:
        spread = abs(high) if abs(high) > _SMALLEST else 1.0
    air = spread * 0.08
    return Scale(0.0 if zero and low == 0.0 else low - air, high + air, left, right)


def symmetric(
    values: Iterable[float | None], left: float, right: float, *, least: float, most: float, around: float = 0.0
) -> Scale:
    """A scale as far left as right of *around* that holds the *values*, from ±*least* to at most ±*most*."""
    reach = max((abs(value - around) for value in values if value is not None and math.isfinite(value)), default=0.0)
    reach = min(max(reach * 1.08, least), most)
    return Scale(around - reach, around + reach, left, right)


def tick_label(value: float, *, rate: bool = False) -> str:
    """``0.25``, ``−5``, ``20 %``."""
    text = f"{100 * value:.6g} %" if rate else f"{value:,.6g}"
    return text.replace("-", "−")
