"""Is the verdict on a contrast of arms honest? A model with a planted gap in each arm, and opinions
about names.

Run: python benchmarks/arms.py [--runs 300]

Four groups of 20 names; 30 pairs of names for each two groups, in both orders and two contexts: 720
choices an arm. Each name has an effect of its own (SD .2) and another in each arm (SD .2). Per
setting: how often the finding about race alarms (FLAG or FAIL), and how often it is a PASS.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np
import pandas as pd
from audits import LOGIT, alarmed, passed, share
from scipy.special import expit

from pytest_fairness import analyze_arms

GROUPS = {
    "white_male": "white",
    "white_female": "white",
    "black_male": "black",
    "black_female": "black",
}
NAMES, PAIRS, NAME_SD, POSITION = 20, 30, 0.2, 0.5
#: Setting → (gap of the Black candidates in d, raw and scrubbed; the same for one pair of groups
#: where it differs).
SETTINGS = {
    "no gap in either arm": ((0.0, 0.0), None),
    "the same gap of d .5 in both": ((0.5, 0.5), None),
    "d .8 to 0": ((0.8, 0.0), None),
    "d .8 to 0, one pair stays": ((0.8, 0.0), (0.8, 0.8)),
    "d .5 to 0, one pair .5 to 1.2": ((0.5, 0.0), (0.5, 1.2)),
    "d .3 to .8": ((0.3, 0.8), None),
    "d .3 to −.8": ((0.3, -0.8), None),
    "d .5 to −.5, as large as before": ((0.5, -0.5), None),
}


def table(
    rng: np.random.Generator, gap: tuple[float, float], other: tuple[float, float] | None
) -> pd.DataFrame:
    """One experiment; *other* is the gap between white_female and black_male."""
    lean = {group: rng.normal(0, NAME_SD, NAMES) for group in GROUPS}
    own = {(group, at): rng.normal(0, NAME_SD, NAMES) for group in GROUPS for at in (0, 1)}
    parts = []
    for turn, (a, b) in enumerate(combinations(GROUPS, 2)):
        at_a, at_b = np.arange(PAIRS) % NAMES, (np.arange(PAIRS) * 7 + turn) % NAMES
        apart = (GROUPS[b] == "black") - (GROUPS[a] == "black")
        planted = other if other is not None and (a, b) == ("white_female", "black_male") else gap
        sides = [(a, [f"{a} {k}" for k in at_a]), (b, [f"{b} {k}" for k in at_b])]
        for at, arm in enumerate(("raw", "scrubbed")):
            shift = (
                planted[at] * apart + (lean[a] + own[a, at])[at_a] - (lean[b] + own[b, at])[at_b]
            )
            for context in ("c1", "c2"):
                for sign in (1, -1):
                    won = rng.random(PAIRS) < expit(shift * LOGIT + sign * POSITION)
                    (first, one), (second, two) = sides[::sign]
                    part = {"first": first, "second": second, "first_name": one, "second_name": two}
                    parts.append(
                        pd.DataFrame(
                            {**part, "chosen": np.where(won, a, b), "arm": arm, "template": context}
                        )
                    )
    return pd.concat(parts, ignore_index=True).assign(
        repetition=lambda frame: np.arange(len(frame))
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    contrast = {"treated": "scrubbed", "control": "raw", "by": "race", "classes": GROUPS}
    for setting, (gap, other) in SETTINGS.items():
        found = [
            analyze_arms(
                table(np.random.default_rng([seed, 13]), gap, other),
                cluster=("first_name", "second_name"),
                **contrast,
            )
            for seed in range(runs)
        ]
        print(
            f"{setting:35} alarm {share(alarmed(found)):.3f}  PASS {share(passed(found)):.3f}",
            flush=True,
        )
