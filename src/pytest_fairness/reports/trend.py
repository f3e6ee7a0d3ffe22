"""Each finding over several runs: its effect with the interval, its verdict, and which model
answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_fairness import words
from pytest_fairness.analysis.looks import EARLY, looks_of, stopped_early
from pytest_fairness.documents import as_number
from pytest_fairness.errors import FairnessError
from pytest_fairness.model import Finding, PairResult, deciding_pair, number
from pytest_fairness.reports import formatting
from pytest_fairness.reports.charts import ForestRow, OverTime, Reference
from pytest_fairness.reports.escaping import commandless, line, shortened, wrapped
from pytest_fairness.reports.findings_json import NAME, RunResults, read_results
from pytest_fairness.reports.heat_maps import heat_maps
from pytest_fairness.reports.html import render
from pytest_fairness.reports.letter_trend import (
    Complaint,
    LettersOfRun,
    letter_sections,
    read_letters,
)
from pytest_fairness.reports.plain_text import WIDTH, table_lines
from pytest_fairness.reports.sections import Columns, Entry, Notes, Page, Section, Table, table
from pytest_fairness.runs.manifest import FINISHED, read_manifest
from pytest_fairness.runs.reader import refuse_unreadable

#: As many findings as a page shows, the worst first; the text has all.
MOST_TRENDS = 200
#: What stands behind the values of a trend: of effects, and of what is no effect, by the assertion.
_EFFECTS: dict[str, Any] = {
    "band": (-0.2, 0.2),
    "lines": (Reference(value=0, solid=True), Reference(value=-0.5), Reference(value=0.5)),
}
_LINES: dict[str, dict[str, Any]] = {
    formatting.FOUR_FIFTHS: {"lines": (Reference(value=0.8),)},
    "baseline": {},
}
#: What is followed where that is no effect, and the ends of its interval, by the assertion.
_STATISTICS = {
    formatting.FOUR_FIFTHS: (
        "impact_ratio",
        "clustered_impact_ratio_low",
        "clustered_impact_ratio_high",
    ),
    "baseline": ("now", "now_low", "now_high"),
}


@dataclass(frozen=True, slots=True)
class ReadRuns:
    """Runs in the order of their start, the oldest first, and why each other one cannot be read, or
    is ``left_out``; what their letters come to, and the complaints that came in.
    """

    runs: tuple[RunResults, ...]
    unreadable: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    letters: tuple[LettersOfRun, ...] = ()
    complaints: tuple[Complaint, ...] = ()

    def followed(self) -> ReadRuns:
        """Return the runs that findings are followed over: those that judged something; of a run
        and its replays, which judge the same replies, the last one.
        """
        judged = []
        left_out = []
        for results in self.runs:
            if results.findings:
                judged.append(results)
            else:
                left_out.append(f"{results.run['id']}: it judged nothing")
        recordings = _recordings(judged)
        counted = dict(zip(recordings, judged, strict=True))
        for results, recording in zip(judged, recordings, strict=True):
            last = str(counted[recording].run["id"])
            if str(results.run["id"]) != last:
                left_out.append(f"{results.run['id']}: its replies were judged again in {last}")
        return replace(self, runs=tuple(counted.values()), left_out=(*left_out, *self.left_out))


def read_runs(folders: Iterable[Path]) -> ReadRuns:
    """Read the results of the runs in *folders*; one that waits for its judgement, as a merged one,
    is left out.
    """
    runs = list[RunResults]()
    letters = list[LettersOfRun]()
    unreadable = list[str]()
    left_out: list[str] = []
    for folder in folders:
        try:
            refuse_unreadable(folder)
            if not (folder / NAME).exists() and _is_to_be_judged(read_manifest(folder)):
                left_out.append(f"{folder.name}: nobody has judged it yet")
                continue
            runs.append(read_results(folder))
            letters += filter(None, [read_letters(folder)])
        except FairnessError as error:
            unreadable.append(f"{folder.name}: {error}")
    return ReadRuns(
        tuple(
            sorted(runs, key=lambda results: (str(results.run["started"]), str(results.run["id"])))
        ),
        tuple(unreadable),
        tuple(left_out),
        tuple(sorted(letters, key=lambda letter: (letter.timestamp, letter.run))),
    )


def _is_to_be_judged(manifest: Mapping[str, Any]) -> bool:
    """Return whether a run without findings is one of which none are due yet: merged, or not
    finished.
    """
    return bool(manifest) and ("merged_from" in manifest or FINISHED not in manifest)


def _recordings(runs: Sequence[RunResults]) -> list[str]:
    """Return whose replies each of *runs* judged: its own id, or that of the run it replays."""
    sources = {str(results.run["id"]): results.run.get("replay_of") for results in runs}
    recordings = []
    for results in runs:
        recording = str(results.run["id"])
        seen = {recording}
        while (source := sources.get(recording)) and str(source) not in seen:
            recording = str(source)
            seen.add(recording)
        recordings.append(recording)
    return recordings


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """A finding in one run: the pair that is followed, as that run found it; None where it did not
    compare it.
    """

    run: str
    model: str
    finding: Finding | None
    pair: PairResult | None

    def value(self) -> tuple[float | None, float | None, float | None]:
        """Return what is followed, and its interval: the impact ratio, the score of a baseline, or
        the effect d. Of a finding that looks, at its base design: a prefix that every run has.
        """
        if self.pair is None or self.finding is None:
            return None, None, None
        base = self._base()
        if base is not None:
            return number(base["effect"]), number(base["low"]), number(base["high"])
        if self.finding.assertion not in _STATISTICS:
            return self.pair.effect, self.pair.effect_low, self.pair.effect_high
        names = _STATISTICS[self.finding.assertion]
        value, low, high = map(as_number, map(self.pair.statistics.get, names))
        return value, low, high

    def _base(self) -> Mapping[str, Any] | None:
        """Return the pair at the look of the base design; None where that is the last one made."""
        if self.pair is None or self.looks is None:
            return None
        wanted = _comparison(self.pair)
        for figures in self.looks.get("base", ()):
            compared = (figures["group_1"], figures["group_2"], figures["metric"])
            if (*compared, figures.get("signals")) == wanted:
                return dict(figures)
        return None

    @property
    def looks(self) -> Mapping[str, Any] | None:
        """Return what the finding says of its looks; None of one that was judged once, or is not
        there.
        """
        if self.finding is None:
            return None
        return looks_of(self.finding)

    @property
    def confidence(self) -> float | None:
        """Return the confidence of the interval; None where there is no value."""
        base = self._base()
        if base is not None:
            return float(base["confidence"])
        if self.pair is None:
            return None
        return self.pair.confidence

    @property
    def stopped_early(self) -> bool:
        """Return whether an alarm ended the looks at the value that is followed."""
        return stopped_early(self.looks)


@dataclass(frozen=True, slots=True)
class FindingTrend:
    """A finding, as the latest run has it that makes it, and a point a run."""

    id: str
    nodeid: str
    latest: Finding
    pair: PairResult | None
    points: tuple[TrendPoint, ...]

    @property
    def about(self) -> str:
        """``sentiment by race_ethnicity, gpt-4o``."""
        by = words.led(" by ", self.latest.protected_class)
        endpoint = words.led(", ", self.latest.model_endpoint)
        return f"{self.latest.outcome or self.latest.assertion}{by}{endpoint}"

    @property
    def stopped_early(self) -> bool:
        """Return whether an alarm ended the looks of any of the points."""
        return any(point.stopped_early for point in self.points)

    @property
    def levels(self) -> list[float]:
        """Return the confidence of each interval; none of baselines, which have no level."""
        if self.latest.assertion == "baseline":
            return []
        return [point.confidence for point in self.points if point.confidence is not None]

    @property
    def measure(self) -> str:
        """Return what is followed: ``black – white, effect d``."""
        if self.pair is None:
            return "nothing was compared"
        if self.latest.assertion == "baseline":
            return f"{self.pair.metric}: the score now"
        what = "effect d"
        if self.latest.assertion == formatting.FOUR_FIFTHS:
            what = "impact ratio"
        groups = f"{self.pair.group_1} – {self.pair.group_2}"
        if self.pair.metric != self.latest.outcome:
            groups += f" ({self.pair.metric})"
        return f"{groups}, {what}"

    def shown(self, value: float | None) -> str:
        if value is None:
            return words.NOTHING
        if self.latest.assertion == "baseline":
            return formatting.value(value, self.latest)
        if self.latest.assertion == formatting.FOUR_FIFTHS:
            return words.ratio(value)
        return words.effect(value)


def trends(runs: Sequence[RunResults]) -> list[FindingTrend]:
    """Each finding of *runs*, by the id that it keeps from run to run, the worst of the latest run
    first.
    """
    latest = {identity: results for results in runs for identity in results.ids}
    newest_first = dict.fromkeys(identity for results in reversed(runs) for identity in results.ids)
    return sorted(
        (_trend_of(identity, latest[identity], runs) for identity in newest_first),
        key=lambda trend: (trend.points[-1].finding is None, -trend.latest.verdict.severity),
    )


def _trend_of(identity: str, last: RunResults, runs: Sequence[RunResults]) -> FindingTrend:
    """Follow a finding over *runs*, as *last* has it."""
    at = last.places[identity]
    latest = last.findings[at]
    asked = [pair for pair in latest.pairs if pair.metric == latest.outcome]
    followed = deciding_pair(asked or latest.pairs)
    points = []
    for results in runs:
        finding = None
        if identity in results.places:
            finding = results.findings[results.places[identity]]
        run = str(results.run["id"])
        points.append(TrendPoint(run, answered(results, latest), finding, _same(finding, followed)))
    return FindingTrend(identity, last.test_of(at), latest, followed, tuple(points))


def _same(finding: Finding | None, followed: PairResult | None) -> PairResult | None:
    """Return the pair of *finding* that compares the same as *followed*, if there is one."""
    if finding is None or followed is None:
        return None
    for pair in finding.pairs:
        if _comparison(pair) == _comparison(followed):
            return pair
    return None


def _comparison(pair: PairResult) -> tuple[object, ...]:
    """Return what tells *pair* from the others of its finding: of a signal by itself also that."""
    signals = None
    if pair.alarm_only:
        signals = pair.statistics.get("signals")
    return pair.group_1, pair.group_2, pair.metric, signals


def answered(results: RunResults, finding: Finding) -> str:
    """The models that answered for the endpoint of *finding*, by their own account, or else the one
    asked for.
    """
    endpoints = (finding.model_endpoint or "").split(", ")
    names: dict[str, None] = {}
    for entry in results.models:
        if entry["endpoint"] in endpoints:
            names |= dict.fromkeys(entry["answered"] or filter(None, [entry["asked"]]))
    return ", ".join(names)


# ---------------------------------------------------------------- as text and as a page


def _points(trend: FindingTrend) -> Table:
    """A row a run."""
    early = ""
    if trend.stopped_early:
        early = f"; {EARLY}"
    levels = trend.levels
    level = words.of_confidence(levels)

    def ends(point: TrendPoint) -> str:
        _, low, high = point.value()
        shown = words.interval(low, high, trend.shown)
        return formatting.interval_at(shown, point.confidence or 0.0, levels)

    measure = "value"
    if trend.pair is not None:
        measure = trend.measure.rpartition(", ")[2]
    columns: Columns = {
        "run": lambda point: point.run,
        "model": lambda point: shortened(point.model or words.NOTHING, 60),
        measure: lambda point: _shown_value(trend, point),
        level: ends,
        "verdict": _verdict_of_point,
    }
    caption = f"{trend.measure}, the oldest run first{early}"
    return table(caption, trend.points, columns, words=("model",))


def _shown_value(trend: FindingTrend, point: TrendPoint) -> str:
    shown = trend.shown(point.value()[0])
    if point.stopped_early:
        return f"{shown} ({formatting.STOPPED_EARLY})"
    return shown


def _verdict_of_point(point: TrendPoint) -> Entry | str:
    judged = point.pair or point.finding
    if judged is None:
        return "not tested"
    return Entry(verdict=judged.verdict, reason=judged.reason)


def chart(trend: FindingTrend) -> OverTime:
    """The picture of a *trend*."""
    rows = []
    model = next((point.model for point in trend.points if point.model), "")
    for point in trend.points:
        value, low, high = point.value()
        verdict = None
        if point.pair is not None:
            verdict = point.pair.verdict
        words = ""
        if value is not None:
            words = f"{trend.shown(value)} {verdict}"
            if point.stopped_early:
                words += f", {formatting.STOPPED_EARLY}"
        # A run that left the test out says nothing of who would have answered.
        model = point.model or model
        rows.append(
            ForestRow(
                label=point.run,
                value=value,
                low=low,
                high=high,
                verdict=verdict,
                words=words,
                part=model,
            )
        )
    given = _LINES.get(trend.latest.assertion, _EFFECTS)
    caption = ""
    if len({row.part for row in rows}) > 1:
        caption = "A dashed line across stands where another model answers than before."
    return OverTime(
        title=f"{trend.about}: {trend.measure}",
        axis=trend.measure,
        rows=tuple(rows),
        caption=caption,
        **given,
    )


def trend_text(read: ReadRuns) -> str:
    """Every finding over the runs, a line a run, safe for a terminal; and what cannot be read."""
    trends_ = trends(read.runs)
    lines = [_headline(read, trends_)]
    if simulated := [str(results.run["id"]) for results in read.runs if results.simulated]:
        lines += wrapped(
            f"simulated, no model was asked: {line(', '.join(simulated))}", WIDTH, "", "  "
        )
    lines.append("")
    for trend in trends_:
        lines += _lines_of_trend(trend)
    for section in letter_sections(read.letters, read.complaints):
        for part in section.parts:
            if isinstance(part, Table):
                lines += [line(part.caption), *table_lines(part, part.rows), ""]
    lines += [line(f"left out: {why}") for why in read.left_out]
    lines += [line(f"cannot be read: {why}") for why in read.unreadable]
    if lines[-1]:
        lines.append("")
    return commandless("\n".join(lines))


def _headline(read: ReadRuns, followed: Sequence[FindingTrend]) -> str:
    return f"{words.count(len(followed), 'finding')} over {words.count(len(read.runs), 'run')}"


def _lines_of_trend(trend: FindingTrend) -> list[str]:
    lines = [line(f"{trend.id}  {trend.about}")]
    if trend.nodeid:
        lines.append(line(f"  {trend.nodeid}"))
    shown = _points(trend)
    lines += [line(f"  {trend.measure}"), *table_lines(shown, shown.rows)]
    if trend.stopped_early:
        lines.append(line(f"  {EARLY}"))
    return [*lines, ""]


def trend_page(read: ReadRuns) -> str:
    """The same as a page with pictures, and a map of how severe the findings are over the runs."""
    trends_ = trends(read.runs)
    runs = [str(results.run["id"]) for results in read.runs]
    ids = dict.fromkeys((*runs[:1], *runs[-1:]))
    parts = [*heat_maps(read.runs)]
    if read.left_out:
        parts.append(Section(heading="Runs that are left out", parts=(Notes(items=read.left_out),)))
    if read.unreadable:
        parts.append(
            Section(heading="Runs that cannot be read", parts=(Notes(items=read.unreadable),))
        )
    lead = f"{_headline(read, trends_)}, the oldest first."
    if len(trends_) > MOST_TRENDS:
        lead += f" Below are the worst {MOST_TRENDS}; pytest-fairness trend prints all."
    if read.unreadable:
        lead += f" {words.count(len(read.unreadable), 'run')} cannot be read."
    page = Page(
        name="findings over runs",
        title="Fairness over time",
        lead=lead,
        sections=(
            Section(heading="All runs", id="overview", parts=tuple(parts)),
            *letter_sections(read.letters, read.complaints),
            *map(_card, trends_[:MOST_TRENDS]),
        ),
        simulated=any(results.simulated for results in read.runs),
        replayed=any(results.replayed for results in read.runs),
    )
    return render(page, {"id": " to ".join(ids), "versions": {}})


def _card(trend: FindingTrend) -> Section:
    """The picture and the table of a *trend*, under the sentence of its latest finding."""
    return Section(
        heading=trend.about,
        id=trend.id,
        about=f"{trend.id} · {trend.nodeid}",
        verdict=trend.latest.verdict,
        reason=trend.latest.reason,
        sentence=formatting.without_verdict(trend.latest.sentence, trend.latest.verdict),
        parts=(chart(trend), _points(trend)),
    )
