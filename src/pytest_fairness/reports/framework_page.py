"""The clauses of a law or a standard, each with the artefact of a run that answers it, and what the
run lacks.

It measures and says what is there. It never says that a clause is met, and never advises to treat
groups differently.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_fairness import words
from pytest_fairness.analysis.frameworks import Artefact, Clause, Framework, is_old
from pytest_fairness.baselines.mitigations import unanswered
from pytest_fairness.reports.findings_json import RunResults, end_of
from pytest_fairness.reports.overview import banners, counted_findings, failures_without_finding
from pytest_fairness.reports.sections import Page, Printed, Section, facts
from pytest_fairness.runs.folder import run_folders
from pytest_fairness.runs.manifest import anchors_of, day_of, read_manifest, years_after

DISCLAIMER = (
    "Evidence, not certification; no legal advice. It shows what this run measured and recorded. "
    "Whether a clause applies, and is met, is for the organisation and its counsel to judge. "
    "Nothing here is a reason to treat groups differently."
)


class Answer(NamedTuple):
    """An answer of a run to a clause: what is here, and what it lacks; either may be empty."""

    here: str = ""
    lacks: str = ""


def framework_page(
    framework: Framework, results: RunResults, run_dir: Path, today: datetime.date
) -> Page:
    """Each clause of *framework* with what the run in *run_dir* has for it as of *today*."""
    sections = [_section(line, results, run_dir, today) for line in framework.lines]
    about = facts({"Applies": framework.applies})
    parts = (about, _source(framework, today), DISCLAIMER)
    first = Section(heading="This rule", id="rule", parts=parts)
    return Page(
        name="framework",
        title=framework.rule,
        lead=f"What run {results.run.get('id')} has for each clause: {counted_findings(results)}.",
        sections=(first, *sections),
        simulated=results.simulated,
        replayed=results.replayed,
        banners=banners(results),
    )


def _section(line: Clause, results: RunResults, run_dir: Path, today: datetime.date) -> Section:
    answer = _kept_long_enough(line, results, ARTEFACTS[line.artefact](results, run_dir))
    strength: str = line.strength
    if results.simulated:
        strength = "context, for a simulated endpoint is no system"
    here = "nothing"
    if answer.here:
        here = f"{answer.here} ({strength})"
    shown = facts({"This run has": here, "It lacks": answer.lacks})
    heading = f"{line.clause}: {line.title}"
    return Section(heading=heading, parts=(shown, _source(line, today)))


def _source(read: Framework | Clause, today: datetime.date) -> Printed:
    """Return where a rule was read and when, on lines that are not broken, to be copied."""
    checked = f"  checked {read.checked_on}"
    if is_old(read.checked_on, today):
        checked += ": MORE THAN A YEAR AGO, read it again before you rely on it"
    return Printed(lines=(f"  {read.source}", checked))


# ---------------------------------------------------------------- artefacts


def _verdicts(results: RunResults, _: Path) -> Answer:
    if not results.findings:
        return Answer(lacks="a finding: this run judged nothing")
    undecided = results.summary["inconclusive"]
    lacks = []
    if undecided:
        lacks.append("a decision where findings are INCONCLUSIVE")
    unjudged = len(failures_without_finding(results)) + len(results.missing)
    if unjudged:
        lacks.append(f"a verdict of {words.count(unjudged, 'test')}")
    return Answer(f"findings.json, statistics/: {counted_findings(results)}", "; ".join(lacks))


def _thresholds(results: RunResults, _: Path) -> Answer:
    if not results.findings:
        return Answer(lacks="a finding, judged by a metric and a threshold")
    metrics = sorted({finding.outcome for finding in results.findings if finding.outcome})
    lacks = ""
    if not results.run.get("git_commit"):
        lacks = "a git commit, which shows that tests and thresholds were there before the run"
    here = f"findings.json, methodology/: metrics {words.enumerated(metrics)}, each with its rule"
    return Answer(here, lacks)


def _groups(results: RunResults, _: Path) -> Answer:
    classes = sorted({finding.protected_class for finding in results.findings} - {""})
    if not classes:
        return Answer(lacks="a comparison of groups of a protected class")
    return Answer(
        f"statistics/groups.csv: {words.listed(classes)}", "every class that is not named here"
    )


def _ratios(results: RunResults, _: Path) -> Answer:
    judged = [finding for finding in results.findings if finding.assertion == "four_fifths"]
    lacks = "an independent auditor; rates and ratios in the rule's form: pytest-fairness ll144"
    if not judged:
        return Answer(lacks=f"a finding of assert_four_fifths; {lacks}")
    return Answer(f"statistics/: {words.count(len(judged), 'finding')} on selection rates", lacks)


def _mitigations(results: RunResults, _: Path) -> Answer:
    here = []
    if results.mitigations:
        here.append(f"mitigations.csv: {words.count(len(results.mitigations), 'entry', 'entries')}")
    accepted = sum(finding.justification is not None for finding in results.findings)
    if accepted:
        here.append(f"justifications.csv: {words.count(accepted, 'justification')}")
    silent = unanswered(results.named, results.mitigations)
    lacks = ""
    if silent:
        lacks = f"a mitigation or a justification of {words.enumerated(silent)}"
    elif not here:
        here.append("no finding is a FLAG or a FAIL, so that there is nothing to mitigate")
    return Answer("; ".join(here), lacks)


def _log(_: RunResults, run_dir: Path) -> Answer:
    logs = anchors_of(read_manifest(run_dir))
    if not logs:
        return Answer(lacks="a log that was closed: the session did not come to its end")
    records = sum(anchor.records for anchor in logs.values())
    here = f"trials*.jsonl: {words.count(records, 'record')}, chained by hashes"
    return Answer(here, "a proof that it was not made anew: keep the SHA-256 of its bundle")


def _signature(results: RunResults, _: Path) -> Answer:
    finished = end_of(results)[:10]
    lacks = "a signature: pytest-fairness audit --pdf PATH writes a page with lines to sign on"
    if not finished:
        return Answer(lacks=f"an end with its date; {lacks}")
    return Answer(f"report.html, summary.pdf, trials*.jsonl, dated {finished}", lacks)


def _repeats(results: RunResults, run_dir: Path) -> Answer:
    finished = end_of(results)[:10]
    others = sum(other.name != run_dir.name for other in run_folders(run_dir.parent))
    if not others:
        return Answer(f"one run, of {finished}", "other runs over time, in the same folder")
    here = f"this run, of {finished}, and {words.count(others, 'other run')} beside it (trend)"
    return Answer(here)


def _alternatives(results: RunResults, _: Path) -> Answer:
    systems = results.endpoints
    if len(systems) < 2:
        return Answer(
            lacks="a second system: run both, and compare them with pytest-fairness compare"
        )
    return Answer(
        f"findings of {words.listed(systems)}", "which of them is fairer: pytest-fairness compare"
    )


def _retention(results: RunResults, _: Path) -> Answer:
    here = []
    lacks = ""
    if results.run.get("versions"):
        here.append("manifest.json: versions of everything")
    if kept := results.run.get("retain_until"):
        here.append(f"findings.json, index.html: to be kept until {kept}")
    else:
        lacks = "a day until which it is kept: fairness_retain_years in pytest's settings"
    return Answer("; ".join(here), lacks)


def _kept_long_enough(line: Clause, results: RunResults, answer: Answer) -> Answer:
    """*answer*, which lacks something where the run is kept for fewer years than *line* says."""
    kept = results.run.get("retain_until")
    if line.years is None or kept is None:
        return answer
    least = years_after(day_of(str(results.run["started"])), line.years)
    if datetime.date.fromisoformat(kept) >= least:
        return answer
    return answer._replace(lacks=f"days until {least}: fairness_retain_years = {line.years}")


ARTEFACTS: Mapping[Artefact, Callable[[RunResults, Path], Answer]] = {
    "verdicts": _verdicts,
    "thresholds": _thresholds,
    "groups": _groups,
    "ratios": _ratios,
    "mitigations": _mitigations,
    "log": _log,
    "signature": _signature,
    "repeats": _repeats,
    "alternatives": _alternatives,
    "retention": _retention,
}
"""The name of each artefact in ``frameworks.toml`` → what of it a run has."""
