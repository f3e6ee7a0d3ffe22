"""Data without spread, groups without rows, one name, copies: what the contract says of each."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import comb

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.model import Reason, Verdict
from pytest_fairness.statistics.categories import _permuted, _tail, chi_square
from pytest_fairness.statistics.clusters import reach
from pytest_fairness.statistics.effects import Effect
from pytest_fairness.statistics.pair_table import intervals

from .frames_of import names, scores


def constant(values, people=4, templates=10, repetitions=1):
    """group → one value for every trial."""
    return names({
        group: {f"{group}{p}": [[value] * repetitions] * templates for p in range(people)}
        for group, value in values.items()
    })  # fmt: skip


@pytest.mark.parametrize("kind", ["numeric", "ordinal", "binary", "categorical"])
def test_both_constant_and_equal_is_saturated(kind):
    """No difference at all: effect 0, p 1, PASS with the gap that 20 names a group would have
    shown.
    """
    value = True if kind == "binary" else 7
    finding = analyze_disparity(
        constant({"a": value, "b": value}, people=20), "outcome", "group", kind=kind
    )
    pair = finding.pairs[0]
    assert finding.verdict is Verdict.PASS
    assert (pair.effect, pair.p_value) == (0, 1)
    assert "with 20 names a group, exceptions in up to 14 %" in finding.sentence


@pytest.mark.parametrize("kind", ["numeric", "ordinal", "binary", "categorical"])
def test_both_constant_and_unequal_fails_with_an_infinite_effect(kind):
    """Every name of a group gets one outcome, and the groups' outcomes differ; the sign is that of
    the difference.
    """
    one, two = (True, False) if kind == "binary" else (7, 5)
    for values, effect in (({"a": one, "b": two}, math.inf), ({"a": two, "b": one}, -math.inf)):
        pair = analyze_disparity(
            constant(values, templates=15), "outcome", "group", kind=kind
        ).pairs[0]
        assert (pair.verdict, pair.effect) == (Verdict.FAIL, effect)


def one_name(shift, repetitions=1, templates=60):
    wave = [0.3, -0.4, 0.9, -1.1, 0.0, 1.4, -0.7, 0.2]
    return names({
        group: {group: [[at * shift + wave[(t + 3 * at) % 8]] * repetitions for t in range(templates)]}
        for at, group in enumerate("ab")
    })  # fmt: skip


def test_one_name_a_group_is_about_the_labels_and_never_fails():
    """p is that of the rows, the scope says so, and FAIL is capped at FLAG."""
    pair = analyze_disparity(one_name(3.0), "outcome", "group", block=None).pairs[0]
    assert pair.scope == "labels"
    assert pair.p_cluster is None
    assert pair.p_value == pair.p_row < 0.001
    assert pair.verdict is Verdict.FLAG
    assert "capped" in " ".join(pair.notes)


def test_copies_add_nothing_where_a_group_has_one_name():
    """A model at temperature 0 repeats itself: ten copies are one trial."""
    once = analyze_disparity(one_name(0.4), "outcome", "group").pairs[0]
    tenfold = analyze_disparity(one_name(0.4, repetitions=10), "outcome", "group")
    assert tenfold.pairs[0].p_value == pytest.approx(once.p_value)
    assert "count once" in " ".join(tenfold.notes)
    assert tenfold.pairs[0].statistics["trials_1"] == 60
    assert tenfold.group_results[0].n == 600


def test_replies_that_are_known_decide_what_is_a_copy():
    """Two replies that differ are two trials, though they score the same; the same reply twice is
    one.
    """
    frame = one_name(0.4, repetitions=2)
    frame["reply"] = [
        f"{name} {template}" for name, template in zip(frame.name, frame.template, strict=True)
    ]
    assert analyze_disparity(frame, "outcome", "group").pairs[0].statistics["trials_1"] == 60
    frame["reply"] += frame.repetition.astype(str)
    assert analyze_disparity(frame, "outcome", "group").pairs[0].statistics["trials_1"] == 120
    frame.loc[frame.template == "t0", "reply"] = "the same"
    assert analyze_disparity(frame, "outcome", "group").pairs[0].statistics["trials_1"] == 119


def test_n_counts_trials():
    """Twenty names of which each is approved fifty times over: the evidence is theirs, the minimum
    that of trials.
    """
    frame = constant({"a": True, "b": True}, people=20, templates=1, repetitions=50)
    finding = analyze_disparity(frame, "outcome", "group")
    assert finding.verdict is Verdict.PASS
    assert finding.n_per_group == {"a": 1000, "b": 1000}
    assert any("more of them add nothing" in note for note in finding.notes)
    few = constant({"a": 7, "b": 7}, people=3, templates=1, repetitions=30)
    finding = analyze_disparity(few, "outcome", "group", kind="numeric")
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.PRECISION)


def test_groups_without_an_outcome_are_a_finding_not_a_crash():
    """A group whose every outcome is missing is named; where nobody has one, the test fails as
    unusable.
    """
    frame = scores(a=[1.0] * 40, b=[float("nan")] * 40)
    finding = analyze_disparity(frame, "outcome", "group", cluster=None, kind="numeric")
    assert finding.verdict is Verdict.FAIL
    assert finding.sentence.startswith(
        "FAIL: b cannot be compared on outcome: b is left without a usable answer"
    )
    assert finding.n_per_group == {"a": 40, "b": 0}
    empty = frame.assign(outcome=float("nan"))
    finding = analyze_disparity(empty, "outcome", "group", cluster=None, kind="numeric")
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.UNSCORED)
    assert finding.reason.unusable


def test_groups_in_other_blocks_cannot_be_compared():
    """No common block: the verdict says so instead of comparing templates."""
    frame = constant({"a": 7, "b": 5}, people=4, templates=10)
    frame.loc[frame.group == "b", "template"] += "x"
    finding = analyze_disparity(frame, "outcome", "group", kind="numeric")
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.RAGGED)


def test_swapped_labels_on_the_same_personas_are_paired():
    """The same persona in both groups: the t-test is on its differences, and the persona's level
    cancels.
    """
    level = {f"p{i}": 10.0 * i for i in range(12)}
    frame = pd.DataFrame(
        [
            (group, persona, f"t{t}", level[persona] + shift + 0.1 * ((i * 7 + t * 3 + at) % 5))
            for at, (group, shift) in enumerate((("a", 0.0), ("b", 0.5)))
            for i, persona in enumerate(level)
            for t in range(3)
        ],
        columns=["group", "name", "template", "outcome"],
    )
    pair = analyze_disparity(frame, "outcome", "group").pairs[0]
    assert "paired" in pair.test
    assert pair.statistics["df"] == 11
    assert pair.p_cluster < 0.001
    apart = frame.assign(name=frame.group + frame.name)
    assert analyze_disparity(apart, "outcome", "group").pairs[0].p_cluster > 0.5


def test_rare_answers_of_names_are_not_counted_row_by_row():
    """Fisher's exact test takes rows for independent; with names Mantel–Haenszel stays, beside the
    t of the names.
    """
    frame = pd.DataFrame(
        [
            (g, f"{g}{n}", r, g == "b" and r == 0 and n < 4)
            for g in "ab"
            for n in range(10)
            for r in range(6)
        ],
        columns=["group", "name", "repetition", "outcome"],
    )
    (named,) = analyze_disparity(frame, "outcome", "group", block=None).pairs
    (rows,) = analyze_disparity(frame, "outcome", "group", block=None, cluster=None).pairs
    assert named.test == "Mantel-Haenszel chi-square, and t on cluster rates"
    assert rows.test.startswith("Fisher's exact")
    assert rows.p_row == pytest.approx(rows.statistics["fisher_p_value"])
    assert named.p_row == pytest.approx(2 * stats.norm.sf(abs(named.statistics["z"])))
    assert named.p_row < named.statistics["fisher_p_value"]


def test_two_names_in_each_of_five_templates_that_say_the_same_are_no_certainty():
    """One fair pair of sixteen does so: eight degrees of freedom, of which the templates cost four."""
    frame = pd.DataFrame(
        [
            (g, f"{g}{t}", f"t{t}", r, 2.0 * t + (g == "a"))
            for g in "ab"
            for t in range(5)
            for r in range(8)
        ],
        columns=["group", "name", "template", "repetition", "outcome"],
    )
    (pair,) = analyze_disparity(frame, "outcome", "group", kind="numeric").pairs
    assert (pair.statistics["df"], pair.p_cluster) == (pytest.approx(4), pytest.approx(2**-4))


def test_an_infinite_effect_has_no_finite_end():
    """And nothing that is no number, whatever its error and degrees of freedom."""
    errors, df = np.array([0.1, np.inf, np.nan]), np.array([9.0, 0.0, 9.0])
    _, low, high = intervals([Effect(name="d", value=np.full(3, -np.inf), error=errors)], df, 0.9)
    assert low.tolist() == high.tolist() == [[-np.inf]] * 3


@pytest.mark.parametrize(
    ("surnames", "verdict"), [("SS", Verdict.FAIL), ("SJ", Verdict.FLAG)], ids=["one", "two"]
)
def test_a_surname_that_all_names_share_is_the_template_not_the_group(surnames, verdict):
    """Of all names of both groups it tells nothing; of one group's it cannot be told from the
    group.
    """
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(
        [(g, f"{g}{n} {surname}", f"{g}{n}", surname, r, rng.normal() - 2 * (g == "b"))
         for g, surname in zip("ab", surnames, strict=True) for n in range(10) for r in range(4)],
        columns=["group", "name", "first_name", "last_name", "repetition", "outcome"],
    )  # fmt: skip
    (pair,) = analyze_disparity(frame, "outcome", "group", block=None).pairs
    assert pair.verdict is verdict


def test_the_reach_of_an_interval():
    """t·SE; nothing where nothing varies, endless without an error or a degree of freedom."""
    half = reach(np.array([0.5, 0.0, np.nan, 0.5]), np.array([9.0, 9.0, 9.0, 0.5]))
    assert half.tolist() == [pytest.approx(0.5 * stats.t.ppf(0.95, 9)), 0.0, np.inf, np.inf]


def test_an_estimate_that_hangs_on_one_persona_has_no_interval():
    """Two personas crosswise in two templates: without either, no template has both groups."""
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        [(g, p, "t0" if (g == "a") == (p == "p") else "t1", r, rng.normal()) for g in "ab" for p in "pq"
         for r in range(30)],
        columns=["group", "name", "template", "repetition", "outcome"],
    )  # fmt: skip
    (pair,) = analyze_disparity(frame, "outcome", "group").pairs
    assert (pair.effect_low, pair.effect_high) == (None, None)
    assert pair.verdict is not Verdict.PASS


@pytest.mark.parametrize(("yes", "verdict"), [(5, Verdict.PASS), (4, Verdict.INCONCLUSIVE)])
def test_under_five_cases_cannot_show_their_own_spread(yes, verdict):
    """The same personas with the same answers in both groups differ by nothing; four of them are
    too few to say so.
    """
    frame = pd.DataFrame(
        [(g, f"p{n}", r, r == 0 and n < yes) for g in "ab" for n in range(10) for r in range(6)],
        columns=["group", "name", "repetition", "outcome"],
    )
    (pair,) = analyze_disparity(frame, "outcome", "group", block=None, favourable=True).pairs
    assert (pair.effect, pair.verdict) == (0, verdict)


@pytest.mark.parametrize("value", [3.0, 0.1])
def test_an_interval_that_does_not_hold_its_estimate_strictly_is_not_shown(value):
    """Equal constants, whatever their mean computes to: 0, from 0 to 0, is no interval."""
    finding = analyze_disparity(
        constant({"a": value, "b": value}, people=10), "outcome", "group", kind="numeric"
    )
    (pair,) = finding.pairs
    assert (finding.verdict, pair.effect, pair.effect_low, pair.effect_high) == (
        Verdict.PASS,
        0,
        None,
        None,
    )


def test_a_table_beyond_all_that_are_drawn_has_a_p_of_its_own() -> None:
    """The least share of the drawn tables is no floor under which no look could be red; where tables
    as large are drawn, their share stands. Against the exact probability of the table.
    """
    apart = np.array([[30.0, 0, 0], [0, 4.0, 26.0]])
    exact = 2 / comb(60, 30)  # one of two tables that set all rows apart
    p = _permuted(apart, 60.0, seed=1)
    assert exact < p < 1e-6
    near = np.array([[8.0, 2, 1], [3.0, 4, 4]])
    chi2, _ = chi_square(near[None])
    assert _permuted(near, float(chi2[0]), seed=1) > 0.05
    constant = np.array([[30.0, 0], [30.0, 0]])
    assert _permuted(constant, 1.0, seed=1) == 1 / 10_000


def test_no_more_tables_are_drawn_of_what_is_clearly_chance() -> None:
    """A block that the first tables leave no doubt about has its p of them; a rarer one has the p of
    all.
    """
    chance = np.array([[8.0, 2, 1], [3.0, 4, 4]])
    rare = np.array([[14.0, 17, 13, 12], [26.0, 3, 12, 24]])
    for table, alike in ((chance, False), (rare, True)):
        chi2, _ = chi_square(table[None])
        p = _permuted(table, float(chi2[0]), seed=1)
        of_first = _permuted(table, float(chi2[0]), seed=1, first=999)
        assert (p == of_first) is alike
        assert of_first == pytest.approx(p, abs=0.03)
    chi2, _ = chi_square(chance[None])
    assert _permuted(chance, float(chi2[0]), seed=1, first=999) * 1000 % 1 == pytest.approx(0)


def test_labels_that_a_block_lacks_change_nothing() -> None:
    table = np.array([[8.0, 2, 1], [3.0, 4, 4]])
    wider = np.insert(table, [0, 1, 3], 0.0, axis=1)
    assert wider.shape == (2, 6)
    assert _permuted(wider, 4.0, seed=1) == _permuted(table, 4.0, seed=1)


#: In how many parts a unit of chi-square is told apart, and up to which value.
PARTS, FURTHEST = 100, 120


def tail_of(columns: list[int], first: int) -> Any:
    """Return the chance of a chi-square from each value on, over all tables with these *columns*
    and so many rows in the *first* group: column by column, so many ways by sum and value.
    """
    total = sum(columns)
    ways = np.zeros((first + 1, PARTS * FURTHEST))
    ways[0, 0] = 1.0
    for column in columns:
        before, ways = ways, np.zeros_like(ways)
        expected = column * first / total
        for rows in range(min(column, first) + 1):
            value = (rows - expected) ** 2 * (1 / expected + 1 / (column - expected))
            step = min(round(PARTS * value), ways.shape[1])
            so_many, added = math.comb(column, rows), before[: first + 1 - rows]
            ways[rows:, step:] += so_many * added[:, : ways.shape[1] - step]
            ways[rows:, -1] += so_many * added[:, ways.shape[1] - step :].sum(axis=1)
    return np.cumsum(ways[first, ::-1])[::-1] / math.comb(total, first)


@pytest.mark.parametrize(
    ("columns", "first"),
    [
        ([20] * 6, 60),
        ([3] * 24 + [4] * 12, 60),
        ([100, 10, 5, 3, 2], 60),
        ([200, 20, 10, 6, 4], 40),
        ([1900, 5, 4], 100),
    ],
    ids=["even", "36 labels", "rare", "uneven", "rare and uneven"],
)
def test_the_fitted_tail_is_no_lighter_than_a_tenth_of_the_true_one(
    columns: list[int], first: int
) -> None:
    """At the chance of one in a hundred thousand."""
    margins = np.array(columns)
    rows = np.random.default_rng(0).multivariate_hypergeometric(
        margins, first, size=9_999, method="marginals"
    )
    drawn = chi_square(np.stack([rows, margins - rows], axis=1).astype(np.float64))[0]
    tail = tail_of(columns, first)
    assert tail[0] == pytest.approx(1.0)
    assert tail[PARTS * 10] == pytest.approx(np.mean(drawn >= 10), abs=0.02)
    place = int(np.argmax(tail <= 1e-5))
    assert 1e-6 < tail[place] <= 1e-5
    assert tail[place] / 5 < _tail(drawn, place / PARTS) < tail[place] * 10
