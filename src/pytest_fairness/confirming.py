"""A second look: what a FLAG or FAIL comes to on a second, independent sample.

A pair that raised the alarm keeps its verdict only where the second sample raises it as well: one-sided in the
direction found, Holm-corrected over the pairs that are looked at again, at the assertion's own alpha. A false alarm
needs both, so it is never more likely than by the first sample alone. The p-value of the two together is the larger.
See ``docs/decisions/0071-confirming-an-alarm.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_fairness.current import FreshSample
from pytest_fairness.explaining import explain
from pytest_fairness.model import JSON, Finding, PairResult, Reason, Verdict
from pytest_fairness.verdict import ALPHA, MARGIN, TRIVIAL, assertion_verdict, deciding_pair
from pytest_fairness.wording import effect_words, interval_words, p_words

ALARMS = (Verdict.FLAG, Verdict.FAIL)
#: Reasons for which the second sample is no evidence either way: the alarm then stands.
_UNFIT = (Reason.N, Reason.UNSCORED, Reason.RAGGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One pair in both samples. ``second`` is None where the second sample has no such pair.

    ``p_value`` is the second sample's, one-sided in the direction of the first, ``corrected`` after Holm; ``verdict``
    is what the two come to.
    """

    first: PairResult
    second: PairResult | None
    p_value: float
    corrected: float
    verdict: Verdict

    @property
    def tells(self) -> bool:
        """Whether the second sample says anything about the pair."""
        return self.second is not None and (self.verdict in ALARMS or self.second.reason not in _UNFIT)


def confirmed(finding: Finding, again: Finding, sample: FreshSample) -> Finding:
    """*finding* after its alarms were looked at in *again*, the same analysis of *sample*.

    Alarms that are not confirmed become INCONCLUSIVE(PRECISION); those on which the second sample cannot tell stay as
    they are. Both samples are reported, in ``details["confirmation"]`` and as notes.
    """
    looks = _looks(finding, again)
    after = {id(look.first): look for look in looks}
    pairs = tuple(_after(pair, after.get(id(pair)), sample) for pair in finding.pairs)
    verdict, reason = assertion_verdict(pairs)
    decider = deciding_pair(pairs)
    old = deciding_pair(finding.pairs)
    same = old is not None and decider is not None and _names(old) == _names(decider)
    look = next((each for each in looks if decider is not None and _names(each.first) == _names(decider)), None)
    changed = replace(
        finding,
        verdict=verdict,
        reason=reason,
        pairs=pairs,
        sentence=_sentence(finding, verdict, look, sample, same=same),
        p_value=decider.p_value if decider is not None else None,
        corrected_p_value=decider.corrected_p_value if decider is not None else None,
        test_statistic=finding.test_statistic if same else "",
        effect_size=finding.effect_size if same or decider is None else f"d = {effect_words(decider.effect)}",
        notes=(*finding.notes, *_notes(finding, looks, sample)),
        details={**finding.details, "confirmation": _details(finding, again, looks, sample)},
    )
    return replace(changed, explanation=explain(changed))


def unrepeated(finding: Finding, why: str) -> Finding:
    """*finding* as it is, with a note that it could not be repeated, and why: an alarm is never lost that way."""
    return replace(finding, notes=(*finding.notes, f"not repeated on a second sample, so it stands: {why}"))


# ---------------------------------------------------------------- looking


def _looks(finding: Finding, again: Finding) -> list[Look]:
    alarms = [pair for pair in finding.pairs if pair.verdict in ALARMS]
    found = {_names(pair): pair for pair in again.pairs}
    seconds = [found.get(_names(pair)) for pair in alarms]
    p_values = [
        1.0 if second is None else _one_sided(finding, first, second)
        for first, second in zip(alarms, seconds, strict=True)
    ]
    # Here and not above: a test module that imports an assertion must not pay for pandas before it runs.
    from pytest_fairness.statistics.corrections import correct

    corrected = correct(p_values, "holm").tolist()
    return [
        Look(first=first, second=second, p_value=p, corrected=q, verdict=_verdict(finding, first, second, q))
        for first, second, p, q in zip(alarms, seconds, p_values, corrected, strict=True)
    ]


def _names(pair: PairResult) -> tuple[str, frozenset[str], str]:
    """What tells a pair from the others, whichever group comes first."""
    return str(pair.statistics.get("by", "")), frozenset((pair.group_1, pair.group_2)), pair.metric


def _one_sided(finding: Finding, first: PairResult, second: PairResult) -> float:
    if finding.details.get("mode") == "bare ratio":
        return 0.0 if second.statistics.get("below_four_fifths") is True else 1.0
    p = (
        _statistic(second, "difference_p_value", second.p_value)
        if finding.assertion == "equivalent"
        else second.p_value
    )
    if first.worse_off is None and finding.assertion != "arm_reduces_disparity":
        return p  # labels differ in no one direction
    flipped = -1.0 if first.group_1 != second.group_1 else 1.0
    same = (first.difference or first.effect) * (second.difference or second.effect) * flipped > 0
    return p / 2 if same else 1 - p / 2


def _verdict(finding: Finding, first: PairResult, second: PairResult | None, corrected: float) -> Verdict:
    """The milder of the first sample's verdict and the second's; INCONCLUSIVE without significance in the second."""
    alpha = finding.family.get("alpha")
    if second is None or not corrected < (alpha if isinstance(alpha, float) else ALPHA):
        return Verdict.INCONCLUSIVE
    verdict = _size(finding, second)
    return verdict if verdict.severity < first.verdict.severity else first.verdict


def _size(finding: Finding, pair: PairResult) -> Verdict:
    """What the size of a significant difference in the second sample asks for."""
    if finding.assertion == "four_fifths":
        below = pair.statistics.get("below_four_fifths") is True and pair.statistics.get("flip_flop") is not True
        return Verdict.FAIL if below or finding.details.get("mode") == "bare ratio" else Verdict.FLAG
    if finding.assertion == "equivalent":
        beyond = abs(pair.difference or 0.0) > _statistic(pair, "margin", 0.0)
        return Verdict.FAIL if beyond else Verdict.FLAG
    if finding.assertion == "arm_reduces_disparity":
        shrinks = abs(_statistic(pair, "treated", 0.0)) < abs(_statistic(pair, "control", 0.0))
        return Verdict.INCONCLUSIVE if shrinks else Verdict.FAIL
    least = finding.details.get("min_raw_diff")
    minded = not isinstance(least, float) or pair.metric != finding.outcome or abs(pair.difference or 0.0) >= least
    if abs(pair.effect) < TRIVIAL or not minded:
        return Verdict.INCONCLUSIVE
    return Verdict.FAIL if abs(pair.effect) > MARGIN else Verdict.FLAG


def _statistic(pair: PairResult, name: str, otherwise: float) -> float:
    value = pair.statistics.get(name)
    return float(value) if isinstance(value, (int, float)) else otherwise


# ---------------------------------------------------------------- telling


def _after(pair: PairResult, look: Look | None, sample: FreshSample) -> PairResult:
    if look is None:
        return pair
    if not look.tells:
        return replace(pair, notes=(*pair.notes, f"{sample.about} cannot tell, so this stands"))
    both = max(pair.corrected_p_value, look.corrected)
    if look.verdict in ALARMS:
        return replace(pair, verdict=look.verdict, corrected_p_value=both, notes=(*pair.notes, "confirmed"))
    return replace(
        pair,
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.PRECISION,
        corrected_p_value=both,
        needs="a larger sample: this one and its repetition disagree",
        notes=(*pair.notes, "not confirmed"),
    )


def _seen(finding: Finding, pair: PairResult) -> str:
    if finding.assertion == "four_fifths":
        return f"impact ratio {_statistic(pair, 'impact_ratio', float('nan')):.2f}"
    return interval_words(pair)


def _second(finding: Finding, look: Look) -> str:
    if look.second is None:
        return "no such pair"
    return f"{_seen(finding, look.second)}, one-sided {p_words(look.p_value)}, corrected {p_words(look.corrected)}"


def _sentence(finding: Finding, verdict: Verdict, look: Look | None, sample: FreshSample, *, same: bool) -> str:
    if look is None or not look.tells:
        return finding.sentence if verdict is finding.verdict else f"{verdict}: {_said(finding)}."
    second = f"{sample.about}: {_second(finding, look)}"
    if look.verdict not in ALARMS:
        first = _said(finding) if same else _pair_words(finding, look.first)
        return f"{verdict}: not confirmed on {second}. At first: {first}."
    said = _said(finding) if same else _pair_words(finding, look.first)
    return f"{verdict}: {said}; confirmed on {second}."


def _said(finding: Finding) -> str:
    return finding.sentence.removeprefix(f"{finding.verdict}: ").rstrip(".")


def _pair_words(finding: Finding, pair: PairResult) -> str:
    first, second = pair.group_1, pair.group_2
    seen = f"({_seen(finding, pair)}, corrected {p_words(pair.corrected_p_value)})"
    if pair.worse_off is None:
        return f"{first} and {second} differ on {pair.metric} {seen}"
    other = second if pair.worse_off == first else first
    return f"{pair.worse_off} is worse off than {other} on {pair.metric} {seen}"


def _notes(finding: Finding, looks: Sequence[Look], sample: FreshSample) -> list[str]:
    notes = [f"repeated on {sample.about}, as --fairness-confirm asks"]
    for look in looks:
        pair = look.first
        word = "cannot tell" if not look.tells else "confirmed" if look.verdict in ALARMS else "not confirmed"
        notes.append(
            f"{pair.group_1} – {pair.group_2} on {pair.metric}: first {_seen(finding, pair)}, corrected "
            f"{p_words(pair.corrected_p_value)}; then {_second(finding, look)}: {word}"
        )
    if sample.same_names:
        notes.append("the second sample has the names of the first, so what is due to those names is not tested anew")
    return notes


def _whether(looks: Sequence[Look]) -> bool | None:
    """Whether any alarm was confirmed; None where the second sample cannot tell of any."""
    told = [look.verdict in ALARMS for look in looks if look.tells]
    return any(told) if told else None


def _details(finding: Finding, again: Finding, looks: Sequence[Look], sample: FreshSample) -> dict[str, JSON]:
    def told(pair: PairResult | None) -> JSON:
        if pair is None:
            return None
        return {
            "verdict": pair.verdict.value,
            "p_value": pair.p_value,
            "corrected_p_value": pair.corrected_p_value,
            "effect": pair.effect,
            "effect_low": pair.effect_low,
            "effect_high": pair.effect_high,
            "difference": pair.difference,
        }

    return {
        "confirmed": _whether(looks),
        "sample": sample.about,
        "same_names": sample.same_names,
        "first": {"verdict": finding.verdict.value, "n_per_group": dict(finding.n_per_group)},
        "second": {"verdict": again.verdict.value, "n_per_group": dict(again.n_per_group)},
        "pairs": [
            {
                "group_1": look.first.group_1,
                "group_2": look.first.group_2,
                "metric": look.first.metric,
                "first": told(look.first),
                "second": told(look.second),
                "one_sided_p_value": look.p_value,
                "corrected_p_value": look.corrected,
                "confirmed": look.verdict in ALARMS if look.tells else None,
            }
            for look in looks
        ],
    }
