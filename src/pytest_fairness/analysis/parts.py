"""Tables in parts: a comparison of the same groups in each of many firms, judged as one family.

See ``docs/decisions/0219-one-family-over-many-firms.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from pytest_fairness.analysis.looks import Look
from pytest_fairness.analysis.policy import Conclusion, Rule
from pytest_fairness.analysis.reading import (
    groupings,
    intersections,
    nouns,
    reasons_by_group,
    several,
)
from pytest_fairness.analysis.sentences import would_take
from pytest_fairness.errors import FrameError, UsageError, of_trials
from pytest_fairness.model import (
    ALARMS,
    JSON,
    PairResult,
    Reason,
    Verdict,
    deciding_pair,
)
from pytest_fairness.statistics.arrays import Bools, Ints, Membership, code, row_weights
from pytest_fairness.words import agreeing, confidence, count, enumerated

if TYPE_CHECKING:
    import pandas as pd

#: Quantile bins of a column of numbers that is a stratum, unless it has as few values.
BINS = 5
#: Parts that a sentence names; the finding has a row for each.
MOST_NAMED = 20
NOBODY = "nobody"
#: What a row has of a pair that was tested.
_FIGURES = ("effect", "effect_low", "effect_high", "difference")


class _OfRows(Protocol):
    """An outcome as it was read, row by row."""

    def take(self, rows: Ints, /) -> Self: ...


Outcomes = TypeVar("Outcomes", bound=_OfRows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Generic[Outcomes]):
    """The rows of a table in which the column ``each`` has the value ``label``, and their outcome;
    a table as a whole has neither. ``signals`` are those that convey the groups in these rows,
    ``compared`` the pairs of groups, None where that is every pair; ``alarm_only``: one signal by
    itself, beside all of them.
    """

    frame: pd.DataFrame
    reading: Outcomes
    each: str = ""
    label: str = ""
    place: int = 0
    signals: tuple[str, ...] = ()
    compared: frozenset[tuple[str, str]] | None = None
    alarm_only: bool = False

    def called(self, by: str) -> str:
        """Return what the groups of *by* are called here: ``race in firm Acme``, ``age by
        graduation year``.
        """
        if self.alarm_only:
            return f"{by} by {self.signals[0].replace('_', ' ')}"
        if not self.each:
            return by
        return f"{by} in {self.each.replace('_', ' ')} {self.label}"

    def group_called(self, group: str) -> str:
        """Return what a group is called here: ``Acme: black``."""
        if not self.each:
            return group
        return f"{self.label}: {group}"

    def groupings(
        self, columns: tuple[str, ...], cluster: str | None, block: str | None
    ) -> Iterator[tuple[str, Membership]]:
        """Yield each class and intersection of *columns* that has two groups here: what it is
        called, and who stands where.
        """
        if self.each:
            columns = tuple(by for by in columns if self.frame[by].nunique() > 1)
        for by, design in groupings(self.frame, columns, cluster, block):
            yield by, replace(design, compared=self._compared(design.group.labels))

    def _compared(self, labels: Sequence[str]) -> Bools | None:
        """Return which pairs of the groups *labels* are compared; None where that is every pair."""
        if self.compared is None:
            return None
        compared = [[(first, second) in self.compared for second in labels] for first in labels]
        return np.array(compared, dtype=np.bool_)

    def named(self, design: Membership) -> Membership:
        """Return *design* with its groups as they are called here."""
        labels = tuple(map(self.group_called, design.group.labels))
        return replace(design, group=replace(design.group, labels=labels))

    def reasons(self, design: Membership, missing: Bools) -> dict[str, str]:
        """Return of each group of *design* that has rows *missing* an outcome how these ended."""
        return reasons_by_group(self.frame, design, missing)

    def holds(self, pair: PairResult) -> bool:
        """Return whether *pair* may be one that is compared here."""
        return self.compared is None or (pair.group_1, pair.group_2) in self.compared

    def alone(self, columns: Sequence[str], metric: str) -> list[PairResult]:
        """Return a result for each class and intersection of *columns* that has one group here:
        nobody is there to be compared with.
        """
        results: list[PairResult] = []
        if not self.each:
            return results
        for chosen in intersections(columns):
            if all(self.frame[by].nunique() > 1 for by in chosen):
                continue
            results.append(self.one_group(chosen, metric))
        return results

    def one_group(self, chosen: Sequence[str], metric: str) -> PairResult:
        """Return the result of the crossed classes *chosen* where they have one group here, or
        nobody at all.
        """
        by = " × ".join(chosen)
        if self.frame.empty:
            return self.without_pair(
                by, metric, NOBODY, NOBODY, f"a row that the {metric} is about"
            )
        groups = self.frame[list(chosen)].drop_duplicates().astype(str)
        group = " × ".join(groups.iloc[0])
        needs = f"a second group of {self.called(by)}"
        return self.without_pair(by, metric, group, "nobody else", needs)

    def without_pair(self, by: str, metric: str, group: str, other: str, needs: str) -> PairResult:
        """Return the result of a class *by* of which *group* has no *other* to be compared with
        here: what it *needs*.
        """
        return PairResult(
            group_1=self.group_called(group),
            group_2=self.group_called(other),
            metric=metric,
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.N,
            needs=needs,
            statistics={"by": self.called(by), "alone": True},
        )


def check_one_table(
    each: object, strata: tuple[object, int], look: Look | None, analysis: str = ""
) -> None:
    """Raise UsageError for *strata* (columns, and bins of numbers), beside the plain figure that an
    *analysis* gives; and for parts of trials that are asked in looks.
    """
    if each is not None and look is not None:
        raise UsageError(of_trials("each", each))
    within, bins = strata
    if within is not None:
        named = ""
        if analysis:
            named = f" with analysis={analysis!r}"
        raise UsageError(f"within={within!r}: analyze_within gives both findings{named}")
    if bins != BINS:
        raise UsageError(f"bins={bins!r} is about the strata of within=, which is not given")


class AlikeWords(NamedTuple):
    """Words on a part, and on several, that an assertion finds to be alike."""

    singular: str
    plural: str


_NO_DIFFERENCE = AlikeWords(
    "shows no difference larger than small", "show no difference larger than small"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(Generic[Outcomes]):
    """The parts of a table, in ``every`` one of which the groups of the classes ``columns`` are
    compared, with ``cluster`` as the unit of evidence and within each ``block``.
    """

    every: Sequence[Part[Outcomes]]
    columns: tuple[str, ...]
    cluster: str | None
    block: str | None

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        reading: Outcomes,
        each: str | None,
        *,
        outcome: object,
        columns: tuple[str, ...],
        cluster: str | None,
        block: str | None,
        named: Sequence[str] = (),
    ) -> Parts[Outcomes]:
        """Return the parts of *frame* by the column *each*, in the order of their names, those
        *named* among them that have no row; one without it. Raises UsageError where that is the
        *outcome* or another column that is compared, FrameError where it is none, or has a row
        without a value.
        """
        whole = cls(
            every=[Part(frame=frame, reading=reading)],
            columns=columns,
            cluster=cluster,
            block=block,
        )
        if each is None:
            return whole
        if not isinstance(each, str):
            raise UsageError(
                f"each={each!r}: name the column whose values are compared one by one, as 'firm'"
            )
        if each in (*columns, outcome, cluster, block):
            raise UsageError(
                f"each={each!r} is compared, or compared within, already: it names another column, "
                "as that of the firm"
            )
        return replace(whole, every=list(_parts_by(frame, reading, each, named)))

    @property
    def each(self) -> str:
        """Return the column that the table is parted by; empty where it is compared as a whole."""
        return self.every[0].each

    @property
    def number(self) -> int:
        """Return how many parts the table is compared in; 0 for a table as a whole."""
        if self.each:
            return len(self.every)
        return 0

    def rule(self, rule: Rule, design: Membership) -> Rule:
        """Return *rule* as that of these parts: how many there are, and what a sentence calls the
        units, the rows and the blocks of *design*.
        """
        return replace(rule, parts=self.number, **nouns(self.every[0].frame, design))

    def groupings(self) -> Iterator[tuple[Part[Outcomes], str, Membership]]:
        """Yield each class and intersection that has two groups in a part: that part, what the
        grouping is called, and who stands where.
        """
        for part in self.every:
            for by, design in part.groupings(self.columns, self.cluster, self.block):
                yield part, by, design

    def alone(self, metric: str) -> list[PairResult]:
        """Return the results of those parts that have one group."""
        results = []
        for part in self.every:
            results += part.alone(self.columns, metric)
        return results

    def require(self, compared: Sequence[object]) -> None:
        """Raise FrameError where nothing is *compared*, as no part has two groups of any class."""
        if not compared:
            raise FrameError(
                f"no {self.each} holds two groups of {', '.join(self.columns)}: nobody there can "
                "be compared"
            )

    def results(
        self, pairs: Sequence[PairResult], outcome: str, words: AlikeWords = _NO_DIFFERENCE
    ) -> PartResults:
        """Return what the *pairs* of all parts come to; nothing of a table as a whole."""
        return PartResults(parts=self, outcome=outcome, rows=self._deciders(pairs), words=words)

    def _deciders(self, pairs: Sequence[PairResult]) -> dict[str, PairResult]:
        """Return which of *pairs* decides on each part; nothing of a table as a whole."""
        if not self.each:
            return {}
        called = {}
        for part in self.every:
            for chosen in intersections(self.columns):
                called[part.called(" × ".join(chosen))] = part.label
        of_part: dict[str, list[PairResult]] = {}
        for pair in pairs:
            of_part.setdefault(called[str(pair.statistics["by"])], []).append(pair)
        rows = {}
        for label in sorted(of_part):
            decider = deciding_pair(of_part[label])
            if decider is not None:
                rows[label] = decider
        return rows


def _parts_by(
    frame: pd.DataFrame, reading: Outcomes, each: str, named: Sequence[str]
) -> Iterator[Part[Outcomes]]:
    """Yield the parts of *frame* by the column *each*, in the order of their names, those *named*
    among them that have no row.
    """
    coded = code(frame, each, "part")
    labels = [*coded.labels, *sorted(set(named) - set(coded.labels))]
    held = row_weights(frame) > 0
    number = 0
    for place, label in enumerate(labels):
        rows = np.flatnonzero((coded.codes == place) & held)
        if rows.size or label in named:
            yield Part(
                frame=frame.iloc[rows],
                reading=reading.take(rows),
                each=each,
                label=label,
                place=number,
            )
            number += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartResults:
    """The results of the parts of a table: a row each, by the pair that decides on it."""

    parts: Parts[Any]
    outcome: str
    rows: Mapping[str, PairResult]
    words: AlikeWords = _NO_DIFFERENCE

    def facts(self) -> dict[str, JSON]:
        """Return what the details of a finding hold: a row for each part."""
        rows: list[JSON] = []
        if not self.parts.each:
            return {}
        for label, pair in self.rows.items():
            figures: dict[str, JSON] = dict.fromkeys(_FIGURES)
            if pair.test:
                figures = {name: getattr(pair, name) for name in _FIGURES}
            if "impact_ratio" in pair.statistics:
                figures["impact_ratio"] = pair.statistics["impact_ratio"]
            prefix = f"{label}: "
            rows.append(
                {
                    "label": label,
                    "verdict": pair.verdict.value,
                    "reason": _value(pair.reason),
                    "metric": pair.metric,
                    "group_1": pair.group_1.removeprefix(prefix),
                    "group_2": pair.group_2.removeprefix(prefix),
                    "worse_off": (pair.worse_off or "").removeprefix(prefix),
                    **figures,
                    "p_value": pair.p_value,
                    "corrected_p_value": pair.corrected_p_value,
                    "needs": pair.needs,
                }
            )
        return {"each": {"column": self.parts.each, "rows": rows}}

    def sentence(self, conclusion: Conclusion, about: str) -> str:
        """Return how many of how many parts differ, and which, before the sentence *about* the part
        of the pair that decides; of a table as a whole that sentence alone.
        """
        verdict = conclusion.verdict
        decider = conclusion.decider
        if not self.parts.each or decider is None:
            return about
        differ = [label for label, pair in self.rows.items() if pair.verdict in ALARMS]
        parts = count(len(self.rows), *self._nouns())
        verb = agreeing(len(differ), "differs", "differ")
        about_what = f"on {self.outcome} by {', '.join(self.parts.columns)}"
        lead = f"{len(differ)} of {parts} {verb} {about_what}"
        if differ:
            lead = f"{lead} ({enumerated(differ, MOST_NAMED)}){self._of_others()}"
        else:
            lead = f"none of {parts} is seen to differ {about_what}"
        rest = "; ".join(filter(None, (lead, *self._counts())))
        about = about.removeprefix(f"{verdict}: ")
        if decider.group_2.endswith(NOBODY):
            firm = decider.group_1.removesuffix(f": {NOBODY}")
            about = f"nobody of {firm} is compared{would_take(decider)}."
        elif decider.statistics.get("alone"):
            about = f"{decider.group_1} has nobody to be compared with{would_take(decider)}."
        return f"{verdict}: {rest}. {self._first(verdict)}: {about}"

    def notes(self, rule: Rule) -> list[str]:
        """Return what the correction promises of the parts that are named."""
        if not self.parts.each or rule.correction != "fdr_bh":
            return []
        _, parts = self._nouns()
        return [
            f"Benjamini–Hochberg over {len(self.rows)} {parts}: of those that are said to differ, "
            f"{confidence(rule.alpha)} at most are expected to do so by chance"
        ]

    def _nouns(self) -> tuple[str, str]:
        return self.parts.each.replace("_", " "), several(self.parts.each)

    def _of_others(self) -> str:
        """Return how many parts raise the alarm by refusals or missing answers alone."""
        others = sum(pair.alarm_only for pair in self.rows.values() if pair.verdict in ALARMS)
        if not others:
            return ""
        return f", {others} of them in who is refused or left without an answer"

    def _counts(self) -> Iterator[str]:
        """Yield how many parts pass, how many stay open, and of these how many are too small."""
        verdicts = [pair.verdict for pair in self.rows.values()]
        alike = verdicts.count(Verdict.PASS)
        if alike:
            yield f"{alike} {agreeing(alike, *self.words)}"
        left = verdicts.count(Verdict.INCONCLUSIVE)
        small = sum(pair.reason is Reason.N for pair in self.rows.values())
        of_these = ""
        if 0 < small < left:
            of_these = f", {small} of them too small to judge"
        if left and small == left:
            yield f"{left} {agreeing(left, 'is', 'are')} too small to judge"
        elif left:
            yield f"{left} {agreeing(left, 'stays', 'stay')} open{of_these}"

    def _first(self, verdict: Verdict) -> str:
        """Return what leads to the part that the finding is about."""
        if verdict in ALARMS:
            return "The clearest"
        if verdict is Verdict.PASS:
            return "The nearest to a difference"
        return "The first that is open"


def _value(reason: Reason | None) -> str | None:
    if reason is None:
        return None
    return reason.value
