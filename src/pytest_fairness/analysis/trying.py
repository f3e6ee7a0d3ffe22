"""Could a test that passed have failed? Each assertion on copies of its own data, and what is said beside its PASS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.equivalence import analyze_equivalence
from pytest_fairness.analysis.explanations import explain
from pytest_fairness.analysis.four_fifths import analyze_four_fifths, read_decisions
from pytest_fairness.analysis.preference import analyze_preference
from pytest_fairness.analysis.sensitivity import Sensitivity, sensitivity
from pytest_fairness.model import ALARMS, Finding, OutcomeKind
from pytest_fairness.statistics.sensitivity import plant

if TYPE_CHECKING:
    import pandas as pd

EFFECTS = (0.5, 0.8)
COPIES = 5
#: A PASS that catches a planted ``max(EFFECTS)`` less often than this says little.
LEAST_CAUGHT = 0.5
#: Twice the level at which splits of one group raise the alarm by chance.
MOST_FALSE_ALARMS = 0.10


def disparity(
    frame: pd.DataFrame, outcome: str | Callable[..., Any], by: str | Sequence[str], options: Mapping[str, Any]
) -> Sensitivity:
    """Of ``analyze_disparity`` with *options*."""
    return sensitivity(frame, outcome, by, effects=EFFECTS, copies=COPIES, **options)


def equivalence(
    frame: pd.DataFrame, outcome: str | Callable[..., Any], by: str | Sequence[str], options: Mapping[str, Any]
) -> Sensitivity:
    """Of ``analyze_equivalence`` with *options*, its margin among them."""
    return sensitivity(frame, outcome, by, effects=EFFECTS, copies=COPIES, analyze=analyze_equivalence, **options)


def four_fifths(
    frame: pd.DataFrame, outcome: str | Callable[..., Any], by: str | Sequence[str], options: Mapping[str, Any]
) -> Sensitivity:
    """Of ``analyze_four_fifths`` with *options*: favourable decisions are taken away at random."""
    given = dict(options)
    declared = given.pop("reference", None)
    name, yes, present = read_decisions(frame, outcome, given.pop("favourable", True), given.pop("scorers", None))

    def analyze(table: pd.DataFrame, column: str, by: str | Sequence[str], **settings: Any) -> Finding:
        chosen = {key: value for key, value in settings.items() if key not in ("kind", "lower_is_worse")}
        # Halves of one group have other labels than the declared reference.
        known = isinstance(by, str) and declared in set(table[by])
        return analyze_four_fifths(table, column, by, reference=declared if known else None, **chosen)

    return sensitivity(
        frame.assign(**{name: np.where(present, yes, np.nan)}),
        name,
        by,
        effects=EFFECTS,
        copies=COPIES,
        kind=OutcomeKind.BINARY.value,
        lower_is_worse=True,
        analyze=analyze,
        **given,
    )


def preference(frame: pd.DataFrame, by: str, options: Mapping[str, Any]) -> Sensitivity | None:
    """Of ``analyze_preference`` on pairwise choices: each group loses some that it won. None for other choices.

    There is no placebo: two candidates of one group never meet.
    """
    if options.get("trial") is not None:
        return None
    first, second, chosen = (options.get(name, name) for name in ("first", "second", "chosen"))
    labels = sorted({str(label) for side in (first, second) for label in frame[side]})
    sides = {name: frame[name].map(str).to_numpy(dtype=object) for name in (first, second)}
    was = frame[chosen].map(str, na_action="ignore").to_numpy(dtype=object)
    rng = np.random.default_rng(0)
    caught: dict[float, list[bool]] = {d: [] for d in EFFECTS}
    missed: dict[float, set[str]] = {d: set() for d in EFFECTS}
    for label in labels:
        stood = (sides[first] == label) | (sides[second] == label)
        decided = (was == sides[first]) | (was == sides[second])
        other = np.where(sides[first] == label, sides[second], sides[first])
        won = np.where(decided & stood, (was == label).astype(np.float64), np.nan)
        for d in EFFECTS:
            for _ in range(COPIES):
                wins = plant(won, OutcomeKind.BINARY, stood, sd=1.0, d=d, lower_is_worse=True, rng=rng)
                winner = np.where(wins == 1, label, other)
                planted = frame.assign(**{chosen: np.where(np.isnan(won), was, winner)})
                seen = analyze_preference(planted, by, **options).verdict in ALARMS
                caught[d].append(seen)
                if not seen:
                    missed[d].add(label)
    return Sensitivity(
        caught={d: float(np.mean(seen)) for d, seen in caught.items()},
        missed={d: tuple(sorted(groups)) for d, groups in missed.items()},
        copies=len(labels) * COPIES,
        false_alarms=None,
        splits=0,
    )


def beside(finding: Finding, tried: Sensitivity | None) -> Finding:
    """*finding* with what was *tried* in ``details["sensitivity"]`` and as notes; the verdict stays as it is."""
    if tried is None:
        return replace(finding, notes=(*finding.notes, "sensitivity not tried: no disparity can be planted here"))
    largest = max(tried.caught)
    could_fail = tried.caught[largest] >= LEAST_CAUGHT
    notes = [*finding.notes, tried.sentence]
    if not could_fail:
        notes.append(
            f"this test could not have failed: a planted disparity of d = {largest:g} was caught in "
            f"{100 * tried.caught[largest]:.0f} % of copies of its data; it needs more names, or an outcome that moves"
        )
    if tried.false_alarms is not None and tried.false_alarms > MOST_FALSE_ALARMS:
        notes.append(
            f"the placebo raises the alarm: random halves of one and the same group differ in "
            f"{100 * tried.false_alarms:.0f} % of splits, so an alarm of this test says little"
        )
    changed = replace(
        finding,
        notes=tuple(notes),
        details={**finding.details, "sensitivity": {**tried.to_dict(), "could_fail": could_fail}},
    )
    return replace(changed, explanation=explain(changed))
