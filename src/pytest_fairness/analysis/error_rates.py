"""Error-rate parity: where a column says what was right, the rates at which a yes/no decision errs
and those at which it can be trusted, and what a score means, each compared between the groups.

See ``docs/decisions/0228-error-rates-as-one-family.md`` and
``docs/decisions/0241-an-assertion-of-error-rates.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytest_fairness.analysis.counts import countable
from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.analysis.parts import BINS
from pytest_fairness.analysis.reading import (
    Reading,
    as_columns,
    column_of,
    intersections,
    read,
)
from pytest_fairness.analysis.several_outcomes import shared_by
from pytest_fairness.analysis.strata import (
    analyze_strata,
    check_strata,
    notes_on_bins,
    refuse_missing,
    stratum_labels,
    with_each_other,
)
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import ALARMS, Finding, OutcomeKind, deciding_pair, to_json
from pytest_fairness.statistics.arrays import (
    Bools,
    Floats,
    column_names,
    require_frame,
    row_weights,
)
from pytest_fairness.statistics.proportions import Z_95, wilson
from pytest_fairness.words import count, enumerated, percent

if TYPE_CHECKING:
    import pandas as pd

CALIBRATION = "calibration"
_OBSERVED = "observed"
_BIN = "bin of the score"
#: Quantile bins of a score: tenths, as of Hosmer and Lemeshow (1980).
SCORE_BINS = 10
#: Kinds of outcome that are a score, and no decision.
_SCORES = (OutcomeKind.NUMERIC, OutcomeKind.ORDINAL, OutcomeKind.NARRATIVE)
_BOTH = (
    "the share for whom it was right differs between the groups, so that error rates and "
    "predictive values cannot all be equal, whoever decides, unless nobody errs (Chouldechova "
    "2017): which of them have to be is for people to say"
)
_SCORED = (
    "a calibrated score cannot have the same mean in the groups both among those for whom it was "
    "right and among those for whom it was not, where the share for whom it was differs, unless it "
    "never errs (Kleinberg, Mullainathan and Raghavan 2016)"
)


@dataclass(frozen=True, slots=True)
class _Rate:
    """A rate by its ``key`` and ``name``: how often ``counted`` is yes in the rows ``about`` which
    it is; compared among people of an equal ``score``, where it is that of one.
    """

    key: str
    name: str
    about: Bools
    counted: Floats
    lower_is_worse: bool
    score: str | None = None


def analyze_error_rates(
    frame: Any,
    outcome: str,
    by: str | Sequence[str],
    *,
    truth: str,
    score: str | None = None,
    cluster: str | None = "name",
    block: str | None = "template",
    each: str | None = None,
    within: str | Sequence[str] | None = None,
    bins: int = BINS,
    alpha: float = 0.05,
    correction: str = "bonferroni",
    positive: object = None,
    positive_truth: object = None,
    lower_is_worse: bool | None = None,
    favourable: object = None,
) -> tuple[Finding, ...]:
    """Compare true- and false-positive rates and both predictive values between all pairs of groups
    of *by*, and with a *score* its calibration, as one family at *alpha*.

    Each is a yes/no outcome on the rows that it is about (those where *truth* is no, for the
    false-positive rate), judged at its share of alpha, a quarter or a fifth, by
    :func:`pytest_fairness.analyze_disparity`. A lower predictive value is the worse one; of the two
    others it is as *lower_is_worse* has it for the outcome. Where the share for whom *truth* is yes
    differs between the groups, a note says that the four cannot all be equal, and what one would be
    were two others equal (Chouldechova 2017).

    A score is calibrated where the share for whom *truth* is yes is the same in all groups among
    people of an equal score (Chouldechova 2017): it is compared within the values of the score, or
    ten quantile bins of one with more than twenty. The finding has in ``details["calibration"]``
    how many were observed of each group and bin, how many are expected by all in the bin, and the
    mean of the score, which for a chance is what Kleinberg, Mullainathan and Raghavan (2016)
    expect. A group is worse off whose members get the unfavourable decision at an equal score and deserve
    it less often.

    Args:
        frame: one row a decision, of pandas or another engine, the path of files, or
            :class:`~pytest_fairness.RowCounts` that hold *truth*.
        outcome: the column of the decision, yes or no; or of a score, whose calibration alone is
            compared then.
        by, cluster, block, correction: as for ``analyze_disparity``.
        truth: the column of what turned out to be right, yes or no; rows without are left out, and
            counted in a note.
        score: the column of the score that the decision rests on, a number or a label.
        each: as for ``analyze_disparity``: compares within each of its values, as each firm.
        within, bins: columns in which people may legitimately differ, in strata of which each rate
            is compared a second time, as ``analyze_within`` does; all of them are one family.
        positive, positive_truth: the value of each column that is its yes; known for 0 and 1,
            yes and no, and words such as granted.
        lower_is_worse: whether a lower share of *positive* is the worse one; True by default, or as
            *favourable* says, the favourable value of the outcome.

    Returns:
        A finding a rate; with *within* each is followed by that within strata.

    Raises:
        FrameError: a column is missing, holds more than two values, or nobody knows what was right.
        UsageError: an argument is out of range.
    """
    rates = _ErrorRates.of(
        frame,
        outcome,
        by,
        truth=truth,
        score=score,
        cluster=cluster,
        block=block,
        each=each,
        within=within,
        bins=bins,
        alpha=alpha,
        correction=correction,
        positive=positive,
        positive_truth=positive_truth,
        lower_is_worse=lower_is_worse,
        favourable=favourable,
    )
    return tuple(finding for _, finding in rates.findings())


def analyze_error_rate(
    frame: Any, outcome: Any, by: str | Sequence[str], *, rate: str, stratified: bool, **given: Any
) -> Finding:
    """Return one of the findings of :func:`analyze_error_rates` by itself: of the *rate* by its
    key, as it is or *stratified*. Raises as that does, and UsageError where there is no such rate.
    """
    rates = _ErrorRates.of(frame, outcome, by, **given)
    return rates.finding(rates.called(rate, stratified=stratified), stratified=stratified)


def comparison_of(
    frame: Any, outcome: Any, by: str | Sequence[str], *, rate: str, stratified: bool, **given: Any
) -> RateComparison:
    """Return the comparison that :func:`analyze_error_rate` judges by. Raises as that does."""
    rates = _ErrorRates.of(frame, outcome, by, **given)
    return rates.comparison(rates.called(rate, stratified=stratified), stratified=stratified)


def findings_by_rate(
    frame: Any, outcome: Any, by: str | Sequence[str], **given: Any
) -> list[tuple[dict[str, Any], Finding]]:
    """Return the findings of :func:`analyze_error_rates`, each after what
    :func:`analyze_error_rate` takes to make it by itself.
    """
    return _ErrorRates.of(frame, outcome, by, **given).findings()


def table_of_truth(
    table: Any,
    outcome: Any,
    by: str | Sequence[str],
    *,
    truth: str,
    score: str | None,
    cluster: str | None,
    block: str | None,
    each: str | None,
    within: str | Sequence[str] | None,
    **_: Any,
) -> pd.DataFrame:
    """Return *table* as pandas has it, as counts where it is reduced, with all columns that error
    rates are of. Raises UsageError for columns that stand for two things.
    """
    columns = as_columns(by)
    name = getattr(outcome, "name", outcome)
    strata = column_names(within)
    if truth == name:
        raise UsageError(
            f"truth={truth!r} is the outcome itself: name the column of what was right"
        )
    if score is not None and score in (*columns, name, truth, block, each):
        raise UsageError(f"score={score!r} stands for something else already: name its own column")
    if within is not None:
        check_strata(strata, (*columns, name, truth, score, cluster, block, each))
    more = (*strata, each, score)
    return require_frame(
        countable(table, outcome, columns, cluster, block, truth, within=more)
    ).reset_index(drop=True)


class _Strata(NamedTuple):
    """Columns in which people may differ, numbers in so many quantile *bins*."""

    within: tuple[str, ...]
    bins: int


class RateComparison(NamedTuple):
    """The analysis of the ``rows`` that a rate is about, whose ``outcome`` is yes where it counts,
    between groups ``by``; with what else it is ``given``.
    """

    analyze: Callable[..., Finding]
    rows: pd.DataFrame
    outcome: str
    by: str | Sequence[str]
    given: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ErrorRates:
    """The ``rates`` of one table, each to be compared as it is and in ``strata``; ``notes`` hold of
    all of them.
    """

    frame: pd.DataFrame
    by: str | Sequence[str]
    truth: str
    rates: tuple[_Rate, ...]
    strata: _Strata
    alpha: float
    given: dict[str, Any]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        table: Any,
        outcome: Any,
        by: str | Sequence[str],
        *,
        truth: str,
        score: str | None,
        within: str | Sequence[str] | None,
        bins: int,
        alpha: float,
        positive: object,
        positive_truth: object,
        lower_is_worse: bool | None,
        favourable: object,
        **given: Any,
    ) -> _ErrorRates:
        """Return the rates of *table*. Raises FrameError and UsageError."""
        frame = table_of_truth(table, outcome, by, truth=truth, score=score, within=within, **given)
        if column_of(frame, truth, "truth").isna().all():
            raise FrameError(
                f"column {truth!r} is missing in every row: nobody knows what was right"
            )
        right = _yes_or_no(frame, truth, "positive_truth", positive_truth)
        with_truth = ~np.isnan(right.values.values)
        decided = read(frame, outcome, None, lower_is_worse)
        rates: tuple[_Rate, ...] = ()
        if decided.values.kind in _SCORES:
            _refuse_decision(decided, (score, positive, favourable))
            score = decided.name
            frame = frame.assign(**{score: decided.values.values})
            decided = replace(decided, lower_is_worse=lower_is_worse is not False)
        else:
            decided = _decision(frame, outcome, positive, lower_is_worse, favourable)
            rates = _of_decisions(decided, right, with_truth)
        if score is not None:
            rates = (*rates, _of_score(frame, score, decided, right, with_truth))
        notes = _left_out(frame, with_truth, truth)
        shares = frame[with_truth].assign(**{truth: right.values.values[with_truth]})
        right_shares = analyze_disparity(
            shares, truth, by, kind=OutcomeKind.BINARY, alpha=alpha, **given
        )
        if right_shares.verdict in ALARMS:
            notes = (*notes, *_of_trade(right_shares, frame, rates))
        return cls(
            frame=frame,
            by=by,
            truth=truth,
            rates=rates,
            strata=_Strata(column_names(within), bins),
            alpha=alpha,
            given=given,
            notes=notes,
        )

    def called(self, key: str, *, stratified: bool) -> _Rate:
        """Return the rate of a *key*. Raises UsageError where there is none, or no strata."""
        if stratified and not self.strata.within:
            raise UsageError("no strata are given: within= names their columns")
        for rate in self.rates:
            if rate.key == key:
                return rate
        raise UsageError(f"rate={key!r}: it is one of {', '.join(each.key for each in self.rates)}")

    def findings(self) -> list[tuple[dict[str, Any], Finding]]:
        """Return each finding, after the rate that it is of and its being stratified."""
        findings: list[tuple[dict[str, Any], Finding]] = []
        for rate in self.rates:
            plain = self.finding(rate, stratified=False)
            if not self.strata.within:
                findings.append(({"rate": rate.key, "stratified": False}, plain))
                continue
            stratified = self.finding(rate, stratified=True)
            plain, stratified = with_each_other(plain, stratified, self.strata.within)
            findings.append(({"rate": rate.key, "stratified": False}, plain))
            findings.append(({"rate": rate.key, "stratified": True}, stratified))
        return findings

    def comparison(self, rate: _Rate, *, stratified: bool) -> RateComparison:
        """Return the comparison that *rate* is judged by, as it is or *stratified*. Raises
        FrameError where no row is about it.
        """
        if not rate.about.any():
            raise FrameError(f"no row has what the {rate.name} is about")
        given = {
            **self.given,
            "kind": OutcomeKind.BINARY,
            "alpha": self.alpha / len(self._shared),
            "lower_is_worse": rate.lower_is_worse,
        }
        if given["each"] is not None:
            given["_parts"] = tuple(sorted(set(self.frame[given["each"]].astype(str))))
        rows = self.frame[rate.about].assign(**{rate.name: rate.counted[rate.about]})
        strata: tuple[str, ...] = ()
        if stratified:
            strata = self.strata.within
        if rate.score is not None:
            equal = stratum_labels(rows, rate.score, SCORE_BINS).astype(str)
            rows = rows.assign(**{rate.score: equal})
            strata = (rate.score, *strata)
        if strata:
            given |= {"within": strata, "bins": self.strata.bins}
            return RateComparison(analyze_strata, rows, rate.name, self.by, given)
        return RateComparison(analyze_disparity, rows, rate.name, self.by, given)

    @property
    def _shared(self) -> list[str]:
        """Return the name of each finding, which share the level."""
        names = [rate.name for rate in self.rates]
        if self.strata.within:
            names += names
        return names

    def finding(self, rate: _Rate, *, stratified: bool) -> Finding:
        """Return the finding on *rate*, as it is or *stratified*. Raises as its comparison does."""
        compared = self.comparison(rate, stratified=stratified)
        rows = compared.rows
        finding = compared.analyze(rows, rate.name, self.by, **compared.given)
        finding = shared_by(finding, self._shared)
        notes = [*finding.notes, *self.notes, *self._absent(rate)]
        if rate.score is not None:
            notes += notes_on_bins(self.frame[rate.about], [rate.score], SCORE_BINS)
        if rate.score is not None and not stratified:
            finding = self._with_expected(finding, rate, rows[rate.score])
        return replace(finding, notes=tuple(notes))

    def _absent(self, rate: _Rate) -> Iterator[str]:
        """Yield which groups have no row that *rate* is about."""
        for column in as_columns(self.by):
            values = self.frame[column]
            groups, present = (
                set(rows.drop_duplicates().astype(str)) for rows in (values, values[rate.about])
            )
            absent = sorted(groups - present)
            if absent:
                yield f"{enumerated(absent)}: no row has what the {rate.name} is about"

    def _with_expected(self, finding: Finding, rate: _Rate, bins: pd.Series[Any]) -> Finding:
        """Return the *finding* on a score with how many are expected of each group by all in the
        same *bins*, beside those who were observed.
        """
        if self.given["each"] is not None:
            return finding
        rows = self.frame[rate.about].assign(**{_OBSERVED: rate.counted[rate.about]})
        rows[_BIN] = bins
        score = str(rate.score)
        table = _calibration(rows, score, as_columns(self.by))
        calibration = {"score": score, "rows": table.to_dict("records")}
        details = {**finding.details, "calibration": to_json(calibration)}
        sentence = finding.sentence
        decider = deciding_pair(finding.pairs)
        if decider is not None and decider.metric == rate.name:
            expected = _expected_shares(table)
            of_groups = enumerated(
                [
                    f"{percent(expected[group], 1)} of {group}"
                    for group in (decider.group_1, decider.group_2)
                ]
            )
            sentence = f"{sentence} By all whose {score} is equal, {of_groups} were to be expected."
        return replace(finding, sentence=sentence, details=details)


# ---------------------------------------------------------------- the rates


def _yes_or_no(frame: pd.DataFrame, column: Any, argument: str, positive: object) -> Reading:
    """Return *column* as 1 where it is *positive*, and 0 where it is the other value."""
    reading = read(frame, column, OutcomeKind.BINARY, None, favourable=positive)
    if reading.favourable is None:
        values = " and ".join(reading.values.categories)
        raise UsageError(
            f"{reading.name!r} is {values}: say with {argument}= which of them is its yes"
        )
    if reading.favourable == 1:
        return reading
    turned = replace(reading.values, values=1.0 - reading.values.values)
    return replace(reading, values=turned)


def _decision(
    frame: pd.DataFrame,
    outcome: Any,
    positive: object,
    lower_is_worse: bool | None,
    favourable: object,
) -> Reading:
    """Return the decision *outcome* as yes and no, with the direction of its harm."""
    decided = _yes_or_no(frame, outcome, "positive", positive)
    if lower_is_worse is None:
        lower_is_worse = favourable is None or _is_yes(frame, decided, favourable)
    return replace(decided, lower_is_worse=lower_is_worse)


def _refuse_decision(decided: Reading, given: Sequence[object]) -> None:
    """Raise UsageError where anything is *given* that only a yes or no has."""
    if any(argument is not None for argument in given):
        raise UsageError(
            f"{decided.name!r} holds many values, and is the score itself then: leave out score=, "
            "positive= and favourable=, or give the yes or no that was decided as the outcome"
        )


def _is_yes(frame: pd.DataFrame, decided: Reading, favourable: object) -> bool:
    """Return whether the *favourable* value of the outcome is its yes."""
    rows = (frame[decided.name] == favourable).to_numpy()
    if not rows.any():
        raise UsageError(f"favourable={favourable!r}: no value of {decided.name!r} is that")
    return bool(decided.values.values[rows][0] == 1)


def _of_decisions(decided: Reading, right: Reading, with_truth: Bools) -> tuple[_Rate, ...]:
    """Return the four rates of a decision, in the order in which they are told, on the rows
    *with_truth*.
    """
    outcome = decided.values.values
    truth = right.values.values
    names = [f"{decided.name} where {right.name} is {_answer(right, value)}" for value in (1, 0)]
    values = [f"{right.name} where {decided.name} is {_answer(decided, value)}" for value in (1, 0)]
    worse = decided.lower_is_worse
    right_yes = with_truth & (truth == 1)
    right_no = with_truth & (truth == 0)
    yes = with_truth & (outcome == 1)
    no = with_truth & (outcome == 0)
    rates = (
        ("true_positive", f"true-positive rate ({names[0]})", right_yes, outcome, worse),
        ("false_positive", f"false-positive rate ({names[1]})", right_no, outcome, worse),
        ("positive_predictive", f"positive predictive value ({values[0]})", yes, truth, True),
        (
            "negative_predictive",
            f"negative predictive value (not {values[1]})",
            no,
            1 - truth,
            True,
        ),
    )
    return tuple(starmap(_Rate, rates))


def _of_score(
    frame: pd.DataFrame, score: str, decided: Reading, right: Reading, with_truth: Bools
) -> _Rate:
    """Return the rate of those who are yes at an equal *score*. Raises FrameError where a row has
    none.

    Who is yes at an equal score more seldom deserves an unfavourable decision less than it gets,
    and who is so more often a favourable one more: those are worse off, as by the outcome test of
    Becker (1957).
    """
    column_of(frame, score, "score")
    refuse_missing(frame[with_truth], score, "score")
    return _Rate(
        key=CALIBRATION,
        name=f"{CALIBRATION} ({right.name} where {score} is equal)",
        about=with_truth,
        counted=right.values.values,
        lower_is_worse=not decided.lower_is_worse,
        score=score,
    )


def _answer(reading: Reading, value: int) -> str:
    """Return how the table writes the *value* of a yes/no column."""
    if len(reading.values.categories) == 2:
        return str(reading.values.categories[value])
    if reading.favourable == 0:
        return ("1", "0")[value]
    return ("no", "yes")[value]


# ---------------------------------------------------------------- beside the verdicts


def _left_out(frame: pd.DataFrame, with_truth: Bools, truth: str) -> tuple[str, ...]:
    """Return the note on rows of which nobody knows what was right."""
    number = int(row_weights(frame)[~with_truth].sum())
    if not number:
        return ()
    return (f"{count(number, 'row')} without {truth!r} left out: nobody knows what was right",)


def _of_trade(shares: Finding, frame: pd.DataFrame, rates: Sequence[_Rate]) -> Iterator[str]:
    """Yield which of the *rates* cannot be equal where the *shares* for whom it was right are not,
    and what one would be.
    """
    by_key = {rate.key: rate for rate in rates}
    if len(by_key) > 1:
        yield _BOTH
        yield from _in_figures(shares, frame, by_key)
    if CALIBRATION in by_key:
        yield _SCORED


def _in_figures(shares: Finding, frame: pd.DataFrame, rates: Mapping[str, _Rate]) -> Iterator[str]:
    """Yield what the false-positive rates of two groups would be, were their true-positive rates
    and positive predictive values equal: FPR = p / (1 - p) · (1 - PPV) / PPV · TPR, p the share for
    whom it was right (Chouldechova 2017).
    """
    pair = deciding_pair(shares.pairs)
    if pair is None or "rate_1" not in pair.statistics:
        return
    weight = row_weights(frame)
    equal = []
    for key in ("true_positive", "positive_predictive"):
        rate = rates[key]
        held = rate.about & ~np.isnan(rate.counted)
        equal.append(float(np.average(rate.counted[held], weights=weight[held])))
    true_positive, predictive = equal
    true = [float(str(pair.statistics[f"rate_{place}"])) for place in (1, 2)]
    if not predictive or max(true) == 1:
        return
    odds = (1 - predictive) / predictive * true_positive
    first, second = (share / (1 - share) * odds for share in true)
    if max(first, second) > 1:
        return
    yield (
        f"were true-positive rates and positive predictive values equal, {percent(true_positive)} "
        f"and {percent(predictive)} as over all, the false-positive rate would be {percent(first)} "
        f"in {pair.group_1} and {percent(second)} in {pair.group_2}, where {percent(true[0])} and "
        f"{percent(true[1])} are yes"
    )


def _calibration(rows: pd.DataFrame, score: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return of each group and bin of a *score* how many rows there are, which share was observed
    with Wilson's 95 % interval, which is expected by all in the bin, and the mean score.
    """
    import pandas as pd

    weight = row_weights(rows)
    scores = rows[score]
    is_number = pd.api.types.is_numeric_dtype(scores.dtype)
    if not is_number:
        scores = pd.Series(pd.factorize(scores, sort=True)[0], index=rows.index)
    counted = pd.DataFrame({"bin": rows[_BIN], "n": weight, "yes": weight * rows[_OBSERVED]})
    counted["score"] = weight * scores.to_numpy(dtype=np.float64)
    of_all = counted.groupby("bin", sort=False).sum()
    of_all = of_all.assign(expected=of_all["yes"] / of_all["n"])
    of_all["place"] = (of_all["score"] / of_all["n"]).rank()
    tables = []
    for chosen in intersections(columns):
        words = rows[list(chosen)].astype(str)
        groups = words[chosen[0]].str.cat(words[list(chosen[1:])], sep=" × ")
        sums = counted.groupby([groups.rename("group"), "bin"], sort=False).sum().reset_index()
        tables.append(sums.assign(by=" × ".join(chosen)))
    table = pd.concat(tables, ignore_index=True)
    table = table.join(of_all[["expected", "place"]], on="bin")
    table = table.sort_values(["by", "group", "place"], kind="stable", ignore_index=True)
    table["observed"] = table["yes"] / table["n"]
    table["low"], table["high"] = wilson(table["yes"].to_numpy(), table["n"].to_numpy(), Z_95)
    table["score"] /= table["n"]
    shown = ["by", "group", "bin", "n", "observed", "low", "high", "expected"]
    if is_number:
        shown.append("score")
    return table.astype({"n": int})[shown]


def _expected_shares(table: pd.DataFrame) -> dict[str, float]:
    """Return the share that is expected of each group over all bins."""
    expected = table["n"] * table["expected"]
    of_group = expected.groupby(table["group"]).sum() / table.groupby("group")["n"].sum()
    return {str(group): float(share) for group, share in of_group.items()}
