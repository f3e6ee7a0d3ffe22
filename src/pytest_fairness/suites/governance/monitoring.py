"""How scores and verdicts drift over runs: control charts of each comparison's level and gaps, and
of its verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from pytest_fairness.analysis.checks import checked
from pytest_fairness.model import ALARMS, Finding, OutcomeKind, Reason, Verdict, to_json
from pytest_fairness.reports.charts import ForestRow, OverTime
from pytest_fairness.reports.sections import Columns, Entry, Section, table
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
    listed_few,
    named_findings,
    words_of,
)
from pytest_fairness.words import count, percent

if TYPE_CHECKING:
    from pytest_fairness.reports.findings_json import RunResults

_Positive = Annotated[float, msgspec.Meta(gt=0)]
#: Of a change, and of a gap, in standard deviations: those of the test specification's verdicts
#: (§4.4).
TRIVIAL, MEDIUM = 0.2, 0.5
#: The share of the newest run's comparisons that another has to have made, for their verdicts to be
#: counted together.
SHARED = 0.8
#: Pictures of charts that raised an alarm.
MOST_PICTURES = 12


class MonitoringOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``governance.yaml`` may say under ``monitoring``.

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
    """Where charts raise the alarm, and how many runs that takes on average: ``arl_0`` one chart
    without drift, both ways of looking together, ``arl_1`` the CUSUM after a shift of one standard
    deviation.
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
        return cls(
            k=options.k,
            h=decision_interval(options.k, each, sides=sides) if options.h is None else options.h,
            limit=shewhart_limit(each, sides=sides) if options.limit is None else options.limit,
            sides=sides,
            charts=charts,
        )

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
    """A series as its chart judges it: ``before`` and ``after`` are its means up to the change and
    from it on, ``d`` their difference in standard deviations.
    """

    series: RunSeries
    chart: ControlChart
    verdict: Verdict
    before: float | None = None
    after: float | None = None
    d: float | None = None

    @classmethod
    def of(cls, series: RunSeries, limits: ChartLimits) -> RunDrift:
        """PASS without an alarm, or for a change below :data:`TRIVIAL`; FAIL for a gap that has
        become wider, and wider than :data:`MEDIUM`; FLAG for any other alarm.
        """
        chart = series.chart(limits)
        if chart.change is None:
            return cls(series=series, chart=chart, verdict=Verdict.PASS)
        before = fmean(series.values[: chart.change])
        after = fmean(series.values[chart.change :])
        d = _in_sd(after - before, series.sd)
        gap = _in_sd(after, series.sd)
        verdict = Verdict.FLAG
        if d is not None and abs(d) < TRIVIAL:
            verdict = Verdict.PASS
        elif (
            series.what == "gap"
            and abs(after) > abs(before)
            and gap is not None
            and abs(gap) > MEDIUM
        ):
            verdict = Verdict.FAIL
        return cls(series=series, chart=chart, verdict=verdict, before=before, after=after, d=d)

    @property
    def words(self) -> str:
        """Return what has changed, and how it was noticed; empty without an alarm."""
        series = self.series
        chart = self.chart
        if chart.alarm is None or chart.change is None or self.before is None or self.after is None:
            return ""
        if series.what == "alarms":
            figures = f"from {percent(self.before)} of the comparisons to {percent(self.after)}"
        else:
            d = ""
            if self.d is not None:
                d = f", {self.d:+.2f} standard deviations"
            figures = f"from {self.before:.3g} to {self.after:.3g}{d}"
        name = {
            "level": "the level",
            "gap": f"the gap of {series.of}",
            "alarms": "the share of alarms",
        }[series.what]
        way = {"value": "a single value", "cusum": "the CUSUM"}[chart.by]
        noticed = f"{way} passes its limit in run {series.runs[chart.alarm]}"
        return f"{name} has changed since run {series.runs[chart.change]}, {figures}; {noticed}"


def _in_sd(difference: float, sd: float | None) -> float | None:
    if sd is None:
        return None
    if sd > 0:
        return difference / sd
    if difference:
        return math.copysign(math.inf, difference)
    return 0.0


# ---------------------------------------------------------------- series


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
        groups = [group.group for group in self.latest.group_results if group.value is not None]
        series_: list[tuple[str, list[tuple[float, float | None]]]] = []
        for run, finding in self.points:
            values = {
                group.group: group for group in finding.group_results if group.value is not None
            }
            if groups and all(group in values for group in groups):
                series_.append(
                    (
                        run,
                        [
                            (float(values[group].value or 0.0), _variance(values[group]))
                            for group in groups
                        ],
                    )
                )
        if not series_:
            return []
        if what == "level":
            return [self._of("level", "", series_, [1 / len(groups)] * len(groups))]
        if len(groups) < 2:
            return []
        others = 1 / (len(groups) - 1)
        kept = groups if len(groups) > 2 else groups[:1]  # of two groups, one gap is the other's
        return [
            self._of(
                "gap",
                group,
                series_,
                [1.0 if group_values == group else -others for group_values in groups],
            )
            for group in kept
        ]

    def _of(
        self,
        what: str,
        of: str,
        weighted_groups: Sequence[tuple[str, list[tuple[float, float | None]]]],
        weights: list[float],
    ) -> RunSeries:
        """The weighted sum of the groups' values in each run, with its variance."""
        values = [
            sum(w * value for w, (value, _) in zip(weights, groups, strict=True))
            for _, groups in weighted_groups
        ]
        variances = [
            sum(w * w * (group or 0.0) for w, (_, group) in zip(weights, groups, strict=True))
            for _, groups in weighted_groups
        ]
        figures = (
            all(group is not None for _, groups in weighted_groups for _, group in groups)
            and min(variances) > 0
        )
        return RunSeries(
            what=what,
            of=of,
            runs=tuple(run for run, _ in weighted_groups),
            values=tuple(values),
            variances=tuple(variances) if figures else None,
            sd=_within(self.latest),
        )


def _variance(group: Any) -> float | None:
    """Of the mean or rate of *group*, from its 95 % interval."""
    if group.low is None or group.high is None:
        return None
    return float(((group.high - group.low) / (2 * Z_95)) ** 2)


def _within(finding: Finding) -> float | None:
    """The standard deviation of the outcome within groups."""
    groups = [group for group in finding.group_results if group.value is not None]
    if groups and all(group.sd is not None for group in groups):
        return math.sqrt(fmean(float(group.sd or 0.0) ** 2 for group in groups))
    if finding.kind in (OutcomeKind.BINARY, OutcomeKind.REFUSAL):
        return math.sqrt(
            fmean(float(group.value or 0) * (1 - float(group.value or 0)) for group in groups)
        )
    return None


def comparisons(past: PastRuns, options: MonitoringOptions) -> list[MonitoredComparison]:
    """Each comparison of the runs since the one where the charts start."""
    points: dict[str, list[tuple[str, Finding]]] = {}
    for run in past.since(options.since).asked:
        for finding, _, number in named_findings(run):
            points.setdefault(number, []).append((id_of(run), finding))
    return [
        MonitoredComparison(id=number, points=tuple(values)) for number, values in points.items()
    ]


def verdict_series(
    past: PastRuns, options: MonitoringOptions
) -> Iterator[tuple[str, RunSeries, list[Finding]]]:
    """Of each endpoint the share of its comparisons that raise an alarm, run by run: of those that
    the newest of its runs has made, in each run that made most of them.
    """
    runs = past.since(options.since).asked
    endpoints = dict.fromkeys(
        finding.model_endpoint or "" for run in runs for finding, _, _ in named_findings(run)
    )
    for endpoint in endpoints:
        by_run = [
            (id_of(run), findings) for run in runs if (findings := _of_endpoint(run, endpoint))
        ]
        wanted = by_run[-1][1].keys()
        kept = [
            (run, [findings[number] for number in wanted if number in findings])
            for run, findings in by_run
            if len(wanted & findings.keys()) >= SHARED * len(wanted)
        ]
        series = RunSeries(
            what="alarms",
            of=endpoint,
            runs=tuple(run for run, _ in kept),
            values=tuple(
                sum(finding.verdict in ALARMS for finding in findings) / len(findings)
                for _, findings in kept
            ),
            sizes=tuple(len(findings) for _, findings in kept),
        )
        yield endpoint, series, [finding for _, findings in kept for finding in findings]


def _of_endpoint(run: RunResults, endpoint: str) -> dict[str, Finding]:
    return {
        number: finding
        for finding, _, number in named_findings(run)
        if (finding.model_endpoint or "") == endpoint
    }


# ---------------------------------------------------------------- findings


def drift_findings(
    past: PastRuns, options: MonitoringOptions, what: str
) -> tuple[list[Finding], list[tuple[str, RunDrift]]]:
    """A finding of each comparison on its ``level`` or its ``gap``, one of each endpoint on its
    ``alarms``, and one on all that has too few runs; and the charts that were judged, each with the
    name of its comparison.
    """
    monitored: list[tuple[Finding, str, list[RunSeries], Sequence[Finding]]]
    if what == "alarms":
        monitored = [
            (findings[-1], f"verdicts of {endpoint or 'no endpoint'}", [series], findings)
            for endpoint, series, findings in verdict_series(past, options)
        ]
    else:
        monitored = [
            (
                comparison.latest,
                words_of(comparison.latest, comparison.id),
                comparison.series(what),
                [finding for _, finding in comparison.points],
            )
            for comparison in comparisons(past, options)
        ]
    enough = [
        drift for drift in monitored if drift[2] and len(drift[2][0].runs) >= options.least_runs
    ]
    few = [drift for drift in monitored if drift[2] and len(drift[2][0].runs) < options.least_runs]
    limits = ChartLimits.of(
        options, sum(len(series) for _, _, series, _ in enough), 1 if what == "alarms" else 2
    )
    drifts = {
        name: [RunDrift.of(point, limits) for point in series] for _, name, series, _ in enough
    }
    findings = [
        _finding(what, endpoint, name, drifts[name], limits, findings)
        for endpoint, name, _, findings in enough
    ]
    if few or not enough:
        findings.append(_too_few(what, few, options, past, nothing=not enough))
    return findings, [(name, drift) for name, judged in drifts.items() for drift in judged]


def _finding(
    what: str,
    latest: Finding,
    name: str,
    drifts: Sequence[RunDrift],
    limits: ChartLimits,
    findings: Sequence[Finding],
) -> Finding:
    """The finding on one comparison: that of the chart whose verdict is the worst."""
    worst = max(
        drifts,
        key=lambda drift: (
            drift.verdict.severity,
            drift.chart.alarm is not None,
            abs(drift.d or 0.0),
        ),
    )
    series = worst.series
    verdict = worst.verdict
    if verdict is Verdict.PASS:
        trivial = ""
        if worst.words:
            trivial = f"; {worst.words}, which is less than {TRIVIAL} and trivial"
        sentence = (
            f"no drift of the {what} over {count(len(series.runs), 'run')} of {name}{trivial}"
        )
    else:
        wide = ""
        if verdict is Verdict.FAIL:
            wide = f", wider than {MEDIUM} standard deviations now"
        sentence = f"{name}: {worst.words}{wide}"
    alarm = worst.chart.alarm
    sums = max(worst.chart.upper.max(), worst.chart.lower.max())
    statistic = f"CUSUM {sums:.2f} (limit {limits.h:.2f}, k = {limits.k:g})"
    if alarm is not None and worst.chart.by == "value":
        statistic = f"score {worst.chart.scores[alarm]:.2f} (limit {limits.limit:.2f})"
    d = "not computed"
    if worst.d is not None:
        d = f"d = {worst.d:.2f}"
    return checked(
        _origin(findings),
        assertion="drift",
        verdict=verdict,
        words=sentence,
        protected_class="" if what == "alarms" else latest.protected_class,
        outcome=what if what == "alarms" else f"{what} of {latest.outcome or latest.assertion}",
        tier=None if what == "alarms" else latest.tier,
        kind=None if what == "alarms" else latest.kind,
        unit=latest.unit,
        n_per_group={} if what == "alarms" else latest.n_per_group,
        group_results=() if what == "alarms" else latest.group_results,
        test_statistic=statistic,
        effect_size="not computed: no chart raised an alarm" if alarm is None else d,
        notes=(
            f"{count(limits.charts, 'chart')} in this test: each raises an alarm in "
            f"{limits.arl_0:,.0f} runs without "
            "drift; the CUSUM finds a shift of one standard deviation between runs in "
            f"{limits.arl_1:.1f} runs on "
            "average, once there are many runs before it",
        ),
        details={
            "limits": to_json(
                {**{name: getattr(limits, name) for name in ("k", "h", "limit", "arl_0", "arl_1")}}
            ),
            "charts": [_recorded(drift) for drift in drifts],
        },
    )


def _origin(findings: Sequence[Finding]) -> Any:
    import pandas as pd

    names = {"endpoint": "model_endpoint", "simulated": "simulated", "replayed": "replayed"}
    return pd.DataFrame(
        {
            column: [getattr(finding, field) for finding in findings]
            for column, field in names.items()
        }
    )


def _recorded(drift: RunDrift) -> Any:
    """A chart as JSON: every value with its score and its sums."""
    series = drift.series
    chart = drift.chart
    return to_json(
        {
            "what": series.what,
            "of": series.of,
            "runs": list(series.runs),
            "values": list(series.values),
            "scores": [None if math.isnan(score) else float(score) for score in chart.scores],
            "upper": [float(value) for value in chart.upper],
            "lower": [float(value) for value in chart.lower],
            "alarm": None if chart.alarm is None else series.runs[chart.alarm],
            "changed_since": None if chart.change is None else series.runs[chart.change],
            "d": drift.d,
            "verdict": drift.verdict.value,
        }
    )


def _too_few(
    what: str,
    few: Sequence[tuple[Finding, str, Any, Any]],
    options: MonitoringOptions,
    past: PastRuns,
    *,
    nothing: bool,
) -> Finding:
    """Return what is concluded of comparisons that not enough runs have made: where there are no
    others, nothing was done.
    """
    runs = len([run for run in past.since(options.since).asked if named_findings(run)])
    words = (
        f"{count(runs, 'past run')} that asked {'has' if runs == 1 else 'have'} no figures to chart"
    )
    if few:
        most = max(len(series[0].runs) for _, _, series, _ in few)
        words = (
            f"{count(len(few), 'comparison')} with {count(most, 'run')} at most, where a chart of "
            f"the {what} needs "
            f"{options.least_runs} ({listed_few([entry[1] for entry in few])})"
        )
    elif not runs:
        words = "there is no past run with findings"
    return checked(
        _origin([finding for _, _, _, findings in few for finding in findings]),
        assertion="drift",
        verdict=Verdict.INCONCLUSIVE,
        words=f"{words}: run the fairness tests again, with the same names and templates",
        reason=Reason.N if nothing else Reason.PRECISION,
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
        "alarm in": lambda row: (
            "" if (at := row[1].chart.alarm) is None else row[1].series.runs[at]
        ),
        "verdict": lambda row: Entry(verdict=row[1].verdict),
    }
    pictures = [_picture(name, drift) for name, drift in rows if drift.chart.alarm is not None][
        :MOST_PICTURES
    ]
    shown = table(f"Control charts of the {what}", rows, columns, words=("of", "alarm in"))
    return Section(id=f"drift-{what}", heading=f"Drift of the {what}", parts=(*pictures, shown))


def _picture(name: str, drift: RunDrift) -> OverTime:
    series = drift.series
    rows = tuple(
        ForestRow(
            label=run, value=value, words=f"{value:.3g}" + " alarm" * (at == drift.chart.alarm)
        )
        for at, (run, value) in enumerate(zip(series.runs, series.values, strict=True))
    )
    of = ""
    if series.of:
        of = f" of {series.of}"
    return OverTime(
        title=f"{name}: {series.what}{of}",
        axis=f"{series.what}{of}",
        rows=rows,
        caption=drift.words,
    )
