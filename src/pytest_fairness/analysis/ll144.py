"""Selection rates, scoring rates and impact ratios in the form of New York City's rule on automated
hiring tools.

The rule is 6 RCNY §§ 5-300 to 5-304 (Department of Consumer and Worker Protection, 2023), under
Local Law 144 of 2021. Tables to look at, never a verdict: the rule sets no threshold and knows no
chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pytest_fairness.analysis.favourable import read_decisions
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.errors import unknown as unknown_name
from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.arrays import (
    Bools,
    Floats,
    refuse_text_numbers,
    require_column,
    require_frame,
)
from pytest_fairness.words import listed, percent

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.scorers.outcome import Outcome

SELECTION, SCORING = "selection", "scoring"
SYNTHETIC, HISTORICAL, TEST = "synthetic", "historical", "test"
SEX, RACE, BOTH = "sex", "race/ethnicity", "sex × race/ethnicity"
#: An independent auditor may leave out categories under this share of the data (§ 5-301(d)).
SMALL = 0.02
_TITLES = {
    SYNTHETIC: "LL144-format tables (synthetic personas; not a bias audit)",
    HISTORICAL: "LL144-format tables (historical data, by the statement below)",
    TEST: "LL144-format tables (test data, by the statement below)",
}
_REPEATED = (
    "each row is a trial, and the rule counts applicants: further trials with the same name are no "
    "further applicants, "
    "and make no figure surer"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactTables:
    """The impact tables that :func:`ll144_tables` makes.

    ``tables`` has a DataFrame for ``sex``, ``race/ethnicity`` and ``sex × race/ethnicity``, a row a
    category in the order of the data: ``category``, ``applicants``, ``selected`` (those selected,
    or above the median), ``rate`` (0 to 1), ``impact_ratio`` (NaN where there is none), ``share``
    of the applicants in the table (0 to 1) and ``excluded``, the justification of an excluded
    category. Of the ``assessed`` rows, ``unknown`` are of an unknown category and
    ``without_outcome`` neither selected nor scored; both are in no table. ``rate`` is ``selection``
    or ``scoring``, ``median`` that of the scores. Of decisions, ``favourable`` are the labels that
    mean selected and ``unfavourable`` all others. ``data``, ``source`` and the two dates are what
    the caller stated.
    """

    outcome: str
    rate: str
    tables: Mapping[str, pd.DataFrame]
    assessed: int
    unknown: int
    without_outcome: int
    median: float | None = None
    favourable: tuple[str, ...] = ()
    unfavourable: tuple[str, ...] = ()
    data: str = SYNTHETIC
    source: str = ""
    audit_date: str = ""
    distribution_date: str = ""
    endpoints: tuple[str, ...] = ()
    simulated: bool = False
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return _TITLES[self.data]


def ll144_tables(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any] | Outcome,
    *,
    sex: str | None = "gender",
    race: str | None = "race_ethnicity",
    rate: Literal["auto", "selection", "scoring"] = "auto",
    favourable: object = None,
    unknown: Sequence[str] = ("unknown",),
    exclude: Mapping[str, str] | None = None,
    data: Literal["synthetic", "historical", "test"] = "synthetic",
    source: str = "",
    audit_date: str = "",
    distribution_date: str = "",
    scorers: Mapping[str, Any] | None = None,
) -> ImpactTables:
    """The tables of 6 RCNY § 5-301 by sex, by race/ethnicity and by both, one row of *frame* an
    applicant.

    The selection rate of a category is its share of favourable decisions; the scoring rate the
    share of its scores
    *above* the median of all scores (§ 5-300), so that one at the median is not. The impact ratio
    is the rate divided by the highest rate of a category. By default a yes/no *outcome* is a
    selection, a number a score; *favourable* is the value that means selected. A refused trial is
    not selected, and has no score. *sex* and *race* are columns, None where there is none; a
    missing value there and one of *unknown* (in any case of letters) are unknown categories, whose
    rows are counted and in no calculation, that of the median included (§ 5-301(c)(5)).

    *exclude* gives categories under 2 % of the data that stand outside the impact ratios, each with
    the justification that § 5-301(d) asks for (an intersection is named ``female × asian``). *data*
    states what the rows are: ``historical`` or ``test`` data of a real tool need a *source*, their
    origin and explanation (§ 5-303(a)(1)).

    Raises FrameError for a missing column, and UsageError for an outcome that is neither, a
    category that is too large to be excluded or unknown, and a statement that the rows contradict.
    """
    import pandas as pd

    columns = {SEX: sex, RACE: race}
    by = {what: column for what, column in columns.items() if column is not None}
    if not by:
        raise UsageError(
            "neither sex= nor race= names a column: there is no category to calculate a rate of"
        )
    require_frame(frame)
    labels = {what: _categories(frame, column, what, unknown) for what, column in by.items()}
    _check_statement(frame, data, source)
    name, kind, values, present, higher_is_worse = _outcome(
        frame, outcome, rate, favourable, scorers
    )
    decisions = _decisions(frame, outcome, scorers, values, kind)

    complete = np.logical_and.reduce([~column.isna().to_numpy() for column in labels.values()])
    used = complete & present
    if not used.any():
        raise FrameError(
            "no row has both an outcome and known categories: there is no rate to calculate"
        )
    median = None
    hit = values == 1
    if kind == SCORING:
        median = float(np.median(values[used]))
        hit = values > median
    if len(labels) == 2:
        pairs = zip(labels[SEX], labels[RACE], strict=True)
        labels[BOTH] = pd.Series([f"{sex} × {race}" for sex, race in pairs], dtype=object)
    justified = {str(key): str(why) for key, why in (exclude or {}).items()}
    categories = {what: column[used].tolist() for what, column in labels.items()}
    tables = _tables(hit[used], categories, justified)
    _check_exclusions(tables, justified)
    notes = list(_notes(tables, by, higher_is_worse and median is not None))
    if median is not None:
        notes += _notes_on_median(values, used, present, median)
    if _of_trials(frame):
        notes.append(_REPEATED)
    return ImpactTables(
        outcome=name,
        rate=kind,
        tables=tables,
        assessed=len(frame),
        unknown=int((~complete).sum()),
        without_outcome=int((complete & ~present).sum()),
        median=median,
        favourable=decisions[0],
        unfavourable=decisions[1],
        data=data,
        source=source.strip(),
        audit_date=str(audit_date),
        distribution_date=str(distribution_date),
        endpoints=_endpoints(frame),
        simulated=_simulated(frame),
        notes=tuple(notes),
    )


def _endpoints(frame: pd.DataFrame) -> tuple[str, ...]:
    if "endpoint" not in frame.columns:
        return ()
    # Not by Series.map: pyarrow refuses a name that holds half a surrogate pair.
    return tuple(sorted({str(endpoint) for endpoint in frame["endpoint"].dropna()}))


def _categories(
    frame: pd.DataFrame, column: str, what: str, unknown: Sequence[str]
) -> pd.Series[Any]:
    """The categories as texts, missing where they are unknown."""
    import pandas as pd

    nobody = {"", *(label.strip().lower() for label in unknown)}
    labels = require_column(frame, column, what)
    texts: list[str | None] = []
    for label, missing in zip(labels, labels.isna(), strict=True):
        text = str(label).strip()
        if missing or text.lower() in nobody:
            texts.append(None)
        else:
            texts.append(text)
    # As objects: pandas' own texts cannot hold half a surrogate pair.
    return pd.Series(texts, dtype=object)


def _check_statement(frame: pd.DataFrame, data: str, source: str) -> None:
    if data not in _TITLES:
        raise UsageError(f"data={data!r}: it is one of {listed(_TITLES)}")
    if data == SYNTHETIC:
        return
    if _simulated(frame):
        raise UsageError(
            f"data={data!r}: rows are answers of the simulated endpoint, which is no tool of "
            "anybody's"
        )
    if data == HISTORICAL and _of_trials(frame):
        raise UsageError(
            "data='historical': these rows are trials that a test asked for, and historical data "
            "are collected while a "
            "tool is used on real candidates (6 RCNY § 5-300); say data='test', and in source= how "
            "they were made"
        )
    if not source.strip():
        needs = "why no historical data are used, and how these were made"
        if data == HISTORICAL:
            needs = "their origin"
        raise UsageError(
            f"data={data!r} needs source=: {needs} (6 RCNY §§ 5-302, 5-303). It is shown with the "
            "tables"
        )


def _of_trials(frame: pd.DataFrame) -> bool:
    return {"cell", "repetition"} <= set(map(str, frame.columns))


def _simulated(frame: pd.DataFrame) -> bool:
    return "simulated" in frame.columns and bool(
        frame["simulated"].fillna(False).astype(bool).any()
    )


def _outcome(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any] | Outcome,
    rate: str,
    favourable: object,
    scorers: Mapping[str, Any] | None,
) -> tuple[str, str, Floats, Bools, bool]:
    """Its name, the kind of rate, the values (1 where selected), where there are any, whether more
    is worse.
    """
    from pandas.api.types import is_numeric_dtype

    from pytest_fairness.scorers import outcome_of

    if rate not in ("auto", SELECTION, SCORING):
        raise UsageError(f"rate={rate!r}: it is one of auto, {SELECTION}, {SCORING}")
    read_outcome = outcome_of(frame, outcome, scorers)
    values = read_outcome.values
    if favourable is None:
        _refuse_refusals(read_outcome)
    if rate == "auto":
        rate = SELECTION
        if favourable is None and not _is_yes_no(read_outcome):
            rate = SCORING
    flags = {name: _flag(frame, name) for name in ("refused", "undetermined")}
    if rate == SELECTION:
        if favourable is None:
            favourable = True
        decisions = read_decisions(frame, read_outcome, favourable, scorers)
        refused = flags["refused"] & ~flags["undetermined"]
        selected = np.where(refused, 0.0, decisions.yes)
        return (
            read_outcome.name,
            rate,
            selected,
            (decisions.present & ~flags["undetermined"]) | refused,
            False,
        )
    if not is_numeric_dtype(values):
        refuse_text_numbers(read_outcome.name, values, labels=False)
        seen = listed(map(repr, values.dropna().drop_duplicates().tolist()[:8]))
        raise UsageError(
            f"{read_outcome.name!r} holds {seen}: scores are numbers; of decisions, name the one that "
            "means selected with "
            "favourable="
        )
    scores = values.to_numpy(dtype=np.float64, na_value=np.nan)
    present = ~(np.isnan(scores) | flags["refused"] | flags["undetermined"])
    return read_outcome.name, rate, scores, present, not read_outcome.lower_is_worse


def _refuse_refusals(outcome: Outcome) -> None:
    """Raise UsageError where *outcome* says who was refused, which is no decision on anybody."""
    if outcome.kind is OutcomeKind.REFUSAL or outcome.name == "refused":
        raise UsageError(
            "a refusal is no selection: say with favourable= which value is the favourable one"
        )


def _is_yes_no(outcome: Outcome) -> bool:
    """Return whether *outcome* is declared to be yes or no, or holds nothing but 0 and 1."""
    if outcome.kind is OutcomeKind.BINARY:
        return True
    return bool(outcome.values.dropna().isin([0, 1]).all())


def _decisions(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any] | Outcome,
    scorers: Mapping[str, Any] | None,
    values: Floats,
    rate: str,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the labels that mean selected, and the others, as texts; none of scores."""
    from pytest_fairness.scorers import outcome_of

    if rate != SELECTION:
        return (), ()
    # As a list: pandas' own texts cannot hold half a surrogate pair.
    labels = outcome_of(frame, outcome, scorers).values
    kinds: dict[bool, set[str]] = {True: set(), False: set()}
    for label, missing, value in zip(labels.tolist(), labels.isna(), values, strict=True):
        if not missing:
            kinds[bool(value == 1)].add(str(label))
    return tuple(sorted(kinds[True])), tuple(sorted(kinds[False]))


def _flag(frame: pd.DataFrame, name: str) -> Bools:
    if name not in frame.columns:
        return np.zeros(len(frame), dtype=np.bool_)
    return np.asarray(frame[name].fillna(False).astype(bool).to_numpy(), dtype=np.bool_)


def _tables(
    hit: Bools, labels: Mapping[str, Sequence[str]], justified: Mapping[str, str]
) -> dict[str, pd.DataFrame]:
    """Return a table of the rows that *hit* for each of *labels*: sex, race/ethnicity, both."""
    tables = {what: _table(hit, column, justified) for what, column in labels.items()}
    if BOTH in tables:
        tables[BOTH] = _ordered(tables[BOTH], tables[SEX], tables[RACE])
    return tables


def _table(hit: Bools, categories: Sequence[str], justified: Mapping[str, str]) -> pd.DataFrame:
    import pandas as pd

    places = {category: at for at, category in enumerate(dict.fromkeys(categories))}
    of_row = [places[category] for category in categories]
    applicants = np.bincount(of_row)
    selected = np.bincount(of_row, weights=hit).astype(np.int64)
    rate = selected / applicants
    why = [justified.get(category, "") for category in places]
    included = np.array([not reason for reason in why], dtype=np.bool_)
    highest = float(rate[included].max(initial=0.0))
    ratio = np.full(rate.size, np.nan)
    if highest:
        ratio[included] = rate[included] / highest
    return pd.DataFrame(
        {
            "category": pd.Series(list(places), dtype=object),
            "applicants": applicants,
            "selected": selected,
            "rate": rate,
            "impact_ratio": ratio,
            "share": applicants / applicants.sum(),
            "excluded": pd.Series(why, dtype=object),
        }
    )


def _ordered(crossed: pd.DataFrame, sexes: pd.DataFrame, races: pd.DataFrame) -> pd.DataFrame:
    """Return the *crossed* table by sex, then by race/ethnicity, each in the order of its own
    table.
    """
    order = {
        f"{sex} × {race}": place
        for place, (sex, race) in enumerate(product(sexes["category"], races["category"]))
    }
    places = [order[category] for category in crossed["category"].tolist()]
    return crossed.iloc[np.argsort(places, kind="stable")].reset_index(drop=True)


def _check_exclusions(tables: Mapping[str, pd.DataFrame], justified: Mapping[str, str]) -> None:
    shares: dict[str, float] = {}
    for table in tables.values():
        shares |= dict(zip(table["category"].tolist(), table["share"].tolist(), strict=True))
    for category, why in justified.items():
        if category not in shares:
            raise UsageError(f"exclude: {unknown_name('category', category, shares)}")
        if shares[category] >= SMALL:
            raise UsageError(
                f"exclude: {category!r} is {percent(shares[category])} of the data, and only a "
                "category under 2 % "
                "may be excluded (6 RCNY § 5-301(d))"
            )
        if not why.strip():
            raise UsageError(
                f"exclude: {category!r} needs the justification that 6 RCNY § 5-301(d) asks for"
            )


def _notes(
    tables: Mapping[str, pd.DataFrame], by: Mapping[str, str], higher_is_worse: bool
) -> Iterator[str]:
    for what in (SEX, RACE):
        if what not in by:
            yield (
                f"no table by {what} and none by both, which § 5-301 asks for: no column names the "
                f"{what}"
            )
    for what, table in tables.items():
        if len(table) == 1:
            yield (
                f"by {what} there is one category only, {table['category'][0]}: its impact ratio "
                "compares nothing"
            )
        if not table["selected"].any():
            yield f"by {what} every rate is 0, so that there is no impact ratio"
        small = table.loc[(table["share"] < SMALL) & (table["excluded"] == ""), "category"].tolist()
        if small:
            yield f"under 2 % of the data and not excluded, by {what}: {', '.join(small)}"
    if higher_is_worse:
        yield (
            "a higher score is the worse one here; the rule calls the highest scoring rate the "
            "best all the same"
        )


def _notes_on_median(values: Floats, used: Bools, present: Bools, median: float) -> Iterator[str]:
    tied = int((values[used] == median).sum())
    if tied:
        yield (
            f"{tied:,} of {int(used.sum()):,} scores equal the median, {median:g}, and are not "
            "above it"
        )
    everyone = float(np.median(values[present]))
    if everyone != median:
        yield f"with the rows of unknown categories the median would be {everyone:g}"
