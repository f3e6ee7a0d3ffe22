"""Write numbers and lists as words, alike in sentences, text, HTML and every page.

Nothing is escaped here: each sink escapes what it writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "NOTHING",
    "agreeing",
    "confidence",
    "count",
    "effect",
    "effect_size",
    "enumerated",
    "first_few",
    "interval",
    "listed",
    "names_in",
    "of_confidence",
    "p_equals",
    "p_value",
    "part_of",
    "percent",
    "percents",
    "points",
    "ratio",
    "rounded_percent",
    "signed",
]

#: Stands for a number that is not there.
NOTHING = "–"


def signed(text: str) -> str:
    """Return *text* with minus signs for its hyphens."""
    return text.replace("-", "−")


def percent(share: float | None, digits: int = 1) -> str:
    """Write a share in percent, by default with one digit: ``12.5 %``."""
    if share is None:
        return NOTHING
    return f"{100 * share:.{digits}f} %"


def percents(low: float, high: float, digits: int = 1) -> str:
    """Write an interval of shares in percent: ``12.5 to 20.0 %``."""
    return f"{100 * low:.{digits}f} to {percent(high, digits)}"


def rounded_percent(share: float) -> str:
    """Write a share with two figures: ``14 %``, ``1.3 %``."""
    digits = 1
    if 100 * share >= 9.95:
        digits = 0
    return percent(share, digits)


def confidence(level: float) -> str:
    """Write the confidence of an interval with three figures: ``90 %``, ``96.2 %``."""
    return f"{100 * level:.3g} %"


def of_confidence(levels: Iterable[float], what: str = "interval") -> str:
    """Name an interval with its confidence where all *levels* are one: ``90 % interval``, else
    ``interval``.
    """
    shown = set(map(confidence, levels))
    if len(shown) == 1:
        return f"{shown.pop()} {what}"
    return what


def points(share: float | None, *, plus: bool = True) -> str:
    """Write a difference of shares in percentage points: ``+12.5``; without *plus*, ``12.5``."""
    if share is None:
        return NOTHING
    if plus:
        return signed(f"{100 * share:+.1f}")
    return signed(f"{100 * share:.1f}")


def effect(number: float | None) -> str:
    """Write an effect with its sign: ``+0.61``, ``−∞``."""
    if number is None or math.isnan(number):
        return NOTHING
    if math.isinf(number):
        if number > 0:
            return "+∞"
        return "−∞"
    digits = 2
    if abs(number) >= 100:
        digits = 0
    return signed(f"{number:+.{digits}f}")


def effect_size(number: float | None) -> str:
    """Write an effect within a sentence: ``0.61``, ``−0.08``, ``∞``; a zero has no sign."""
    if number is None:
        return "unknown"
    if math.isinf(number):
        if number > 0:
            return "∞"
        return "−∞"
    return signed(f"{number:.2f}").replace("−0.00", "0.00")


def p_value(number: float | None) -> str:
    """Write a p-value for a table: ``.0313``; never ``.0000``."""
    if number is None or math.isnan(number):
        return NOTHING
    if number < 0.0001:
        return "<.0001"
    if number > 0.99995:
        return "1"
    return f"{number:.4f}".removeprefix("0")


def p_equals(number: float) -> str:
    """Write a p-value within a sentence: ``p = .031``, never ``p = .000``."""
    if number < 0.001:
        return "p < .001"
    if number >= 0.9995:
        return "p = 1"
    return "p = " + f"{number:.3f}".removeprefix("0")


def ratio(number: float | None) -> str:
    """Write a ratio with three digits: ``0.668``."""
    if number is None:
        return NOTHING
    return f"{number:.3f}"


def dollars(amount: float) -> str:
    """Return *amount* as money: 0.426 is $0.43, and less than a cent has four digits."""
    if amount >= 0.01 or not amount:
        return f"${amount:,.2f}"
    return f"${amount:.4f}"


def interval(low: float | None, high: float | None, show: Callable[[float], str]) -> str:
    """Write an interval, each end by *show*: ``+0.22 to +1.00``."""
    if low is None or high is None:
        return NOTHING
    return f"{show(low)} to {show(high)}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number of things: ``1 trial``, ``6,480 trials``, ``2 classes``."""
    return f"{number:,} {agreeing(number, noun, plural)}"


def agreeing(number: int, singular: str, plural: str | None = None) -> str:
    """Return *singular* for one thing, else *plural* (by default with an s): ``is``, ``are``."""
    if number == 1:
        return singular
    return plural or f"{singular}s"


def part_of(some: int, whole: int) -> str:
    """Write a part with its share of the whole: ``3 (1.5 %)``."""
    if some and whole:
        return f"{some:,} ({percent(some / whole)})"
    return f"{some:,}"


def led(lead: str, text: object) -> str:
    """Write *text* after its *lead*: `` by gender`` after `` by ``; empty where there is none."""
    if text:
        return f"{lead}{text}"
    return ""


def bracketed(text: str, remark: str) -> str:
    """Write *text* with a *remark* in brackets: ``d −0.79 (90 %)``; alone where there is none."""
    if remark:
        return f"{text} ({remark})"
    return text


def beyond(number: int, most: int) -> str:
    """Count what a list of *number* things leaves out after the first *most*: ``… and 12 more``;
    empty where it has all.
    """
    if number > most:
        return f"… and {number - most:,} more"
    return ""


def yes_or_no(value: object) -> str:
    """Write *value* as ``yes`` or ``no``."""
    if value:
        return "yes"
    return "no"


def names_in(text: str) -> list[str]:
    """Return the names in *text*, which has commas between them."""
    return list(filter(None, map(str.strip, text.split(","))))


def listed(items: Iterable[str], *, none: str = "none") -> str:
    """List all *items* in their order: ``a, b, c``; *none* stands for an empty list."""
    return ", ".join(items) or none


def enumerated(items: Sequence[str], most: int = 3) -> str:
    """Enumerate *items* within a sentence, at most so many of them: ``a, b and c``, ``a, b, c and 4
    more``.
    """
    if len(items) > most:
        return f"{', '.join(items[:most])} and {len(items) - most} more"
    if len(items) == 1:
        return items[0]
    return f"{', '.join(items[:-1])} and {items[-1]}"


def first_few(items: Sequence[str], most: int = 3, mark: str = ";") -> str:
    """Write the first of *items*, and how many more there are: ``a; b; c; and 4 more``.

    Between commas as *mark*: ``a, b, c and 4 more``.
    """
    shown = f"{mark} ".join(items[:most])
    if len(items) <= most:
        return shown
    if mark == ";":
        shown += mark
    return f"{shown} and {len(items) - most} more"
