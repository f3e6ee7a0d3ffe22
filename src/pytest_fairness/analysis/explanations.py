"""The long form of a finding: the sentence, how it was come by and after whom, and what would change the verdict.

Standard library only. Each assertion is explained by what it computed: its own tests, its own interval, its own
rule, in the words of ``explanations.toml``. A method that was not used is never named.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from pytest_fairness.analysis.sentences import NO_ANSWER, REFUSAL
from pytest_fairness.model import JSON, Finding, OutcomeKind, Verdict

_SAME = {OutcomeKind.NARRATIVE: OutcomeKind.NUMERIC, OutcomeKind.REFUSAL: OutcomeKind.BINARY}


@cache
def _words() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _say(section: str, name: str, **values: object) -> str:
    return _words()[section][name].format(**values)


def explain(finding: Finding) -> str:
    """*finding* in three paragraphs: its sentence; the method with its sources; what would change the verdict."""
    known = _METHODS.get(finding.assertion)
    method = [part for part in known(finding) if part] if known is not None else []
    confirmation = finding.details.get("confirmation")
    if method and isinstance(confirmation, Mapping) and confirmation.get("confirmed") is not None:
        method.append(_say("shared", "confirmation"))
    if method and "sensitivity" in finding.details:
        method.append(_say("shared", "sensitivity"))
    judged = " ".join(["How this was judged.", *method]) if method else ""
    change = f"What would change the verdict: {_way_out(finding)}."
    return "\n\n".join(part for part in (finding.sentence, judged, change) if part)


# ---------------------------------------------------------------- one assertion each


def _no_disparity(finding: Finding) -> Iterator[str]:
    kind, metrics = finding.kind, {pair.metric for pair in finding.pairs}
    if kind is not None:
        yield _say("kind", _SAME.get(kind, kind).value)
    if kind is not OutcomeKind.CATEGORICAL:
        yield _say("shared", "jackknife", unit=finding.cluster or "row")
    if REFUSAL in metrics and finding.outcome != REFUSAL:
        yield _say("shared", "refusals")
    if NO_ANSWER in metrics:
        yield _say("shared", "no_answer")
    yield _clusters(finding)
    if any("effective_name_parts" in pair.statistics for pair in finding.pairs):
        yield _say("shared", "parts")
    yield _family(finding)
    yield _say("shared", "d_rule")
    if any("less than 5 points" in note for pair in finding.pairs for note in pair.notes):
        yield _say("shared", "near")
    if "by_block" in finding.details:
        yield _say("shared", "blocks", block=finding.block)


def _four_fifths(finding: Finding) -> Iterator[str]:
    yield _say("four_fifths", "ratio")
    if finding.details.get("mode") == "bare ratio":
        yield _say("four_fifths", "bare")
        return
    yield _say("four_fifths", "blocked" if finding.block else "plain")
    yield _clusters(finding)
    yield _say("four_fifths", "declared" if finding.details.get("reference_declared") is True else "chosen")
    yield _family(finding)
    yield _say("four_fifths", "rule")


def _baseline(finding: Finding) -> Iterator[str]:
    margins, alpha, margin, level = finding.details.get("margins"), finding.family.get("alpha"), "", ""
    if isinstance(margins, Mapping):
        overall, category = (_number(margins.get(scope)) for scope in ("overall", "category"))
        margin = _say("baseline", "margin", overall=overall, category=category, unit=finding.unit or "points")
    if alpha is not None:
        level = _say("baseline", "level", alpha=alpha)
    yield _say("baseline", "tests")
    yield _family(finding)
    yield _say("baseline", "rule", level=level, margin=margin)
    yield _say("baseline", "approval")


def _no_preference(finding: Finding) -> Iterator[str]:
    among = {"conditional_logit", "goodness_of_fit"} & set(finding.details)
    tests = "ranked" if "friedman" in finding.details else "among" if among else "pairs"
    yield _say("no_preference", tests)
    yield _say("no_preference", "two_effects" if tests == "pairs" else "effect")
    yield _clusters(finding)
    yield _family(finding)
    yield _say("shared", "d_rule")


def _equivalent(finding: Finding) -> Iterator[str]:
    alpha = finding.family.get("alpha")
    unit = "standard deviations" if finding.details.get("margin_unit") == "d" else finding.unit
    yield _say(
        "equivalent",
        "claim",
        margin=f"±{_number(finding.details.get('margin'))} {unit}".strip(),
        unit=f"the {finding.cluster} means" if finding.cluster is not None else "the rows",
        level=f"{100 * (1 - 2 * float(alpha)):.0f} %" if isinstance(alpha, (int, float)) else "1 − 2α",
    )
    if _tests(finding):
        yield _say("equivalent", "family", tests=_tests(finding), method=_correction(finding))
    yield _say("equivalent", "rule")


def _arm_reduces_disparity(finding: Finding) -> Iterator[str]:
    details = finding.details
    unit = next((str(pair.statistics["unit"]) for pair in finding.pairs if "unit" in pair.statistics), "cluster")
    shared = f"{finding.cluster if unit == 'cluster' and finding.cluster else unit}s"
    arms = {name: details.get(name, name) for name in ("treated", "control")}
    yield _say("arm_reduces_disparity", "contrast", shared=shared, **arms)
    yield _family(finding)
    yield _say("arm_reduces_disparity", "rule")
    if details.get("placebo"):
        yield _say("arm_reduces_disparity", "placebo", placebo=details["placebo"])


_METHODS: Mapping[str, Callable[[Finding], Iterator[str]]] = {
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
        return _say("shared", "rows")
    if finding.pairs and all(pair.scope == "labels" for pair in finding.pairs):
        return _say("shared", "labels", cluster=finding.cluster)
    which = "clusters_of_labels" if finding.kind is OutcomeKind.CATEGORICAL else "clusters"
    return _say("shared", which, cluster=finding.cluster)


def _tests(finding: Finding) -> str:
    size = finding.family.get("size")
    return f"{size} test{'' if size == 1 else 's'}" if isinstance(size, int) else ""


def _correction(finding: Finding) -> str:
    method, known = str(finding.family.get("method", finding.family.get("correction", ""))), _words()["corrections"]
    name = next((name for name in known if method == name or f"; {name} " in method), method)
    return known.get(name, name)


def _family(finding: Finding) -> str:
    tests, method = _tests(finding), _correction(finding)
    if not tests or not method:
        return ""
    return _say("shared", "one_test") if tests == "1 test" else _say("shared", "family", tests=tests, method=method)


def _number(value: JSON) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else "?"


# ---------------------------------------------------------------- what would change the verdict


def _way_out(finding: Finding) -> str:
    words = _words()
    if finding.verdict is Verdict.PASS:
        return words["holds"].get(finding.assertion, words["holds"]["default"])
    if finding.verdict is Verdict.INCONCLUSIVE:
        if finding.reason is not None and finding.reason.value in words["reasons"]:
            return words["reasons"][finding.reason.value]
        needs = list(dict.fromkeys(pair.needs for pair in finding.pairs if pair.needs))
        return "; ".join(needs[:3]) if needs else "more names a group, every name in every template"
    mend = words["mends"].get(finding.assertion, words["mends"]["default"])
    if finding.verdict is Verdict.FLAG:
        mend = "a documented justification, or " + mend.partition(", and a new run")[0]
    named = [
        pair.metric if finding.assertion == "baseline" else f"{pair.group_1} and {pair.group_2}"
        for pair in finding.pairs
        if pair.verdict is finding.verdict
    ]
    more = [f"and {len(named) - 3} more"] if len(named) > 3 else []
    return mend + (f" ({'; '.join([*named[:3], *more])})" if named else "")
