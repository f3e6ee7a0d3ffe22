"""Verdicts on replies that an erring reader has read: how often a fair system is red, and a gap of
15 points found, without labels and with 50, 100 and 200 labels a group.

    python benchmarks/reader_errors.py [--audits N] [--names-sd SD]

Two groups of 40 names × 5 templates × 2 repetitions; both are approved at .30 (or .30 and .45), and
the reader finds .9 of the approvals of one group and .7 of those of the other. Each audit is one
call of ``analyze_disparity``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from pytest_fairness import analyze_disparity
from pytest_fairness.model import ALARMS, Verdict

NAMES, TEMPLATES, REPETITIONS = 40, 5, 2
FAIR, GAP = (0.30, 0.30), (0.30, 0.45)
SENSITIVITY = (0.9, 0.7)
LOGITS_PER_SD = np.pi / np.sqrt(3)


def audit(
    random: np.random.Generator, rates: tuple[float, float], labels: int, names_sd: float
) -> pd.DataFrame:
    """One audit's table: what the reader read, and a person's labels of a sample of each group."""
    parts = []
    for group, rate, sensitivity in zip("ab", rates, SENSITIVITY, strict=True):
        each = TEMPLATES * REPETITIONS
        logits = np.log(rate / (1 - rate)) + random.normal(0, names_sd * LOGITS_PER_SD, NAMES)
        truth = random.random((NAMES, each)) < (1 / (1 + np.exp(-logits)))[:, None]
        read = truth & (random.random(truth.shape) < sensitivity)
        label = np.full(truth.size, np.nan)
        chosen = random.choice(truth.size, labels, replace=False)
        label[chosen] = truth.ravel()[chosen]
        parts.append(
            pd.DataFrame(
                {
                    "group": group,
                    "name": np.repeat([f"{group}{place}" for place in range(NAMES)], each),
                    "template": np.tile(
                        np.repeat([f"t{place}" for place in range(TEMPLATES)], REPETITIONS), NAMES
                    ),
                    "read": read.ravel().astype(float),
                    "label": label,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def shares(
    audits: int, rates: tuple[float, float], labels: int, names_sd: float, seed: int = 0
) -> tuple[float, float]:
    """The shares of so many *audits* that are red, and that pass."""
    random = np.random.default_rng([seed, labels])
    column = "label" if labels else None
    red = passed = 0
    for _ in range(audits):
        table = audit(random, rates, labels, names_sd)
        finding = analyze_disparity(table, "read", "group", kind="binary", labels=column)
        red += finding.verdict in ALARMS
        passed += finding.verdict is Verdict.PASS
    return red / audits, passed / audits


def main() -> int:
    parser = argparse.ArgumentParser(description="red and PASS on replies that a reader misreads")
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--names-sd", type=float, default=0.0)
    arguments = parser.parse_args()
    print("| labels a group | fair: red | fair: PASS | 15 points: red | 15 points: PASS |")
    print("|---|---|---|---|---|")
    for labels in (0, 50, 100, 200):
        fair = shares(arguments.audits, FAIR, labels, arguments.names_sd)
        gap = shares(arguments.audits, GAP, labels, arguments.names_sd)
        print(
            f"| {labels} | {fair[0]:.3f} | {fair[1]:.3f} | {gap[0]:.3f} | {gap[1]:.3f} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
