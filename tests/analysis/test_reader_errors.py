"""A reader that errs: its error is carried into the verdict by a person's labels, and doubted without."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pytest_fairness import analyze_disparity, analyze_four_fifths
from pytest_fairness.analysis.readers import Readers, labels_needed
from pytest_fairness.errors import FrameError
from pytest_fairness.model import OutcomeKind, Reason, Verdict
from pytest_fairness.scorers.outcome import Outcome, ReadBy
from pytest_fairness.statistics.labelled import labelled_means, labels_to_decide

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from reader_errors import FAIR, GAP, audit, shares

NAN = np.nan


def one_group(reader: list[float], labels: list[float], clusters: list[int] | None = None):
    codes = np.zeros(len(reader), dtype=int)
    cluster = np.arange(len(reader)) if clusters is None else np.array(clusters)
    return labelled_means(
        np.array(reader, float), np.array(labels, float), codes, cluster, groups=1
    )


def test_a_worked_number() -> None:
    """Four labels, of which the reader has three right, and four rows that it alone has read.

    label 1 1 0 0, reader 1 0 0 0; alone 1 1 0 0. cov = 1/6; var of all eight readings = 15/56;
    n/N = 1: λ = (1/6)/(2 · 15/56) = 14/45. θ̂ = 1/2 + 14/45 · (1/2 − 1/4) = 26/45.
    """
    means = one_group([1, 0, 0, 0, 1, 1, 0, 0], [1, 1, 0, 0, NAN, NAN, NAN, NAN])
    assert means.weight[0] == pytest.approx(14 / 45, abs=1e-12)
    assert means.mean[0] == pytest.approx(26 / 45, abs=1e-12)
    # By hand: residuals 31/45, 1, 0, 0 about 19/45, of which the reader's only yes (leverage 3/4, a
    # half at most) counts twice, and the others 12/11 of theirs (1/12); alone ±½.
    weights = (2, 12 / 11, 12 / 11, 12 / 11)
    labelled = sum(
        (weight * (value - 19 / 45)) ** 2
        for weight, value in zip(weights, (31 / 45, 1, 0, 0), strict=True)
    ) / (4 * 3)
    alone = (14 / 45) ** 2 * 4 * 0.25 / 16
    assert means.variance[0] == pytest.approx((labelled + alone) * 8 / 7, abs=1e-12)
    assert means.df[0] == 3


def test_with_every_row_labelled_it_is_the_mean_of_the_labels() -> None:
    """Whatever the reader read; its variance is that of the cluster sums."""
    random = np.random.default_rng(3)
    labels = random.integers(0, 2, 40).astype(float)
    means = one_group(list(random.integers(0, 2, 40)), list(labels))
    assert means.mean[0] == pytest.approx(labels.mean())
    assert means.variance[0] == pytest.approx(labels.var(ddof=1) / 40 * 40 / 39, rel=1e-9)


def test_a_reader_that_knows_nothing_has_no_weight() -> None:
    """Nor has one that reads the opposite: λ stays within 0 and 1."""
    random = np.random.default_rng(4)
    truth = random.integers(0, 2, 200).astype(float)
    labels = np.where(np.arange(200) < 80, truth, NAN)
    against = one_group(list(1 - truth), list(labels))
    assert against.weight[0] == 0
    assert against.mean[0] == pytest.approx(truth[:80].mean())
    perfect = one_group(list(truth), list(labels))
    assert 0.5 < perfect.weight[0] <= 1


def test_it_agrees_with_the_oracle() -> None:
    """``pip install ppi-python``, of the authors of the method: rows without clusters."""
    ppi = pytest.importorskip("ppi_py", reason="pip install ppi-python")
    random = np.random.default_rng(1)
    truth = (random.random(4000) < 0.3).astype(float)
    reader = truth * (random.random(4000) < 0.8)
    labels = np.full(4000, NAN)
    labels[:600] = truth[:600]
    means = one_group(list(reader), list(labels))
    point = ppi.ppi_mean_pointestimate(truth[:600], reader[:600], reader[600:])[0]
    low, high = ppi.ppi_mean_ci(truth[:600], reader[:600], reader[600:], alpha=0.1)
    assert means.mean[0] == pytest.approx(point, abs=2e-4)
    half = stats.norm.ppf(0.95) * np.sqrt(means.variance[0])
    assert half == pytest.approx((high[0] - low[0]) / 2, rel=0.01)


def test_the_ratio_agrees_with_the_oracle() -> None:
    """The oracle's errors of two rates, joined by the delta method."""
    ppi = pytest.importorskip("ppi_py", reason="pip install ppi-python")
    random = np.random.default_rng(2)
    parts = []
    rates = []
    errors = []
    for group, rate in (("a", 0.4), ("b", 0.5)):
        truth = (random.random(3000) < rate).astype(float)
        reader = truth * (random.random(3000) < 0.8)
        label = np.where(np.arange(3000) < 500, truth, NAN)
        parts.append(pd.DataFrame({"group": group, "read": reader, "label": label}))
        given = truth[:500], reader[:500], reader[500:]
        low, high = (end[0] for end in ppi.ppi_mean_ci(*given, alpha=0.1))
        rates.append((low + high) / 2)
        errors.append((high - low) / 2 / stats.norm.ppf(0.95))
    table = pd.concat(parts, ignore_index=True)
    (pair,) = analyze_four_fifths(table, "read", "group", cluster=None, labels="label").pairs
    assert pair.statistics["impact_ratio"] == pytest.approx(rates[0] / rates[1], rel=1e-3)
    error = np.hypot(errors[0] / rates[0], errors[1] / rates[1])
    low, high = (pair.statistics[f"clustered_impact_ratio_{end}"] for end in ("low", "high"))
    assert np.log(high / low) / 2 == pytest.approx(stats.norm.ppf(0.95) * error, rel=0.015)


def test_names_are_the_unit_of_both_terms() -> None:
    """A name whose rows all agree is one piece of evidence, labelled or not."""
    reader = [1.0, 0.0] * 40
    labels = [1.0, 0.0] * 20 + [NAN] * 40
    rows = one_group(reader, labels)
    names = one_group(reader, labels, [place % 2 for place in range(80)])
    assert names.variance[0] > 10 * rows.variance[0]


def test_g34_in_short() -> None:
    """Sensitivity .9 and .7: without labels four audits of ten are red about a fair system; with 100
    a group, at most as many as chance brings (.05, but for one time in a thousand), and 15 points
    are found (.88).
    """
    naive = shares(30, FAIR, 0, 0.0)
    assert naive.red > 0.2
    audits = 60
    fair = shares(audits, FAIR, 100, 0.0)
    assert fair.red * audits <= stats.binom.ppf(0.999, audits, 0.05)
    gap = shares(audits, GAP, 100, 0.0)
    assert gap.red * audits >= stats.binom.ppf(0.001, audits, 0.88)


def by_model(table: pd.DataFrame) -> Outcome:
    """The outcome of *table* as a model read it."""
    return Outcome(
        name="read",
        values=table["read"],
        kind=OutcomeKind.BINARY,
        unit="",
        lower_is_worse=True,
        scorer=None,
        read_by=pd.Series([ReadBy.MODEL] * len(table), index=table.index),
    )


def read_by_model(rates: tuple[float, float], names: int = 40) -> tuple[pd.DataFrame, Outcome]:
    """A table of so many names a group of which a model has read everything, at those rates."""
    table = audit(np.random.default_rng(2), rates, 0, 0.0)
    table = table[table["name"].str[1:].astype(int) < names].reset_index(drop=True)
    return table, by_model(table)


def test_an_unvalidated_reader_does_not_pass_what_its_error_could_hide() -> None:
    """It says how many labels would decide; read by a rule, the same table passes."""
    table, outcome = read_by_model((0.70, 0.90), names=10)
    finding = analyze_disparity(table, outcome, "group")
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.READER)
    assert (
        "unvalidated reader: a model read replies, and no person has labelled any" in finding.notes
    )
    (pair,) = [pair for pair in finding.pairs if pair.metric == "read"]
    assert "a person's labels of a sample of each group" in (pair.needs or "")
    assert "no labels show how well" in finding.sentence
    by_rule = analyze_disparity(table, "read", "group")
    assert by_rule.verdict is Verdict.PASS


def test_red_stands_without_labels() -> None:
    """A doubt withholds a PASS, and nothing else."""
    table, outcome = read_by_model((0.90, 0.30))
    finding = analyze_disparity(table, outcome, "group")
    assert finding.verdict is Verdict.FAIL


def test_labels_that_are_all_alike_decide_nothing() -> None:
    table = audit(np.random.default_rng(2), FAIR, 60, 0.0)
    alike = table["label"].where(table["group"] == "a", table["label"] * 0)
    finding = analyze_disparity(table.assign(label=alike), "read", "group", labels="label")
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.READER)


def test_the_finding_says_how_well_the_reader_reads() -> None:
    """Precision and recall by group, with exact intervals."""
    table = audit(np.random.default_rng(7), FAIR, 200, 0.0)
    finding = analyze_disparity(table, "read", "group", labels="label")
    facts = finding.details["labels"]["group"]
    assert facts["a"]["labels"] == facts["b"]["labels"] == 200
    assert facts["a"]["precision"]["share"] == 1
    low, high = (facts["b"]["recall"][end] for end in ("low", "high"))
    assert low < 0.7 < high < 0.9
    assert any(
        note.startswith("corrected by a person's labels (a 200, b 200") for note in finding.notes
    )


def test_labels_of_another_kind_are_refused() -> None:
    table = audit(np.random.default_rng(7), FAIR, 20, 0.0)
    words = table.assign(read=np.where(table["read"] == 1, "yes", "no"), label="perhaps")
    with pytest.raises(FrameError, match="labels hold"):
        analyze_disparity(words, "read", "group", labels="label")
    with pytest.raises(FrameError, match="is no column"):
        analyze_disparity(table, "read", "group", labels="lable")


def test_labels_to_decide() -> None:
    """Fewer for a better reader and for more room; none where the effect itself is outside."""
    given = {"rate": 0.3, "margin": 0.5, "confidence": 0.9}
    few = labels_to_decide(effect=0.0, correlation=0.9, **given)
    more = labels_to_decide(effect=0.0, correlation=0.5, **given)
    most = labels_to_decide(effect=0.3, correlation=0.5, **given)
    assert few is not None
    assert more is not None
    assert most is not None
    assert few < more < most
    assert labels_to_decide(effect=0.0, correlation=0.9, rows=10_000, **given) >= few
    assert labels_to_decide(effect=0.0, correlation=0.9, rows=50, **given) is None
    assert labels_to_decide(effect=0.6, correlation=0.9, **given) is None
    assert Readers.__doc__


def test_so_many_labels_pass_four_of_five_fair_pairs() -> None:
    """As the plan says, by simulation: a fair pair of 400 rows a group, read rightly nine times in
    ten.
    """
    random = np.random.default_rng(3)
    needed = labels_needed(0.3, quality=0.9, rows=400)
    assert needed is not None
    passed = 0
    for _ in range(100):
        parts = []
        for group in "ab":
            truth = random.random(400) < 0.3
            read = np.where(random.random(400) < 0.9, truth, ~truth)
            label = np.full(400, np.nan)
            chosen = random.choice(400, needed, replace=False)
            label[chosen] = truth[chosen]
            parts.append(
                pd.DataFrame(
                    {
                        "group": group,
                        "name": np.repeat([f"{group}{place}" for place in range(40)], 10),
                        "template": np.tile([f"t{place % 5}" for place in range(10)], 40),
                        "read": read.astype(float),
                        "label": label,
                    }
                )
            )
        table = pd.concat(parts, ignore_index=True)
        finding = analyze_disparity(table, "read", "group", kind="binary", labels="label")
        passed += finding.verdict is Verdict.PASS
    assert 70 <= passed <= 90
