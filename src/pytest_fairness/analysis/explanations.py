"""The long form of a finding: the sentence, how it was come by and after whom, and what would
change the verdict.

Standard library only. Each assertion is explained by what it computed: its own tests, its own
interval, its own rule, in the words of ``explanations.toml``. A method that was not used is never
named.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from pytest_fairness.analysis.sentences import NO_ANSWER, REFUSAL
from pytest_fairness.model import Finding, OutcomeKind, Verdict
from pytest_fairness.words import percent

_SAME = {OutcomeKind.NARRATIVE: OutcomeKind.NUMERIC, OutcomeKind.REFUSAL: OutcomeKind.BINARY}


@cache
def _words() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def explain(finding: Finding) -> str:
    """*finding* in three paragraphs: its sentence; the method with its sources; what would change
    the verdict.
    """
    details = finding.details
    words = _words()
    values: dict[str, object] = {"treated": "treated", "control": "control", **details}
    values |= {
        "unit": finding.cluster or "row",
        "cluster": finding.cluster,
        "block": finding.block,
        **_values(finding),
    }
    used = list(_sections(finding))
    confirmation = details.get("confirmation")
    if used and isinstance(confirmation, Mapping) and confirmation.get("confirmed") is not None:
        used.append("shared.confirmation")
    if used and "sensitivity" in details:
        used.append("shared.sensitivity")
    parts = (place.partition(".") for place in used)
    method = [words[section][name].format(**values) for section, _, name in parts]
    judged = ""
    if method:
        judged = " ".join(["How this was judged.", *method])
    change = f"What would change the verdict: {_way_out(finding)}."
    return "\n\n".join(part for part in (finding.sentence, judged, change) if part)


def _values(finding: Finding) -> dict[str, object]:
    """Return what the words of one assertion name beside the details of the finding."""
    family = finding.family
    size = family.get("size")
    method = str(family.get("method", ""))
    corrections = _words()["corrections"]
    name = next((name for name in corrections if method == name or f"; {name} " in method), method)
    values: dict[str, object] = {
        "tests": f"{size} test{'' if size == 1 else 's'}",
        "method": corrections.get(name, name),
    }
    if finding.assertion in _VALUES:
        values |= _VALUES[finding.assertion](finding)
    return values


def _baseline_values(finding: Finding) -> dict[str, object]:
    margins = finding.details.get("margins")
    margin = ""
    if isinstance(margins, Mapping) and margins:
        limits = {scope: _number(limit) for scope, limit in margins.items()}
        margin = _words()["baseline"]["margin"].format(**limits, unit=finding.unit or "points")
    level = ""
    if finding.family.get("alpha") is not None:
        level = f" at {finding.family['alpha']} over both"
    return {"margin": margin, "level": level}


def _equivalence_values(finding: Finding) -> dict[str, object]:
    margin_unit = "standard deviations"
    if finding.details.get("margin_unit") != "d":
        margin_unit = finding.unit
    unit = "the rows"
    if finding.cluster is not None:
        unit = f"the {finding.cluster} means"
    level = "1 − 2α"
    alpha = finding.family.get("alpha")
    if isinstance(alpha, (int, float)):
        level = percent(1 - 2 * float(alpha), 0)
    margin = f"±{_number(finding.details.get('margin'))} {margin_unit}".strip()
    return {"margin": margin, "unit": unit, "level": level}


def _contrast_values(finding: Finding) -> dict[str, object]:
    shared = "cluster"
    for pair in finding.pairs:
        if "unit" in pair.statistics:
            shared = str(pair.statistics["unit"])
            break
    if shared == "cluster" and finding.cluster:
        shared = finding.cluster
    return {"shared": f"{shared}s"}


#: What an assertion's words name besides the size of its family.
_VALUES: dict[str, Callable[[Finding], dict[str, object]]] = {
    "baseline": _baseline_values,
    "equivalent": _equivalence_values,
    "arm_reduces_disparity": _contrast_values,
}


def _sections(finding: Finding) -> Iterator[str]:
    """The words that hold, as places in ``explanations.toml``; none for an assertion of another
    package.
    """
    details = finding.details
    pairs = finding.pairs
    kind = finding.kind
    rule = finding.assertion
    size = finding.family.get("size")
    method = finding.family.get("method")
    clusters = "clusters"
    if kind is OutcomeKind.CATEGORICAL:
        clusters = "clusters_of_labels"
    if finding.cluster is None:
        clusters = "rows"
    elif pairs and all(pair.scope == "labels" for pair in pairs):
        clusters = "labels"
    corrected = {
        "shared.one_test" if size == 1 else "shared.family": bool(method) and isinstance(size, int)
    }
    plain = details.get("mode") != "bare ratio"
    metrics = {pair.metric for pair in pairs}
    compared = "pairs"
    if "friedman" in details:
        compared = "ranked"
    if {"conditional_logit", "goodness_of_fit"} & set(details):
        compared = "among"
    sections: dict[str, dict[str, bool]] = {
        "no_disparity": {
            f"kind.{_SAME.get(kind, kind) if kind else ''}": kind is not None,
            "shared.jackknife": kind is not OutcomeKind.CATEGORICAL,
            "shared.refusals": REFUSAL in metrics and finding.outcome != REFUSAL,
            "shared.no_answer": NO_ANSWER in metrics,
            f"shared.{clusters}": True,
            "shared.parts": any("effective_name_parts" in pair.statistics for pair in pairs),
            **corrected,
            "shared.d_rule": True,
            "shared.near": any(
                "less than 5 points" in note for pair in pairs for note in pair.notes
            ),
            "shared.blocks": "by_block" in details,
        },
        "four_fifths": {
            "four_fifths.ratio": True,
            "four_fifths.bare": not plain,
            f"four_fifths.{'blocked' if finding.block else 'plain'}": plain,
            f"shared.{clusters}": plain,
            f"four_fifths.{'declared' if details.get('reference_declared') is True else 'chosen'}": plain,
            **{place: plain and holds for place, holds in corrected.items()},
            "four_fifths.rule": plain,
        },
        "baseline": {
            "baseline.tests": True,
            **corrected,
            "baseline.rule": True,
            "baseline.approval": True,
        },
        "no_preference": {
            f"no_preference.{compared}": True,
            f"no_preference.{'two_effects' if compared == 'pairs' else 'effect'}": True,
            f"shared.{clusters}": True,
            **corrected,
            "shared.d_rule": True,
        },
        "equivalent": {
            "equivalent.claim": True,
            "equivalent.family": isinstance(size, int),
            "equivalent.rule": True,
        },
        "arm_reduces_disparity": {
            "arm_reduces_disparity.contrast": True,
            **corrected,
            "arm_reduces_disparity.rule": True,
            "arm_reduces_disparity.placebo": bool(details.get("placebo")),
        },
    }
    return (place for place, holds in sections.get(rule, {}).items() if holds)


def _number(value: object) -> str:
    if isinstance(value, (int, float)):
        return f"{value:g}"
    return "?"


def _way_out(finding: Finding) -> str:
    """Return what would change the verdict."""
    words = _words()
    if finding.verdict is Verdict.PASS:
        return words["holds"].get(finding.assertion, words["holds"]["default"])
    if finding.verdict is Verdict.INCONCLUSIVE:
        if finding.reason is not None and finding.reason.value in words["reasons"]:
            return words["reasons"][finding.reason.value]
        if finding.assertion in words["waits"]:
            return words["waits"][finding.assertion]
        needs = list(dict.fromkeys(pair.needs for pair in finding.pairs if pair.needs))
        if needs:
            return "; ".join(needs[:3])
        return "more names a group, every name in every template"
    mend = words["mends"].get(finding.assertion, words["mends"]["default"])
    if finding.verdict is Verdict.FLAG:
        mend = "a documented justification, or " + mend.partition(", and a new run")[0]
    named = [
        pair.metric if finding.assertion == "baseline" else f"{pair.group_1} and {pair.group_2}"
        for pair in finding.pairs
        if pair.verdict is finding.verdict
    ]
    more = []
    if len(named) > 3:
        more = [f"and {len(named) - 3} more"]
    return mend + (f" ({'; '.join([*named[:3], *more])})" if named else "")
