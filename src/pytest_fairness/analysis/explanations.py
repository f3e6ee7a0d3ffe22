"""The long form of a finding: the sentence, how it was come by and after whom, and what would change the verdict.

Standard library only. Each assertion is explained by what it computed: its own tests, its own interval, its own
rule. A method that was not used is never named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pytest_fairness.analysis.sentences import NO_ANSWER, REFUSAL
from pytest_fairness.model import JSON, Finding, OutcomeKind, Reason, Verdict

_RANKS = "Calls are compared within each block by the van Elteren rank test (van Elteren 1960); "
_RATES = "Rates are compared within each block by the Cochran–Mantel–Haenszel test (Mantel & Haenszel 1959); "
_ON_D = "put on the d scale (ln OR·√3/π; Hasselblad & Hedges 1995)"
_DISPARITY: Mapping[OutcomeKind, str] = {
    OutcomeKind.NUMERIC: _RANKS
    + "there are two effects, Hedges g of the block-adjusted values (Hedges 1981) and Cliff's δ (Cliff 1993) put on "
    "the d scale: the larger one counts, and PASS needs both.",
    OutcomeKind.ORDINAL: _RANKS
    + f"the effect is the cumulative odds ratio over all cuts of the scale (Liu & Agresti 1996) {_ON_D}.",
    OutcomeKind.BINARY: _RATES + f"the effect is the Mantel–Haenszel odds ratio {_ON_D}.",
    OutcomeKind.CATEGORICAL: (
        "Labels are compared by Pearson's chi-square (by a permutation test where labels are rare); the effect is "
        "Cramér's V with both groups weighing the same, put on the d scale (2V/√(1−V²)), its interval a bootstrap "
        "(Efron & Tibshirani 1993)."
    ),
}
_SAME = {OutcomeKind.NARRATIVE: OutcomeKind.NUMERIC, OutcomeKind.REFUSAL: OutcomeKind.BINARY}
_CORRECTIONS = {
    "bonferroni": "Bonferroni; Dunn 1961",
    "holm": "Holm 1979",
    "fdr_bh": "Benjamini & Hochberg 1995",
}
_D_RULE = (
    "PASS needs the 90 % interval of the effect inside ±0.5 (two one-sided tests; Schuirmann 1987); FAIL needs "
    "significance and an effect above 0.5, FLAG one of 0.2 to 0.5."
)


def explain(finding: Finding) -> str:
    """*finding* in three paragraphs: its sentence; the method with its sources; what would change the verdict."""
    return "\n\n".join(part for part in (finding.sentence, _method(finding), _change(finding)) if part)


def _method(finding: Finding) -> str:
    told = _TOLD.get(finding.assertion)
    parts = ["How this was judged.", *(told(finding) if told is not None else [])]
    confirmation = finding.details.get("confirmation")
    if isinstance(confirmation, Mapping) and confirmation.get("confirmed") is not None:
        parts.append(
            "The first sample raised an alarm, so an equal one on other names was drawn, and every pair was judged "
            "again on both together, at half of alpha (two stages; Pocock 1977): a fair system has to look so twice."
        )
    if "sensitivity" in finding.details:
        parts.append("Whether it could have failed was tried on copies of its own data with a planted disparity.")
    return " ".join(part for part in parts if part) if len(parts) > 1 else ""


# ---------------------------------------------------------------- one assertion each


def _no_disparity(finding: Finding) -> list[str]:
    kind = finding.kind
    tests = _DISPARITY[_SAME.get(kind, kind)] if kind is not None else ""
    if kind is not OutcomeKind.CATEGORICAL:
        tests += (
            f" Intervals come from leaving out one {finding.cluster or 'row'} at a time (the jackknife; Tukey 1958)."
        )
    metrics = {pair.metric for pair in finding.pairs}
    beside = ""
    if REFUSAL in metrics and finding.outcome != REFUSAL:
        beside += (
            "Refusals are an outcome of their own in the same family, which can only raise the alarm; where they "
            "differ the scores count by the worse of the answers alone and the answers with every refusal ranked "
            "worst. "
        )
    if NO_ANSWER in metrics:
        beside += (
            "Trials without a usable answer are an outcome of their own as well: as an alarm where one group has more "
            "of them, and as bounds, with what is missing at its extremes (Horowitz & Manski 2000). "
        )
    near = any("less than 5 points" in note for pair in finding.pairs for note in pair.notes)
    return [
        tests,
        beside.strip(),
        _clusters(finding),
        _parts(finding),
        _family(finding),
        _D_RULE,
        "Rates also pass whose difference stays inside ±5 points and whose ratio stays between .8 and 1.25: near 0 and "
        "1 an odds ratio is blind to what is practically equal."
        if near
        else "",
        _blocks(finding),
    ]


def _four_fifths(finding: Finding) -> list[str]:
    rule = (
        "The lower rate of the favourable decision is divided by the higher (29 CFR 1607.4(D)), with the interval of "
        "Katz and others (1978)."
    )
    if finding.details.get("mode") == "bare ratio":
        return [rule, "Below four fifths is FAIL and anything else PASS, whatever chance says."]
    declared = finding.details.get("reference_declared") is True
    reference = (
        "The reference group was declared beforehand, so each other group is one test."
        if declared
        else "The data chose the reference, the group with the highest rate, so all pairs of groups are tests."
    )
    return [
        rule,
        _RATES.removesuffix("; ") + "."
        if finding.block
        else "Rates are compared by the chi-square test, or Fisher's exact test where numbers are small.",
        _clusters(finding),
        reference,
        _family(finding),
        "Who was refused was not selected. FAIL needs a ratio below four fifths that is significant and that one "
        "favourable decision more would not turn round (29 CFR 1607.4(D) on small numbers); a significant difference "
        "above four fifths is FLAG; PASS needs the 90 % interval of the ratio to stay above two thirds. Standard "
        "deviations (Hazelwood School District v. United States, 1977) are reported and decide nothing.",
    ]


def _baseline(finding: Finding) -> list[str]:
    margins = finding.details.get("margins")
    allowed = ""
    if isinstance(margins, Mapping):
        unit = finding.unit or "points"
        overall, category = _number(margins.get("overall")), _number(margins.get("category"))
        allowed = f" of {overall} {unit} overall and {category} a category"
    alpha = finding.family.get("alpha")
    told = f" at {alpha} over both" if alpha is not None else ""
    return [
        "Each persona's mean score now is compared with the same persona's approved one, in two families. As they are: "
        "a one-sided paired t over personas (Student 1908), for the overall score and every category of at least 8, "
        "and McNemar's exact test (1947) for passes lost and gained. With changes far from all others clipped (to the "
        "median ± 4 median absolute deviations), so that one extreme reply hides nothing: overall, and every category "
        "of at least 2 against the spread of all changes.",
        _family(finding),
        f"Each family has half of alpha. FAIL needs a drop that is significant{told} and exceeds the margin{allowed}; "
        "within the margin it is FLAG.",
        "The baseline changes only by approval.",
    ]


def _no_preference(finding: Finding) -> list[str]:
    details = finding.details
    effect = "The effect is the log odds of winning put on the d scale (·√3/π; Hasselblad & Hedges 1995)."
    if "friedman" in details:
        tests = "Two groups are compared by how often one is ranked above the other; all together by Friedman (1937)."
    elif "conditional_logit" in details or "goodness_of_fit" in details:
        tests = (
            "Choices among several are compared by a conditional logit with a term for each listed position (McFadden "
            "1974), and by how often one of two groups won where that has no solution; all groups together by the "
            "chi-square of their wins against equal shares."
        )
    else:
        tests = (
            "Two groups are compared within each order of listing: whether the candidate listed first wins more often "
            "when it is of the one group than of the other, so that a preference for a position is no preference for a "
            "group. Beside it stand strengths after Bradley & Terry (1952) with a term for the first position "
            "(Davidson & Beaver 1977); they inform and decide nothing."
        )
        effect = (
            "There are two effects, both log odds put on the d scale (·√3/π; Hasselblad & Hedges 1995): of winning at "
            "all, and of winning from the same place. The larger one counts, and PASS needs both."
        )
    return [tests, effect, _clusters(finding), _family(finding), _D_RULE]


def _equivalent(finding: Finding) -> list[str]:
    margin, unit = finding.details.get("margin"), finding.details.get("margin_unit")
    named = "standard deviations" if unit == "d" else finding.unit
    given = f"±{_number(margin)} {named}".strip() if margin is not None else "the margin"
    alpha = finding.family.get("alpha")
    level = f"{100 * (1 - 2 * float(alpha)):.0f} %" if isinstance(alpha, (int, float)) else "1 − 2α"
    unit_of = f"the {finding.cluster} means" if finding.cluster is not None else "the rows"
    return [
        f"Equivalence within {given} is claimed, so it has to be shown: two one-sided t tests on {unit_of} "
        f"(Schuirmann 1987), which is the {level} interval of the difference inside the margin.",
        "Every pair has to show it, so these p-values need no correction (intersection–union; Berger 1982); those of "
        f"the differences are corrected over {_tests(finding)} ({_correction(finding)})."
        if _tests(finding)
        else "",
        "FAIL needs a significant difference beyond the margin, FLAG a significant one that may reach beyond it.",
    ]


def _arm_reduces_disparity(finding: Finding) -> list[str]:
    unit = next((str(pair.statistics["unit"]) for pair in finding.pairs if "unit" in pair.statistics), "cluster")
    shared = f"{finding.cluster}s" if unit == "cluster" and finding.cluster else f"{unit}s"
    treated, control = finding.details.get("treated", "treated"), finding.details.get("control", "control")
    placebo = finding.details.get("placebo")
    return [
        f"The disparity between two groups in arm {treated} is compared with that in arm {control}, a contrast fixed "
        f"beforehand: a paired t over the {shared} that both arms share (Student 1908), with its interval.",
        _family(finding),
        "The finding is about the class, the pairs are its detail: PASS needs a disparity that shrinks significantly "
        "and none that grows; one that grows or turns round significantly is FAIL. Where both arms lie inside ±0.2 "
        "standard deviations there is nothing to reduce.",
        f"Every arm is also contrasted with the placebo arm {placebo} (Holm 1979), which decides nothing."
        if placebo
        else "",
    ]


_TOLD: Mapping[str, Callable[[Finding], list[str]]] = {
    "no_disparity": _no_disparity,
    "four_fifths": _four_fifths,
    "baseline": _baseline,
    "no_preference": _no_preference,
    "equivalent": _equivalent,
    "arm_reduces_disparity": _arm_reduces_disparity,
}


# ---------------------------------------------------------------- what they share


def _clusters(finding: Finding) -> str:
    if finding.cluster is None:
        return "Every row stands for itself: rows that share a person would count for more than they are."
    if finding.pairs and all(pair.scope == "labels" for pair in finding.pairs):
        return (
            f"A group has a single {finding.cluster}, so this is about those, not about the groups, and FAIL is capped "
            "at FLAG."
        )
    alike = f"Calls that share a {finding.cluster} are not independent, so "
    if finding.kind is OutcomeKind.CATEGORICAL:
        return (
            f"{alike}the chi-square is also divided by its design effect (Rao & Scott 1984); the larger p-value counts."
        )
    return (
        f"{alike}the same comparison is made between the {finding.cluster} means by Student's t, and the larger of the "
        "two p-values counts."
    )


def _parts(finding: Finding) -> str:
    if not any("effective_name_parts" in pair.statistics for pair in finding.pairs):
        return ""
    return (
        "First and last names that recur in several names are evidence once: the variance of the contrast adds that of "
        "both parts (two-way clusters; Cameron, Gelbach & Miller 2011)."
    )


def _blocks(finding: Finding) -> str:
    if "by_block" not in finding.details:
        return ""
    return (
        f"The verdict is about these {finding.block}s. Each is also judged by itself, corrected over all of them (Holm "
        "1979) at a fifth of alpha: an effect above 0.5 there is FLAG."
    )


def _tests(finding: Finding) -> str:
    size = finding.family.get("size")
    return f"{size} test{'' if size == 1 else 's'}" if isinstance(size, int) else ""


def _correction(finding: Finding) -> str:
    method = str(finding.family.get("method", finding.family.get("correction", "")))
    name = next((known for known in _CORRECTIONS if method == known or f"; {known} " in method), method)
    return _CORRECTIONS.get(name, method)


def _family(finding: Finding) -> str:
    tests, method = _tests(finding), _correction(finding)
    if not tests or not method:
        return ""
    if tests == "1 test":
        return "This was 1 test, so there was nothing to correct for."
    return f"{tests} were corrected together ({method})."


def _number(value: JSON) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else "?"


# ---------------------------------------------------------------- what would change the verdict

_REASONS: Mapping[Reason | None, str] = {
    Reason.UNSCORED: "fewer replies without an outcome: a scorer that reads them, or an endpoint that answers",
    Reason.RAGGED: "every group asked in every block",
    Reason.SMALL_NUMBERS: "more decisions, until one more or less no longer turns the ratio",
    Reason.DIFFERENTIAL_REFUSAL: "finding out why one group is refused more often; the answers alone cannot settle it",
    Reason.OVERLAP: "the same personas in the baseline and in the run",
    Reason.TEMPLATE: "more names in the template where the groups may differ",
    Reason.INCOMPLETE: "running the trials that were never run",
    Reason.MIXED_MODELS: "one model version for the whole run",
}
_MENDS: Mapping[str, str] = {
    "baseline": "a change to the system under test that brings the scores back, or an approval of the lower ones with "
    "its justification",
    "arm_reduces_disparity": "another mitigation, or a change to this one, and a new run that shows it",
}
_MEND = "a change to the system under test that brings the groups together, and a new run that shows it"
_HOLDS: Mapping[str, str] = {
    "no_disparity": "a larger difference in a new run; this one leaves no room for it",
    "no_preference": "a stronger preference in a new run; this one leaves no room for it",
    "four_fifths": "a ratio below four fifths in a new run, or a difference beyond chance",
    "baseline": "a drop by the margin or more, beyond chance, in a new run",
    "equivalent": "a larger difference in a new run, or a narrower margin",
    "arm_reduces_disparity": "a new run in which the disparity does not shrink",
}


def _change(finding: Finding) -> str:
    return f"What would change the verdict: {_way_out(finding)}."


def _way_out(finding: Finding) -> str:
    if finding.verdict is Verdict.PASS:
        return _HOLDS.get(finding.assertion, "a different result in a new run")
    if finding.verdict is Verdict.INCONCLUSIVE:
        known = _REASONS.get(finding.reason)
        if known is not None:
            return known
        needs = list(dict.fromkeys(pair.needs for pair in finding.pairs if pair.needs))
        return "; ".join(needs[:3]) if needs else "more names a group, every name in every template"
    mend = _MENDS.get(finding.assertion, _MEND)
    if finding.verdict is Verdict.FLAG:
        mend = "a documented justification, or " + mend.partition(", and a new run")[0]
    named = [_pair_name(finding, at) for at, pair in enumerate(finding.pairs) if pair.verdict is finding.verdict]
    return mend + (f" ({_listed(named)})" if named else "")


def _pair_name(finding: Finding, at: int) -> str:
    pair = finding.pairs[at]
    return pair.metric if finding.assertion == "baseline" else f"{pair.group_1} and {pair.group_2}"


def _listed(names: Sequence[str]) -> str:
    shown, more = list(names[:3]), len(names) - 3
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
