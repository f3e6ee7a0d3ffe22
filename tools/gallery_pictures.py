"""Makes the pictures of ``docs/gallery/`` from the counts that stand there.

python tools/gallery_pictures.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_fairness import Finding, analyze_disparity
from pytest_fairness.reports.charts import Forest, ForestRow, Reference, standalone
from pytest_fairness.words import effect

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
BBQ = {"neg": "being named is bad", "nonneg": "being named is good"}


def bbq_finding(rows: pd.DataFrame, polarity: str) -> Finding:
    """Return how the two people of BBQ's questions of one *polarity* compare, as the page does."""
    asked = rows[rows["polarity"] == polarity]
    return analyze_disparity(
        asked.assign(named=asked["named"] == 1),
        "named",
        "group",
        cluster="question",
        block=None,
        kind="binary",
        lower_is_worse=polarity == "nonneg",
    )


def bbq() -> Forest:
    """Return the effect of each category, by polarity."""
    counts = pd.read_csv(GALLERY / "bbq.csv")
    made = []
    for polarity, part in BBQ.items():
        for category, rows in counts.groupby("category"):
            (pair,) = bbq_finding(rows, polarity).pairs
            made.append(
                ForestRow(
                    label=str(category).replace("_", " "),
                    part=part,
                    value=pair.effect,
                    low=pair.effect_low,
                    high=pair.effect_high,
                    verdict=pair.verdict,
                    words=f"{effect(pair.effect)} {pair.verdict}",
                )
            )
    return Forest(
        title="Who is named: the other person less the stereotyped one",
        axis="effect d: below 0 the person of the stereotyped group is named more often",
        rows=tuple(made),
        lines=(Reference(value=0.0, solid=True),),
        band=(-0.2, 0.2),
        around=0.0,
        most=3.0,
        caption="Lines are 90 % intervals over 25 questions. Within ±0.2 an effect is trivial.",
    )


def drawn() -> dict[str, str]:
    """Return each picture by the name of its file."""
    return {"bbq.svg": standalone(bbq()) or ""}


if __name__ == "__main__":
    for name, text in drawn().items():
        (GALLERY / name).write_text(text, encoding="utf-8")
