"""Heat maps of how severe the findings are, by what was tested, of one run or of several: each
model on each class, each module in each tier, by the worst verdict and the largest effect; and the
verdicts of a run by protected class and test.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_fairness import words
from pytest_fairness.model import Finding, Verdict, deciding_pair
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.findings_json import OF_SEVERAL, RunResults
from pytest_fairness.reports.sections import Entry, Part, Section, Table
from pytest_fairness.words import effect_size

#: Numbers of items that a cell names.
_MOST_NUMBERS = 6
#: So many findings are counted by class at the end of a session, and no longer all shown there.
MANY = 30
_UNDECIDED, _UNTESTED = "undecided", "not tested"


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
        return Entry(words=_UNTESTED)
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


# ---------------------------------------------------------------- by class and test


def class_section(results: RunResults, _: Path) -> Section | None:
    """Return the verdicts by protected class and test, where numbered tests ask about classes."""
    by_class = verdicts_by_class(results)
    if by_class is None:
        return None
    return Section(heading="By protected class and test", id="classes", parts=(by_class,))


def verdicts_by_class(results: RunResults) -> Table | None:
    """Return a row for each protected class and a column for each test that is called as
    ``BIAS-HIRE-005`` or ``BIAS-HIRE-gender`` is: in each cell the worst verdict, how many findings
    have it, and the numbers of their items. None where fewer than two tests, or two classes, are
    so called.
    """
    cells = _findings_by_class(results)

    def entry(places: Sequence[int]) -> Entry:
        worst = Verdict.worst([results.findings[at].verdict for at in places])
        having = [at for at in places if results.findings[at].verdict is worst]
        small = [f"{len(having)} of {words.count(len(places), 'finding')}"]
        if worst is not Verdict.PASS:
            small.append(_numbers(results, having))
        return Entry(verdict=worst, small=tuple(small), link=results.ids[having[0]])

    caption = (
        "The worst verdict of each test on each protected class, with the numbers of its items"
    )
    return _class_table(cells, caption, entry, Entry(words=_UNTESTED))


def verdict_words_by_class(results: RunResults) -> Table | None:
    """Return the table of :func:`verdicts_by_class` with a word a cell, narrow enough for a
    terminal: what the ids have in common stands in the corner. None of few findings, too.
    """
    if len(results.findings) < MANY:
        return None
    cells = _findings_by_class(results)
    prefixes = {test.partition("-")[0] for _, test in cells}
    prefix = ""
    if len(prefixes) == 1:
        prefix = f"{prefixes.pop()}-"

    def word(places: Sequence[int]) -> str:
        worst = Verdict.worst([results.findings[at].verdict for at in places])
        if worst is Verdict.INCONCLUSIVE:
            return _UNDECIDED
        return str(worst)

    return _class_table(cells, "", word, words.NOTHING, prefix)


def _findings_by_class(results: RunResults) -> dict[tuple[str, str], list[int]]:
    """Return the places of the findings by protected class and test, the worst first."""
    cells: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at in results.order:
        finding = results.findings[at]
        item = OF_SEVERAL.fullmatch(finding.test_id)
        if item and finding.protected_class:
            cells[finding.protected_class, item[1]].append(at)
    return cells


def _numbers(results: RunResults, places: Sequence[int]) -> str:
    """Return the numbers of the items that found what is at *places*; of items that are called by
    their class the outcomes.
    """
    numbers = sorted({_number_of(results.findings[at]) for at in places})
    shown = ", ".join(numbers[:_MOST_NUMBERS])
    more = len(numbers) - _MOST_NUMBERS
    if more > 0:
        return f"{shown} and {more} more"
    return shown


def _number_of(finding: Finding) -> str:
    """Return the number of the item of *finding*, or its outcome where the item has none."""
    number = finding.test_id.rpartition("-")[2]
    if number.isdecimal():
        return number
    return str(finding.outcome)


def _class_table(
    cells: Mapping[tuple[str, str], Sequence[int]],
    caption: str,
    cell: Callable[[Sequence[int]], str | Entry],
    untested: str | Entry,
    prefix: str = "",
) -> Table | None:
    """Return *cells* as a table, in the order of their names, without the *prefix* of all tests;
    None where it had a single row or column.
    """
    classes = sorted({protected_class for protected_class, _ in cells})
    tests = sorted({test for _, test in cells})
    if min(len(classes), len(tests)) < 2:
        return None
    rows = []
    for protected_class in classes:
        row: list[str | Entry] = [protected_class]
        for test in tests:
            places = cells.get((protected_class, test))
            if places is None:
                row.append(untested)
            else:
                row.append(cell(places))
        rows.append(tuple(row))
    corner = "Class"
    if prefix:
        corner = f"{prefix}…"
    head = (corner, *(test.removeprefix(prefix) for test in tests))
    return Table(caption=caption, head=head, rows=tuple(rows), words=head[1:], kind="heat")
