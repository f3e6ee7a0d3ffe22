"""What becomes of an audit of approvals: the shares of PASS, warning and red, for fair systems and biased ones.

Run: python benchmarks/verdict_shares.py [--audits 1000] [--no-confirm]

Two to four groups of 20 names each, in five templates or in one, asked as often as a grid asks by default. Names differ
a little (ICC .04). Of a biased system one group has log odds lower by d·π/√3. An alarm is looked at again on 20 other
names a group, both samples together, as a session does. Red fails the test, a warning does not.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from pytest_fairness import Finding, Verdict, analyze_disparity
from pytest_fairness.model import Reason

ALARM = (Verdict.FLAG, Verdict.FAIL)
LOGIT = np.pi / np.sqrt(3)
SETTINGS = [(0.5, 0.0), (0.9, 0.0), (0.98, 0.0), (1.0, 0.0), (0.5, 0.5), (0.5, 0.8), (0.9, 0.5), (0.9, 0.8)]
DESIGNS = {"4 groups, 5 templates × 2": (4, 5, 2), "2 groups, 1 template, defaults": (2, 1, None)}


def sample(
    rng: np.random.Generator, shape: tuple[int, int, int, int], rate: float, d: float, part: int
) -> pd.DataFrame:
    group, name, template, repetition = (axis.ravel() for axis in np.indices(shape))
    names = rng.normal(0, 0.2 * LOGIT, shape[:2])
    odds = np.full(group.size, np.inf) if rate == 1 else logit(rate) + names[group, name] - d * LOGIT * (group == 0)
    return pd.DataFrame(
        {
            "group": np.array(list("ABCD"))[group],
            "name": [f"{part}-{g}-{n}" for g, n in zip(group, name, strict=True)],
            "template": template,
            "repetition": repetition,
            "approved": rng.random(group.size) < expit(odds),
        }
    )


def audit(rng: np.random.Generator, shape: tuple[int, int, int, int], rate: float, d: float, again: bool) -> Finding:
    first = sample(rng, shape, rate, d, 0)
    found = analyze_disparity(first, "approved", "group")
    if found.verdict in ALARM and again:
        both = pd.concat([first, sample(rng, shape, rate, d, 1)], ignore_index=True)
        found = analyze_disparity(both, "approved", "group", alpha=0.025)
    return found


def colour(finding: Finding) -> str:
    if finding.verdict is Verdict.PASS:
        return "PASS"
    unusable = getattr(finding.reason, "unusable", finding.reason is Reason.N)
    return "red" if finding.verdict in ALARM or unusable else "warning"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--no-confirm", action="store_true")
    parser.add_argument("--repetitions", type=int, default=5, help="what a grid of one template asks by default")
    options = parser.parse_args()
    print("| design | approved | d | PASS | warning | red | ms an audit |\n|---|---|---|---|---|---|---|")
    for name, (groups, templates, repetitions) in DESIGNS.items():
        for seed, (rate, d) in enumerate(SETTINGS):
            rng = np.random.default_rng([20261122, seed])
            shape = (groups, 20, templates, repetitions or options.repetitions)
            started = time.perf_counter()
            colours = [colour(audit(rng, shape, rate, d, not options.no_confirm)) for _ in range(options.audits)]
            took = 1000 * (time.perf_counter() - started) / options.audits
            shares = (f"{colours.count(one) / options.audits:.3f}" for one in ("PASS", "warning", "red"))
            print(f"| {name} | {rate:g} | {d:g} | {' | '.join(shares)} | {took:.0f} |", flush=True)


if __name__ == "__main__":
    main()
