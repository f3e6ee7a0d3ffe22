"""Readers of the replies behind a finding: how many were read by form, line, rule or model in each
group; and of a model, how far it agrees with itself, with the rules, with a second one, and whether
it could tell whom a masked reply is about.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytest_fairness.analysis.choice_columns import CHOICE_READ_BY
from pytest_fairness.analysis.policy import MARGIN, Decision, ReaderDoubt, Rule, judge_read
from pytest_fairness.analysis.reading import ScoredRows
from pytest_fairness.model import JSON, to_json
from pytest_fairness.statistics.arrays import Bools, Floats, column_names
from pytest_fairness.statistics.clusters import CONFIDENCE
from pytest_fairness.statistics.compare import RATES, Metric
from pytest_fairness.statistics.effects import LOGIT_TO_D
from pytest_fairness.statistics.labelled import (
    LabelledMeans,
    LabelledRate,
    compared_by_labels,
    labelled_means,
    labelled_rate,
    labels_to_decide,
)
from pytest_fairness.statistics.pair_table import PairTable
from pytest_fairness.statistics.proportions import clopper_pearson
from pytest_fairness.words import count, listed, p_value, percent

if TYPE_CHECKING:
    import pandas as pd

CORRECTED = {
    "disparity": "assert_no_disparity",
    "four_fifths": "assert_four_fifths",
    "equivalence": "assert_equivalent",
}
"""Analyses that a person's labels correct, and what the assertion is called."""
_SIDES = ("first", "second")
LEAK_LEVEL = 0.05
"""A reader that tells the group more often than chance does at this level is not blinded."""


def read_by_group(
    read_by: pd.Series[Any], frame: pd.DataFrame, by: str | list[str] | tuple[str, ...] | None
) -> dict[str, JSON]:
    """Return how many replies of each group of *by* were read by what: reader → group → number;
    of all together where the table has no such column.
    """
    columns = column_names(by)
    groups = ["all"] * len(frame)
    if columns and frame.columns.isin(columns).sum() == len(columns):
        values = zip(*(frame[column].tolist() for column in columns), strict=True)
        groups = [" × ".join(map(str, row)) for row in values]
    counts: dict[str, Counter[str]] = {}
    for reader, group in zip(read_by.tolist(), groups, strict=True):
        if reader is not None:
            counts.setdefault(str(reader), Counter())[group] += 1
    return {reader: dict(sorted(counts[reader].items())) for reader in sorted(counts)}


def choices_read_by_group(frame: pd.DataFrame, by: str | None) -> dict[str, JSON] | None:
    """Return the same of a table of choices, of the groups in its column *by*, or of both that each
    trial sets against each other; None where nobody asked for a form.
    """
    if CHOICE_READ_BY not in frame.columns:
        return None
    if by in frame.columns:
        return read_by_group(frame[CHOICE_READ_BY], frame, by)
    import pandas as pd

    sides = [frame[[CHOICE_READ_BY, side]].set_axis(("reader", "group"), axis=1) for side in _SIDES]
    both = pd.concat(sides, ignore_index=True)
    return read_by_group(both["reader"], both, "group")


def reader_notes(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader of the finding has to know of the model that read, by its *facts*."""
    endpoint = facts["endpoint"]
    replies = count(facts["replies"], "reply", "replies")
    yield f"{replies} read by {endpoint}{_orders(facts['orders'])}"
    unread = sum(facts["unread"].values())
    if unread:
        reasons = ", ".join(f"{reason}: {number}" for reason, number in facts["unread"].items())
        yield f"{count(unread, 'reply', 'replies')} left unread by {endpoint} ({reasons})"
    for other, agreement in (("the rules", facts["rules"]), _second(facts)):
        if agreement["both"]:
            yield (
                f"{endpoint} and {other} agree on {agreement['agree']} of {agreement['both']} "
                "replies that both read"
            )
    for leak in facts["leaks"]:
        if leak["p_value"] < LEAK_LEVEL:
            yield (
                f"{endpoint} tells {leak['by']} from the masked reply in {leak['right']} of "
                f"{leak['asked']} ({percent(leak['right'] / leak['asked'])}, by chance "
                f"{percent(leak['chance'])}, {p_value(leak['p_value'])}): it is not blinded"
            )


def person_notes(facts: Mapping[str, Any], *, corrects: bool) -> Iterator[str]:
    """Yield what a reader of the finding has to know of the persons who labelled replies, by their
    *facts*, where the analysis *corrects* the outcome by their labels, or does not.
    """
    replies = count(facts["labels"], "reply", "replies")
    text = f"{replies} labelled by {listed(facts['who'])}"
    if facts["none"]:
        text = f"{text}, who found no outcome in {facts['none']} of them"
    yield text
    if facts["both"]:
        agreement = f"two persons agree on {facts['agree']} of {facts['both']} labels"
        if facts["kappa"] is not None:
            agreement = f"{agreement} (kappa {facts['kappa']:.2f})"
        yield agreement
    if not corrects:
        yield f"the labels do not correct this analysis, as they do {listed(CORRECTED.values())}"


def _second(facts: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a second reader, and how far it agrees; nothing where there is none."""
    second = facts.get("second")
    if second is None:
        return "", {"both": 0}
    return second["endpoint"], second


def _orders(orders: Mapping[str, Any]) -> str:
    """Return how far the reader's two orders of the options agree, in words."""
    if not orders["both"]:
        return ""
    text = f", its two orders alike in {orders['agree']} of {orders['both']}"
    if orders["kappa"] is None:
        return text
    return f"{text} (kappa {orders['kappa']:.2f})"


# ---------------------------------------------------------------- the reader's error in the verdict

SENSITIVITY_GAP = 0.1
"""A difference in sensitivity between two groups that a model may well have without labels."""
ASSUMED_QUALITY = 0.9
"""Sensitivity and specificity of a reader of whom nothing is known, to plan its labels by."""


class Bounds(NamedTuple):
    """Bounds within which a PASS holds an estimate of a pair and its interval, *low* to *high*, on
    the scale of an assertion: the whole interval within ±``margin``, the estimate within
    ±``nearest``.
    """

    estimate: float
    low: float
    high: float
    margin: float
    nearest: float = math.inf

    def hold(self, shifts: tuple[float, float]) -> bool:
        """Return whether they hold although one group, or the other, is higher by its shift."""
        up, down = shifts
        inside = self.high + up < self.margin and self.low - down > -self.margin
        near = self.estimate + up < self.nearest and self.estimate - down > -self.nearest
        return inside and near


@dataclass(frozen=True, slots=True, kw_only=True)
class RateScale:
    """The scale on which an assertion bounds the pairs of a table: ``of_rate`` is what a rate is on
    it, ``slope`` how fast that changes with the rate, and ``bounds`` those of the pair at a place,
    None where it is in no reader's hand.
    """

    of_rate: Callable[[float], float]
    slope: Callable[[float], float]
    bounds: Callable[[PairTable, int], Bounds | None]


def _of_effect(table: PairTable, at: int) -> Bounds:
    effect = float(np.nan_to_num(table.effect[at]).flat[0])
    return Bounds(effect, float(table.low[at].min()), float(table.high[at].max()), MARGIN)


EFFECT = RateScale(
    of_rate=lambda rate: math.log(rate / (1 - rate)) * LOGIT_TO_D,
    slope=lambda rate: LOGIT_TO_D / (rate * (1 - rate)),
    bounds=_of_effect,
)
"""The scale of d, on which a difference is small within ± :data:`MARGIN`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """Readers of the *rows* of one grouping: of each group the labelled ``means``, None without a
    label; and the share of its outcomes that a model read.
    """

    rows: ScoredRows
    means: LabelledMeans | None
    by_model: Floats

    @classmethod
    def of(cls, rows: ScoredRows) -> Readers:
        """Return the readers of *rows*."""
        reading = rows.reading
        design = rows.design
        groups = len(design.group.labels)
        means = None
        labels = reading.readers.labels
        by_model_rows = reading.readers.by_model
        if labels is not None:
            used = np.flatnonzero(rows.used)
            of_used = reading.take(used)
            means = labelled_means(
                of_used.values.values,
                labels[used],
                design.group.codes[used],
                design.cluster[used],
                groups=groups,
                certain=of_used.certain,
            )
        by_model = np.zeros(groups)
        if by_model_rows is not None:
            used_of_group = np.maximum(design.count(rows.used), 1)
            by_model = design.count(rows.used & by_model_rows) / used_of_group
        return cls(rows=rows, means=means, by_model=by_model)

    def corrected(self, metric: Metric) -> Metric:
        """Return *metric* with its pairs compared by the labels, where there are any."""
        if self.means is None:
            return metric
        pairs = compared_by_labels(
            metric.pairs,
            self.means,
            rates=metric.kind in RATES,
            confidence=self.rows.terms.confidence,
        )
        return replace(metric, pairs=pairs)

    def decide(
        self,
        policy: Callable[[PairTable, Rule], list[Decision]],
        table: PairTable,
        scale: RateScale = EFFECT,
    ) -> Callable[[PairTable, Rule], list[Decision]]:
        """Return *policy* for the pairs of *table*, which are bounded on a *scale*."""
        labels = table.labels
        doubts = {}
        for at, (first, second) in enumerate(zip(table.first, table.second, strict=True)):
            doubt = self._doubt(table, at, scale)
            if doubt is not None:
                doubts[labels[first], labels[second]] = doubt
        if not doubts:
            return policy
        return partial(judge_read, policy=policy, doubts=doubts)

    def unusable(self, table: PairTable) -> Bools:
        """Return the pairs of *table* of which the labels of a group cannot be used."""
        if self.means is None:
            return np.zeros(table.first.size, dtype=np.bool_)
        return ~(self.means.usable[table.first] & self.means.usable[table.second])

    def _doubt(self, table: PairTable, at: int, scale: RateScale) -> ReaderDoubt | None:
        """Return what is to be doubted of the readings of the pair at a place."""
        groups = int(table.first[at]), int(table.second[at])
        if self.means is None:
            return self._unvalidated(table, at, groups, scale)
        if self.means.usable[list(groups)].all():
            return None
        fewest = min(int(self.means.labelled[group]) for group in groups)
        return ReaderDoubt(
            f"labels of both kinds, from two {self._clusters} a group at least (the fewest "
            f"labels of a group are {fewest})",
            open=True,
        )

    @property
    def _clusters(self) -> str:
        return "names" if self.rows.design.cluster_name is not None else "rows"

    def _unvalidated(
        self, table: PairTable, at: int, groups: tuple[int, int], scale: RateScale
    ) -> ReaderDoubt | None:
        """Return the doubt about a pair whose yes/no answers a model read and nobody labelled: a
        difference in sensitivity would move it out of the bounds of a PASS.
        """
        if self.rows.reading.values.kind not in RATES or not self.by_model[list(groups)].any():
            return None
        bounds = scale.bounds(table, at)
        # The higher rate of one group, or of the other, by what its reader may have missed.
        first, second = (self._shift(group, scale) for group in groups)
        if bounds is None or bounds.hold((first, second)):
            return None
        rate = sum(map(self._rate, groups)) / 2
        labels = labels_to_decide(
            rate,
            bounds.estimate,
            margin=bounds.margin,
            correlation=_correlation(rate, ASSUMED_QUALITY),
            confidence=self.rows.terms.confidence,
            rows=int(self.rows.design.count(self.rows.used)[list(groups)].min()),
            slope=scale.slope(rate),
        )
        needs = (
            "a person's labels of a sample of each group: "
            f"a difference of {SENSITIVITY_GAP:g} in the sensitivity of the model that read would "
            "turn the verdict"
        )
        if labels is not None:
            needs = (
                f"about {labels:,} labels a group by a person, if the model that read is right "
                f"{percent(ASSUMED_QUALITY, 0)} of the time: a difference of {SENSITIVITY_GAP:g} "
                "in its sensitivity would turn the verdict"
            )
        return ReaderDoubt(needs, open=False)

    def _rate(self, group: int) -> float:
        """Return the rate of a group as it was read, away from 0 and 1."""
        rows = self.rows.used & (self.rows.design.group.codes == group)
        values = self.rows.reading.values.values[rows]
        return float(np.clip(values.mean(), 0.5 / values.size, 1 - 0.5 / values.size))

    def _shift(self, group: int, scale: RateScale) -> float:
        """Return by how much a group would be higher, had the model missed a tenth of the cases."""
        rate = self._rate(group)
        missed = min(rate * (1 + SENSITIVITY_GAP * float(self.by_model[group])), 1 - 1e-6)
        return max(0.0, scale.of_rate(missed) - scale.of_rate(rate))

    def rate_of(self, group: int) -> LabelledRate | None:
        """Return the rate of a group by its labels; None where they tell none."""
        means = self.means
        if means is None:
            return None
        return labelled_rate(
            means.mean[group],
            means.variance[group],
            means.df[group],
            least=means.least[group],
            rows=self.rows.design.count(self.rows.used)[group],
        )

    def facts(self) -> dict[str, JSON]:
        """Return of each labelled group how many labels there are, how many the reader agrees with,
        and of yes/no answers its precision and recall with their 95 % intervals.
        """
        labels = self.rows.reading.readers.labels
        if labels is None or self.means is None:
            return {}
        facts: dict[str, JSON] = {}
        values = self.rows.reading.values
        for code, name in enumerate(self.rows.design.group.labels):
            used = self.rows.used & (self.rows.design.group.codes == code) & ~np.isnan(labels)
            label = labels[used]
            read = values.values[used]
            of_group: dict[str, JSON] = {
                "labels": int(used.sum()),
                "agree": int((label == read).sum()),
                "mean": to_json(float(self.means.mean[code])),
                "weight": float(self.means.weight[code]),
            }
            if values.kind in RATES:
                both = int(((label == 1) & (read == 1)).sum())
                of_group["precision"] = _share(both, int((read == 1).sum()))
                of_group["recall"] = _share(both, int((label == 1).sum()))
            facts[str(name)] = of_group
        return facts

    def notes(self) -> Iterator[str]:
        """Yield what a reader of the finding has to know of who read."""
        labels = self.rows.design.group.labels
        if self.means is not None:
            counts = ", ".join(
                f"{name} {number}" for name, number in zip(labels, self.means.labelled, strict=True)
            )
            yield (
                f"corrected by a person's labels ({counts}; PPI++): effects and intervals carry the "
                "reader's error"
            )
        elif self.by_model.any():
            yield "unvalidated reader: a model read replies, and no person has labelled any"


def labels_by(every: Iterable[Readers]) -> dict[str, JSON]:
    """Return how well the readers of *every* grouping agree with a person's labels, by group, as a
    finding's details have it; nothing without labels.
    """
    labels = {readers.rows.by: readers.facts() for readers in every}
    if any(labels.values()):
        return {"labels": {by: facts for by, facts in labels.items() if facts}}
    return {}


def labels_needed(
    rate: float,
    *,
    quality: float = ASSUMED_QUALITY,
    effect: float = 0.0,
    confidence: float = CONFIDENCE,
    rows: int | None = None,
) -> int | None:
    """Return how many labels a group would decide about a yes/no answer of that *rate* in so many
    *rows* a group, where the groups differ by *effect* and a reader is right about so large a
    share (*quality*) of both answers; None where no number does.
    """
    return labels_to_decide(
        rate,
        effect,
        margin=MARGIN,
        correlation=_correlation(rate, quality),
        confidence=confidence,
        rows=rows,
    )


def _correlation(rate: float, quality: float) -> float:
    """Return the correlation of label and reading at that *rate*, with a reader of that quality."""
    read = rate * quality + (1 - rate) * (1 - quality)
    covariance = rate * quality - rate * read
    spread = rate * (1 - rate) * read * (1 - read)
    if spread <= 0:
        return 0.0
    return float(covariance / np.sqrt(spread))


def _share(some: int, whole: int) -> JSON:
    """Return a share with its exact 95 % interval; None of nothing."""
    if not whole:
        return None
    low, high = clopper_pearson(some, whole)
    return {"share": some / whole, "of": whole, "low": low, "high": high}
