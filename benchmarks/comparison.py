"""How often a comparison of two sides errs, on simulated trials whose gaps are known.

Run: python benchmarks/comparison.py [--count 600]

Each line is a row of the table in docs/decisions/0122-which-of-two-is-fairer.md.
"""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd

from pytest_fairness.analysis.side_by_side import SharedCells, changes_of, contrasts_of
from pytest_fairness.scorers import outcome_of

SEED = 20261123
GAPS = ((0.0, 0.0), (0.5, 0.5), (1.0, 1.0), (0.5, -0.5), (0.0, 0.5), (0.2, 0.8), (0.1, 1.0))
BECAME = ("larger", "smaller", "turned", "alike", "open")


def trials(rng: np.random.Generator, gaps: tuple[float, float], *, yes_no: bool) -> pd.DataFrame:
    """Both sides on the same cells; the first group is lower by the gap."""
    cells = pd.DataFrame(product("AB", range(20), range(5), range(2)), columns=["g", "n", "t", "r"])
    name = cells.g + cells.n.map(str)
    frame = pd.DataFrame(
        {"group": cells.g, "name": name, "template": cells.t.map(str), "repetition": cells.r}
    )
    frame["cell"] = frame.template + name
    level, made = rng.normal(0, 0.2, (2, 20)), []
    for gap in gaps:
        of_name = (level + rng.normal(0, 0.2, (2, 20)))[(cells.g == "B").astype(int), cells.n]
        latent = (
            of_name + 0.3 * (cells.t - 2) - gap * (cells.g == "A") + rng.normal(0, 1, len(cells))
        )
        made.append(frame.assign(score=(latent > 0).astype(float) if yes_no else latent))
    return pd.concat(made, ignore_index=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=600)
    count = parser.parse_args().count
    for at, (gaps, yes_no) in enumerate(product(GAPS, (False, True))):
        rng, became = np.random.default_rng([SEED, at]), Counter[str]()
        for _ in range(count):
            frame = trials(rng, gaps, yes_no=yes_no)
            shared = SharedCells(
                sides=("a", "b"),
                test="test",
                analysis="disparity",
                arguments={"by": "group"},
                frame=frame,
                outcome=outcome_of(frame, "score"),
            )
            became[changes_of(contrasts_of(shared))[0].became] += 1
        shares = " | ".join(f"{100 * became[one] / count:.1f} %" for one in BECAME)
        print(f"| {gaps[0]:g}, {gaps[1]:g}{', yes/no' if yes_no else ''} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
