"""Tables of choices for the tests, with a known preference and position bias."""

import numpy as np
import pandas as pd
from scipy.special import expit

from pytest_fairness.statistics.choices import read_choices

FIRST_WINS = {
    ("A", "B"): 14,
    ("B", "A"): 9,
    ("A", "C"): 16,
    ("C", "A"): 8,
    ("B", "C"): 13,
    ("C", "B"): 10,
}


def table(first_wins=FIRST_WINS, n=20):
    """Each ordered pair *n* times, the first-listed winning as often as given."""
    rows = []
    for (first, second), wins in first_wins.items():
        rows += [(first, second, first)] * wins + [(first, second, second)] * (n - wins)
    return pd.DataFrame(rows, columns=["first", "second", "chosen"])


def choices_of(frame, *, cluster=None, block=()):
    """The choices of a table as they stand here."""
    columns = {name: name for name in ("first", "second", "chosen", "neither")}
    return read_choices(frame, **columns, cluster=cluster, block=block)


def simulated(
    rng, *, preference=0.0, position=0.0, clusters=10, per_order=9, name_sd=0.0, groups=("A", "B")
):
    """One pair: *clusters* name pairs, each *per_order* times in each order; all strengths in
    logits.
    """
    rows = []
    for cluster in range(clusters):
        lean = preference + rng.normal(0, name_sd) if name_sd else preference
        for first, second, sign in ((*groups, 1), (*reversed(groups), -1)):
            won = rng.random(per_order) < expit(position + sign * lean)
            rows += [
                (first, second, first if w else second, f"pair {cluster}", r)
                for r, w in enumerate(won)
            ]
    return pd.DataFrame(rows, columns=["first", "second", "chosen", "name", "repetition"])


def slates(rng, strength, *, trials=200, position=None, rank=False):
    """Long format: one row a candidate; the groups A, B, … have the given strengths (logits)."""
    k = len(strength)
    places = np.argsort(rng.random((trials, k)), axis=1)
    utility = np.asarray(strength) + rng.gumbel(size=(trials, k))
    if position is not None:
        utility = utility + np.asarray(position)[places]
    order = np.argsort(np.argsort(-utility, axis=1), axis=1)
    return pd.DataFrame(
        {
            "trial": np.repeat(np.arange(trials), k),
            "group": np.tile([chr(65 + g) for g in range(k)], trials),
            "position": places.ravel() + 1,
            **({"rank": order.ravel() + 1} if rank else {"chosen": order.ravel() == 0}),
        }
    )
