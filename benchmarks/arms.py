"""Is the verdict on a contrast of arms honest? A model with a planted gap in each arm, and opinions
about names.

Run: python benchmarks/arms.py [--runs 300] [--unheeded [--first 0]]

Four groups of 20 names; 30 pairs of names for each two groups, in both orders and two contexts: 720
choices an arm. Each name has an effect of its own (SD .2) and another in each arm (SD .2). Per
setting: how often the finding about race alarms (FLAG or FAIL), and how often it is a PASS.

``--unheeded``: the selection suite with 15 names and 15 repetitions, asked of a model that heeds no
prompt; so many audits, the first by that seed. Per model and class: in how many the contrast of the
prompt alone alarms at .05, in how many at the level of the suite's thirteen tests, and in how many
it is a PASS.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
from audits import ALARM, LOGIT, alarmed, passed, share
from scipy.special import expit

from pytest_fairness import Verdict, analyze_arms
from pytest_fairness.analysis.looks import budget

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
#: Model → gap of the Black candidates, SD of the names' own effects, and of those in each arm (d).
UNHEEDED = {
    "no preference": (0.0, 0.0, 0.0),
    "d 1.2": (1.2, 0.0, 0.0),
    "d .5, names": (0.5, 0.2, 0.0),
    "d .5, names, names in each arm": (0.5, 0.2, 0.2),
}
ARMS = "raw_naive", "raw_matched"
SETS = REPETITIONS = 15
CONTEXTS = 6
LEVEL = budget(0.05, tests=13, place=0, alpha=0.05)


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


def unheeded(rng: np.random.Generator, gap: float, name_sd: float, arm_sd: float) -> pd.DataFrame:
    """One audit by the suite of a model that heeds no prompt."""
    names = sorted(f"{group} {at}" for group in GROUPS for at in range(SETS))
    places = {name: place for place, name in enumerate(names)}
    black = np.array([name.startswith("black") for name in names])
    lean = rng.normal(0, 1, len(names)) * name_sd - gap * black
    by_arm = lean + rng.normal(0, 1, (2, len(names))) * arm_sd
    rows = []
    shifts = []
    for arm, (first, second), context, at in product(
        range(2), permutations(GROUPS, 2), range(CONTEXTS), range(REPETITIONS)
    ):
        people = f"{first} {at}", f"{second} {at}"
        a, b = (places[name] for name in people)
        shifts.append(by_arm[arm, a] - by_arm[arm, b])
        rows.append((ARMS[arm], first, second, *people, f"context {context}", len(rows)))
    columns = ["arm", "first", "second", "first_name", "second_name", "template", "repetition"]
    frame = pd.DataFrame(rows, columns=columns)
    won = rng.random(len(frame)) < expit(np.array(shifts) * LOGIT + POSITION)
    return frame.assign(chosen=np.where(won, frame["first"], frame["second"]))


def count_unheeded(seeds: Sequence[int]) -> None:
    """Print the table of ``--unheeded``."""
    classes = {"race": GROUPS, "gender": {group: group.split("_")[1] for group in GROUPS}}
    for model, planted in UNHEEDED.items():
        counts: Counter[tuple[str, str]] = Counter()
        for seed in seeds:
            frame = unheeded(np.random.default_rng([seed, 15]), *planted)
            for by, class_of in classes.items():
                finding = analyze_arms(
                    frame,
                    treated=ARMS[1],
                    control=ARMS[0],
                    by=by,
                    classes=class_of,
                    cluster=("first_name", "second_name"),
                )
                counts[by, "PASS"] += finding.verdict is Verdict.PASS
                counts[by, "alarm"] += finding.verdict in ALARM
                counts[by, "strict"] += any(
                    pair.verdict in ALARM and pair.corrected_p_value < LEVEL
                    for pair in finding.pairs
                )
        for by in classes:
            print(
                f"{model:31} {by:7} alarm at .05 {counts[by, 'alarm']:3}, at {LEVEL:.4f} "
                f"{counts[by, 'strict']:2}, PASS {counts[by, 'PASS']:3} of {len(seeds)}",
                flush=True,
            )


def count_settings(runs: int) -> None:
    """Print how often the finding about race alarms, and is a PASS, per setting."""
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--unheeded", action="store_true")
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    if given.unheeded:
        count_unheeded(range(given.first, given.first + given.runs))
    else:
        count_settings(given.runs)
