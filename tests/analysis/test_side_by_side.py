"""Two sides on the same cells: worked numbers, one rule for both sides, and how often a false
"fairer" comes out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pytest_fairness.analysis.side_by_side import SharedCells, SideChange, changes_of, contrasts_of
from pytest_fairness.commands.compare import COLUMNS
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Reason
from pytest_fairness.scorers.outcome import outcome_of

from ..support.choice_tables import simulated


def sides(
    rng: np.random.Generator,
    before: float,
    after: float,
    *,
    names: int = 20,
    templates: int = 3,
    groups: str = "AB",
    shared: bool = False,
) -> pd.DataFrame:
    """Scores of two sides on the same cells; group A is lower by that gap. Names keep a level on
    both sides, and have one of their own on each."""
    cells, name = cells_of(names, templates, groups, shared)
    number_of_names = name.max() + 1
    level = rng.normal(0, 0.2, number_of_names)
    made = []
    for gap in (before, after):
        own = rng.normal(0, 0.2, number_of_names)
        lower = gap * (cells["group"] == "A").to_numpy()
        text = 0.3 * cells["template"].astype(float).to_numpy()
        score = level[name] + own[name] + text - lower + rng.normal(0, 1, len(cells))
        made.append(cells.assign(score=score))
    return pd.concat(made, ignore_index=True)


@cache
def cells_of(names: int, templates: int, groups: str, shared: bool) -> tuple[pd.DataFrame, Any]:
    """The cells of a side, and the number of the name in each."""
    cells = pd.DataFrame(
        product(groups, range(names), range(templates), range(2)), columns=["g", "n", "t", "r"]
    )
    name = cells.n.map(str) if shared else cells.g + cells.n.map(str)
    frame = pd.DataFrame(
        {"group": cells.g, "name": name, "template": cells.t.map(str), "repetition": cells.r}
    )
    frame["cell"] = frame.template + "-" + cells.g + frame.name
    return frame, name.factorize()[0]


def changes(
    *frames: pd.DataFrame, analysis: str = "disparity", outcome: Any = "score", **more: Any
) -> list[SideChange]:
    arguments = {"by": "group", "cluster": "name", "block": "template", **more}
    shared = [
        SharedCells(
            sides=("a", "b"),
            test="test",
            analysis=analysis,
            arguments=arguments,
            frame=frame,
            outcome=None if outcome is None else outcome_of(frame, outcome),
        )
        for frame in frames
    ]
    return changes_of([one for cells in shared for one in contrasts_of(cells)])


def turned(frame: pd.DataFrame) -> pd.DataFrame:
    """The second side first."""
    half = len(frame) // 2
    return pd.concat([frame.iloc[half:], frame.iloc[:half]], ignore_index=True)


def test_a_gap_that_an_alarm_ended_early_says_so() -> None:
    """In the sentence, and beside the gap of that side in the table of the command."""
    frame = sides(np.random.default_rng(3), 1.4, 0.2)
    (plain,) = changes(frame)
    assert "stopped early" not in plain.sentence
    early = replace(plain, early=("b",))
    assert early.sentence == (
        f"{plain.sentence.removesuffix('.')}; on b stopped early: the estimate is a little too "
        "large."
    )
    before, after = (COLUMNS[name].words for name in ("before", "after"))
    assert before is not None
    assert after is not None
    assert before(early) == plain.amount(plain.before)
    assert after(early) == f"{plain.amount(plain.after)} (stopped early)"


@pytest.mark.parametrize("shared", [False, True], ids=["names of one group", "personas in both"])
def test_the_numbers_are_those_of_a_t_test_over_names(shared: bool) -> None:
    """The gap of each side, its change and interval, and p: the larger of those that the change and
    the total are 0.
    """
    frame = sides(np.random.default_rng(3), 1.4, 0.2, shared=shared)
    frame["side"] = np.repeat(["a", "b"], len(frame) // 2)
    (found,) = changes(frame.drop(columns="side"))
    means = frame.groupby(["side", "group", "name"])["score"].mean()
    ttest = stats.ttest_rel if shared else stats.ttest_ind
    change, total = ({g: way * means["a"][g] + means["b"][g] for g in "AB"} for way in (-1, 1))
    oracles = [ttest(one["B"], one["A"]) for one in (change, total)]
    interval = oracles[0].confidence_interval(0.9)
    gap = {side: means[side]["B"].mean() - means[side]["A"].mean() for side in "ab"}
    assert (found.group_1, found.group_2, found.became, found.fairer) == ("B", "A", "smaller", "b")
    assert [found.before, found.after, found.change] == pytest.approx(
        [gap["a"], gap["b"], gap["b"] - gap["a"]]
    )
    assert found.p_value == pytest.approx(max(one.pvalue for one in oracles), rel=1e-9)
    assert [found.low, found.high] == pytest.approx([interval.low, interval.high])
    by_name = frame.groupby(["side", "name"])["score"].mean()
    level = stats.ttest_1samp((by_name["b"] - by_name["a"]).to_numpy(), 0).confidence_interval(0.95)
    assert [found.mean_before, found.mean_after] == pytest.approx(
        [by_name["a"].mean(), by_name["b"].mean()]
    )
    assert [found.mean_low, found.mean_high] == pytest.approx([level.low, level.high])


@pytest.mark.parametrize(
    ("before", "after", "became"),
    [
        (1.2, 0.0, "smaller"),
        (-1.2, 0.0, "smaller"),
        (0.1, 1.2, "larger"),
        (1.0, -1.0, "turned"),
        (1.0, 1.0, "alike"),
    ],
)
def test_both_sides_are_judged_by_one_rule(before: float, after: float, became: str) -> None:
    """With the sides turned round, the answer turns round: the same side is fairer, by the same
    p-value.
    """
    frame = sides(np.random.default_rng(5), before, after, names=40)
    (found,), (other,) = changes(frame), changes(turned(frame))
    assert found.became == became
    assert other.became == {"smaller": "larger", "larger": "smaller"}.get(became, became)
    assert other.p_value == pytest.approx(found.p_value)
    assert (other.change, other.before) == (
        pytest.approx(-(found.change or 0)),
        pytest.approx(found.after),
    ) or (became == "turned")
    if found.fairer:
        assert other.fairer == {"a": "b", "b": "a"}[found.fairer]
        assert found.sentence.startswith(
            f"{found.fairer} is fairer than {other.fairer} on score by group: "
        )


def test_a_sentence_says_it_all() -> None:
    frame = sides(np.random.default_rng(5), 1.2, 0.0, names=40)
    (found,) = changes(frame)
    assert found.sentence == (
        "b is fairer than a on score by group: B–A gap 1.40 → 0.078, change −1.32 (90 % −1.54 to "
        "−1.10), corrected "
        "p < .001, 40 names a group; mean −0.322 → 0.340."
    )


def test_an_open_answer_shows_the_interval_that_leaves_it_open() -> None:
    """Where the gaps differ beyond chance and which is larger is open, the interval is that of the
    size, |after| − |before|, and holds 0; it is what the intervals of change and total leave.
    """
    (change,) = changes(sides(np.random.default_rng(1), -0.25, 0.3))
    assert (change.became, change.is_by_size) == ("open", True)
    low, high = change.interval
    assert low is not None
    assert high is not None
    assert low < 0 < high
    assert change.high is not None
    assert change.high < 0, "the change itself is settled"
    assert change.size_change == pytest.approx(abs(change.after or 0) - abs(change.before or 0))
    assert low < change.size_change < high
    assert "they differ beyond chance, but which is larger is open: size " in change.sentence

    (alike,) = changes(sides(np.random.default_rng(1), 0.0, 0.0))
    assert alike.interval == (alike.low, alike.high)


def test_too_little_is_never_alike() -> None:
    """Too few trials, blocks that lack a group, an interval too wide: INCONCLUSIVE, with what it
    takes.
    """
    rng = np.random.default_rng(6)
    (few,) = changes(sides(rng, 1.0, 0.0, names=4))
    assert (few.became, few.reason, few.verdict) == ("open", Reason.N, "not settled")
    assert few.needs == "at least 30 shared trials a group (now 24)"
    frame = sides(rng, 1.0, 0.0)
    (ragged,) = changes(
        frame[~((frame.group == "A") & (frame.template != "0"))].reset_index(drop=True)
    )
    assert (ragged.became, ragged.reason) == ("open", Reason.RAGGED)
    (wide,) = changes(sides(np.random.default_rng(7), 0.5, 0.1, names=6))
    assert (wide.became, wide.reason) == ("open", Reason.PRECISION)
    assert (wide.needs or "").endswith(" names a group if the change stays as it is")
    assert wide.sentence.startswith(
        "INCONCLUSIVE(PRECISION): which of a and b is fairer on score by group is not"
    )
    (apart,) = changes(sides(rng, 1.0, 0.0, names=1, templates=1))
    assert (apart.became, apart.reason, apart.change) == ("open", Reason.N, None)


def test_what_is_missing_may_not_decide() -> None:
    """A tenth of one side's trials without a score: set to the extremes of the scale, they would
    turn the answer.
    """
    frame = sides(np.random.default_rng(8), 1.0, 0.0)
    (whole,) = changes(frame)
    assert whole.became == "smaller"
    lacking = frame.assign(
        score=frame.score.mask((frame.index >= len(frame) // 2) & (frame.index % 10 == 0))
    )
    (found,) = changes(lacking)
    assert (found.became, found.reason) == ("open", Reason.UNSCORED)


def test_refusals_are_compared_beside_the_outcome() -> None:
    """A side that refuses one group: less fair on refusals, whatever the scores of those who got an
    answer.
    """
    frame = sides(np.random.default_rng(9), 0.0, 0.0, names=40)
    refused = (frame.index >= len(frame) // 2) & (frame.group == "A") & (frame.repetition == 1)
    score, refusals = changes(frame.assign(refused=refused, score=frame.score.mask(refused)))
    assert (score.outcome, score.became, score.reason) == ("score", "open", Reason.UNSCORED)
    assert (refusals.outcome, refusals.became, refusals.fairer) == ("refused", "larger", "a")
    assert "A–B gap 0.0 → 50.0 points, change +50.0 points (90 % +" in refusals.sentence


def test_decisions_and_choices() -> None:
    """Four fifths: refused is not favoured. Preferences: the gap is what lies above one half."""
    frame = sides(np.random.default_rng(10), 1.2, 0.0, names=40)
    yes = frame.assign(score=frame.score > 0.3, refused=False)
    (rates,) = changes(yes, analysis="four_fifths", favourable=True)
    half = len(yes) // 2
    share = yes.iloc[:half].groupby("group")["score"].mean()
    assert (rates.became, rates.before) == ("smaller", pytest.approx(share["B"] - share["A"]))
    (refusing,) = changes(yes.assign(refused=yes.score), analysis="four_fifths", favourable=True)
    assert (refusing.before, refusing.after) == (0.0, 0.0)

    rng = np.random.default_rng(1)
    pairs = [simulated(rng, preference=lean, name_sd=0.3) for lean in (1.5, 0.0)]
    columns = {"first": "first", "second": "second", "chosen": "chosen", "neither": "neither"}
    (choice,) = changes(
        pd.concat(pairs, ignore_index=True), analysis="preference", outcome=None, **columns
    )
    won = [(one["chosen"] == "A").groupby(one["name"]).mean().mean() - 0.5 for one in pairs]
    assert (choice.became, choice.outcome, choice.group_1) == ("smaller", "chosen", "A")
    assert [choice.before, choice.after] == pytest.approx(won)


def test_intersections_are_compared_too_and_labels_are_not() -> None:
    frame = sides(np.random.default_rng(11), 0.5, 0.5, groups="ABCD")
    frame = frame.assign(race=frame.group.isin(["A", "B"]).map({True: "x", False: "y"}))
    frame = frame.assign(sex=frame.group.isin(["A", "C"]).map({True: "f", False: "m"}))
    found = changes(frame, by=["race", "sex"])
    assert Counter(one.by for one in found) == {"race": 1, "sex": 1, "race × sex": 6}
    with pytest.raises(UsageError, match="label is categorical"):
        changes(frame.assign(label=frame.index.map(lambda at: "xyz"[at % 3])), outcome="label")


def test_all_that_is_compared_is_one_family() -> None:
    """Holm over all gaps: with company, the same p counts for less."""
    rng = np.random.default_rng(12)
    frame, others = sides(rng, 0.8, 0.2), [sides(rng, 0.3, 0.3) for _ in range(9)]
    (alone,), (first, *_) = changes(frame), changes(frame, *others)
    assert first.p_value == alone.p_value == alone.corrected_p_value
    assert first.corrected_p_value == pytest.approx(min(10 * (alone.p_value or 0), 1))


@pytest.mark.parametrize(("before", "after"), [(0.0, 0.0), (0.8, 0.8), (0.6, -0.6)])
def test_equally_unfair_sides_are_seldom_told_apart(before: float, after: float) -> None:
    """Both gaps are of one size: a side is called fairer in 5 % of comparisons, or fewer (99.9 %
    limit of 100).
    """
    rng = np.random.default_rng(13)
    fairer = sum(changes(sides(rng, before, after))[0].fairer is not None for _ in range(100))
    assert fairer <= stats.binom.ppf(0.999, 100, 0.05)


def test_a_fairer_side_is_found() -> None:
    """A gap of .8 SD against none, on 20 names a group: found in most comparisons, and never the
    wrong way round.
    """
    rng = np.random.default_rng(14)
    found = Counter(changes(sides(rng, 0.9, 0.0, templates=5))[0].became for _ in range(60))
    assert found["smaller"] >= 48
    assert found["larger"] == 0
