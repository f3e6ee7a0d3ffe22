"""The provenance of a finding: the running test, and what the table's own columns say of the system
under test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis import persuasion
from pytest_fairness.analysis.controls import controls_of
from pytest_fairness.analysis.explanations import explain
from pytest_fairness.analysis.policy import Conclusion, withheld, worst_spec
from pytest_fairness.model import (
    NOT_COMPUTED,
    Elicitation,
    Finding,
    GroupResult,
    PairResult,
    Status,
)
from pytest_fairness.running_test import TestContext, current_test
from pytest_fairness.statistics.arrays import row_weights, spelled_alike, texts_of
from pytest_fairness.trials_frame import ELICITED_BY, ONE_MESSAGE
from pytest_fairness.words import enumerated, led

if TYPE_CHECKING:
    import pandas as pd


_ONE_MESSAGE = (
    "the system under test is sent one text a request: role and request stood in one message, "
    "without a system prompt "
    "or turns before"
)
_ELICITATIONS = {
    Elicitation.FORM: "asked by form: a JSON schema with room to think first and to decline",
    Elicitation.LINE: "asked by line: the prompt asks for a last line `ANSWER: …`",
}
_NO_TURNS = "; strategies of several turns were not tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """Facts in the columns of a table about the system under test, and about how it was asked."""

    rows: int
    endpoints: list[str]
    models: list[str]
    tiers: list[str]
    not_run: int
    cut_short: int
    one_message: bool
    elicitations: list[str]
    persuaded: bool
    simulated: bool
    replayed: bool

    @classmethod
    def of(cls, frame: pd.DataFrame) -> TableFacts:
        """Return those of *frame*."""
        return cls(
            rows=_rows(frame),
            endpoints=_distinct(frame, "endpoint"),
            models=_distinct(frame, "model"),
            tiers=_distinct(frame, "tier"),
            not_run=_count(frame, "status", Status.NOT_RUN),
            cut_short=_count(frame, "cut_short", True),
            one_message=_count(frame, ONE_MESSAGE, True) > 0,
            elicitations=_distinct(frame, ELICITED_BY),
            persuaded=bool(_distinct(frame, "strategy")),
            simulated=_count(frame, "simulated", True) > 0,
            replayed=_count(frame, "replayed", True) > 0,
        )

    @property
    def tier(self) -> int | None:
        """The one tier of all trials, None where there is none, or several."""
        if self.tiers in (["1"], ["2"], ["1.0"], ["2.0"]):
            return int(self.tiers[0].removesuffix(".0"))
        return None

    def remarks(self) -> Iterator[str]:
        """Yield what a reader of the finding has to know of them."""
        if len(self.endpoints) > 1:
            yield f"the table mixes {len(self.endpoints)} endpoints: {', '.join(self.endpoints)}"
        if len(self.models) > 1:
            yield f"more than one model version answered: {', '.join(self.models)}"
        if self.cut_short:
            yield (
                f"{self.cut_short:,} of {self.rows:,} replies were cut short at the limit on their "
                "length: raise max_tokens in endpoints.yaml, or ask for less"
            )
        for elicitation, remark in _ELICITATIONS.items():
            if elicitation in self.elicitations:
                yield remark
        if self.one_message and self.persuaded:
            yield _ONE_MESSAGE + _NO_TURNS
        elif self.one_message:
            yield _ONE_MESSAGE


def with_provenance(finding: Finding, frame: pd.DataFrame) -> Finding:
    """Return *finding* with test_id, test_module, description, tier, model_endpoint, simulated,
    replayed, controls, scenario and explanation.

    One trial of a simulated endpoint, or replayed, makes the whole finding so: it must never pass
    for live evidence. :func:`~pytest_fairness.analysis.policy.withheld` decides whether a PASS
    stands on these trials.
    """
    facts = TableFacts.of(frame)
    finding = withheld(finding, not_run=facts.not_run, models=facts.models)
    test = current_test()
    declared: Mapping[str, str] = {}
    if test is not None:
        declared = test.controls
        finding = _of_test(finding, test)
    finding = replace(
        finding,
        tier=facts.tier or finding.tier,
        model_endpoint=", ".join(facts.endpoints) or finding.model_endpoint,
        simulated=finding.simulated or facts.simulated,
        replayed=finding.replayed or facts.replayed,
        notes=(
            *finding.notes,
            *facts.remarks(),
            *persuasion.remarks(frame, finding.protected_class.split(", ")),
        ),
    )
    return replace(finding, explanation=explain(finding), controls=controls_of(finding, declared))


def _of_test(finding: Finding, test: TestContext) -> Finding:
    """Return *finding* as one of the running *test*, which notes that it has analysed it."""
    by = led(" by ", finding.protected_class)
    test.analysed.add(f"{finding.outcome or finding.assertion}{by}")
    return replace(
        finding,
        test_id=test.test_id,
        test_module=test.test_module,
        description=test.description,
        scenario=test.scenario,
    )


def _distinct(frame: pd.DataFrame, column: str) -> list[str]:
    if column in frame.columns:
        return sorted({str(value) for value in frame[column].dropna().unique()})
    return []


def _rows(frame: pd.DataFrame) -> int:
    """Return how many rows a table has, or a table of counts stands for."""
    return int(row_weights(frame).sum())


def _count(frame: pd.DataFrame, column: str, value: object) -> int:
    """The rows that hold *value*; a missing one is none of them."""
    if column not in frame.columns:
        return 0
    held = frame[column].notna() & (frame[column].astype(object) == value)
    return int(row_weights(frame)[held.to_numpy(dtype=bool)].sum())


def finding_of(
    frame: pd.DataFrame,
    *,
    conclusion: Conclusion,
    pairs: Sequence[PairResult],
    groups: Sequence[GroupResult],
    tested: Callable[[PairResult], tuple[str, str]],
    by: str = "",
    **fields: Any,
) -> Finding:
    """The stamped finding about *frame*. Its verdict and p-values are those of the *conclusion*, of
    whose pair *tested* gives the test statistic and the effect size in words; other *fields* are
    those of :class:`Finding`."""
    decider = conclusion.decider
    decided: dict[str, Any] = {"test_statistic": NOT_COMPUTED, "effect_size": NOT_COMPUTED}
    if decider is not None:
        statistic, effect = _in_words(decider, tested)
        decided = {
            "spec_verdict": worst_spec(pair.spec_verdict for pair in pairs),
            "p_value": decider.p_value,
            "corrected_p_value": decider.corrected_p_value,
            "test_statistic": statistic,
            "effect_size": effect,
        }
    outcome = str(fields.get("outcome", ""))
    texts = []
    if outcome in frame.columns:
        texts = texts_of(frame[outcome])
    spelled = [*_alike("groups", [group.group for group in groups]), *_alike("outcomes", texts)]
    of_pairs: dict[str, Any] = {
        **decided,
        "verdict": conclusion.verdict,
        "reason": conclusion.reason,
        "protected_class": by,
        "n_per_group": {group.group: group.n for group in groups},
        "group_results": tuple(groups),
        "refusal_rates": {
            group.group: group.refusal_rate for group in groups if group.refusal_rate is not None
        },
        "pairs": tuple(pairs),
    }
    notes = (*fields.pop("notes", ()), *spelled)
    return with_provenance(Finding(**{**of_pairs, **fields, "notes": notes}), frame)


def _alike(what: str, labels: Iterable[str]) -> list[str]:
    """A remark on each few of the *labels* that are likely meant to be one."""
    return [
        f"{enumerated(list(map(repr, same)))} differ by case or blanks alone and count as "
        f"different {what}: "
        "make them one if they are"
        for same in spelled_alike(dict.fromkeys(labels))[:3]
    ]


def _in_words(
    decider: PairResult, tested: Callable[[PairResult], tuple[str, str]]
) -> tuple[str, str]:
    """The test statistic and the effect size of *decider*, or why there is none."""
    ranked = decider.statistics.get("worst_rank_p_value")
    if not decider.test or decider.statistics.get("n") == 0:
        apart = f"{decider.group_1} and {decider.group_2}"
        statistic = effect = f"not computed: {apart} cannot be compared on {decider.metric}"
        return (
            statistic if ranked is None else f"refusals as the worst rank: p = {ranked:.4g}",
            effect,
        )
    statistic, effect = (
        words or f"not computed: {decider.test} has none here" for words in tested(decider)
    )
    if ranked is None or decider.p_value != ranked:
        return statistic, effect
    return (
        f"refusals as the worst rank: p = {ranked:.4g}; answers alone: {statistic}",
        f"answers alone: {effect}",
    )
