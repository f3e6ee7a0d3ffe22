"""What ``--fairness-confirm`` does to false alarms and to power: the table of decision 71 in docs/decisions.

Run it: ``python benchmarks/confirming.py`` (two minutes). Four groups of 20 names × 5 templates × 2 repetitions, SD
between names .2, group b lower by d. Every alarm of a first sample is repeated on other names, and on the same ones.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.confirming import ALARMS, confirmed
from pytest_fairness.current import FreshSample
from pytest_fairness.model import Finding, Verdict

GROUPS, NAMES, TEMPLATES, REPETITIONS = 4, 20, 5, 2
NAME_SD = 0.2
AUDITS = {0.0: 1000, 0.35: 200, 0.5: 200, 0.8: 150}

_G, _N, _T, _R = (x.ravel() for x in np.indices((GROUPS, NAMES, TEMPLATES, REPETITIONS)))


def sample(rng: np.random.Generator, levels: np.ndarray, d: float) -> pd.DataFrame:
    """One sample of names with the given *levels* (groups × names)."""
    noise = rng.normal(0, np.sqrt(1 - NAME_SD**2), _G.size)
    return pd.DataFrame(
        {
            "group": np.array(list("abcd"))[_G],
            "template": [f"t{t}" for t in _T],
            "repetition": _R,
            "name": [f"{g}-{n}" for g, n in zip(_G, _N, strict=True)],
            "score": levels[_G, _N] + noise - d * (_G == 1),
        }
    )


def audit(rng: np.random.Generator, d: float) -> tuple[Verdict, Verdict | None, Verdict | None]:
    """The verdict of one sample; after other names; after the same names (None where there was no alarm)."""
    levels, others = (rng.normal(0, NAME_SD, (GROUPS, NAMES)) for _ in range(2))
    first = analyze_disparity(sample(rng, levels, d), "score", "group")
    if first.verdict not in ALARMS:
        return first.verdict, None, None
    return first.verdict, _after(first, sample(rng, others, d)), _after(first, sample(rng, levels, d))


def _after(first: Finding, frame: pd.DataFrame) -> Verdict:
    again = analyze_disparity(frame, "score", "group")
    return confirmed(first, again, FreshSample(frame=frame, about="a second sample")).verdict


def main() -> None:
    print("d     audits  alarm  other names  same names  FAIL  FAIL in both")
    for d, audits in AUDITS.items():
        rng = np.random.default_rng(int(100 * d) + 7)
        rows = [audit(rng, d) for _ in range(audits)]
        alarm, other, same = (np.mean([row[at] in ALARMS for row in rows]) for at in range(3))
        fail, both = (np.mean([row[at] is Verdict.FAIL for row in rows]) for at in range(2))
        print(f"{d:<5} {audits:<7} {alarm:<6.3f} {other:<12.3f} {same:<11.3f} {fail:<5.3f} {both:.3f}")


if __name__ == "__main__":
    main()
