"""Numbers and findings in short words, alike in text, HTML and every page. Never escaped here: the
sink does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_fairness import model
from pytest_fairness.analysis import false_alarms
from pytest_fairness.analysis.false_alarms import only_by_itself, session_p_value
from pytest_fairness.analysis.sentences import RATES, amount, effect_of
from pytest_fairness.model import number
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.words import (
    NOTHING,
    agreeing,
    bracketed,
    confidence,
    count,
    effect,
    interval,
    led,
    p_value,
    percent,
    rounded_percent,
)

FOUR_FIFTHS = "four_fifths"
#: The mark of a finding whose alarm ended its looks before the last.
STOPPED_EARLY = "stopped early"
_LARGE = 0.5
_AT_WORST = "charged_at_worst_case"
#: What the literal specification has a rule for.
_SPECIFIED = ("no_disparity", FOUR_FIFTHS, "no_preference", "baseline")

# ---------------------------------------------------------------- numbers


def cost_line(run: Mapping[str, Any]) -> str:
    """Return what *run* cost, and what that sum leaves out or guesses, of each of several endpoints
    too; empty where nothing was to be paid.
    """
    each = [entry for entry in run.get("costs") or () if isinstance(entry, Mapping)]
    unpriced = run.get("unpriced") or 0
    parts = []
    priced = _priced(run, unpriced, each)
    if priced:
        parts.append(priced)
    if unpriced:
        shown = f"{unpriced:,}"
        if not parts:
            shown = count(unpriced, "trial")
        parts.append(f"{shown} of unknown price{_among(_numbers(each, 'unpriced'), each)}")
    if not parts:
        return ""
    at_worst = run.get(_AT_WORST)
    if at_worst:
        which = agreeing(at_worst, "its token counts are", "their token counts are")
        parts.append(
            f"{at_worst:,} charged at worst case because {which} missing or cannot be "
            f"true{_among(_numbers(each, _AT_WORST), each)}"
        )
    if run.get("replayed"):
        parts.append("paid when it was recorded, not now")
    return "; ".join(parts)


def _priced(run: Mapping[str, Any], unpriced: int, each: Sequence[Mapping[str, Any]]) -> str:
    """Return what the trials of known price cost; empty where none was paid for."""
    cost = run.get("cost") or 0.0
    trials: Mapping[str, Any] = run.get("trials") or {}
    priced = (trials.get("total") or 0) - unpriced
    known_in_part = all((priced, unpriced))
    if cost or known_in_part:
        return f"${cost:,.4f} for {count(priced, 'trial')}{_among(_shares(each), each)}"
    return ""


def _shares(each: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the trials of known price cost at each endpoint that was asked any."""
    for entry in each:
        trials = entry["trials"] - entry["unpriced"]
        if not trials:
            continue
        price = "free"
        if entry["cost"]:
            price = f"${entry['cost']:,.4f} for {trials:,}"
        yield f"{entry['endpoint']} {price}"


def _numbers(each: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    """Return the number under *key* of each endpoint that has one."""
    return [f"{entry['endpoint']} {entry[key]:,}" for entry in each if entry[key]]


def _among(words: Iterable[str], each: Sequence[object]) -> str:
    if len(each) > 1:
        return f" ({', '.join(words)})"
    return ""


# ---------------------------------------------------------------- a finding


def without_verdict(sentence: str, verdict: model.Verdict) -> str:
    """The *sentence* without the verdict that it starts with: on a page a badge stands beside it."""
    sentence = sentence.removeprefix(f"{verdict}: ")
    first = sentence.split(" ", 1)[0]
    # A name like letter_score is written as it is spelt in code, also at the start of a sentence.
    if first.isalpha():
        return sentence[:1].upper() + sentence[1:]
    return sentence


def reason_words(reason: model.Reason | None) -> str:
    """Why a verdict is INCONCLUSIVE, in a few words; empty without a reason."""
    if reason is None:
        return ""
    return _REASONS[reason]


_REASONS = {
    model.Reason.N: "too few trials",
    model.Reason.UNSCORED: "replies without a score",
    model.Reason.RAGGED: "groups in unlike cells",
    model.Reason.INCOMPLETE: "trials never finished",
    model.Reason.PRECISION: "interval too wide",
    model.Reason.TEMPLATE: "one template differs",
    model.Reason.SIGNAL: "one signal differs",
    model.Reason.SMALL_NUMBERS: "small numbers",
    model.Reason.DIFFERENTIAL_REFUSAL: "a group is refused more",
    model.Reason.NO_ROOM: "answers hardly vary",
    model.Reason.OVERLAP: "too few shared personas",
    model.Reason.MIXED_MODELS: "several models answered",
    model.Reason.READER: "readings not checked",
    model.Reason.UNRECORDED: "not recorded",
}


def worse_off(finding: model.Finding) -> str:
    """The group that a FLAG or FAIL is about; empty for other verdicts, which say of nobody that
    they are worse off.
    """
    pair = model.deciding_pair(finding.pairs)
    if pair is None or finding.verdict not in model.ALARMS:
        return ""
    return pair.worse_off or ""


def effect_words(finding: model.Finding, levels: Sequence[float] = ()) -> str:
    """The effect that decides the verdict, with its interval: ``d −0.79 (−0.98 to −0.60)``,
    ``ratio 0.67 (…)``; as in the sentence, of the group that is worse off against the other. The
    interval's level stands there where the *levels* beside it are not one.
    """
    pair = model.deciding_pair(finding.pairs)
    if pair is None:
        return NOTHING
    if finding.assertion == FOUR_FIFTHS:
        names = ("impact_ratio", "clustered_impact_ratio_low", "clustered_impact_ratio_high")
        ratio, low, high = map(number, map(pair.statistics.get, names))
        ends = interval_at(interval(low, high, _ratio), pair.confidence, levels)
        return _with_interval(f"ratio {_ratio(ratio)}", ends)
    if finding.assertion == "baseline":
        return f"{effect(pair.difference)} {finding.unit}".rstrip()
    about = ""
    # By refusals, whatever the answers are.
    if pair.statistics.get("worst_rank_p_value") == pair.p_value:
        pair = _alarming_pair(finding, pair)
        if pair.alarm_only:
            about = f"{pair.metric} "
    if pair.reason is model.Reason.N and pair.effect_low is None:
        return NOTHING  # nothing, or next to nothing, was there to compare
    value, low, high = effect_of(pair, pair.worse_off)
    ends = interval_at(interval(low, high, effect), pair.confidence, levels)
    return _with_interval(f"{about}d {effect(value)}", ends)


def interval_at(ends: str, level: float, levels: Iterable[float]) -> str:
    """Return the *ends* of an interval, with its *level* where the *levels* of what stands beside
    it are not one.
    """
    if ends == NOTHING or len(set(map(confidence, levels))) < 2:
        return ends
    return f"{ends}, {confidence(level)}"


def deciding_levels(findings: Iterable[model.Finding]) -> list[float]:
    """Return the confidence of the interval that decides each of *findings*."""
    levels = []
    for finding in findings:
        pair = model.deciding_pair(finding.pairs)
        if pair is not None:
            levels.append(pair.confidence)
    return levels


def _with_interval(words: str, ends: str) -> str:
    if ends == NOTHING:
        return words
    return f"{words} ({ends})"


def _alarming_pair(finding: model.Finding, pair: model.PairResult) -> model.PairResult:
    """Return the most severe alarm about the groups of *pair*, or *pair* where there is none."""
    groups = {pair.group_1, pair.group_2}
    alarms = []
    for alarm in finding.pairs:
        if alarm.alarm_only and {alarm.group_1, alarm.group_2} == groups:
            alarms.append(alarm)
    return max(alarms, key=lambda alarm: alarm.verdict.severity, default=pair)


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return NOTHING
    if math.isinf(ratio):
        return "∞"
    return f"{ratio:.2f}"


def is_rate(finding: model.Finding) -> bool:
    """Return whether the groups' values are shares of yes."""
    return finding.kind in RATES or finding.assertion == FOUR_FIFTHS


def value(number: float | None, finding: model.Finding) -> str:
    """A group's mean or rate, without its unit."""
    if number is None:
        return NOTHING
    if is_rate(finding):
        return amount(number, model.OutcomeKind.BINARY)
    return amount(number, finding.kind)


def scopes(finding: model.Finding) -> Iterator[tuple[model.PairResult, float, float]]:
    """Yield each scope that was held to a baseline, with the approved score and that of now."""
    if finding.assertion != "baseline":
        return
    for pair in finding.pairs:
        approved, now = pair.statistics.get("approved"), pair.statistics.get("now")
        if isinstance(approved, (int, float)) and isinstance(now, (int, float)):
            yield pair, approved, now


def regressions(finding: model.Finding) -> list[str]:
    """Return what has fallen against a baseline: ``Age warnings: 88.1 (baseline: 96.5) ↓ 8.4
    points``, a scope each.
    """
    lines = []
    for pair, approved, now in scopes(finding):
        if pair.verdict not in model.ALARMS:
            continue
        arrow = "↑"
        if now < approved:
            arrow = "↓"
        scope = f"{pair.metric[:1].upper()}{pair.metric[1:]}"
        change = f"{arrow} {value(abs(now - approved), finding)} {finding.unit or 'points'}"
        was = value(approved, finding)
        lines.append(f"{scope}: {value(now, finding)} (baseline: {was}) {change}")
    return lines


def plural(noun: str) -> str:
    """``names``, ``personas``, ``first_name``: our own nouns in the plural, a column's name as it
    is.
    """
    if noun in ("name", "persona"):
        return f"{noun}s"
    return noun


def widest_pairs(pairs: Sequence[model.PairResult], most: int) -> Sequence[model.PairResult]:
    """All *pairs* in their order, or the *most* severe and strongest of them."""
    if len(pairs) <= most:
        return pairs
    return sorted(pairs, key=lambda pair: (-pair.verdict.severity, -abs(pair.effect)))[:most]


def family_line(finding: model.Finding) -> str:
    """Return which tests were corrected together, how, at which alpha, and what the unit of
    evidence was.
    """
    parts = [
        _tests_of_family(finding.family),
        led("unit of evidence: ", finding.cluster),
        led("blocks: ", finding.block),
    ]
    return "; ".join(filter(None, parts))


def _tests_of_family(family: Mapping[str, Any]) -> str:
    """Return how many tests were corrected together, how, at which alpha; empty where none were."""
    size = family.get("size")
    if not isinstance(size, int):
        return ""
    method = led(", corrected by ", family.get("method", family.get("correction")))
    tests = f"{count(size, 'test')} in the family{method}"
    alpha = family.get("alpha")
    if alpha:
        return f"{tests}, alpha {alpha:.3g}"
    return tests


def justification_line(finding: model.Finding) -> str:
    """``reason (approver, date, until expiry)``; empty where there is none."""
    given = justified(finding)
    who = [given.get("approver"), given.get("date"), led("until ", given.get("expiry"))]
    return bracketed(str(given.get("reason", "")), ", ".join(map(str, filter(None, who))))


def justified(finding: model.Finding) -> Mapping[str, Any]:
    """Return why *finding* is accepted, by whom and until when; nothing where it is not."""
    return finding.justification or {}


#: What is compared, where it is not the groups' replies, for the narrow column of a table.
_COMPARISONS = {"no_disparity": "", "no_preference": "preference", "arm_reduces_disparity": "arms"}


def headline(finding: model.Finding) -> str:
    """``sentiment by race_ethnicity``; with the comparison, where it is another than of the groups'
    replies.
    """
    comparison = _COMPARISONS.get(finding.assertion, finding.assertion.replace("_", " "))
    by = led(" by ", shortened(finding.protected_class, 60))
    words = f"{shortened(finding.outcome or comparison, 60)}{by}"
    if comparison in ("", words):
        return words
    return f"{words} ({comparison})"


#: What the verdict of :func:`literal` comes from, for readers.
PLAIN_RECIPE = "by the plain recipe, each reply by itself"


def literal(finding: model.Finding) -> str:
    """Return what the literal specification says where that is another verdict; empty where it says
    the same or nothing.

    ``N/A``: a group is under the minimum that the specification sets.
    """
    if finding.spec_verdict is finding.verdict or finding.assertion not in _SPECIFIED:
        return ""
    if finding.spec_verdict is None:
        return "N/A, too few trials"
    return str(finding.spec_verdict)


def session_p(finding: model.Finding) -> str:
    """The p-value of the finding adjusted across its session; empty where it stands alone there, or
    tested nothing.
    """
    adjusted = session_p_value(finding)
    if adjusted is None or not finding.pairs:
        return ""
    return p_value(adjusted)


def session_line(finding: model.Finding) -> str:
    """Return what the session's adjustment does to a FLAG or FAIL; empty where it does nothing."""
    if not only_by_itself(finding):
        return ""
    return (
        "beyond chance by itself, but not across the findings of this session (Holm p "
        f"{session_p(finding)})"
    )


def false_alarm_line(session: Mapping[str, Any], *, always: bool = False) -> str:
    """Return how often alarms turn such a session red about fair systems; empty where that is rare
    or not known, unless it is *always* to be said.
    """
    share = session.get("false_alarm")
    if not isinstance(share, (int, float)) or (share <= false_alarms.RARE and not always):
        return ""
    tables = int(session.get("judged_once") or 0)
    judged = f"tables, baselines and other logs that are judged as they are ({tables:,})"
    red = "turn a session of a fair system red with a chance of"
    mend = "where that is too often, give these a smaller alpha="
    if not session.get("looks"):
        return f"Alarms of {judged} {red} about {rounded_percent(share)}: {mend}."
    of_looks = rounded_percent(session["false_alarm_of_looks"])
    promise = f"Alarms of its grid tests {red} at most {of_looks}"
    if tables:
        return f"{promise}; with those of {judged}, about {rounded_percent(share)}: {mend}."
    return f"{promise}."


def controls_line(finding: model.Finding) -> str:
    """``A.5.4 (direct), A.5.5 (supporting) of ISO/IEC 42001, Annex A: evidence, not
    certification``; nothing where the finding is evidence of no control.
    """
    controls = ", ".join(f"{number} ({strength})" for number, strength in finding.controls.items())
    if controls:
        return f"{controls} of ISO/IEC 42001, Annex A: evidence, not certification"
    return ""


def sensitivity_line(finding: model.Finding) -> str:
    """``planted d 0.5 in 92 %, d 0.8 in 100 % of copies caught``; empty where nothing was planted."""
    tried: Any = finding.details.get("sensitivity") or {}
    if not tried.get("caught"):
        return ""
    shares = ", ".join(f"d {d} in {percent(share, 0)}" for d, share in tried["caught"].items())
    caught = f"planted {shares} of copies caught"
    false = tried.get("false_alarms")
    if false is not None:
        caught += f"; placebo alarms in {percent(false, 0)}"
    return caught


def reasons(finding: model.Finding) -> list[str]:
    """Say, beside a FLAG or FAIL, why a large effect is no FAIL."""
    pair = model.deciding_pair(finding.pairs)
    if pair is not None and finding.verdict is model.Verdict.FLAG and abs(pair.effect) > _LARGE:
        return [f"no FAIL: {note}" for note in pair.notes]
    return []


def marks(finding: model.Finding, outcome: str = "") -> list[str]:
    """Return what stands beside a verdict: where the replies come from, and what was done about it."""
    tried: Any = finding.details.get("sensitivity")
    looks: Any = finding.details.get("looks") or {}
    judged_in = finding.details.get("judged_in")
    applies = {
        f"judged in {judged_in}, not here": bool(judged_in),
        "simulated": finding.simulated,
        "replayed": finding.replayed,
        "justified": finding.justification is not None,
        "expected": outcome == "xfailed",
        STOPPED_EARLY: bool(looks.get("stopped_early")),
        "not asked to the end": bool(looks.get("stopped")),
        "could not have failed": bool(tried) and not tried.get("could_fail"),
    }
    return [mark for mark, applied in applies.items() if applied]


#: What the marks of a finding mean that say where its replies come from.
SOURCES = {
    "simulated": "simulated: the figures come from a simulated endpoint; no model was asked",
    "replayed": "replayed: the replies come from a recorded run; no model was asked now",
}


def sources(finding: model.Finding) -> list[str]:
    """Return where the replies of *finding* come from, if not from the system itself."""
    return [SOURCES[mark] for mark in marks(finding) if mark in SOURCES]
