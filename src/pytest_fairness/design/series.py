"""Pilots: which texts of a series leave a decision room, by a few answers about neutral names.

A series is a template in several strengths, from the text that speaks least for the person to the
one that speaks most. A text to which everybody gets the same answer shows no bias, so the groups
are asked the two or three that lie nearest to the border. The pilot asks about no group: whatever
it chooses, it has seen no outcome of those that are compared. See
``docs/decisions/0229-a-pilot-about-neutral-names.md``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_fairness.design.templates import Template
from pytest_fairness.errors import UsageError
from pytest_fairness.words import listed

PILOT = "pilot"
"""The signal of a cell that a pilot asks, and the type of the record that says what it chose."""
LEAST_ROOM, MOST_ROOM = 0.2, 0.8
"""A text leaves room where the share of favourable answers lies between these, both included."""
FEWEST_TEXTS, MOST_TEXTS = 2, 3
"""Texts of a series that the groups are asked."""


class Answers(NamedTuple):
    """Answers to one text: how many are ``favourable``, of those that could be ``read``."""

    favourable: int
    read: int

    @property
    def share(self) -> float | None:
        """Return the share of favourable answers; None where none could be read."""
        if not self.read:
            return None
        return self.favourable / self.read

    @property
    def leaves_room(self) -> bool:
        """Return whether the answers vary so much that a bias could show."""
        return self.share is not None and LEAST_ROOM <= self.share <= MOST_ROOM


def border_of(answers: Sequence[Answers]) -> float:
    """Return the place, from 1, at which a series turns from no to yes: .5 before the first text
    where all say yes, .5 after the last where all say no. A text whose answers nobody could read
    counts as half.

    The estimator of Spearman (1908) and Kärber (1931) of a median threshold, for places at unit
    distance.
    """
    declined = 0.0
    for of_text in answers:
        share = of_text.share
        if share is None:
            share = 0.5
        declined += 1 - share
    return declined + 0.5


def texts_with_room(answers: Sequence[Answers]) -> tuple[int, ...]:
    """Return the places, from 0, of the texts that the groups are asked, by the *answers* to each
    text of a series in rising strength.

    Those that leave room, at most three; where fewer than two do, the two that come closest, which
    stand on both sides of the border. Closest is who divides the answers most evenly, then who
    stands next to the border.
    """
    border = border_of(answers)

    def distance(place: int) -> tuple[float, float, int]:
        """Return how far the text at *place* is from an even split, and from the border."""
        share = answers[place].share
        if share is None:
            return 1.0, abs(place + 1 - border), place
        return round(abs(share - 0.5), 9), abs(place + 1 - border), place

    closest = sorted(range(len(answers)), key=distance)
    leaving_room = [place for place in closest if answers[place].leaves_room]
    asked = max(FEWEST_TEXTS, min(MOST_TEXTS, len(leaving_room)))
    return tuple(sorted(closest[:asked]))


def series_of(templates: Iterable[Template]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the texts of each series among *templates*, from weakest to strongest."""
    series: dict[str, tuple[str, ...]] = {}
    for template in templates:
        if template.series:
            series[template.series] = (*series.get(template.series, ()), template.id)
    return series


def chosen_texts(
    series: Mapping[str, Sequence[str]], answers: Mapping[str, Answers]
) -> dict[str, list[str]]:
    """Return the texts of each of *series* that the groups are asked, by the *answers* to each."""
    chosen = {}
    for name, texts in series.items():
        places = texts_with_room([answers.get(text, Answers(0, 0)) for text in texts])
        chosen[name] = [texts[place] for place in places]
    return chosen


def counted(rows: Iterable[tuple[str, bool | None]]) -> dict[str, Answers]:
    """Return the answers to each text, of *rows* of a text and whether the answer was favourable;
    None where it could not be read.
    """
    answers: dict[str, Answers] = {}
    for text, favourable in rows:
        before = answers.get(text, Answers(0, 0))
        if favourable is None:
            answers[text] = before
        else:
            answers[text] = Answers(before.favourable + favourable, before.read + 1)
    return answers


def most_asked(templates: Sequence[Template]) -> tuple[Template, ...]:
    """Return *templates* without what a pilot leaves out of each series at least: of a series the
    middle ones stay, which cost what any others do.
    """
    kept = set[str]()
    for texts in series_of(templates).values():
        first = max(0, (len(texts) - MOST_TEXTS) // 2)
        kept.update(texts[first : first + MOST_TEXTS])
    return tuple(template for template in templates if not template.series or template.id in kept)


def without_groups(template: Template, classes: Collection[str]) -> Template:
    """Return *template* about nobody's group: without the clause ``, who {class},`` of any of
    *classes*. Raises UsageError where it has another place for one.
    """
    text = template.text
    for name in classes:
        text = re.sub(rf",? who \{{{re.escape(name)}\}},?", "", text)
    bare = Template(template.id, text, template.series)
    left = sorted({*classes, "label"} & bare.plain_slots)
    if left:
        raise UsageError(
            f"template {template.id!r}: a pilot asks about nobody's group, and cannot leave "
            f"{{{left[0]}}} out of the sentence: write it as ', who {{{left[0]}}},' behind the "
            f"name, or take the brackets that labels have by themselves (slots: {listed(left)})"
        )
    return bare
