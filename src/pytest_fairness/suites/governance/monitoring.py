"""Drift of scores and verdicts over runs: control charts of each comparison's level and gaps, and
of its verdicts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec

from pytest_fairness import Finding, GroupResult, OutcomeKind, Reason, Verdict
from pytest_fairness.analysis.checks import checked, unchecked
from pytest_fairness.analysis.drift import JudgedDrift, judge_drift
from pytest_fairness.analysis.policy import MARGIN, TRIVIAL
from pytest_fairness.model import ALARMS, JSON, to_json
from pytest_fairness.reports import Columns, Entry, ForestRow, OverTime, Section, table
from pytest_fairness.statistics.control_charts import (
    ControlChart,
    control_chart,
    cusum_arl,
    decision_interval,
    self_starting,
    self_starting_counts,
    shewhart_arl,
    shewhart_limit,
)
from pytest_fairness.statistics.proportions import Z_95
from pytest_fairness.suites.governance.past_results import (
    PastRuns,
    id_of,
    named_findings,
    words_of,
)
from pytest_fairness.words import agreeing, count, first_few, percent

if TYPE_CHECKING:
    from pytest_fairness.reports import RunResults

_Positive = Annotated[float, msgspec.Meta(gt=0)]
#: The share of the newest run's comparisons that another has to have made, for their verdicts to be
#: counted together.
SHARED = 0.8
#: Pictures of charts that raised an alarm.
MOST_PICTURES = 12


class MonitoringOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of ``governance.yaml`` under ``monitoring``.

    ``least_runs``: fewer decide nothing. ``since``: the first run of the charts, to start them anew
    after an alarm was looked into. ``false_alarm_every``: without any drift, all charts of a test
    together raise one alarm in so many runs. ``k``: the allowance of the CUSUM, half the shift that
    it finds soonest, in standard deviations between runs. ``h`` and ``limit``: where a CUSUM and a
    single value raise the alarm, instead of what follows from ``false_alarm_every``.
    """

    least_runs: Annotated[int, msgspec.Meta(ge=4)] = 8
    since: str = ""
    false_alarm_every: Annotated[float, msgspec.Meta(ge=10)] = 370
    k: Annotated[float, msgspec.Meta(ge=0.1, le=2)] = 0.5
    h: Annotated[float, msgspec.Meta(gt=0, le=15)] | None = None
    limit: Annotated[float, msgspec.Meta(gt=0, le=8)] | None = None


@dataclass(frozen=True, kw_only=True)
class ChartLimits:
    """Limits at which charts raise the alarm, and the number of runs that takes on average:
    ``arl_0`` one chart without drift, both ways of looking together, ``arl_1`` the CUSUM after a
    shift of one standard deviation.
    """

    k: float
    h: float
    limit: float
    sides: int
    charts: int

    @classmethod
    def of(cls, options: MonitoringOptions, charts: int, sides: int) -> ChartLimits:
        """False alarms of all *charts*, by CUSUM and by single values in equal parts, add up to one
        in so many runs.
        """
        each = options.false_alarm_every * max(charts, 1) * 2
        h = options.h
        if h is None:
            h = decision_interval(options.k, each, sides=sides)
        limit = options.limit
        if limit is None:
            limit = shewhart_limit(each, sides=sides)
        return cls(k=options.k, h=h, limit=limit, sides=sides, charts=charts)

    @property
    def arl_0(self) -> float:
        both = 1 / cusum_arl(self.k, self.h, sides=self.sides) + 1 / shewhart_arl(
            self.limit, sides=self.sides
        )
        return 1 / both

    @property
    def arl_1(self) -> float:
        return cusum_arl(self.k, self.h, 1.0, sides=self.sides)


@dataclass(frozen=True, kw_only=True)
class RunSeries:
    """One figure of a comparison over runs, the oldest first: ``level``, ``gap`` of a group against
    the others, or ``alarms``. ``variances`` are those of the sampling in each run, where known;
    ``sd`` is that of the outcome within groups, in which a change is measured; of alarms, ``sizes``
    are how many comparisons there are.
    """

    what: str
    of: str
    runs: tuple[str, ...]
    values: tuple[float, ...]
    variances: tuple[float, ...] | None = None
    sd: float | None = None
    sizes: tuple[int, ...] = ()

    def chart(self, limits: ChartLimits) -> ControlChart:
        if self.what == "alarms":
            counts = [
                round(value * size) for value, size in zip(self.values, self.sizes, strict=True)
            ]
            scores = self_starting_counts(counts, self.sizes)
        else:
            scores = self_starting(self.values, self.variances)
        return control_chart(scores, k=limits.k, h=limits.h, limit=limits.limit, sides=limits.sides)


@dataclass(frozen=True, kw_only=True)
class RunDrift:
    """A series with its chart, and what follows from that."""

    series: RunSeries
    chart: ControlChart
    judged: JudgedDrift

    @classmethod
    def of(cls, series: RunSeries, limits: ChartLimits) -> RunDrift:
        """Return *series* as :func:`~pytest_fairness.analysis.drift.judge_drift` judges it."""
        chart = series.chart(limits)
        judged = judge_drift(chart, series.values, series.sd, gap=series.what == "gap")
        return cls(series=series, chart=chart, judged=judged)

    @property
    def verdict(self) -> Verdict:
        return self.judged.verdict

    @property
    def urgency(self) -> tuple[int, bool, float]:
        """The more, the more it has to be looked into."""
        alarm = self.chart.alarm is not None
        return self.verdict.severity, alarm, abs(self.judged.d or 0.0)

    @property
    def words(self) -> str:
        """Return what has changed, and how it was noticed; empty without an alarm."""
        series = self.series
        chart = self.chart
        if chart.alarm is None or chart.change is None:
            return ""
        name = {
            "level": "the level",
            "gap": f"the gap of {series.of}",
            "alarms": "the share of alarms",
        }[series.what]
        rule = {"value": "a single value", "cusum": "the CUSUM"}[chart.by]
        noticed = f"{rule} passes its limit in run {series.runs[chart.alarm]}"
        since = series.runs[chart.change]
        return f"{name} has changed since run {since}, {self._figures()}; {noticed}"

    def _figures(self) -> str:
        """From what to what the mean has moved."""
        before = self.judged.before
        after = self.judged.after
        if self.series.what == "alarms":
            return f"from {percent(before)} of the comparisons to {percent(after)}"
        figures = f"from {before:.3g} to {after:.3g}"
        if self.judged.d is None:
            return figures
        return f"{figures}, {self.judged.d:+.2f} standard deviations"


# ---------------------------------------------------------------- series


#: A run, with groups that have a value each.
RunGroups: TypeAlias = "tuple[str, list[GroupResult]]"


@dataclass(frozen=True, kw_only=True)
class MonitoredComparison:
    """A comparison by the id that it keeps from run to run, as each run has it, the oldest first."""

    id: str
    points: tuple[tuple[str, Finding], ...]

    @property
    def latest(self) -> Finding:
        return self.points[-1][1]

    def series(self, what: str) -> list[RunSeries]:
        """Those of *what*: of runs that have a value of every group; none where the outcome has no
        values.
        """
        names = list(_valued_groups(self.latest))
        points = self._complete(names)
        if not points:
            return []
        if what == "level":
            return [self._weighted("level", "", points, [1 / len(names)] * len(names))]
        if len(names) < 2:
            return []
        gaps = names
        if len(names) == 2:
            gaps = names[:1]  # one gap is the other's
        others = -1 / (len(names) - 1)
        series = []
        for group in gaps:
            weights = [others] * len(names)
            weights[names.index(group)] = 1.0
            series.append(self._weighted("gap", group, points, weights))
        return series

    def _complete(self, names: Sequence[str]) -> list[RunGroups]:
        """The runs that have a value of each group of *names*, with these groups in this order."""
        complete = []
        for run, finding in self.points:
            groups = _valued_groups(finding)
            if names and groups.keys() >= set(names):
                complete.append((run, [groups[name] for name in names]))
        return complete

    def _weighted(
        self, what: str, of: str, points: Sequence[RunGroups], weights: Sequence[float]
    ) -> RunSeries:
        """The weighted sum of the groups' values in each run, with its variance."""
        values = []
        for _, groups in points:
            weighted = zip(weights, groups, strict=True)
            values.append(sum(weight * float(group.value or 0.0) for weight, group in weighted))
        return RunSeries(
            what=what,
            of=of,
            runs=tuple(run for run, _ in points),
            values=tuple(values),
            variances=_variances(points, weights),
            sd=_within(self.latest),
        )


def _valued_groups(finding: Finding) -> dict[str, GroupResult]:
    return {group.group: group for group in finding.group_results if group.value is not None}


def _variances(points: Sequence[RunGroups], weights: Sequence[float]) -> tuple[float, ...] | None:
    """Of each run that of the weighted sum of its groups; None where one is not known, or is 0."""
    variances = []
    for _, groups in points:
        total = 0.0
        for weight, group in zip(weights, groups, strict=True):
            variance = _variance(group)
            if variance is None:
                return None
            total += weight * weight * variance
        if total <= 0:
            return None
        variances.append(total)
    return tuple(variances)


def _variance(group: GroupResult) -> float | None:
    """Of the mean or rate of *group*, from its 95 % interval."""
    if group.low is None or group.high is None:
        return None
    return float(((group.high - group.low) / (2 * Z_95)) ** 2)


def _within(finding: Finding) -> float | None:
    """The standard deviation of the outcome within groups."""
    variances: list[float] = []
    variances_of_rates: list[float] = []
    for group in _valued_groups(finding).values():
        rate = float(group.value or 0)
        variances_of_rates.append(rate * (1 - rate))
        if group.sd is not None:
            variances.append(group.sd**2)
    if variances and len(variances) == len(variances_of_rates):
        return math.sqrt(fmean(variances))
    if finding.kind in (OutcomeKind.BINARY, OutcomeKind.REFUSAL):
        return math.sqrt(fmean(variances_of_rates))
    return None


@dataclass(frozen=True, kw_only=True)
class Monitored:
    """The subject of one finding: the series of a comparison, or of an endpoint's verdicts, of the
    same runs; ``findings`` are those that they are made of, ``latest`` the newest.
    """

    name: str
    latest: Finding
    series: Sequence[RunSeries]
    findings: Sequence[Finding]

    @property
    def runs(self) -> int:
        """The number of runs that have a figure."""
        if self.series:
            return len(self.series[0].runs)
        return 0


def monitored(past: PastRuns, options: MonitoringOptions, what: str) -> Iterator[Monitored]:
    """Yield each comparison with its ``level`` or ``gap``, or each endpoint with its ``alarms``."""
    if what == "alarms":
        yield from verdict_series(past, options)
        return
    for comparison in comparisons(past, options):
        yield Monitored(
            name=words_of(comparison.latest, comparison.id),
            latest=comparison.latest,
            series=comparison.series(what),
            findings=[finding for _, finding in comparison.points],
        )


def comparisons(past: PastRuns, options: MonitoringOptions) -> list[MonitoredComparison]:
    """Each comparison of the runs since the one where the charts start."""
    points: dict[str, list[tuple[str, Finding]]] = {}
    for run in past.since(options.since).asked:
        for finding, _, number in named_findings(run):
            points.setdefault(number, []).append((id_of(run), finding))
    compared = []
    for number, values in points.items():
        compared.append(MonitoredComparison(id=number, points=tuple(values)))
    return compared


def verdict_series(past: PastRuns, options: MonitoringOptions) -> Iterator[Monitored]:
    """Of each endpoint the share of its comparisons that raise an alarm, run by run: of those that
    the newest of its runs has made, in each run that made most of them.
    """
    endpoints: dict[str, list[tuple[str, dict[str, Finding]]]] = {}
    for run in past.since(options.since).asked:
        for endpoint, of_run in _by_endpoint(run).items():
            endpoints.setdefault(endpoint, []).append((id_of(run), of_run))
    for endpoint, runs in endpoints.items():
        ids: list[str] = []
        shares: list[float] = []
        sizes: list[int] = []
        findings: list[Finding] = []
        for run_id, shared in _sharing(runs):
            ids.append(run_id)
            shares.append(_alarms(shared) / len(shared))
            sizes.append(len(shared))
            findings += shared
        series = RunSeries(
            what="alarms",
            of=endpoint,
            runs=tuple(ids),
            values=tuple(shares),
            sizes=tuple(sizes),
        )
        yield Monitored(
            name=f"verdicts of {endpoint or 'no endpoint'}",
            latest=findings[-1],
            series=[series],
            findings=findings,
        )


def _by_endpoint(run: RunResults) -> dict[str, dict[str, Finding]]:
    """The findings of *run* by endpoint, then by the id of their comparison."""
    endpoints: dict[str, dict[str, Finding]] = {}
    for finding, _, number in named_findings(run):
        endpoints.setdefault(finding.model_endpoint or "", {})[number] = finding
    return endpoints


def _sharing(
    runs: Sequence[tuple[str, Mapping[str, Finding]]],
) -> list[tuple[str, list[Finding]]]:
    """Those of *runs* that made most of the comparisons of the last, with these."""
    wanted = runs[-1][1].keys()
    sharing = []
    for run, findings in runs:
        shared = [findings[number] for number in wanted if number in findings]
        if len(shared) >= SHARED * len(wanted):
            sharing.append((run, shared))
    return sharing


def _alarms(findings: Sequence[Finding]) -> int:
    return sum(finding.verdict in ALARMS for finding in findings)


# ---------------------------------------------------------------- findings


def drift_findings(
    past: PastRuns, options: MonitoringOptions, what: str
) -> tuple[list[Finding], list[tuple[str, RunDrift]]]:
    """A finding of each comparison on its ``level`` or its ``gap``, one of each endpoint on its
    ``alarms``, and one on all that has too few runs; and the charts that were judged, each with the
    name of its comparison.
    """
    enough: list[Monitored] = []
    few: list[Monitored] = []
    charts = 0
    for subject in monitored(past, options, what):
        if subject.runs >= options.least_runs:
            enough.append(subject)
            charts += len(subject.series)
        elif subject.runs:
            few.append(subject)
    sides = 2
    if what == "alarms":
        sides = 1
    limits = ChartLimits.of(options, charts, sides)
    findings = []
    named: list[tuple[str, RunDrift]] = []
    for subject in enough:
        drifts = [RunDrift.of(series, limits) for series in subject.series]
        findings.append(_finding(what, subject, drifts, limits))
        named += zip(itertools.repeat(subject.name), drifts)
    if few or not enough:
        findings.append(_too_few(what, few, options, past, nothing=not enough))
    return findings, named


def _finding(
    what: str, subject: Monitored, drifts: Sequence[RunDrift], limits: ChartLimits
) -> Finding:
    """The finding on one comparison: that of the chart whose verdict is the worst."""
    worst = max(drifts, key=lambda drift: drift.urgency)
    statistic, effect = _figures_of(worst, limits)
    about = _about(what, subject.latest)
    note = (
        f"{count(limits.charts, 'chart')} in this test: each raises an alarm in "
        f"{limits.arl_0:,.0f} runs without drift; the CUSUM finds a shift of one standard "
        f"deviation between runs in {limits.arl_1:.1f} runs on average, once there are many runs "
        "before it"
    )
    shown: dict[str, JSON] = {
        name: getattr(limits, name) for name in ("k", "h", "limit", "arl_0", "arl_1")
    }
    return checked(
        _origin(subject.findings),
        assertion="drift",
        verdict=worst.verdict,
        words=_sentence(what, subject.name, worst),
        unit=subject.latest.unit,
        test_statistic=statistic,
        effect_size=effect,
        notes=(note,),
        details={"limits": to_json(shown), "charts": list(map(_recorded, drifts))},
        **about,
    )


def _about(what: str, latest: Finding) -> dict[str, Any]:
    """The fields by which a finding says what it is about: verdicts are of no class or group."""
    if what == "alarms":
        return {"outcome": what}
    return {
        "outcome": f"{what} of {latest.outcome or latest.assertion}",
        "protected_class": latest.protected_class,
        "tier": latest.tier,
        "kind": latest.kind,
        "n_per_group": latest.n_per_group,
        "group_results": latest.group_results,
    }


def _sentence(what: str, name: str, drift: RunDrift) -> str:
    if drift.verdict is Verdict.PASS:
        words = f"no drift of the {what} over {count(len(drift.series.runs), 'run')} of {name}"
        if drift.words:
            words += f"; {drift.words}, which is less than {TRIVIAL} and trivial"
        return words
    words = f"{name}: {drift.words}"
    if drift.verdict is Verdict.FAIL:
        words += f", wider than {MARGIN} standard deviations now"
    return words


def _figures_of(drift: RunDrift, limits: ChartLimits) -> tuple[str, str]:
    """The test statistic and the effect size of *drift*, in words."""
    chart = drift.chart
    sums = max(chart.upper.max(), chart.lower.max())
    statistic = f"CUSUM {sums:.2f} (limit {limits.h:.2f}, k = {limits.k:g})"
    if chart.alarm is None:
        return statistic, "not computed: no chart raised an alarm"
    if chart.by == "value":
        statistic = f"score {chart.scores[chart.alarm]:.2f} (limit {limits.limit:.2f})"
    if drift.judged.d is None:
        return statistic, "not computed"
    return statistic, f"d = {drift.judged.d:.2f}"


def _origin(findings: Sequence[Finding]) -> Any:
    import pandas as pd

    names = {"endpoint": "model_endpoint", "simulated": "simulated", "replayed": "replayed"}
    columns = {}
    for column, field in names.items():
        columns[column] = [getattr(finding, field) for finding in findings]
    return pd.DataFrame(columns)


def _recorded(drift: RunDrift) -> Any:
    """A chart as JSON: every value with its score and its sums."""
    series = drift.series
    chart = drift.chart
    scores = [None if math.isnan(score) else float(score) for score in chart.scores]
    return to_json(
        {
            "what": series.what,
            "of": series.of,
            "runs": list(series.runs),
            "values": list(series.values),
            "scores": scores,
            "upper": list(map(float, chart.upper)),
            "lower": list(map(float, chart.lower)),
            "alarm": _run_at(series, chart.alarm),
            "changed_since": _run_at(series, chart.change),
            "d": drift.judged.d,
            "verdict": drift.verdict.value,
        }
    )


def _run_at(series: RunSeries, place: int | None) -> str | None:
    if place is None:
        return None
    return series.runs[place]


def _too_few(
    what: str,
    few: Sequence[Monitored],
    options: MonitoringOptions,
    past: PastRuns,
    *,
    nothing: bool,
) -> Finding:
    """Return what is concluded of comparisons that not enough runs have made: where there are no
    others, nothing was done.
    """
    runs = len([run for run in past.since(options.since).asked if named_findings(run)])
    if few:
        most = max(subject.runs for subject in few)
        words = (
            f"{count(len(few), 'comparison')} with {count(most, 'run')} at most, where a chart of "
            f"the {what} needs {options.least_runs} "
            f"({first_few([subject.name for subject in few])})"
        )
    elif runs:
        has = agreeing(runs, "has", "have")
        words = f"{count(runs, 'past run')} that asked {has} no figures to chart"
    else:
        words = "there is no past run with findings"
    reason = Reason.PRECISION
    if nothing:
        reason = Reason.N
    return unchecked(
        _origin([finding for subject in few for finding in subject.findings]),
        assertion="drift",
        reason=reason,
        words=f"{words}: run the fairness tests again, with the same names and templates",
        outcome=what,
    )


# ---------------------------------------------------------------- as the report shows it


def drift_section(what: str, drifts: Sequence[tuple[str, RunDrift]]) -> Section | None:
    """A row a chart, the worst first, and a picture of each that raised an alarm; None without a
    chart.
    """
    if not drifts:
        return None
    rows = sorted(drifts, key=lambda row: (-row[1].verdict.severity, row[1].chart.alarm is None))
    columns: Columns = {
        "comparison": lambda row: row[0],
        "of": lambda row: row[1].series.of if what == "gap" else what,
        "runs": lambda row: str(len(row[1].series.runs)),
        "first": lambda row: f"{row[1].series.values[0]:.3g}",
        "newest": lambda row: f"{row[1].series.values[-1]:.3g}",
        "CUSUM up": lambda row: f"{row[1].chart.upper.max():.2f}",
        "CUSUM down": lambda row: f"{row[1].chart.lower.max():.2f}",
        "alarm in": lambda row: _run_at(row[1].series, row[1].chart.alarm) or "",
        "verdict": lambda row: Entry(verdict=row[1].verdict),
    }
    alarms = [(name, drift) for name, drift in rows if drift.chart.alarm is not None]
    pictures = [_picture(name, drift) for name, drift in alarms[:MOST_PICTURES]]
    shown = table(f"Control charts of the {what}", rows, columns, words=("of", "alarm in"))
    return Section(id=f"drift-{what}", heading=f"Drift of the {what}", parts=(*pictures, shown))


def _picture(name: str, drift: RunDrift) -> OverTime:
    series = drift.series
    rows = []
    for place, (run, value) in enumerate(zip(series.runs, series.values, strict=True)):
        words = f"{value:.3g}"
        if place == drift.chart.alarm:
            words += " alarm"
        rows.append(ForestRow(label=run, value=value, words=words))
    about = series.what
    if series.of:
        about += f" of {series.of}"
    return OverTime(title=f"{name}: {about}", axis=about, rows=tuple(rows), caption=drift.words)
