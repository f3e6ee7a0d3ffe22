"""Reading turns of a session: a model is asked what a reply says, as trials of their own in the
run's log, under its cap, resumed and replayed like any others.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_fairness.analysis.blinding import MaskedReply, blinded
from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.model import JSON, Cell, Trial
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.scorers.reading_turn import (
    ORDERS,
    READING,
    Meaning,
    ModelReadings,
    Other,
    ReadingTask,
    Unread,
)
from pytest_fairness.scorers.scorer import Scorer
from pytest_fairness.statistics.agreement import above_chance, kappa

if TYPE_CHECKING:
    import pandas as pd

SELF = "self"
"""As the reader: the endpoint under test."""
_COMPARED = 20
"""Replies that rules read, and the model as well: the report says how far they agree."""
_GUESSED = 40
"""Masked replies of which the reader is asked whose they are."""
#: Asks the system of that name for trials; returns it, and its answers in order.
Ask: TypeAlias = "Callable[[str, Sequence[PlannedTrial]], tuple[Endpoint, Sequence[Trial]]]"
#: A reading: the score of a label, or why there is none.
Score: TypeAlias = "Meaning | Unread | Other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingTurns:
    """Reads replies of a running test by the endpoint *reader*, which *ask* asks, unless a scorer
    names another, and *ends* with once all is asked. *personas* is the project's folder of names.
    """

    ask: Ask
    ends: Callable[[], None]
    reader: str
    seed: int
    personas: Path | None

    def __call__(
        self,
        scorer: Scorer,
        frame: pd.DataFrame,
        places: Sequence[int],
        by_rules: Sequence[Meaning],
    ) -> ModelReadings | None:
        """Return what a model reads in the rows of *frame* at *places*, which rules leave unread;
        None where nobody names one.
        """
        task = scorer.reading
        readers = scorer.readers or (self.reader,)
        if task is None or not readers[0]:
            return None
        replies = blinded(frame, self.personas, shows_prompt=task.shows_prompt)
        others = replies.keys() - set(places)
        compared = _sampled(
            replies, filter(lambda place: by_rules[place] is not None, others), _COMPARED
        )
        reading = self._read(task, scorer.name, readers[0], replies, [*places, *compared])
        scores = {place: reading.scores[place] for place in places}
        facts: dict[str, JSON] = {
            "endpoint": reading.endpoint.name,
            "identity": identity_hash(reading.endpoint.identity()),
            "task": task.to_dict(),
            "replies": len(places),
            "unread": dict(Counter(map(str, filter(_is_unread, scores.values())))),
            "orders": reading.orders,
            "rules": _agreement(reading.scores, {place: by_rules[place] for place in compared}),
        }
        if len(readers) > 1:
            second = self._read(task, scorer.name, readers[1], replies, places)
            facts["second"] = {
                "endpoint": second.endpoint.name,
                **_agreement(second.scores, scores),
            }
        facts["leaks"] = self._leaks(readers[0], replies, places)
        self.ends()
        return ModelReadings(scores, facts)

    def _read(
        self,
        task: ReadingTask,
        name: str,
        reader: str,
        replies: Mapping[int, MaskedReply],
        places: Sequence[int],
        orders: Sequence[int] = ORDERS,
    ) -> _Readings:
        """Return what *reader* says of the *replies* at *places*, each text asked once an order."""
        planned: dict[str, list[PlannedTrial]] = {}
        for place in places:
            reply = replies[place]
            if reply.digest not in planned:
                planned[reply.digest] = self._planned(task, name, reply, orders)
        trials = list(itertools.chain.from_iterable(planned.values()))
        endpoint, answers = self.ask(reader, trials)
        options: dict[str, list[str | Unread]] = defaultdict(list)
        for trial, answer in zip(trials, answers, strict=True):
            shown: Any = trial.cell.attributes["options"]
            digest = str(trial.cell.attributes["reply"])
            options[digest].append(task.read(answer.reply, shown))
        return _Readings(task, endpoint, {at: options[replies[at].digest] for at in places})

    def _planned(
        self, task: ReadingTask, name: str, reply: MaskedReply, orders: Sequence[int]
    ) -> list[PlannedTrial]:
        """Return the trials that ask about *reply*, one an order of the options."""
        trials = []
        for order in orders:
            options = task.options(reply.text, self.seed, order)
            cell = Cell(
                id=f"{READING}/{name}/{reply.digest}/{order}",
                template=READING,
                turns=(task.prompt(reply.text, options, reply.prompt),),
                groups={},
                attributes={
                    "scorer": name,
                    "task": task.digest,
                    "reply": reply.digest,
                    "order": order,
                    "options": list(options),
                },
                signals={reply.text: reply.groups},
            )
            trials.append(PlannedTrial(cell=cell))
        return trials

    def _leaks(
        self, reader: str, replies: Mapping[int, MaskedReply], places: Sequence[int]
    ) -> list[JSON]:
        """Return how often *reader* tells the group from a sample of the masked *replies*, by
        protected class.
        """
        leaks: list[JSON] = []
        sample = _sampled(replies, places, _GUESSED)
        classes = dict.fromkeys(by for place in sample for by in replies[place].groups)
        for by in classes:
            groups = {place: replies[place].groups[by] for place in sample}
            labels = sorted(set(groups.values()))
            if len(labels) < 2:
                continue
            task = ReadingTask(
                question=(
                    f"Whom does the text seem to be about, by {by.replace('_', ' ')}? If you are "
                    "not sure, guess."
                ),
                labels={label: label for label in labels},
            )
            guesses = self._read(task, f"leak-{by}", reader, replies, sample, ORDERS[:1])
            leaks.append(_leak(by, guesses.scores, groups))
        return leaks


class _Readings:
    """The *options* that *endpoint* named of each reply, in each order."""

    def __init__(
        self,
        task: ReadingTask,
        endpoint: Endpoint,
        options: Mapping[int, Sequence[str | Unread]],
    ) -> None:
        self.endpoint = endpoint
        self._task = task
        self._options = options

    @cached_property
    def scores(self) -> dict[int, Score]:
        """Return what both orders come to, by the place of the reply."""
        return {place: self._task.score(options) for place, options in self._options.items()}

    @property
    def orders(self) -> dict[str, JSON]:
        """Return how far the two orders agree: of so many, so many, and Cohen's kappa."""
        first: list[str] = []
        second: list[str] = []
        for options in self._options.values():
            if not any(isinstance(option, Unread) for option in options):
                first.append(str(options[0]))
                second.append(str(options[1]))
        agree = sum(map(operator.eq, first, second))
        numbers = [*first, *second]
        ordered = self._task.scale is not None and Other.NONE not in numbers
        return {
            "both": len(first),
            "agree": agree,
            "kappa": kappa(first, second, ordered=ordered),
        }


def _agreement(scores: Mapping[int, Any], others: Mapping[int, Any]) -> dict[str, JSON]:
    """Return on how many replies both say something, and on how many the same."""
    both = 0
    agree = 0
    for place, other in others.items():
        score = scores[place]
        if not _is_no_score(score) and not _is_no_score(other):
            both += 1
            agree += score == other
    return {"both": both, "agree": agree}


def _is_no_score(value: object) -> bool:
    return isinstance(value, (Unread, Other))


def _is_unread(value: object) -> bool:
    return isinstance(value, Unread)


def _leak(by: str, guesses: Mapping[int, Any], groups: Mapping[int, str]) -> dict[str, JSON]:
    """Return how often the *guesses* are the *groups*, beside always guessing the commonest, with
    the exact one-sided p-value.
    """
    counts = Counter(groups.values())
    chance = max(counts.values()) / len(groups)
    right = sum(guesses[place] == group for place, group in groups.items())
    return {
        "by": by,
        "asked": len(groups),
        "right": right,
        "chance": chance,
        "p_value": above_chance(right, len(groups), chance),
    }


def _sampled(replies: Mapping[int, MaskedReply], places: Iterable[int], most: int) -> list[int]:
    """Return at most so many of *places*: those of the smallest digests, whatever the order of the
    rows.
    """
    return sorted(places, key=lambda place: (replies[place].digest, place))[:most]
