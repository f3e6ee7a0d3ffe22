"""Whatever the data, a finding comes out whole; and what cannot matter does not."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.analysis.four_fifths import analyze_four_fifths
from pytest_fairness.model import Finding

RELAXED = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
FEW = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)

SCORES = {
    "numeric": st.one_of(
        st.floats(-1e6, 1e6).map(
            lambda x: x if abs(x) >= 1e-150 else 0.0
        ),  # smaller ones are refused
        st.sampled_from([0.1, 0.1, 0.30000000000000004, 1e-150, 5.0]),
    ),
    "ordinal": st.integers(1, 3),
    "binary": st.booleans(),
    "categorical": st.sampled_from(["yes", "no", "maybe"]),
}


@st.composite
def frames(draw, kind):
    """A table of any shape that a user could bring: unbalanced, ragged, missing, refused, constant."""
    groups = draw(st.integers(2, 4))
    rows = draw(st.integers(groups, 60))
    group = [f"g{i}" for i in range(groups)] + draw(
        st.lists(
            st.sampled_from([f"g{i}" for i in range(groups)]),
            min_size=rows - groups,
            max_size=rows - groups,
        )
    )
    shared = draw(st.booleans())
    name = [("" if shared else g) + f"n{draw(st.integers(0, 3))}" for g in group]
    constant = draw(st.booleans()) and draw(st.booleans())
    values = [draw(SCORES[kind])] * rows if constant else [draw(SCORES[kind]) for _ in range(rows)]
    missing = (
        draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
        if draw(st.booleans())
        else [False] * rows
    )
    refused = (
        draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
        if draw(st.booleans())
        else [False] * rows
    )
    frame = pd.DataFrame(
        {
            "group": group,
            "name": name,
            "template": [f"t{draw(st.integers(0, 2))}" for _ in range(rows)],
            "outcome": pd.Series(
                [None if lost else v for v, lost in zip(values, missing, strict=True)], dtype=object
            ),
        }
    )
    if draw(st.booleans()):
        frame["refused"] = refused
    return frame


def require_whole(finding: Finding) -> None:
    """No NaN in any field that a verdict is read from, and JSON without NaN that reads back the
    same.
    """
    text = json.dumps(finding.to_dict(), allow_nan=False)
    assert Finding.from_dict(json.loads(text)).verdict is finding.verdict
    assert "nan" not in finding.sentence.lower()
    assert finding.sentence.startswith(finding.verdict.value)
    for pair in finding.pairs:
        assert 0 <= pair.p_row <= 1
        assert 0 <= pair.p_value <= pair.corrected_p_value <= 1
        assert not math.isnan(pair.effect)
        assert pair.p_cluster is None or 0 <= pair.p_cluster <= 1
        if pair.effect_low is not None and pair.effect_high is not None:
            assert pair.effect_low <= pair.effect_high
            assert not math.isnan(pair.effect_low)
            assert not math.isnan(pair.effect_high)


@pytest.mark.parametrize("kind", sorted(SCORES))
@pytest.mark.parametrize("cluster", ["name", None])
def test_any_valid_frame_is_judged_without_error_or_nan(kind, cluster):
    """Ties, zero variance, empty groups, one row a group, missing and refused outcomes: always a
    finding.
    """

    @FEW
    @given(frames(kind))
    def check(frame):
        require_whole(analyze_disparity(frame, "outcome", "group", kind=kind, cluster=cluster))

    check()


@FEW
@given(frames("binary"), st.booleans())
def test_any_table_of_decisions_is_judged_by_four_fifths(frame, bare):
    """The same for the four-fifths rule."""
    require_whole(analyze_four_fifths(frame, "outcome", "group", bare_ratio=bare))


def normal_frame(seed=3, shift=0.4):
    rng = np.random.default_rng(seed)
    rows = [
        (group, f"{group}{name}", f"t{template}", repetition)
        for group in ("a", "b", "c")
        for name in range(8)
        for template in range(3)
        for repetition in range(2)
    ]
    frame = pd.DataFrame(rows, columns=["group", "name", "template", "repetition"])
    frame["outcome"] = rng.normal(size=len(frame)) + shift * (frame.group == "b")
    frame["hit"] = frame.outcome > 0.2
    return frame


def by_groups(finding):
    return {frozenset((p.group_1, p.group_2)): p for p in finding.pairs}


@pytest.mark.parametrize(("outcome", "kind"), [("outcome", "numeric"), ("hit", "binary")])
def test_the_order_of_rows_and_the_names_of_groups_do_not_matter(outcome, kind):
    """Shuffling changes nothing, and reversing the order of the groups' names turns effects round:
    nothing else.
    """
    frame = normal_frame()
    first = analyze_disparity(frame, outcome, "group", kind=kind)
    shuffled = analyze_disparity(frame.sample(frac=1, random_state=1), outcome, "group", kind=kind)
    assert first.sentence == shuffled.sentence
    for one, two in zip(first.pairs, shuffled.pairs, strict=True):
        assert (two.p_value, two.effect) == pytest.approx((one.p_value, one.effect), rel=1e-9)
        assert two.effect_low == pytest.approx(one.effect_low, rel=1e-9)
    names = {"z": "a", "y": "b", "x": "c"}
    turned = frame.assign(group=frame.group.map({old: new for new, old in names.items()}))
    for pair in analyze_disparity(turned, outcome, "group", kind=kind).pairs:
        same = by_groups(first)[frozenset((names[pair.group_1], names[pair.group_2]))]
        assert (pair.p_value, pair.effect) == pytest.approx((same.p_value, -same.effect), rel=1e-9)
        assert pair.effect_low == pytest.approx(-same.effect_high, rel=1e-9)
        assert pair.verdict is same.verdict
        assert names.get(pair.worse_off) == same.worse_off


@RELAXED
@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=4, max_size=40))
def test_monotone_transforms_leave_rank_results_alone(pairs):
    """p-values and Cliff's δ of a narrative outcome depend on order only."""
    values = [round(v, 3) for pair in pairs for v in pair]
    frame = pd.DataFrame({"group": ["a", "b"] * len(pairs), "outcome": values})
    first = analyze_disparity(frame, "outcome", "group", kind="narrative", cluster=None).pairs[0]
    bent = frame.assign(outcome=np.exp(frame.outcome) * 7 + 2)
    second = analyze_disparity(bent, "outcome", "group", kind="narrative", cluster=None).pairs[0]
    assert second.p_value == pytest.approx(first.p_value, rel=1e-9)
    assert second.statistics["cliffs_delta"] == pytest.approx(
        first.statistics["cliffs_delta"], abs=1e-12
    )


@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e9])
def test_the_unit_of_a_numeric_outcome_does_not_matter(factor):
    """Points or thousandths of points: the same effect, interval and p; the difference in the new
    unit.
    """
    frame = normal_frame()
    first = analyze_disparity(frame, "outcome", "group", kind="numeric")
    second = analyze_disparity(
        frame.assign(outcome=frame.outcome * factor + 5 * factor),
        "outcome",
        "group",
        kind="numeric",
    )
    for one, two in zip(first.pairs, second.pairs, strict=True):
        assert two.effect == pytest.approx(one.effect, rel=1e-6)
        assert two.effect_high == pytest.approx(one.effect_high, rel=1e-6)
        assert two.p_value == pytest.approx(one.p_value, rel=1e-6)
        assert two.difference == pytest.approx(one.difference * factor, rel=1e-6)


def test_ragged_blocks_are_dropped_pair_by_pair():
    """A block that lacks one group is left out for its pairs, and only for them."""
    frame = normal_frame()
    ragged = frame[~((frame.group == "c") & (frame.template == "t2"))]
    together = by_groups(analyze_disparity(ragged, "outcome", "group"))
    full = by_groups(analyze_disparity(frame, "outcome", "group"))
    pair = frozenset(("a", "b"))
    assert together[pair].p_value == pytest.approx(full[pair].p_value, rel=1e-9)
    common = ragged[ragged.template != "t2"]
    alone = analyze_disparity(common[common.group.isin(["a", "c"])], "outcome", "group").pairs[0]
    assert together[frozenset(("a", "c"))].effect == pytest.approx(alone.effect, rel=1e-9)
    assert together[frozenset(("a", "c"))].p_cluster == pytest.approx(alone.p_cluster, rel=1e-9)
