"""The pages' style: what is written on what can be read, in light, dark and print."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

import pytest_fairness.reports
from pytest_fairness.reports.overview import banners
from pytest_fairness.reports.sections import Page as ReportPage

from .factories import results

STYLE = (Path(pytest_fairness.reports.__file__).parent / "templates" / "style.css").read_text(
    encoding="utf-8"
)
SCHEMES = ("light", "dark", "print")
VERDICTS = ("fail", "flag", "inconclusive", "pass")


def _colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def _scheme(name: str) -> dict[str, str]:
    """The colours in one of the schemes; paper has those of a light page, where the print rules say
    no other, also from a dark screen.
    """
    assert STYLE.count("@media screen and (prefers-color-scheme: dark) {") == 1
    assert STYLE.count("prefers-color-scheme") == 1
    blocks = [found[1] for found in re.finditer(r":root \{(.*?)\}", STYLE, re.DOTALL)]
    light, dark, printed = map(_colours, blocks)
    return {
        "light": light,
        "dark": light | dark,
        "print": light | printed,
    }[name]


def _channels(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2.2 defines it."""
    parts = [value / 255 for value in _channels(colour)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """From 1, the same, to 21, black on white."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def over(above: str, below: str, opacity: float) -> str:
    mixed = (
        round(a * opacity + b * (1 - opacity))
        for a, b in zip(_channels(above), _channels(below), strict=True)
    )
    return "#" + "".join(f"{value:02x}" for value in mixed)


def test_the_measure_is_the_one_of_the_guideline():
    """Black on white is 21; grey 777777 on white is just under what is asked for."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_words_can_be_read_on_everything_that_they_stand_on(scheme):
    """WCAG 2.2 AA: 4.5 to 1, for small text, soft text, links, verdicts, banners, words inside bars
    and numbers on the strongest tint of a matrix; 3 to 1 for every mark and line of a picture.
    """
    colour = _scheme(scheme)
    pairs = [*product(("ink", "soft", "accent", *VERDICTS), ("paper", "card")), ("ink", "band")]
    pairs += [(verdict, f"{verdict}-soft") for verdict in VERDICTS] + [
        ("simulated", "simulated-soft")
    ]
    pairs += [("card", f"s{at}") for at in range(8)]
    bad = {pair: contrast(colour[pair[0]], colour[pair[1]]) for pair in pairs}
    assert {pair: found for pair, found in bad.items() if found < 4.5} == {}
    for tint in ("more", "less"):
        assert contrast(colour["ink"], over(colour[tint], colour["band"], 0.4)) >= 4.5
    assert all(contrast(colour[f"s{at}"], colour["paper"]) >= 3 for at in range(8))
    assert "--strength: 40%; }" in STYLE
    assert max(map(int, re.findall(r"--strength: (\d+)%", STYLE))) == 40


def test_rules_for_print_come_last():
    """Rules of equal weight: the later one counts, and on paper nothing can be scrolled."""
    printed = STYLE.index("@media print")
    assert "overflow-x: auto" in STYLE[:printed]
    assert "overflow-x" not in STYLE[printed:]
    assert ".scroll, figure, pre { overflow: visible;" in STYLE[printed:]


def test_every_kind_of_banner_has_a_style():
    """Those that the pages use; the run's notes are no alarm."""
    everything = results(run={"notes": ["odd"], "session": {"alarms": [0]}}, missing=["t::absent"])
    page = ReportPage(
        name="all",
        title="Fairness",
        lead="",
        sections=(),
        simulated=True,
        replayed=True,
        banners=banners(everything),
    )
    used = {banner.kind for banner in page.opening}
    assert used == {"note", "missing", "simulated", "replayed"}
    # A replay looks like the plain banner, which is its colour.
    assert {kind for kind in used - {"replayed"} if f".banner.{kind} {{" not in STYLE} == set()
