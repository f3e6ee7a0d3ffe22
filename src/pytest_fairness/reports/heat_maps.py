"""Heat maps of how severe the findings are, by what was tested, of one run or of several: each
model on each class, each module in each tier, by the worst verdict and the largest effect.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_fairness import words
from pytest_fairness.model import Finding, Verdict, deciding_pair
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.reports.sections import Entry, Part, Section, Table
from pytest_fairness.words import effect_size


def heat_section(results: RunResults, _: Path) -> Section | None:
    """The worst verdicts by what was tested, where there is more than one of it."""
    maps = heat_maps([results])
    if maps:
        return Section(heading="By what was tested", id="heat", parts=maps)
    return None


def heat_maps(runs: Sequence[RunResults]) -> tuple[Part, ...]:
    """A map of the worst verdict of each model on each protected class, and one of each module in
    each tier, over
    *runs*; none where there is one cell alone.
    """
    by_class = _heat_map(
        runs,
        "model on each protected class",
        "Model",
        _model_and_class,
    )
    by_tier = _heat_map(
        runs,
        "module in each tier",
        "Module",
        _module_and_tier,
    )
    return tuple(filter(None, (by_class, by_tier)))


def _model_and_class(finding: Finding) -> tuple[str, str]:
    return finding.model_endpoint or "tables", finding.protected_class or finding.assertion


def _module_and_tier(finding: Finding) -> tuple[str, str]:
    tier = "no tier"
    if finding.tier:
        tier = f"tier {finding.tier}"
    return finding.test_module or "no module", tier


def _heat_map(
    runs: Sequence[RunResults], of: str, corner: str, key: Callable[[Finding], tuple[str, str]]
) -> Table | None:
    cells: dict[tuple[str, str], list[tuple[int, Finding]]] = defaultdict(list)
    rows: dict[str, None] = {}
    columns: dict[str, None] = {}
    for number, results in enumerate(runs):
        for finding in results.findings:
            row, column = key(finding)
            rows[row] = None
            columns[column] = None
            cells[row, column].append((number, finding))
    if len(rows) * len(columns) < 2:
        return None
    over = ""
    if len(runs) > 1:
        over = f" over {len(runs)} runs"
    lines: list[tuple[str | Entry, ...]] = []
    for row in rows:
        entries = [_heat_cell(cells.get((row, column)), len(runs)) for column in columns]
        lines.append((shortened(row, 80), *entries))
    return Table(
        caption=f"The worst verdict of each {of}{over}, and the largest effect behind a finding",
        head=(corner, *(shortened(name, 60) for name in columns)),
        rows=tuple(lines),
        kind="heat",
    )


def _heat_cell(numbered: Sequence[tuple[int, Finding]] | None, runs: int) -> Entry:
    """The worst of the findings of one cell, each with the number of its run, of so many *runs*."""
    if numbered is None:
        return Entry(words="not tested")
    findings = [finding for _, finding in numbered]
    worst = Verdict.worst([finding.verdict for finding in findings])
    having = []
    for run, finding in numbered:
        if finding.verdict is worst:
            having.append(run)
    small = [words.count(len(findings), "finding")]
    if runs > 1:
        small.append(f"{worst} in {len(set(having))} of {runs} runs")
    elif len(having) < len(findings):
        small.append(f"{len(having)} {worst}")
    return Entry(verdict=worst, small=(*small, *_severity(findings)))


def _severity(findings: Sequence[Finding]) -> list[str]:
    """``largest |d| 0.84``: of the pairs that decide *findings*, how far the two are apart; nothing
    where none is.
    """
    effects = []
    for finding in findings:
        pair = deciding_pair(finding.pairs)
        if finding.assertion != "baseline" and pair is not None and not math.isnan(pair.effect):
            effects.append(abs(pair.effect))
    if effects:
        return [f"largest |d| {effect_size(max(effects))}"]
    return []
