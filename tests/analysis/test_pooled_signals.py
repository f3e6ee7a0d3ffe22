"""A class judged over its signals: one finding, in which a signal alone can raise the alarm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pytest_fairness import Finding, Reason, Verdict, analyze_disparity
from pytest_fairness.analysis.looks import Look
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import ALARMS
from pytest_fairness.reports.plain_text import finding_text

SIGNALS = ("birth_year", "generation", "hobby")


def judged(frame: pd.DataFrame, **given: Any) -> Finding:
    return analyze_disparity(
        frame, "score", "age", signals="signal", **{"correction": "holm", **given}
    )


def audit(
    seed: int,
    gaps: tuple[float, ...],
    *,
    groups: tuple[str, ...] = ("younger", "older"),
    names: int = 20,
    texts: int = 5,
) -> pd.DataFrame:
    """Scores of names that stand in every group; the last group is lower by ``gaps[signal]`` SD."""
    random = np.random.default_rng(seed)
    person = random.normal(0, 0.3, names)
    rows = []
    for signal, gap in zip(SIGNALS, gaps, strict=False):
        for text in range(texts):
            for group in groups:
                scores = person + text + random.normal(size=names) - gap * (group == groups[-1])
                rows += [
                    {
                        "age": group,
                        "name": f"n{at}",
                        "signal": signal,
                        "template": f"t{text}",
                        "score": score,
                    }
                    for at, score in enumerate(scores)
                ]
    return pd.DataFrame(rows)


def row_of(finding: Finding, signal: str) -> Any:
    """Return the one row of *signal* in the details of *finding*."""
    signals: Any = finding.details["signals"]
    (row,) = (row for row in signals["rows"] if row["signal"] == signal)
    return row


# ---------------------------------------------------------------- worked by hand

#: R2 of the worked numbers: names a1 a2 a3 | b1 b2 b3, each with two replies to two texts.
FIRST = {"a": [(7, 8), (8, 9), (6, 8)], "b": [(6, 6), (7, 8), (5, 6)]}
SECOND = {"a": [(5, 6), (7, 7), (6, 5)], "b": [(4, 5), (6, 5), (3, 4)]}


def of_two_signals() -> pd.DataFrame:
    """The two texts of R2, each as that of a signal of its own, called alike."""
    rows = []
    for signal, text in (("birth_year", FIRST), ("hobby", SECOND)):
        for group, replies in text.items():
            for at, scores in enumerate(replies, 1):
                rows += [
                    {
                        "age": group,
                        "name": f"{group}{at}",
                        "signal": signal,
                        "template": "reference",
                        "repetition": repetition,
                        "score": score,
                    }
                    for repetition, score in enumerate(scores)
                ]
    return pd.DataFrame(rows)


def of_one_text(text: dict[str, list[tuple[int, int]]]) -> float:
    """p of one text: the larger of the rank test on rows and t on the names' mean ranks."""
    rows = np.array([score for group in "ab" for replies in text[group] for score in replies])
    aligned = (stats.rankdata(rows) - (rows.size + 1) / 2) / (rows.size + 1)
    variance = 36 / (rows.size * (rows.size - 1)) * (aligned**2).sum()
    p_row = 2 * stats.norm.sf(abs(aligned[:6].sum() / np.sqrt(variance)))
    names = aligned.reshape(6, 2).mean(axis=1)
    return max(p_row, stats.ttest_ind(names[:3], names[3:]).pvalue)


def test_the_numbers_worked_by_hand() -> None:
    """Pooled is R2 as it stands; each signal is its text alone; the three are one family by Holm."""
    finding = judged(of_two_signals(), kind="numeric")
    pooled, *signals = finding.pairs
    assert pooled.p_value == pytest.approx(0.125852, abs=1e-6)
    assert (pooled.p_row, pooled.effect) == (
        pytest.approx(0.004126, abs=1e-6),
        pytest.approx(1.407991, abs=1e-6),  # of Cliff's δ, the larger of the two
    )
    by_hand = [of_one_text(FIRST), of_one_text(SECOND)]
    assert [pair.p_value for pair in signals] == [pytest.approx(p, rel=1e-9) for p in by_hand]
    in_order = sorted([pooled.p_value, *by_hand])
    steps = np.maximum.accumulate(
        [min(1.0, times * p) for times, p in zip((3, 2, 1), in_order, strict=True)]
    )
    corrected = dict(zip(in_order, steps, strict=True))
    for pair in finding.pairs:
        assert pair.corrected_p_value == pytest.approx(corrected[pair.p_value], rel=1e-9)
    assert finding.family["size"] == 3
    assert [pair.alarm_only for pair in finding.pairs] == [False, True, True]
    assert [pair.statistics["signals"] for pair in finding.pairs] == [
        ["birth_year", "hobby"],
        ["birth_year"],
        ["hobby"],
    ]
    assert row_of(finding, "hobby")["corrected_p_value"] == signals[1].corrected_p_value


# ---------------------------------------------------------------- what the rule says


def test_a_fair_class_passes_over_its_signals() -> None:
    finding = judged(audit(1, (0, 0, 0)))
    assert finding.verdict is Verdict.PASS
    assert finding.sentence.startswith(
        "PASS: over 3 signals of age, no difference larger than small on score between the two "
        "groups of age; the widest: "
    )
    assert [row_of(finding, signal)["alarm"] for signal in SIGNALS] == [None] * 3
    (group, _) = finding.group_results
    assert group.n == 20 * 5 * 3


def test_one_signal_raises_the_alarm_and_is_named() -> None:
    finding = judged(audit(1, (0, 0.9, 0)))
    pooled = finding.pairs[0]
    assert pooled.verdict not in ALARMS
    assert finding.verdict is Verdict.FAIL
    assert finding.sentence.startswith(
        "FAIL: where generation tells the age, older is worse off than younger on score: "
    )
    assert "100 cases from 20 names a group" in finding.sentence
    assert [row_of(finding, signal)["alarm"] for signal in SIGNALS] == [None, "FAIL", None]


def test_a_pooled_alarm_names_the_signals_that_raise_it_too() -> None:
    finding = judged(audit(1, (0.9, 0.9, 0.9)))
    assert finding.sentence.startswith("FAIL: over 3 signals of age, older is worse off")
    assert finding.sentence.endswith(
        "; by itself birth year, generation and hobby raise the alarm, too."
    )


def test_signals_that_differ_in_opposite_directions_cancel_and_alarm() -> None:
    finding = judged(audit(1, (0.9, -0.9, 0)))
    assert finding.verdict is Verdict.FAIL
    assert finding.sentence.startswith("FAIL: where generation tells the age, younger is worse off")
    assert finding.sentence.endswith("; by itself birth year raises the alarm, too.")
    pooled = finding.pairs[0]
    assert abs(pooled.effect) < 0.2
    assert pooled.verdict is not Verdict.PASS


@pytest.mark.parametrize("gaps", [(0.35, 0.35, 0.35), (0, 0.6, 0)], ids=["pooled", "one signal"])
def test_the_alarm_is_raised_where_the_corrected_p_is_below_the_level(
    gaps: tuple[float, ...],
) -> None:
    """Audits of fair classes hardly notice a level: their effects are too small for any alarm."""
    frame = audit(1, gaps)
    least = min(pair.corrected_p_value for pair in judged(frame).pairs)
    assert judged(frame, alpha=1.01 * least).verdict in ALARMS
    assert judged(frame, alpha=least / 1.01).verdict not in ALARMS


def _with_mean_gap(frame: pd.DataFrame, signal: str, gap: float) -> pd.DataFrame:
    """Return *frame* in which the groups of *signal* differ by exactly *gap* on average."""
    frame = frame.copy()
    rows = frame["signal"] == signal
    means = frame[rows].groupby("age")["score"].mean()
    older = rows & (frame["age"] == "older")
    frame.loc[older, "score"] -= gap - (means["younger"] - means["older"])
    return frame


@pytest.mark.parametrize(("gap", "passes"), [(0.25, True), (0.62, False)])
def test_no_pass_with_a_signal_over_the_margin(gap: float, passes: bool) -> None:
    """At a level so small that nothing is significant, the bound alone keeps a pair from passing."""
    frame = audit(5, (0, 0, 0))
    for signal, wanted in zip(SIGNALS, (gap, 0.0, 0.0), strict=True):
        frame = _with_mean_gap(frame, signal, wanted)
    finding = judged(frame, alpha=1e-9)
    if passes:
        assert finding.verdict is Verdict.PASS
        return
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.SIGNAL)
    assert finding.sentence.startswith(
        "INCONCLUSIVE: over 3 signals of age, the groups agree on score on the whole, but older "
        "and younger may not where one of the signals conveys them ("
    )
    assert "more names where birth year conveys the groups" in str(finding.pairs[0].needs)
    assert finding.pairs[0].effect_high is not None
    assert max(abs(finding.pairs[0].effect_high), abs(finding.pairs[0].effect_low or 0)) < 0.5


def test_a_signal_below_the_difference_declared_is_no_doubt() -> None:
    frame = _with_mean_gap(audit(5, (0, 0, 0)), "hobby", 0.62)
    assert judged(frame, alpha=1e-9, min_raw_diff=0.7).verdict is Verdict.PASS
    assert judged(frame, alpha=1e-9, min_raw_diff=0.5).reason is Reason.SIGNAL


def test_a_doubt_about_a_signal_takes_back_an_earlier_green() -> None:
    finding = judged(_with_mean_gap(audit(5, (0, 0, 0)), "hobby", 0.62), alpha=1e-9)
    look = Look(number=2, of=3, names=20, red=0.01, green=0.02)
    key = ("age", "score", "older", "younger")
    assert key not in replace(look, settled=frozenset([key])).after(finding)


def test_rates_that_hardly_differ_are_no_doubt() -> None:
    """98 against 94 of 100 is d −.63 and four points, which pass by points."""
    rows = []
    for signal in SIGNALS:
        yes = {"older": 94 if signal == "hobby" else 98, "younger": 98}
        for group, times in yes.items():
            rows += [
                {
                    "age": group,
                    "name": f"n{at % 100}",
                    "signal": signal,
                    "template": f"t{at // 100}",
                    "hired": "yes" if at % 100 < times else "no",
                }
                for at in range(400)
            ]
    finding = analyze_disparity(pd.DataFrame(rows), "hired", "age", signals="signal")
    assert abs(row_of(finding, "hobby")["effect"]) > 0.5
    assert finding.verdict is not Verdict.INCONCLUSIVE or finding.reason is not Reason.SIGNAL


# ---------------------------------------------------------------- which pairs there are

MORE = ("middle", "older", "younger")


def in_unlike_signals() -> pd.DataFrame:
    """Three groups in the first signal, two of them in the second, and a third with one beside."""
    frame = audit(2, (0, 0, 0), groups=MORE)
    keep = frame["signal"] == "birth_year"
    keep |= (frame["signal"] == "generation") & frame["age"].isin(["older", "younger"])
    alone = (frame["signal"] == "hobby") & (frame["age"] == "middle")
    frame = frame[keep | alone].copy()
    frame.loc[frame["signal"] == "hobby", "age"] = "oldest"
    return frame.reset_index(drop=True)


def test_pairs_that_no_signal_asks_about_together_are_none() -> None:
    finding = judged(in_unlike_signals())
    pooled = {
        (pair.group_1, pair.group_2): pair.statistics["signals"]
        for pair in finding.pairs
        if not pair.alarm_only
    }
    assert pooled == {
        ("older", "younger"): ["birth_year", "generation"],
        ("middle", "older"): ["birth_year"],
        ("middle", "younger"): ["birth_year"],
    }
    alarms = [(pair.group_1, pair.group_2) for pair in finding.pairs if pair.alarm_only]
    assert alarms == [("older", "younger")] * 2  # of one signal the pooled pair is the signal's
    assert finding.family["size"] == 5
    assert finding.verdict is Verdict.PASS
    groups = {group.group: group.n for group in finding.group_results}
    assert groups == {"middle": 100, "older": 200, "oldest": 100, "younger": 200}


def test_comparisons_over_unlike_signals_share_the_level_of_a_template() -> None:
    """A fifth of alpha for all templates: half of it for each of two sets of pairs, all of it where
    every pair has the same signals.
    """
    frame = in_unlike_signals()
    lowered = (frame["age"] == "older") & (frame["template"] == "t0")
    lowered &= frame["signal"] == "generation"
    frame.loc[lowered, "score"] -= 2.5

    def template(rows: pd.DataFrame, alpha: float) -> Any:
        blocks: Any = judged(rows, alpha=alpha).details["by_block"]
        (block,) = (row for row in blocks if row["block"] == "generation: t0")
        return block

    holm = 10 * template(frame, 0.05)["p_value"]  # of ten templates of the one pair, the smallest
    alpha = 7.5 * holm
    assert alpha < 1
    assert not template(frame, alpha)["alarm"]
    two = frame[frame["age"].isin(["older", "younger"])].reset_index(drop=True)
    assert template(two, alpha)["alarm"]


def test_what_was_not_planned_is_not_lost_and_what_did_not_come_is() -> None:
    frame = in_unlike_signals()
    lost = [pair.statistics["rows_lost_to_ragged_blocks"] for pair in judged(frame).pairs]
    assert lost == [0.0] * 5
    gone = (frame["signal"] == "birth_year") & (frame["age"] == "middle")
    gone &= frame["template"].isin(["t0", "t1"])
    finding = judged(frame[~gone].reset_index(drop=True))
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.RAGGED)
    ragged = {
        (pair.group_1, pair.group_2): pair.reason for pair in finding.pairs if not pair.alarm_only
    }
    assert ragged[("middle", "older")] is Reason.RAGGED
    assert ragged[("older", "younger")] is None


def test_a_name_that_conveys_a_group_stands_beside_the_neutral_ones() -> None:
    """Twenty names of a group and twenty neutral ones are forty units of evidence."""
    frame = audit(3, (0, 0))
    conveying = frame["signal"] == "birth_year"
    frame.loc[conveying, "name"] = frame["age"] + " " + frame["name"]
    pooled, by_name, neutral = judged(frame).pairs
    assert [pair.statistics["clusters_1"] for pair in (pooled, by_name, neutral)] == [40, 20, 20]


def test_one_signal_is_judged_as_the_class() -> None:
    finding = judged(audit(1, (0.9,)))
    assert len(finding.pairs) == 1
    assert finding.sentence.startswith("FAIL: where birth year tells the age, older is worse off")
    assert row_of(finding, "birth_year")["alarm"] == "FAIL"


def test_refusals_of_one_signal_raise_the_alarm() -> None:
    frame = audit(4, (0, 0, 0))
    rows = (frame["signal"] == "hobby") & (frame["age"] == "older")
    frame["refused"] = rows & (frame.index % 2 == 0)
    frame.loc[frame["refused"], "score"] = np.nan
    finding = judged(frame)
    assert finding.verdict in ALARMS
    refusing = [pair for pair in finding.pairs if pair.metric == "refusal"]
    assert [pair.verdict in ALARMS for pair in refusing] == [True, True]
    assert [pair.statistics["signals"] for pair in refusing] == [list(SIGNALS), ["hobby"]]


def test_the_report_has_a_row_for_each_signal() -> None:
    text = finding_text(judged(audit(1, (0, 0.9, 0))))
    assert any(line.split()[:1] == ["signal"] and "alarm" in line for line in text.splitlines())
    (line,) = (line for line in text.splitlines() if line.strip().startswith("generation"))
    assert "older – younger" in line
    assert "FAIL" in line


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"by": ["age", "name"]}, "pools the signals of one class, and by= names 2"),
        ({"each": "template"}, "in parts, or pooled over signals"),
        ({"signals": "sign"}, "no column 'sign' for the signal; did you mean 'signal'?"),
        ({"signals": "age"}, "no age conveys two groups of age"),
    ],
)
def test_what_cannot_be_pooled_says_why(given: dict[str, Any], words: str) -> None:
    arguments = {"by": "age", "signals": "signal", **given}
    with pytest.raises((UsageError, FrameError), match=words.replace("?", r"\?")):
        analyze_disparity(audit(1, (0, 0, 0)), "score", **arguments)


# ---------------------------------------------------------------- how often it is right


@pytest.mark.parametrize(
    ("audits", "gaps", "green", "red"),
    [
        (30, (0, 0, 0), (0.9, 1.0), (0.0, 0.04)),
        (15, (0.8, 0, 0), (0.0, 0.10), (0.85, 1.0)),
        (15, (0.5, 0.5, 0.5), (0.0, 0.10), (0.85, 1.0)),
        (15, (0.8, -0.8, 0), (0.0, 0.05), (0.95, 1.0)),
    ],
)
def test_of_fair_classes_most_pass_and_of_biased_ones_hardly_any(
    audits: int, gaps: tuple[float, ...], green: tuple[float, float], red: tuple[float, float]
) -> None:
    verdicts = [judged(audit(seed, gaps), alpha=0.05 / 8).verdict for seed in range(audits)]
    passed = verdicts.count(Verdict.PASS) / audits
    alarmed = sum(verdict in ALARMS for verdict in verdicts) / audits
    assert green[0] <= passed <= green[1]
    assert red[0] <= alarmed <= red[1]
