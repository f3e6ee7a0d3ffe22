"""Verdicts on replies that an erring reader has read: how often a fair system is red, and a gap of
15 points found, without labels and with 50, 100 and 200 labels a group.

    python benchmarks/reader_errors.py [--audits N] [--names-sd SD] [--labels N …]
        [--assertion no_disparity|four_fifths|equivalent] [--test-alone] [--seed N]

Two groups of 40 names × 5 templates × 2 repetitions; both are approved at .30 (or .30 and .45), and
the reader finds .9 of the approvals of one group and .7 of those of the other. Each audit is one
call of the analysis of the assertion. Of four fifths the 90 % interval of the ratio either holds
the true one or not; equivalence is claimed within 10 points, and must not be at .30 and .40.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from pytest_fairness import analyze_disparity, analyze_equivalence, analyze_four_fifths
from pytest_fairness.model import ALARMS, Finding, Verdict
from pytest_fairness.statistics.labelled import labelled_means

ASSERTIONS = NO_DISPARITY, FOUR_FIFTHS, EQUIVALENT = "no_disparity", "four_fifths", "equivalent"
NAMES, TEMPLATES, REPETITIONS = 40, 5, 2
EACH = TEMPLATES * REPETITIONS
POINTS = 0.10
FAIR, GAP, EDGE = (0.30, 0.30), (0.30, 0.45), (0.30, 0.30 + POINTS)
SENSITIVITY = (0.9, 0.7)
LOGITS_PER_SD = np.pi / np.sqrt(3)


def group_read(
    random: np.random.Generator, rate: float, sensitivity: float, labels: int, names_sd: float
) -> tuple[np.ndarray, np.ndarray]:
    """What the reader read of one group, name by name, and a person's labels of a sample."""
    logits = np.log(rate / (1 - rate)) + random.normal(0, names_sd * LOGITS_PER_SD, NAMES)
    truth = random.random((NAMES, EACH)) < (1 / (1 + np.exp(-logits)))[:, None]
    read = truth & (random.random(truth.shape) < sensitivity)
    label = np.full(truth.size, np.nan)
    chosen = random.choice(truth.size, labels, replace=False)
    label[chosen] = truth.ravel()[chosen]
    return read.ravel().astype(float), label


def audit(
    random: np.random.Generator, rates: tuple[float, float], labels: int, names_sd: float
) -> pd.DataFrame:
    """One audit's table: what the reader read, and a person's labels of a sample of each group."""
    parts = []
    for group, rate, sensitivity in zip("ab", rates, SENSITIVITY, strict=True):
        read, label = group_read(random, rate, sensitivity, labels, names_sd)
        parts.append(
            pd.DataFrame(
                {
                    "group": group,
                    "name": np.repeat([f"{group}{place}" for place in range(NAMES)], EACH),
                    "template": np.tile(
                        np.repeat([f"t{place}" for place in range(TEMPLATES)], REPETITIONS), NAMES
                    ),
                    "read": read,
                    "label": label,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


class Share(NamedTuple):
    """The shares of audits that are red, that pass, and whose interval holds the true ratio."""

    red: float
    passed: float
    covered: float


def judged(table: pd.DataFrame, assertion: str, labels: str | None) -> Finding:
    """The finding of an *assertion* on an audit's *table*."""
    if assertion == FOUR_FIFTHS:
        return analyze_four_fifths(table, "read", "group", labels=labels)
    if assertion == EQUIVALENT:
        return analyze_equivalence(
            table, "read", "group", kind="binary", labels=labels, margin=POINTS
        )
    return analyze_disparity(table, "read", "group", kind="binary", labels=labels)


def covers(finding: Finding, rates: tuple[float, float]) -> bool:
    """Whether the interval of the ratio of the only pair holds that of the *rates*, the group first
    that has the lower estimate; a ratio that is not given is not covered.
    """
    pair = finding.pairs[0]
    statistics = pair.statistics
    if "impact_ratio" not in statistics:
        return False
    estimates = {pair.group_1: statistics["rate_1"], pair.group_2: statistics["rate_2"]}
    truth = dict(zip("ab", rates, strict=True))
    lower, higher = sorted(estimates, key=estimates.__getitem__)
    low, high = (statistics[f"clustered_impact_ratio_{end}"] for end in ("low", "high"))
    return bool(low <= truth[lower] / truth[higher] <= high)


def shares(
    audits: int,
    rates: tuple[float, float],
    labels: int,
    names_sd: float,
    seed: int = 0,
    assertion: str = NO_DISPARITY,
) -> Share:
    """What becomes of so many *audits*."""
    random = np.random.default_rng([seed, labels])
    column = "label" if labels else None
    red = passed = covered = 0
    for _ in range(audits):
        table = audit(random, rates, labels, names_sd)
        finding = judged(table, assertion, column)
        red += finding.verdict in ALARMS
        passed += finding.verdict is Verdict.PASS
        covered += assertion == FOUR_FIFTHS and covers(finding, rates)
    return Share(red / audits, passed / audits, covered / audits)


def rejected(
    audits: int, rates: tuple[float, float], labels: int, names_sd: float, seed: int = 0
) -> float:
    """The share of so many audits in which t of the corrected difference has p below .05: the test
    by itself, some twenty times as fast.
    """
    random = np.random.default_rng([seed, labels])
    names = np.repeat(np.arange(NAMES), EACH)
    group = np.repeat([0, 1], names.size)
    below = 0
    for _ in range(audits):
        sides = [
            group_read(random, rate, sensitivity, labels, names_sd)
            for rate, sensitivity in zip(rates, SENSITIVITY, strict=True)
        ]
        read, label = (np.concatenate(column) for column in zip(*sides, strict=True))
        means = labelled_means(read, label, group, np.tile(names, 2), groups=2)
        if not means.usable.all():
            continue
        variance = means.variance
        df = variance.sum() ** 2 / (variance**2 / means.df).sum()
        t = (means.mean[0] - means.mean[1]) / np.sqrt(variance.sum())
        below += 2 * stdtr(df, -abs(t)) < 0.05
    return below / audits


def cells(assertion: str, fair: Share, gap: Share, edge: Share | None) -> list[str]:
    """The cells of a row beside its number of labels."""
    shown = [fair.red, fair.passed, gap.red, gap.passed]
    if assertion == FOUR_FIFTHS:
        shown += [fair.covered, gap.covered]
    if edge is not None:
        shown.append(edge.passed)
    return [f"{share:.3f}" for share in shown]


def main() -> int:
    parser = argparse.ArgumentParser(description="red and PASS on replies that a reader misreads")
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--names-sd", type=float, default=0.0)
    parser.add_argument("--assertion", choices=ASSERTIONS, default=NO_DISPARITY)
    parser.add_argument("--labels", type=int, nargs="+", default=[0, 50, 100, 200])
    parser.add_argument("--test-alone", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.test_alone:
        print("| labels a group | fair: p < .05 | 15 points: p < .05 |")
        print("|---|---|---|")
        for labels in arguments.labels:
            given = labels, arguments.names_sd, arguments.seed
            fair, gap = (rejected(arguments.audits, rates, *given) for rates in (FAIR, GAP))
            print(f"| {labels} | {fair:.4f} | {gap:.4f} |", flush=True)
        return 0
    assertion = arguments.assertion
    heads = ["labels a group", "fair: red", "fair: PASS", "15 points: red", "15 points: PASS"]
    if assertion == FOUR_FIFTHS:
        heads += ["fair: covered", "15 points: covered"]
    if assertion == EQUIVALENT:
        heads.append("at the margin: PASS")
    print(f"| {' | '.join(heads)} |")
    print("|---" * len(heads) + "|")
    for labels in arguments.labels:
        given = labels, arguments.names_sd, arguments.seed, assertion
        fair = shares(arguments.audits, FAIR, *given)
        gap = shares(arguments.audits, GAP, *given)
        edge = None
        if assertion == EQUIVALENT:
            edge = shares(arguments.audits, EDGE, *given)
        row = [str(labels), *cells(assertion, fair, gap, edge)]
        print(f"| {' | '.join(row)} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
