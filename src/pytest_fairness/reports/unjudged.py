"""Tests of a session that concluded nothing, in words: those without a finding, and why tests were
skipped.
"""

from __future__ import annotations

from collections import Counter

from pytest_fairness import words
from pytest_fairness.reports.findings_json import ItemResult, RunResults, Unjudged


def unjudged_words(asked: Unjudged) -> str:
    """``asked 160 trials ($0.0200) and concluded nothing``, and what it analysed all the same."""
    costs = []
    if asked.cost:
        costs.append(f"${asked.cost:,.4f}")
    if asked.unpriced:
        costs.append(f"{asked.unpriced:,} of unknown price")
    trials = words.bracketed(f"asked {words.count(asked.trials, 'trial')}", " and ".join(costs))
    left = words.led(", though it analysed ", " and ".join(asked.dropped))
    return f"{trials} and concluded nothing{left}"


def unjudged_tests(results: RunResults) -> list[tuple[ItemResult, str]]:
    """Each test that asked for trials, passed and drew no finding, with what it asked in words."""
    tests = []
    for item in results.items:
        if item.unjudged is not None:
            tests.append((item, unjudged_words(item.unjudged)))
    return tests


def skip_reasons(results: RunResults) -> list[tuple[str, int]]:
    """Why tests were skipped, and how many for each reason, the commonest first."""
    reasons: Counter[str] = Counter()
    for item in results.items:
        if item.outcome == "skipped":
            reasons[item.message.removeprefix("Skipped: ")] += 1
    return reasons.most_common()


def nothing_judged(results: RunResults) -> str:
    """Return what a session without a finding comes to: that nothing was judged, or, where tests
    passed by asserts of their own, that no groups were compared. Empty where there are findings.
    """
    if results.findings:
        return ""
    for item in results.items:
        if item.outcome == "passed" and item.unjudged is None:
            return "no groups were compared"
    return "nothing was judged"
