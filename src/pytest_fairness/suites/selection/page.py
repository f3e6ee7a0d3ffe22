"""The page: who is preferred, what the mitigation changes and what explains it, as sections of the
report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_fairness.reports import (
    Page,
    Part,
    Section,
    Statements,
    facts,
    table,
    write_json,
    write_page,
)
from pytest_fairness.suites.selection.explanation_sections import (
    INTERACTIONS_TEXT,
    STRENGTHS_TEXT,
    interaction_sections,
    order_parts,
    outcome_parts,
    strength_parts,
)
from pytest_fairness.suites.selection.page_parts import (
    TableColumns,
    by_words,
    judged_section,
    remainder,
    sentence_of,
    verdict_entry,
)
from pytest_fairness.suites.selection.preference_sections import (
    CHANGES_TEXT,
    CLASSES_TEXT,
    PAIRS_TEXT,
    RATES_TEXT,
    change_sections,
    class_sections,
    concluding,
    pair_section,
    rate_section,
)
from pytest_fairness.suites.selection.reading_sections import (
    EXAMPLES_TEXT,
    example_parts,
    reading_parts,
)
from pytest_fairness.suites.selection.results import (
    ArmResults,
    PairPreference,
    RunFacts,
    SelectionResults,
)
from pytest_fairness.suites.selection.scrubber_sections import SCRUBBER_TEXT, scrubber_sections
from pytest_fairness.words import NOTHING, count, interval, percent, ratio

_ARMS = {
    "raw_naive": "the candidates as they are, no system prompt",
    "raw_matched": "the candidates as they are, with the evaluator's system prompt",
    "scrubbed": (
        "the candidates' text scrubbed by the model first, then judged with the evaluator's system "
        "prompt"
    ),
    "scrubbed_by_rule": (
        "the candidates' text scrubbed by rules first, then judged with the evaluator's system "
        "prompt"
    ),
    "placebo": "all candidates under names of one group: there is nothing to prefer",
}


def write_results(results: SelectionResults, records: Path) -> None:
    """All numbers and the page, beside *records* (``selection.jsonl``). Raises StoreError."""
    write_json(records.with_suffix(".json"), results)
    write_page(records.parent, records.stem, selection_page(results, records))


def selection_page(results: SelectionResults, records: Path) -> Page:
    """The page of *results*; examples come from *records* (``selection.jsonl``), where there is
    such a file.
    """
    run = results.run
    question = "does it matter which group they are of"
    if results.contrasts:
        question = "does the mitigation change it"
    return Page(
        name="selection benchmark",
        title="Selection benchmark",
        lead=f"Of two equal candidates, whom does {run.endpoint} choose, and {question}?",
        sections=tuple(section for section in _sections(results, records) if section.parts),
        simulated=run.simulated,
        replayed=run.replayed,
    )


def _sections(results: SelectionResults, records: Path) -> Iterator[Section]:
    """Yield the sections of the page. The mitigation stands where its question comes up: after who
    is preferred, before what explains it.
    """
    arms = results.arms
    groups = results.run.groups
    yield _section("conclusion", "In short", _conclusions(results))
    yield _section("design", "What was asked", _design(results))
    pairs = [pair_section(arm, groups) for arm in arms]
    yield _section("pairs", "Who is chosen over whom", pairs, PAIRS_TEXT)
    rates = map(rate_section, arms)
    yield _section("rates", "Selection rates and the four-fifths rule", rates, RATES_TEXT)
    yield _section("classes", "By class", class_sections(arms), CLASSES_TEXT)
    changes = change_sections(results.contrasts)
    yield _section("changes", "What the mitigation changes", changes, CHANGES_TEXT)
    yield _section("order", "Order effect", order_parts(arms))
    yield _section("interactions", "Interactions", interaction_sections(arms), INTERACTIONS_TEXT)
    yield _section("strengths", "Bradley–Terry strengths", strength_parts(arms), STRENGTHS_TEXT)
    yield _section("outcomes", "What the replies came to", outcome_parts(arms))
    scrubbers = scrubber_sections(results.scrubbers)
    yield _section("scrubber", "What scrubbing does to the texts", scrubbers, SCRUBBER_TEXT)
    yield _section("reading", "How to read this", reading_parts(results))
    examples = example_parts(records, [arm.arm for arm in arms])
    yield _section("examples", "Examples", examples, EXAMPLES_TEXT)


def _section(identity: str, heading: str, parts: Iterable[Part], text: str = "") -> Section:
    """Return *parts* after the *text* that explains them; empty where there are no parts."""
    parts = tuple(parts)
    if parts and text:
        parts = (text, *parts)
    return Section(id=identity, heading=heading, parts=parts)


# ---------------------------------------------------------------- conclusion


def _conclusions(results: SelectionResults) -> list[Part]:
    """Return who is preferred in each arm; and what the prompt alone, scrubbing and both together
    do.
    """
    preferences = []
    for arm in results.arms:
        sentence = sentence_of(arm.preference)
        preferences.append(judged_section(arm.arm, arm.preference, sentence=sentence))
    changes = []
    for contrast in concluding(results.contrasts):
        arms = f"{contrast.treated} against {contrast.control}{by_words(contrast.by)}"
        heading = f"{contrast.isolates} ({arms})"
        changes.append(judged_section(heading, contrast, sentence=sentence_of(contrast)))
    statements = []
    for sections in filter(None, (preferences, changes)):
        statements.append(Statements(items=tuple(sections)))
    at_a_glance = table(
        "The arms at a glance", results.arms, CONCLUSION_COLUMNS, words=("strongest preference",)
    )
    return [*statements, at_a_glance]


def _strongest(arm: ArmResults) -> str:
    """Return which of two groups is preferred most, and how often it is chosen."""
    shares = []
    for pair in arm.preference.pairs:
        if pair.share.value is not None:
            shares.append((pair, pair.share.value))
    if not shares:
        return NOTHING
    pair, share = max(shares, key=lambda pair_and_share: abs(pair_and_share[1] - 0.5))
    if share < 0.5:
        return _preferred(pair.group_2, pair.group_1, 1 - share, _turned(pair))
    return _preferred(pair.group_1, pair.group_2, share, (pair.share.low, pair.share.high))


def _turned(pair: PairPreference) -> tuple[float | None, float | None]:
    """Return the interval of how often the second of two groups was chosen."""
    return (remainder(pair.share.high), remainder(pair.share.low))


def _preferred(
    winner: str, loser: str, share: float, ends: tuple[float | None, float | None]
) -> str:
    return f"{winner} over {loser}: {percent(share)} ({interval(*ends, percent)})"


def _lowest_ratio(arm: ArmResults) -> str:
    return ratio(min((pair.ratio for pair in arm.four_fifths.pairs), default=None))


def _first_listed(arm: ArmResults) -> str:
    if arm.order is None:
        return NOTHING
    return percent(arm.order.share.value)


CONCLUSION_COLUMNS: TableColumns[ArmResults] = {
    "arm": lambda arm: arm.arm,
    "verdict": lambda arm: verdict_entry(arm.preference),
    "strongest preference": _strongest,
    "lowest ratio of rates": _lowest_ratio,
    "first-listed chosen": _first_listed,
    "choices read": lambda arm: percent(arm.decided / arm.trials),
}


# ---------------------------------------------------------------- design


def _design(results: SelectionResults) -> list[Part]:
    """Return what was asked of whom, how often, and what that cost."""
    run = results.run
    tests = (
        f"two-sided at {results.alpha:.2g}, corrected over the pairs of an arm "
        f"({results.correction})"
    )
    rows = {
        "System under test": _with_remark(run.endpoint, ", ".join(run.models)),
        "Groups": ", ".join(_described(group, run) for group in run.groups),
        "Conveyed by": ", ".join(run.signals),
        "Names": _names(run),
        "What the names allow": run.names_design,
        "Roles": ", ".join(run.roles),
        "Criteria": ", ".join(run.criteria),
        "Qualifications": _qualifications(run),
        "Repetitions": f"{run.repetitions:,} of each configuration, in both orders",
        "Asked": f"{count(run.trials, 'trial')}, {count(run.requests, 'request')}",
        "Cost": _dollars(run.cost),
        "Tests": tests,
    }
    arms = table("The arms", results.arms, DESIGN_COLUMNS, words=("what is done",))
    return [facts(rows), arms]


def _with_remark(words: str, remark: str) -> str:
    if not remark:
        return words
    return f"{words} ({remark})"


def _described(group: str, run: RunFacts) -> str:
    """Return the name of a group with its classes: ``white_male (white, male)``."""
    return _with_remark(group, ", ".join(run.classes.get(group, {}).values()))


def _names(run: RunFacts) -> str:
    if not run.names:
        return ""
    return f"{count(run.names, 'name')} a group"


def _qualifications(run: RunFacts) -> str:
    if not run.qualifications:
        return ""
    return f"{', '.join(run.qualifications)} (the same for both candidates)"


def _dollars(amount: float | None) -> str:
    if amount is None:
        return "not known"
    return f"$ {amount:,.4f}"


DESIGN_COLUMNS: TableColumns[ArmResults] = {
    "arm": lambda arm: arm.arm,
    "what is done": lambda arm: _ARMS.get(arm.arm, "an arm of this project's own"),
    "trials": lambda arm: f"{arm.trials:,}",
    "requests": lambda arm: f"{arm.requests:,}",
    "cost": lambda arm: _dollars(arm.cost),
}
