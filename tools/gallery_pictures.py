"""Makes the pictures of ``docs/gallery/`` from the counts that stand there.

python tools/gallery_pictures.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_fairness import (
    Finding,
    PairResult,
    analyze_disparity,
    analyze_error_rates,
    analyze_within,
)
from pytest_fairness.reports.charts import Bars, Chart, Forest, ForestRow, Reference, standalone
from pytest_fairness.words import effect

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
THRESHOLDS = {
    "medium or high is a prediction": ("medium", "high"),
    "high alone is a prediction": ("high",),
}
CREDIT = ("consumer_credit", "mortgage_credit", "public_record")
RATIOS = ("payments", "loan")
STRATA = {
    "within debt and loan": RATIOS,
    "within credit history": CREDIT,
    "within all five": (*CREDIT, *RATIOS),
}
NAMES = {"sex": "first_name", "race": "surname"}
ANSWERS = {"dear": "says dear", "words": "length"}
JUDGED = {"alone": "if every certain difference counted", "verdict": "the verdict"}
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
            made.append(row_of(pair, part, str(category).replace("_", " ")))
    return forest(
        made,
        "Who is named: the other person less the stereotyped one",
        "below 0 the person of the stereotyped group is named more often",
        over="25 questions",
    )


def scores() -> Forest:
    """Return the effect of race and gender on the scores of each model."""
    table = pd.read_csv(GALLERY / "scores.csv.gz")
    table["task"] = table["job"].astype(str) + "/" + table["resume"].astype(str)
    made = []
    for model, rows in table.groupby("model"):
        for by in ("race", "gender"):
            finding = analyze_disparity(rows, "total", by, cluster="name", block="task")
            made.append(row_of(finding.pairs[0], str(model)))
    return forest(
        made,
        "Scores of 36 names by two models",
        "above 0 the first group is scored higher",
        over="18 names a group",
    )


def actions() -> Forest:
    """Return the least certain pair of each comparison of an agent's decisions."""
    table = pd.read_csv(GALLERY / "actions.csv")
    table["task"] = table["profile"] + "/" + table["scaffold"]
    table["granted"] = table["granted"] == 1
    made = []
    for domain, rows in table.groupby("domain"):
        for by in ("race", "gender"):
            for outcome in ("granted", "grade"):
                finding = analyze_disparity(rows, outcome, by, cluster="name", block="task")
                made.append(row_of(least_certain(finding), f"{domain}, {outcome}"))
    return forest(
        made,
        "Decisions of an agent: the least certain pair of each comparison",
        "above 0 the first group has more",
        over="names",
        margin="PASS needs an interval within ±0.5.",
    )


def compas() -> Forest:
    """Return the four rates of a prediction, by the score from which on it is one."""
    counts = pd.read_csv(GALLERY / "compas.csv")
    made = []
    for part, scores in THRESHOLDS.items():
        table = counts.assign(
            risk=counts["score"].isin(scores), reoffended=counts["reoffended"] == 1
        )
        findings = analyze_error_rates(
            table,
            "risk",
            "race",
            truth="reoffended",
            cluster=None,
            block=None,
            lower_is_worse=False,
        )
        for finding in findings:
            rate, _, _ = finding.outcome.partition(" (")
            made.append(row_of(finding.pairs[0], part, rate))
    return forest(
        made,
        "COMPAS: Black less White defendants, by four rates of one prediction",
        "above 0 the rate is higher for Black defendants",
        over="defendants",
    )


def mortgages() -> Forest:
    """Return the effect of race on refusals, as they are and within strata."""
    counts = pd.read_csv(GALLERY / "mortgages.csv")
    counts["denied"] = counts["denied"] == "yes"
    made = []
    for label, within in STRATA.items():
        plain, stratified = analyze_within(
            counts,
            "denied",
            "race",
            within=within,
            cluster=None,
            block=None,
            lower_is_worse=False,
        )
        if not made:
            made.append(row_of(plain.pairs[0], "", "as they are"))
        made.append(row_of(stratified.pairs[0], "", label))
    return forest(
        made,
        "Refused a mortgage: Black less White applicants, as they are and within strata",
        "above 0 Black applicants are refused more often",
        over="applicants",
    )


def librarians() -> Forest:
    """Return the effect of sex and race on the answers of each model; by race the least certain
    pair.
    """
    table = pd.read_csv(GALLERY / "librarians.csv.gz")
    table["dear"] = table["dear"].map({1: "yes", 0: "no"})
    made = []
    for outcome, words in ANSWERS.items():
        for by, name in NAMES.items():
            for model, rows in table.groupby("model"):
                finding = analyze_disparity(rows, outcome, by, cluster=name, block="question")
                made.append(row_of(least_certain(finding), f"{words}, by {by}", str(model)))
    return forest(
        made,
        "Answers of six models as librarians: women less men, and the widest pair of races",
        "above 0 women, or the first race, are higher",
        over="names",
    )


def new_york() -> Bars:
    """Return which verdicts the categories of published audits have, by their ratio, as they are
    and if every certain difference mattered.
    """
    table = pd.read_csv(GALLERY / "new_york.csv")
    bars = {}
    for ratio, rows in table.groupby("counted"):
        for column, words in JUDGED.items():
            pairs = rows.groupby(column)["pairs"].sum()
            shares = (pairs / pairs.sum()).reindex(["FAIL", "FLAG", "INCONCLUSIVE", "PASS"])
            bars[f"{ratio}: {words}"] = shares.dropna().to_dict()
    return Bars(
        title="Categories of published audits against the highest, by their impact ratio",
        axis="share of the categories with that ratio",
        bars=bars,
        caption="Counted from the rates that the audits print.",
    )


def forest(
    rows: list[ForestRow],
    title: str,
    sign: str,
    *,
    over: str,
    margin: str = "Within ±0.2 an effect is trivial.",
) -> Forest:
    """Return effects around 0, whose *sign* says who has more, with intervals *over* something; the
    trivial ones are shaded, and an axis ends at ±3.
    """
    return Forest(
        title=title,
        axis=f"effect d: {sign}",
        rows=tuple(rows),
        lines=(Reference(value=0.0, solid=True),),
        band=(-0.2, 0.2),
        around=0.0,
        most=3.0,
        caption=f"Lines are 90 % intervals over {over}. {margin}",
    )


def least_certain(finding: Finding) -> PairResult:
    """Return the pair whose interval reaches farthest."""
    judged = [pair for pair in finding.pairs if pair.metric == finding.outcome]
    return max(judged, key=lambda pair: max(-(pair.effect_low or 0), pair.effect_high or 0))


def row_of(pair: PairResult, part: str, label: str = "") -> ForestRow:
    """Return the row of *pair* under the heading *part*."""
    return ForestRow(
        label=label or f"{pair.group_1} – {pair.group_2}",
        part=part,
        value=pair.effect,
        low=pair.effect_low,
        high=pair.effect_high,
        verdict=pair.verdict,
        words=f"{effect(pair.effect)} {pair.verdict}",
    )


def drawn() -> dict[str, str]:
    """Return each picture by the name of its file."""
    charts: dict[str, Chart] = {
        "bbq": bbq(),
        "scores": scores(),
        "actions": actions(),
        "compas": compas(),
        "mortgages": mortgages(),
        "librarians": librarians(),
        "new_york": new_york(),
    }
    return {f"{name}.svg": standalone(chart) or "" for name, chart in charts.items()}


if __name__ == "__main__":
    for name, text in drawn().items():
        (GALLERY / name).write_text(text, encoding="utf-8")
