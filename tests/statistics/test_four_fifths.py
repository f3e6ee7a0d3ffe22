"""The four-fifths rule: published examples, the boundary, the family, and the modes."""

import math
from dataclasses import replace

import pandas as pd
import pytest
from scipy import stats

from pytest_fairness.analysis.four_fifths import analyze_four_fifths
from pytest_fairness.analysis.policy import judge_ratio
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import Reason, Verdict
from pytest_fairness.statistics.proportions import RatioCounts, impact_ratio, reference_group
from tests.support.benchmarks import benchmark

from .frames_of import decisions


def judge(frame, **options):
    return analyze_four_fifths(frame, "outcome", "group", cluster=None, **options)


def ratios(finding):
    return {pair.group_1: pair.statistics["impact_ratio"] for pair in finding.pairs}


@pytest.mark.parametrize(
    ("counts", "bare", "expected"),
    [
        # the Uniform Guidelines' Q&A of 1979: .75 fails, .8 and .85 do not
        (
            {
                "white": (600, 1000),
                "indian": (450, 1000),
                "hispanic": (480, 1000),
                "black": (510, 1000),
            },
            True,
            {
                "indian": (0.75, Verdict.FAIL),
                "hispanic": (0.8, Verdict.PASS),
                "black": (0.85, Verdict.PASS),
            },
        ),
        # careerengine.us: 13 % of the women are below four fifths of 19 % of the men
        (
            {"men": (48, 255), "women": (52, 395)},
            True,
            {"women": (0.699367088607595, Verdict.FAIL)},
        ),
        # learn8.cc: the second fails, the third just passes the ratio
        (
            {"caucasian": (400, 600), "hispanic": (200, 400), "asian": (140, 260)},
            False,
            {"hispanic": (0.75, Verdict.FAIL), "asian": (0.8076923076923077, Verdict.FLAG)},
        ),
    ],
    ids=["guidelines", "men and women", "three groups"],
)
def test_published_examples(counts, bare, expected):
    """The ratios of textbooks and their verdicts."""
    finding = judge(decisions(**counts), bare_ratio=bare)
    assert {p.group_1: (p.statistics["impact_ratio"], p.verdict) for p in finding.pairs} == {
        group: (pytest.approx(ratio), verdict) for group, (ratio, verdict) in expected.items()
    }
    assert max(expected, key=lambda group: expected[group][1] is Verdict.FAIL) in finding.sentence


def test_call_backs_of_white_and_black_names():
    """Bertrand & Mullainathan (2004), 2,435 résumés each: 9.65 % against 6.45 %."""
    finding = judge(decisions(white=(235, 2435), black=(157, 2435)))
    s = finding.pairs[0].statistics
    assert s["impact_ratio"] == pytest.approx(0.6680851063829787, rel=1e-9)
    assert s["impact_ratio_low"] == pytest.approx(0.5502405093838053, rel=1e-9)
    assert s["impact_ratio_high"] == pytest.approx(0.8111683922919336, rel=1e-9)
    assert abs(s["z"]) == pytest.approx(4.108412152434346, rel=1e-9)
    assert s["fisher_p_value"] == pytest.approx(4.758747107909523e-05, rel=1e-9)
    assert finding.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("x1", "n1", "x2", "n2"), [(3, 5, 6, 8), (3, 5, 36, 48), (12, 36, 10, 24), (24, 36, 45, 54)]
)
def test_exactly_four_fifths_passes_though_floating_point_says_less(x1, n1, x2, n2):
    """The quotient computes to .7999999999999999; the counts say exactly four fifths."""
    assert (x1 / n1) / (x2 / n2) < 0.8
    assert not impact_ratio(x1, n1, x2, n2).below
    assert impact_ratio(x1 - 1, n1, x2, n2).below
    assert judge(decisions(a=(x1, n1), b=(x2, n2)), bare_ratio=True).verdict is Verdict.PASS


def test_a_reference_chosen_by_the_data_costs_all_pairs():
    """Highest of four: six pairs are corrected together; declared beforehand: three."""
    frame = decisions(a=(60, 100), b=(50, 100), c=(40, 100), d=(45, 100))
    chosen, declared = judge(frame), judge(frame, reference="a")
    assert chosen.family["size"] == 6
    assert declared.family["size"] == 3
    assert len(chosen.pairs) == len(declared.pairs) == 3
    ours = {p.group_1: p.corrected_p_value for p in chosen.pairs}
    theirs = {p.group_1: p.corrected_p_value for p in declared.pairs}
    assert ours["c"] == pytest.approx(2 * theirs["c"])


def test_a_handful_of_cases_is_no_reference():
    """Under 2 % of the data a group's rate is noise, however high."""
    frame = decisions(tiny=(3, 3), a=(60, 100), b=(30, 100))
    finding = judge(frame)
    assert finding.details["reference"] == {"group": "a"}
    assert "tiny" in " ".join(finding.notes)
    assert reference_group([3, 60, 30], [3, 100, 100]) == 1
    assert reference_group([0, 0], [0, 0]) is None


def test_flip_flop_and_shortfall():
    """One decision more turns 1/10 against 2/10 round, not 5/50 against 20/50."""
    assert impact_ratio(1, 10, 2, 10).flip_flop
    far = impact_ratio(20, 50, 5, 50)
    assert (far.counts.x_low, far.counts.x_high) == (5, 20)
    assert not far.flip_flop
    assert far.shortfall == pytest.approx(7.5)


def test_a_flip_flop_holds_back_what_is_significant():
    """3 and 5 of 10 are level after one moves; 2 and 5 are not."""
    level, apart = impact_ratio(3, 10, 5, 10), impact_ratio(2, 10, 5, 10)
    assert (level.flip_flop, apart.flip_flop) == (True, False)
    held = judge_ratio(level, 0.001, alpha=0.05, bare=False)
    assert (held.verdict, held.reason) == (
        Verdict.INCONCLUSIVE,
        Reason.SMALL_NUMBERS,
    )
    assert judge_ratio(apart, 0.001, alpha=0.05, bare=False).verdict is Verdict.FAIL


def test_nobody_gets_it():
    """No favourable decision anywhere: there is no ratio, and nothing is shown."""
    finding = judge(decisions(a=(0, 60), b=(0, 60)))
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.PRECISION)
    assert "at all" in finding.sentence


def test_the_favourable_value_is_the_callers():
    """Being denied is not being granted: the ratio of the wrong rate hides the disparity."""
    frame = decisions(a=(90, 100), b=(60, 100))
    frame["outcome"] = frame.outcome.map({True: "granted", False: "denied"})
    granted = judge(frame, favourable="granted")
    assert ratios(granted)["b"] == pytest.approx(2 / 3)
    denied = judge(frame, favourable=["denied"])
    assert denied.pairs[0].worse_off == "a"
    assert judge(frame, favourable=lambda value: value == "granted").pairs == granted.pairs
    with pytest.raises(UsageError, match="'denied'"):
        judge(frame)


def test_an_unknown_reference_is_named():
    """With the groups that there are."""
    with pytest.raises(FrameError, match="'c' is no group of 'group'; it has 'a', 'b'"):
        judge(decisions(a=(1, 2), b=(1, 2)), reference="c")


def test_names_are_the_unit_here_too():
    """Two names a group whose rates happen to differ are no adverse impact, however many calls."""
    frame = decisions(a=(300, 500), b=(200, 500))
    frame["name"] = [f"{group}{at % 500 < 250}" for at, group in enumerate(frame.group)]
    finding = analyze_four_fifths(frame, "outcome", "group")
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert judge(frame).verdict is Verdict.FAIL


def test_who_is_refused_is_not_selected_whatever_the_row_says():
    """b is decided as often in favour among those answered; but a third of b gets no answer."""
    frame = decisions(a=(120, 200), b=(120, 200), r=(100, 100))
    frame["refused"] = frame.group == "r"
    frame["group"] = frame.group.replace("r", "b")
    finding = judge(frame)
    (pair,) = finding.pairs
    assert pair.statistics["impact_ratio"] == pytest.approx((120 / 300) / (120 / 200))
    assert pair.statistics["z"] == pytest.approx(-4.38, abs=0.01)
    assert sorted((pair.statistics["favourable_1"], pair.statistics["favourable_2"])) == [120, 120]
    assert finding.verdict is Verdict.FAIL
    assert finding.refusal_rates["b"] == pytest.approx(1 / 3)


def unread(frame, count, group="a"):
    """The first *count* decisions of a group missing: the favourable ones stand first."""
    frame["outcome"] = frame.outcome.astype(object)
    frame.loc[frame.index[frame.group == group][:count], "outcome"] = None
    return frame


def test_decisions_that_are_missing_for_one_group_are_a_finding():
    """One decision in ten unread, all of one group: it is left without a decision."""
    finding = judge(unread(decisions(a=(60, 100), b=(55, 100)), 10))
    assert finding.verdict is Verdict.FAIL
    assert finding.sentence.startswith(
        "FAIL: no alarm on outcome itself, but a is left without a decision in 10.0 % of"
    )
    assert finding.family["size"] == 2


@pytest.mark.parametrize(
    ("counts", "lost", "verdict", "reason"),
    [
        # nearly all selected: none of ten missing could turn the ratio of four fifths
        ({"a": (960, 1000), "b": (950, 1000)}, 10, Verdict.PASS, None),
        # as many of both are missing: at odds three times as high and low they change nothing
        ({"a": (960, 1000), "b": (950, 1000)}, 40, Verdict.PASS, None),
        # with over 5 % missing they are at the worst, where the rates differ significantly: no PASS
        ({"a": (960, 1000), "b": (950, 1000)}, 60, Verdict.INCONCLUSIVE, Reason.UNSCORED),
        # far apart: it stands whoever of those missing was selected
        ({"a": (200, 1000), "b": (900, 1000)}, 60, Verdict.FAIL, None),
        # a finding that those missing could undo
        ({"a": (190, 1000), "b": (250, 1000)}, 60, Verdict.INCONCLUSIVE, Reason.UNSCORED),
        # a FAIL that at the worst for it is a FLAG
        ({"a": (700, 1000), "b": (900, 1000)}, 60, Verdict.FLAG, None),
    ],
)
def test_bounds_before_unread(counts, lost, verdict, reason):
    """What is missing is set favourable for the one group and not for the other, and the other way
    round.
    """
    frame = decisions(**counts)
    (x, _), (y, _) = counts.values()
    for group, selected in (
        ("a", x),
        ("b", y),
    ):  # as many of each group, unselected ones, so that no group has more
        frame["outcome"] = frame.outcome.astype(object)
        frame.loc[
            frame.index[frame.group == group][selected // 2 : selected // 2 + lost], "outcome"
        ] = None
    pair = judge(frame).pairs[0]
    assert (pair.verdict, pair.reason) == (verdict, reason)


def test_the_worst_of_what_is_missing_is_corrected_with_its_family():
    """Six pairs: a p of .015 at the worst, where the one seen was 1, is no alarm."""
    frame = decisions(**dict.fromkeys("abcd", (650, 1300)))
    frame["outcome"] = frame.outcome.astype(object)
    for group in "abcd":
        frame.loc[frame.index[frame.group == group][619:681], "outcome"] = None
    for correction in ("bonferroni", "holm"):
        assert judge(frame, correction=correction).verdict is Verdict.PASS


def test_the_interval_that_a_pass_needs():
    """Katz's of 90 %, wider by the design effect and by Student's t; its lower end at 2/3 or more."""
    ratio = impact_ratio(30, 100, 45, 100, design_effect=4.0, df=5.0)
    reach = stats.t.ppf(0.95, 5) * 2 * math.sqrt(1 / 30 - 1 / 100 + 1 / 45 - 1 / 100)
    assert (ratio.low, ratio.high) == pytest.approx(
        (2 / 3 * math.exp(-reach), 2 / 3 * math.exp(reach))
    )
    sure, open_ = impact_ratio(36, 72, 40, 72), impact_ratio(30, 60, 36, 60)
    assert sure.ratio_low < 2 / 3 <= sure.low
    assert 0.5 < open_.low < 2 / 3
    verdicts = [judge_ratio(one, 1.0, alpha=0.05, bare=False).verdict for one in (sure, open_)]
    assert verdicts == [Verdict.PASS, Verdict.INCONCLUSIVE]


def test_equal_rates_of_too_few_are_no_pass():
    """Forty a group; fifty would do."""
    few, enough = (
        judge_ratio(impact_ratio(x, n, x, n), 1.0, alpha=0.05, bare=False)
        for x, n in ((30, 40), (38, 50))
    )
    assert (few.verdict, few.reason) == (Verdict.INCONCLUSIVE, Reason.PRECISION)
    assert enough.verdict is Verdict.PASS


def test_one_name_a_group_never_fails():
    """The result is about that name."""
    frame = decisions(a=(20, 100), b=(80, 100))
    frame = frame.assign(name=frame["group"], repetition=frame.groupby("group").cumcount())
    assert analyze_four_fifths(frame, "outcome", "group").pairs[0].verdict is Verdict.FLAG


# ---------------------------------------------------------------- what matters in practice


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        ((480, 1000), (520, 1000), Verdict.PASS),  # .92, within chance
        (
            (4_800, 10_000),
            (5_200, 10_000),
            Verdict.PASS,
        ),  # .92, beyond chance, too little to matter
        ((4_500, 10_000), (5_000, 10_000), Verdict.PASS),  # exactly .9
        ((4_499, 10_000), (5_000, 10_000), Verdict.FLAG),
        ((4_250, 10_000), (5_000, 10_000), Verdict.FLAG),  # .85
        ((8_910, 10_000), (9_900, 10_000), Verdict.FLAG),  # .9, and ten times as many rejected
        ((8_100, 10_000), (9_000, 10_000), Verdict.PASS),  # .9 of exactly nine in ten, d = .41
        ((8_101, 10_000), (9_001, 10_000), Verdict.FLAG),
        ((9_350, 10_000), (9_500, 10_000), Verdict.PASS),  # nearly everybody, d = .15
        ((3_900, 10_000), (5_000, 10_000), Verdict.FAIL),
    ],
)
def test_a_ratio_of_nine_tenths_matters_only_where_nearly_everybody_is_favoured(low, high, verdict):
    """29 CFR 1607.4(D): a difference in both statistical and practical terms."""
    finding = judge(decisions(a=low, b=high))
    assert finding.verdict is verdict
    beyond = finding.pairs[0].corrected_p_value < 0.05
    little = "apart by more than chance, too little to matter"
    assert (little in finding.pairs[0].notes) is (beyond and verdict is Verdict.PASS)
    assert (little in finding.sentence) is (beyond and verdict is Verdict.PASS)


def test_the_practical_ratio_is_the_callers():
    frame = decisions(a=(4_800, 10_000), b=(5_200, 10_000))
    assert judge(frame).details["practical_ratio"] == 0.9
    assert judge(frame, practical_ratio=1).verdict is Verdict.FLAG
    assert judge(frame, practical_ratio=0.93).verdict is Verdict.FLAG
    small = decisions(a=(8_600, 10_000), b=(9_100, 10_000))
    assert judge(small, practical_ratio=0.8).verdict is Verdict.FLAG
    for wrong in (0, -0.1, 1.01):
        with pytest.raises(UsageError, match=r"practical_ratio=.*above 0 and up to 1"):
            judge(frame, practical_ratio=wrong)


def test_too_little_to_matter_is_no_pass_where_the_ratio_is_uncertain():
    """Beyond chance, below no limit, and yet an interval that reaches under two thirds."""
    ratio = replace(impact_ratio(92, 100, 98, 100), low=0.66)
    assert judge_ratio(impact_ratio(92, 100, 98, 100), 0.2, alpha=0.05).verdict is Verdict.PASS
    undecided = judge_ratio(replace(ratio, counts=RatioCounts(85, 100, 90, 100)), 0.01, alpha=0.05)
    assert (undecided.verdict, undecided.reason) == (Verdict.INCONCLUSIVE, Reason.PRECISION)


def test_a_table_without_a_single_decision_is_undecided():
    """No pair of groups is left to compare."""
    frame = pd.DataFrame({"group": ["a"] * 100 + ["b"] * 100, "hired": [None] * 200})
    finding = analyze_four_fifths(frame, "hired", "group", cluster=None)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert [pair.metric for pair in finding.pairs] == ["no answer"]
    assert "no two groups of group with decisions" in finding.sentence


def test_tables_of_a_file_are_judged(tmp_path):
    """The program for published tables: counts from percent or shares, rows without a number left
    out.
    """
    program = benchmark("published_tables")
    file = tmp_path / "tables.csv"
    file.write_text(
        "tool,category,applicants,selection rate\n"
        'a,Female,"1,200",51 %\na,Male,1300,50.5 %\n'
        "b,Female,40000,0.891\nb,Male,50000,0.989\n"
        "c,Female,90000,40.1\nc,Male,90000,42.5\n"
        "d,Female,100,30\nd,Male,120,\n"
        "e,Female,4000,10\ne,Male,4000,20\n",
        encoding="utf-8",
    )
    columns = dict(
        zip(
            ("table", "group", "n", "rate"),
            ("tool", "category", "applicants", "selection rate"),
            strict=True,
        )
    )
    tables = program.read_tables(file, columns)
    assert tables["table"].unique().tolist() == ["a", "b", "c", "e"]
    assert tables["selected"].tolist() == [612, 656, 35640, 49450, 36090, 38250, 400, 800]
    rows, verdicts = program.rows_of(tables, "these")
    assert [row.met for row in rows] == [True, True]
    assert verdicts == {"PASS": 2, "FLAG": 1, "FAIL": 1}
    with pytest.raises(SystemExit, match="has no column 'table'"):
        program.read_tables(
            file,
            {"table": "table", "group": "category", "n": "applicants", "rate": "selection rate"},
        )
