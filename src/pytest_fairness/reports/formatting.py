"""Numbers and findings in short words, alike in text, HTML and every page. Never escaped here: the sink does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_fairness.analysis.false_alarms import only_by_itself, session_p_value
from pytest_fairness.analysis.sentences import RATES, amount
from pytest_fairness.model import JSON, Finding, GroupResult, OutcomeKind, PairResult, Reason, Verdict, number

NOTHING = "–"
RATIO_ASSERTIONS = ("four_fifths",)
#: What the literal specification has a rule for.
_SPECIFIED = ("no_disparity", "four_fifths", "no_preference", "baseline")

# ---------------------------------------------------------------- numbers


def percent(share: float | None) -> str:
    """``12.5 %``."""
    return NOTHING if share is None else f"{100 * share:.1f} %"


def points(share: float | None) -> str:
    """A difference of shares in percentage points: ``+12.5``."""
    return NOTHING if share is None else f"{100 * share:+.1f}".replace("-", "−")


def effect(number: float | None) -> str:
    """A signed effect: ``+0.61``, ``−∞``."""
    if number is None or math.isnan(number):
        return NOTHING
    if math.isinf(number):
        return "+∞" if number > 0 else "−∞"
    text = f"{number:+.2f}" if abs(number) < 100 else f"{number:+.0f}"
    return text.replace("-", "−")


def p_value(number: float | None) -> str:
    """``.031``; never ``.000``."""
    if number is None or math.isnan(number):
        return NOTHING
    if number < 0.0001:
        return "<.0001"
    return "1" if number > 0.99995 else f"{number:.4f}".removeprefix("0")


def ratio_words(ratio: float | None) -> str:
    """``0.668``."""
    return NOTHING if ratio is None else f"{ratio:.3f}"


def dollars(amount: float | None) -> str:
    return "not known" if amount is None else f"$ {amount:,.4f}"


def between(low: float | None, high: float | None, show: Callable[[float], str]) -> str:
    """``+0.22 to +1.00``."""
    return NOTHING if low is None or high is None else f"{show(low)} to {show(high)}"


def count(number: int, noun: str) -> str:
    """``1 trial``, ``6,480 trials``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def part_of(some: int, whole: int) -> str:
    """``3 (1.5 %)``."""
    return f"{some:,} ({percent(some / whole)})" if some and whole else f"{some:,}"


def cost_line(run: Mapping[str, Any]) -> str:
    """What *run* cost, and what that sum leaves out or guesses; empty where nothing was to be paid."""
    cost, unpriced = run.get("cost") or 0.0, run.get("unpriced") or 0
    at_worst = run.get("charged_at_worst_case") or 0
    if not (cost or unpriced):
        return ""
    priced = ((run.get("trials") or {}).get("total") or 0) - unpriced
    parts = [f"${cost:,.4f} for {count(priced, 'trial')}"] if cost or priced else []
    if unpriced:
        parts.append(f"{unpriced:,} of unknown price" if parts else f"{count(unpriced, 'trial')} of unknown price")
    if at_worst:
        which = "its token counts are" if at_worst == 1 else "their token counts are"
        parts.append(f"{at_worst:,} charged at worst case because {which} missing or cannot be true")
    return "; ".join(parts)


# ---------------------------------------------------------------- verdicts and groups


def reason_words(reason: Reason) -> str:
    return reason.value.lower().replace("_", " ")


def without_verdict(sentence: str, verdict: Verdict) -> str:
    """The *sentence* without the verdict that it starts with: on a page a badge stands beside it."""
    sentence = sentence.removeprefix(f"{verdict}: ")
    first = sentence.split(" ", 1)[0]
    # A name like letter_score is written as it is spelt in code, also at the start of a sentence.
    return sentence[:1].upper() + sentence[1:] if first.isalpha() else sentence


def is_rate(finding: Finding) -> bool:
    """Whether the groups' values are shares of yes."""
    return finding.kind in RATES or finding.assertion in RATIO_ASSERTIONS


def value(number: float | None, finding: Finding) -> str:
    """A group's mean or rate, without its unit."""
    if number is None:
        return NOTHING
    return amount(number, OutcomeKind.BINARY if is_rate(finding) else finding.kind, "").replace("-", "−")


def value_title(finding: Finding) -> str:
    """What a group's value is: ``mean, points``, ``rate``."""
    if is_rate(finding):
        return "rate"
    return f"mean, {finding.unit}" if finding.unit else "mean"


def refused(group: GroupResult) -> str:
    return str(group.refused) + (f" ({percent(group.refusal_rate)})" if group.refused and group.refusal_rate else "")


def no_answer(group: GroupResult) -> str:
    return part_of(group.unscored, group.n + group.refused + group.undetermined + group.unscored)


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


# ---------------------------------------------------------------- pairs


def statistic(pair: PairResult, name: str) -> float | None:
    """What the pair reports under *name*, if that is a number."""
    found = pair.statistics.get(name)
    return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def pair_columns(finding: Finding) -> list[tuple[str, Callable[[PairResult], str]]]:
    """Title and cell of each figure of a pair, in the order that a reader needs them."""

    def score(name: str) -> Callable[[PairResult], str]:
        return lambda pair: value(statistic(pair, name), finding)

    def ratio(pair: PairResult, end: str = "") -> float | None:
        return statistic(pair, f"impact_ratio{end}")

    if finding.assertion == "baseline":
        columns = [("approved", score("approved")), ("now", score("now"))]
        columns += [("change", lambda pair: effect(pair.difference)), ("margin", score("margin"))]
    elif finding.assertion in RATIO_ASSERTIONS:
        columns = [("ratio", lambda pair: ratio_words(ratio(pair)))]
        columns += [("95 % interval", lambda pair: between(ratio(pair, "_low"), ratio(pair, "_high"), ratio_words))]
    else:
        columns = [("effect d", lambda pair: effect(pair.effect))]
        columns += [("90 % interval", lambda pair: between(pair.effect_low, pair.effect_high, effect))]
    columns += [("p", lambda pair: p_value(pair.p_value)), ("corrected", lambda pair: p_value(pair.corrected_p_value))]
    return columns


def widest_pairs(pairs: Sequence[PairResult], most: int) -> Sequence[PairResult]:
    """All *pairs* in their order, or the *most* severe and strongest of them."""
    if len(pairs) <= most:
        return pairs
    return sorted(pairs, key=lambda pair: (-pair.verdict.severity, -abs(pair.effect)))[:most]


def by_block(finding: Finding) -> list[dict[str, Any]]:
    """Each pair of groups within each block, as the finding's details have them; empty where it has no blocks."""
    rows: Any = finding.details.get("by_block") or []
    numbers = ("p_value", "effect", "effect_low", "effect_high")
    return [{**row, **{key: number(row.get(key)) for key in numbers}} for row in rows]


# ---------------------------------------------------------------- what stands beside a verdict


def family_line(finding: Finding) -> str:
    """Which tests were corrected together, how, at which alpha, and what the unit of evidence was."""
    parts = []
    size, method = finding.family.get("size"), finding.family.get("method", finding.family.get("correction"))
    if isinstance(size, int):
        alpha = finding.family.get("alpha")
        tests = f"{count(size, 'test')} in the family"
        parts.append(tests + (f", corrected by {method}" if method else "") + (f", alpha {alpha}" if alpha else ""))
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
    if finding.spec_verdict is finding.verdict or finding.assertion not in _SPECIFIED:
        return ""
    return "N/A, too few trials" if finding.spec_verdict is None else str(finding.spec_verdict)


def session_p(finding: Finding) -> str:
    """The p-value of the finding adjusted across its session; empty where it stands alone there."""
    adjusted = session_p_value(finding)
    return "" if adjusted is None else p_value(adjusted)


def session_line(finding: Finding) -> str:
    """What the session's adjustment does to a FLAG or FAIL; empty where it does nothing."""
    if not only_by_itself(finding):
        return ""
    return f"beyond chance by itself, but not across the findings of this session (Holm p {session_p(finding)})"


def confirmed(finding: Finding) -> bool | None:
    """Whether a second sample confirmed an alarm; None where none was raised or repeated, or it cannot tell."""
    found = _detail(finding, "confirmation").get("confirmed")
    return found if isinstance(found, bool) else None


def could_fail(finding: Finding) -> bool | None:
    """Whether a passing test caught what was planted; None where nothing was."""
    tried = _detail(finding, "sensitivity")
    return bool(tried.get("could_fail")) if tried else None


def sensitivity_line(finding: Finding) -> str:
    """``planted d 0.5 in 92 %, d 0.8 in 100 % of copies caught``; empty where nothing was planted."""
    tried = _detail(finding, "sensitivity")
    if not tried.get("caught"):
        return ""
    shares = ", ".join(f"d {d} in {100 * share:.0f} %" for d, share in tried["caught"].items())
    false = tried.get("false_alarms")
    placebo = "" if false is None else f"; placebo alarms in {100 * false:.0f} %"
    return f"planted {shares} of copies caught{placebo}"


def _detail(finding: Finding, name: str) -> Mapping[str, Any]:
    found: Any = finding.details.get(name)
    return found or {}


def marks(finding: Finding, outcome: str = "") -> list[str]:
    """What stands beside a verdict: where the replies come from, and what was done about it."""
    again = confirmed(finding)
    applies = {
        "simulated": finding.simulated,
        "replayed": finding.replayed,
        "justified": finding.justification is not None,
        "expected": outcome == "xfailed",
        "confirmed": again is True,
        "not confirmed": again is False,
        "unconfirmed": "confirmation" in finding.details and again is None,
        "could not have failed": could_fail(finding) is False,
    }
    return [mark for mark, applied in applies.items() if applied]
