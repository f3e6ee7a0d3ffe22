"""The figures of a finding as short words, alike in text and HTML. Never escaped here: the sink does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_fairness.analysis.false_alarms import only_by_itself, session_p_value
from pytest_fairness.analysis.sentences import RATES, amount
from pytest_fairness.model import JSON, Finding, GroupResult, OutcomeKind, PairResult, number

RATIO_ASSERTIONS = ("four_fifths",)
#: What the literal specification has a rule for.
SPECIFIED = ("no_disparity", "four_fifths", "no_preference", "baseline")


def cost_line(run: Mapping[str, Any]) -> str:
    """What *run* cost, and what that sum leaves out or guesses; empty where nothing was to be paid."""
    cost, unpriced = run.get("cost") or 0.0, run.get("unpriced") or 0
    at_worst = run.get("charged_at_worst_case") or 0
    if not (cost or unpriced):
        return ""
    priced = ((run.get("trials") or {}).get("total") or 0) - unpriced
    parts = [f"${cost:,.4f} for {_trials(priced)}"] if cost or priced else []
    if unpriced:
        parts.append(f"{unpriced:,} of unknown price" if parts else f"{_trials(unpriced)} of unknown price")
    if at_worst:
        which = "its token counts are" if at_worst == 1 else "their token counts are"
        parts.append(f"{at_worst:,} charged at worst case because {which} missing or cannot be true")
    return "; ".join(parts)


def _trials(count: int) -> str:
    return f"{count:,} trial{'s' * (count != 1)}"


def is_rate(finding: Finding) -> bool:
    """Whether the groups' values are shares of yes."""
    return finding.kind in RATES or finding.assertion in RATIO_ASSERTIONS


def value(number: float | None, finding: Finding) -> str:
    """A group's mean or rate, without its unit."""
    if number is None:
        return "–"
    return amount(number, OutcomeKind.BINARY if is_rate(finding) else finding.kind, "").replace("-", "−")


def value_title(finding: Finding) -> str:
    """What a group's value is: ``mean sentiment``, ``rate``."""
    if is_rate(finding):
        return "rate"
    return f"mean, {finding.unit}" if finding.unit else "mean"


def interval(low: float | None, high: float | None, finding: Finding) -> str:
    return "–" if low is None or high is None else f"{value(low, finding)} to {value(high, finding)}"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def refused(group: GroupResult) -> str:
    """``3 (1.5 %)``."""
    return str(group.refused) + (f" ({percent(group.refusal_rate)})" if group.refused and group.refusal_rate else "")


def effect(number: float | None) -> str:
    """A signed effect: ``+0.61``, ``−∞``."""
    if number is None or math.isnan(number):
        return "–"
    if math.isinf(number):
        return "+∞" if number > 0 else "−∞"
    text = f"{number:+.2f}" if abs(number) < 100 else f"{number:+.0f}"
    return text.replace("-", "−")


def effect_interval(pair: PairResult) -> str:
    return ends(pair.effect_low, pair.effect_high)


def ends(low: float | None, high: float | None) -> str:
    """``+0.22 to +1.00``."""
    return "–" if low is None or high is None else f"{effect(low)} to {effect(high)}"


def p_value(number: float | None) -> str:
    """``.031``; never ``.000``."""
    if number is None or math.isnan(number):
        return "–"
    if number < 0.0001:
        return "<.0001"
    return "1" if number > 0.99995 else f"{number:.4f}".removeprefix("0")


def statistic(pair: PairResult, name: str) -> float | None:
    """What the pair reports under *name*, if that is a number."""
    found = pair.statistics.get(name)
    return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def ratio(pair: PairResult) -> float | None:
    """The impact ratio of a four-fifths pair."""
    return statistic(pair, "impact_ratio")


def verdict_words(pair: PairResult) -> str:
    """``INCONCLUSIVE (PRECISION)``."""
    return f"{pair.verdict} ({pair.reason})" if pair.reason is not None else str(pair.verdict)


def pair_columns(finding: Finding) -> list[tuple[str, Callable[[PairResult], str]]]:
    """Title and cell of each figure of a pair, in the order that a reader needs them."""
    columns: list[tuple[str, Callable[[PairResult], str]]] = []
    if finding.assertion == "baseline":
        columns += [
            ("approved", lambda pair: value(statistic(pair, "approved"), finding)),
            ("now", lambda pair: value(statistic(pair, "now"), finding)),
            ("change", lambda pair: effect(pair.difference)),
            ("margin", lambda pair: value(statistic(pair, "margin"), finding)),
        ]
    elif finding.assertion in RATIO_ASSERTIONS:
        columns += [
            ("ratio", lambda pair: "–" if (found := ratio(pair)) is None else f"{found:.3f}"),
            ("95 % interval", _ratio_interval),
        ]
    else:
        columns += [("effect d", lambda pair: effect(pair.effect)), ("90 % interval", effect_interval)]
    return [
        *columns,
        ("p", lambda pair: p_value(pair.p_value)),
        ("corrected", lambda pair: p_value(pair.corrected_p_value)),
    ]


def _ratio_interval(pair: PairResult) -> str:
    low = statistic(pair, "impact_ratio_low")
    high = statistic(pair, "impact_ratio_high")
    return "–" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def most_telling(pairs: Sequence[PairResult], count: int) -> Sequence[PairResult]:
    """All *pairs* in their order, or the *count* most severe and strongest of them."""
    if len(pairs) <= count:
        return pairs
    return sorted(pairs, key=lambda pair: (-pair.verdict.severity, -abs(pair.effect)))[:count]


def categories(finding: Finding) -> list[str]:
    """The labels of a categorical outcome, most frequent first."""
    totals: dict[str, float] = {}
    for group in finding.group_results:
        for label, share in group.shares.items():
            totals[label] = totals.get(label, 0.0) + share
    return sorted(totals, key=lambda label: (-totals[label], label))


def plural(noun: str) -> str:
    """``names``, ``personas``, ``first_name``: our own nouns in the plural, a column's name as it is."""
    return f"{noun}s" if noun in ("name", "persona") else noun


def family_line(finding: Finding) -> str:
    """Which tests were corrected together, how, at which alpha, and what the unit of evidence was."""
    parts = []
    size, method = finding.family.get("size"), finding.family.get("method", finding.family.get("correction"))
    if isinstance(size, int):
        told = f"{size} test{'s' * (size != 1)} in the family"
        alpha = finding.family.get("alpha")
        parts.append(told + (f", corrected by {method}" if method else "") + (f", alpha {alpha}" if alpha else ""))
    if finding.cluster:
        parts.append(f"unit of evidence: {finding.cluster}")
    if finding.block:
        parts.append(f"blocks: {finding.block}")
    return "; ".join(parts)


def justification_line(justification: Mapping[str, JSON]) -> str:
    """``reason (approver, date, until expiry)``."""
    who = [str(justification[key]) for key in ("approver", "date") if justification.get(key)]
    if justification.get("expiry"):
        who.append(f"until {justification['expiry']}")
    return f"{justification.get('reason', '')}" + (f" ({', '.join(who)})" if who else "")


def literal(finding: Finding) -> str:
    """What the literal specification says where that is another verdict; empty where it says the same or nothing.

    ``N/A``: a group is under the minimum that the specification sets.
    """
    if finding.spec_verdict is finding.verdict or finding.assertion not in SPECIFIED:
        return ""
    return "N/A, too few trials" if finding.spec_verdict is None else str(finding.spec_verdict)


def by_block(finding: Finding) -> list[dict[str, Any]]:
    """Each pair of groups within each block, as the finding's details have them; empty where it has no blocks."""
    rows = finding.details.get("by_block")
    numbers = ("p_value", "effect", "effect_low", "effect_high")
    return [
        {**row, **{key: number(row.get(key)) for key in numbers}}
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, Mapping)
    ]


def unanswered(finding: Finding) -> bool:
    """Whether a trial of any group gave no usable answer."""
    return any(group.unscored for group in finding.group_results)


def no_answer(group: GroupResult) -> str:
    """``6 (3.0 %)`` of the group's trials."""
    total = group.n + group.refused + group.undetermined + group.unscored
    return str(group.unscored) + (f" ({percent(group.unscored / total)})" if group.unscored else "")


def session_p(finding: Finding) -> str:
    """``.031``: the p-value of the finding adjusted across its session; empty where it stands alone there."""
    adjusted = session_p_value(finding)
    return "" if adjusted is None else p_value(adjusted)


def session_line(finding: Finding) -> str:
    """What the session's adjustment does to a FLAG or FAIL; empty where it does nothing."""
    if not only_by_itself(finding):
        return ""
    return f"beyond chance by itself, but not across the findings of this session (Holm p {session_p(finding)})"


def confirmation(finding: Finding) -> bool | None:
    """Whether a second sample confirmed an alarm; None where none was raised or repeated, or it cannot tell."""
    told = finding.details.get("confirmation")
    confirmed = told.get("confirmed") if isinstance(told, Mapping) else None
    return confirmed if isinstance(confirmed, bool) else None


def could_fail(finding: Finding) -> bool | None:
    """Whether a passing test caught what was planted; None where nothing was."""
    told = finding.details.get("sensitivity")
    return bool(told.get("could_fail")) if isinstance(told, Mapping) else None


def sensitivity_line(finding: Finding) -> str:
    """``planted d 0.5 caught in 92 %, d 0.8 in 100 %; placebo alarms in 2 %``; empty where nothing was planted."""
    told = finding.details.get("sensitivity")
    if not isinstance(told, Mapping) or not isinstance(caught := told.get("caught"), Mapping):
        return ""
    shares = [f"d {d} in {100 * share:.0f} %" for d, share in caught.items() if isinstance(share, (int, float))]
    line = f"planted {', '.join(shares)} of copies caught"
    false = told.get("false_alarms")
    return line + (f"; placebo alarms in {100 * false:.0f} %" if isinstance(false, (int, float)) else "")


def marks(finding: Finding, outcome: str = "") -> list[str]:
    """What has to be said beside a verdict: where the replies come from, and what was done about it."""
    return [
        word
        for word, said in (
            ("simulated", finding.simulated),
            ("replayed", finding.replayed),
            ("justified", finding.justification is not None),
            ("expected", outcome == "xfailed"),
            ("confirmed", confirmation(finding) is True),
            ("not confirmed", confirmation(finding) is False),
            ("unconfirmed", "confirmation" in finding.details and confirmation(finding) is None),
            ("could not have failed", could_fail(finding) is False),
        )
        if said
    ]
