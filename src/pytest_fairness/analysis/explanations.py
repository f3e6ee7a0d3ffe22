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
from itertools import chain
from pathlib import Path
from typing import Any

from pytest_fairness.analysis.sentences import NO_ANSWER, REFUSAL, of_one_signal
from pytest_fairness.model import Finding, OutcomeKind, Verdict
from pytest_fairness.words import agreeing, bracketed, first_few, percent

#: Pairs, and needs, that are named.
_NAMED = 3
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
    method = []
    for place in _sections(finding):
        section, _, name = place.partition(".")
        method.append(words[section][name].format(**values))
    judged = ""
    if method:
        judged = " ".join(["How this was judged.", *method])
    change = f"What would change the verdict: {_way_out(finding)}."
    return "\n\n".join(filter(None, (finding.sentence, judged, change)))


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


def _sections(finding: Finding) -> list[str]:
    """The words that hold, as places in ``explanations.toml``; none for an assertion of another
    package.
    """
    if finding.assertion not in _SECTIONS:
        return []
    sections = list(_SECTIONS[finding.assertion](finding))
    looks: Any = finding.details.get("looks") or {"planned": ()}
    return [
        *sections,
        *_holding(
            {
                "shared.looks": len(looks["planned"]) > 1,
                "shared.sensitivity": "sensitivity" in finding.details,
            }
        ),
    ]


def _holding(sections: Mapping[str, bool]) -> Iterator[str]:
    """Yield those of *sections* that hold of a finding."""
    for section, holds in sections.items():
        if holds:
            yield section


def _no_disparity(finding: Finding) -> Iterator[str]:
    kind = finding.kind
    pairs = finding.pairs
    metrics = {pair.metric for pair in pairs}
    notes = chain.from_iterable(pair.notes for pair in pairs)
    if kind is not None:
        yield f"kind.{_SAME.get(kind, kind)}"
    yield from _holding(
        {
            "shared.jackknife": kind is not OutcomeKind.CATEGORICAL,
            "shared.refusals": REFUSAL in metrics and finding.outcome != REFUSAL,
            "shared.no_answer": NO_ANSWER in metrics,
            _unit(finding): True,
            "shared.parts": any("effective_name_parts" in pair.statistics for pair in pairs),
        }
    )
    yield from _correction(finding)
    yield from _holding(
        {
            "shared.d_rule": True,
            "shared.near": any("less than 5 points" in note for note in notes),
            "shared.blocks": "by_block" in finding.details,
        }
    )


def _four_fifths(finding: Finding) -> Iterator[str]:
    yield "four_fifths.ratio"
    if finding.details.get("mode") == "bare ratio":
        yield "four_fifths.bare"
        return
    if finding.block:
        yield "four_fifths.blocked"
    else:
        yield "four_fifths.plain"
    yield _unit(finding)
    if finding.details.get("reference_declared") is True:
        yield "four_fifths.declared"
    else:
        yield "four_fifths.chosen"
    yield from _correction(finding)
    yield "four_fifths.rule"


def _baseline(finding: Finding) -> Iterator[str]:
    yield "baseline.tests"
    yield from _correction(finding)
    yield "baseline.rule"
    yield "baseline.approval"


def _no_preference(finding: Finding) -> Iterator[str]:
    details = finding.details
    if "conditional_logit" in details or "goodness_of_fit" in details:
        yield "no_preference.among"
        yield "no_preference.effect"
    elif "friedman" in details:
        yield "no_preference.ranked"
        yield "no_preference.effect"
    else:
        yield "no_preference.pairs"
        yield "no_preference.two_effects"
    yield _unit(finding)
    yield from _correction(finding)
    yield "shared.d_rule"


def _equivalent(finding: Finding) -> Iterator[str]:
    yield "equivalent.claim"
    if isinstance(finding.family.get("size"), int):
        yield "equivalent.family"
    yield "equivalent.rule"


def _arm_reduces_disparity(finding: Finding) -> Iterator[str]:
    yield "arm_reduces_disparity.contrast"
    yield from _correction(finding)
    yield "arm_reduces_disparity.rule"
    if finding.details.get("placebo"):
        yield "arm_reduces_disparity.placebo"


#: The words that hold of a finding, by its assertion.
_SECTIONS: dict[str, Callable[[Finding], Iterator[str]]] = {
    "no_disparity": _no_disparity,
    "four_fifths": _four_fifths,
    "baseline": _baseline,
    "no_preference": _no_preference,
    "equivalent": _equivalent,
    "arm_reduces_disparity": _arm_reduces_disparity,
}


def _unit(finding: Finding) -> str:
    """Return the place of the words on the unit of evidence."""
    if finding.cluster is None:
        return "shared.rows"
    if {pair.scope for pair in finding.pairs} == {"labels"}:
        return "shared.labels"
    if finding.kind is OutcomeKind.CATEGORICAL:
        return "shared.clusters_of_labels"
    return "shared.clusters"


def _correction(finding: Finding) -> Iterator[str]:
    """Yield the place of the words on the correction, where there was one."""
    size = finding.family.get("size")
    if finding.family.get("method") and isinstance(size, int):
        yield agreeing(size, "shared.one_test", "shared.family")


def _number(value: object) -> str:
    if isinstance(value, (int, float)):
        return f"{value:g}"
    return "?"


def _way_out(finding: Finding) -> str:
    """Return what would change the verdict."""
    words = _words()
    assertion = finding.assertion
    if finding.verdict is Verdict.PASS:
        return words["holds"].get(assertion, words["holds"]["default"])
    if finding.verdict is Verdict.INCONCLUSIVE:
        return _what_it_takes(finding)
    mend = words["mends"].get(assertion, words["mends"]["default"])
    if finding.verdict is Verdict.FLAG:
        mend = "a documented justification, or " + mend.partition(", and a new run")[0]
    compared = []
    for pair in finding.pairs:
        if pair.verdict is not finding.verdict:
            continue
        name = f"{pair.group_1} and {pair.group_2}"
        if assertion == "baseline":
            name = pair.metric
        compared.append(name)
    return bracketed(mend, first_few(compared, _NAMED))


def _what_it_takes(finding: Finding) -> str:
    """Return what a finding takes that is INCONCLUSIVE."""
    words = _words()
    if finding.reason is not None and finding.reason.value in words["reasons"]:
        return words["reasons"][finding.reason.value]
    if finding.assertion in words["waits"]:
        return words["waits"][finding.assertion]
    needs: dict[str, None] = {}
    for pair in finding.pairs:
        if pair.needs and not of_one_signal(pair, finding.protected_class):
            needs[pair.needs] = None
    if needs:
        return "; ".join(list(needs)[:_NAMED])
    return "more names a group, every name in every template"
