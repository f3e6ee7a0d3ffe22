"""Scrub a text as asked: names become labels, words that convey a group go; some are overlooked, if planted."""

from __future__ import annotations

import re

from pytest_fairness.endpoints.simulated.chance import Draws
from pytest_fairness.endpoints.simulated.lexicon import NAMES, slug
from pytest_fairness.endpoints.simulated.reading import Signals, is_name, occurs

_CAPITALISED = re.compile(r"\b([A-Z][\w'’-]+)\s+[A-Z][\w'’-]+")
_SURFACE = r"(?:,\s*|\s*\()?(?<!\w){}(?!\w)\)?"


def material(text: str) -> str:
    """What is to be scrubbed: all that stands behind the first blank line, or the whole text."""
    return text.partition("\n\n")[2].strip() or text


def scrubbed(text: str, signals: Signals, recall: float, draws: Draws) -> str:
    """*text* without the surfaces that *signals* and the lexicon know, each removed with probability *recall*.

    Names become "Candidate A", "Candidate B" … in their order; an overlooked name keeps its letter unused.
    """
    present = [surface for surface in signals if surface and occurs(surface, text)]
    names = [surface for surface in present if is_name(surface, frozenset(map(slug, signals[surface])))]
    names += [match[0] for match in _CAPITALISED.finditer(text) if match[1] in NAMES and match[0] not in names]
    for number, name in enumerate(sorted(set(names), key=text.find)):
        if draws.uniform() < recall:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", f"Candidate {chr(65 + number % 26)}", text)
    for surface in sorted(set(present) - set(names), key=lambda s: (-len(s), s)):
        if draws.uniform() < recall:
            text = re.sub(_SURFACE.format(re.escape(surface)), "", text)
    return text
