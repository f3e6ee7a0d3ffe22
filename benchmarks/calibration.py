"""How often the verdicts are wrong, measured on simulated audits whose truth is known.

Run: python benchmarks/calibration.py [--audits 1000] [--only GOAL …] [--write] [--figures FILE]

Each target is simulated with a fixed seed through the public ``analyze_…`` functions: G1–G12 here,
G13–G26 in ``destruction.py``, G29–G33 in ``uneven.py``. Beside G1–G12 stands what the plain recipe
makes of the same data: Mann-Whitney or chi-square on all calls with Bonferroni over pairs and d ≥
.2, "fail if below the baseline", chi-square over round-robin wins, or averaging over both orders.
``--write`` puts the table into ``docs/calibration.md``, beside the figures of the first version,
which ``--figures first_version.json`` wrote when its package was installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import destruction
import numpy as np
import pandas as pd
import uneven
from audits import LOGIT, Design, Row, alarmed, exactly, judged, number, own_pairs, passed, share
from scipy.special import expit

from pytest_fairness import Finding, Verdict, analyze_preference, compare_baseline
from pytest_fairness.analysis.baseline import summarise_scores
from pytest_fairness.model import PairResult

SEED = 20261121
FIRST_VERSION = Path(__file__).with_name("first_version.json")
PAGE = Path(__file__).parents[1] / "docs" / "calibration.md"
HEADER = (
    "| | what | target | first version | measured | plain recipe | runs "
    "|\n|---|---|---|---|---|---|---|\n"
)


def rng_of(*seed: int) -> np.random.Generator:
    return np.random.default_rng([SEED, *seed])


def audits(design: Design, count: int, seed: int, d: float = 0.0) -> list[Finding]:
    """Of a numeric outcome; the first group is lower by *d* (in SD within group and template)."""
    return judged(
        design.frame(),
        lambda rng, d: design.latent(rng, d=d),
        count,
        rng_of(seed),
        d,
        kind="numeric",
    )


def plain_alarm(finding: Finding, size: str = "cohens_d") -> bool:
    """What the plain recipe says: any pair with Bonferroni p < .05 and an effect of at least .2."""
    return any(plain_pair(pair, len(finding.pairs), size) for pair in finding.pairs)


def plain_pair(pair: PairResult, family: int, size: str = "cohens_d", least: float = 0.2) -> bool:
    return number(pair, "spec_p_value") * family < 0.05 and abs(number(pair, size)) >= least


def null_audits(count: int) -> list[Row]:
    """G1, G7: the default design without any bias."""
    found = audits(Design(), count, 1)
    plain = share([plain_alarm(finding) for finding in found])
    fails = share([finding.verdict is Verdict.FAIL for finding in found])
    where = "4 groups, 20 names × 5 templates × 2, name SD .2"
    return [
        exactly("G1", f"false FAIL an audit: {where}", "≤", 0.01, fails, count, None),
        exactly(
            "G1", "false FLAG or FAIL an audit", "≤", 0.06, share(alarmed(found)), count, plain
        ),
        exactly(
            "G7",
            "all pairs PASS, no bias: as G1",
            "≥",
            0.85,
            share(passed(found)),
            count,
            1 - plain,
        ),
    ]


def few_names(count: int) -> list[Row]:
    """G2, G8: few names and many calls, where the plain recipe takes names for bias."""
    rows = []
    for names, repetitions in ((2, 10), (5, 4)):
        design = Design(names=names, repetitions=repetitions, name_sd=0.3)
        found = audits(design, count, 20 + names)
        plain = share([plain_alarm(finding) for finding in found])
        what = f"false FLAG or FAIL: {names} names, n = {design.n}, name SD .3"
        rows.append(exactly("G2", what, "≤", 0.06, share(alarmed(found)), count, plain))
        if names == 2:
            what = "the plain recipe on the same data must be seen to fail"
            rows.append(Row("G8", what, "plain > .5", plain, count, plain > 0.5, plain))
    return rows


def temperature_zero(count: int) -> list[Row]:
    """G3: every reply ten times over."""
    rows = []
    for names in (2, 10, 20):
        found = audits(Design(names=names, repetitions=1, copies=10), count, 30 + names)
        plain = share([plain_alarm(finding) for finding in found])
        what = (
            f"false FLAG or FAIL: temperature 0, 10 identical copies, {names} names × 5 templates"
        )
        rows.append(exactly("G3", what, "≤", 0.06, share(alarmed(found)), count, plain))
    return rows


def planted(count: int) -> list[Row]:
    """G4, G5, G6: one group lower by d, judged a pair."""
    half, large = (own_pairs(audits(Design(), count, seed, d)) for seed, d in ((4, 0.5), (5, 0.8)))
    seen = share([pair.verdict in (Verdict.FLAG, Verdict.FAIL) for pair in half])
    failed = share([pair.verdict is Verdict.FAIL for pair in large])
    missed = share([pair.verdict is Verdict.PASS for pair in half])
    plain_half = share([plain_pair(pair, 6) for pair in half])
    plain_large = share([plain_pair(pair, 6, least=0.5) for pair in large])
    return [
        exactly("G4", "pair FLAG or FAIL at d = .5: as G1", "≥", 0.80, seen, len(half), plain_half),
        exactly("G5", "pair FAIL at d = .8: as G1", "≥", 0.95, failed, len(half), plain_large),
        exactly(
            "G6", "pair PASS although d = .5: as G1", "≤", 0.06, missed, len(half), 1 - plain_half
        ),
    ]


def baseline(count: int) -> list[Row]:
    """G9: the same personas scored again, unchanged, 5 points lower, or one category 10 points
    lower.
    """
    rows = []
    plans = (
        (
            8,
            "flake: 100 personas, run SD 6, 3 repetitions, overall and 8 categories",
            "none",
            0,
            "≤ .01",
        ),
        (8, "overall −5 caught", "all", 5, "≥ .95"),
        (8, "one category of 13 personas −10 caught", "one", 10, "≥ .95"),
        (
            10,
            "one category of 10 personas −10 caught, overall and 10 categories",
            "one",
            10,
            "reported",
        ),
        (10, "flake: the same", "none", 0, "≤ .01"),
    )
    for seed, (categories, what, who, drop, target) in enumerate(plans):
        rng = rng_of(90 + seed)
        index = np.repeat(np.arange(100), 3)
        category = index * categories // 100
        frame = pd.DataFrame(
            {"persona": index, "category": category, "repetition": np.tile([0, 1, 2], 100)}
        )
        hit = {"none": False, "all": True, "one": category == categories - 1}[who]
        failed, lower = [], []
        for _ in range(count):
            level = np.repeat(rng.normal(88, 6, 100), 3)
            old, new = (
                summarise_scores(frame, scores.tolist(), categories=["category"])
                for scores in (
                    level + rng.normal(0, 6, 300),
                    level - drop * hit + rng.normal(0, 6, 300),
                )
            )
            finding = compare_baseline(old, new)
            failed.append(finding.verdict is Verdict.FAIL)
            lower.append(
                any(bool(pair.statistics["lower_than_baseline"]) for pair in finding.pairs)
            )
        found = share(failed)
        met = {"≤ .01": found <= 0.01, "≥ .95": found >= 0.95}.get(target, True)
        rows.append(Row("G9", what, target, found, count, met, share(lower)))
    return rows


def binary(count: int) -> list[Row]:
    """G10: a decision with rate .4 over 20 names, n = 200, and one group's odds divided by 2.48."""
    design = Design()
    null, biased = (
        judged(
            design.frame(),
            lambda rng, d: design.approved(rng, 0.4, d),
            count,
            rng_of(seed),
            np.log(odds) / LOGIT,
        )
        for seed, odds in ((100, 1.0), (101, 2.48))
    )
    plain = share([plain_alarm(finding, "cohens_h") for finding in null])
    pairs = own_pairs(biased)
    seen = share([pair.verdict in (Verdict.FLAG, Verdict.FAIL) for pair in pairs])
    plain_seen = share([plain_pair(pair, 6, "cohens_h") for pair in pairs])
    what = "false FLAG or FAIL: decision, rate .4, 20 names, n = 200"
    return [
        exactly("G10", what, "≤", 0.06, share(alarmed(null)), count, plain),
        exactly(
            "G10", "pair FLAG or FAIL at odds ratio 2.48", "≥", 0.80, seen, len(pairs), plain_seen
        ),
    ]


def round_robin(count: int) -> list[Row]:
    """G11: four groups without preference, 30 trials a pair, 15 in each order."""
    rng = rng_of(110)
    ordered = [(a, b) for a in "ABCD" for b in "ABCD" if a != b]
    first, second = (np.repeat([pair[side] for pair in ordered], 15) for side in (0, 1))
    found, plain = [], []
    count *= 4  # a rate near .05 needs more runs to be placed within .01
    for _ in range(count):
        chosen = np.where(rng.random(first.size) < 0.5, first, second)
        table = pd.DataFrame({"first": first, "second": second, "chosen": chosen})
        robin = analyze_preference(table, cluster=None).details["round_robin"]
        if not isinstance(robin, dict):
            raise TypeError("details['round_robin'] is not a table")
        found.append(float(str(robin["p_value"])) < 0.05)
        plain.append(float(str(robin["chi_square_uncorrected"])) > 7.814727903251179)
    measured = share(found)
    what = "round-robin χ², type I at .05: 4 groups, 30 trials a pair"
    return [
        Row("G11", what, "in [.03, .07]", measured, count, 0.03 <= measured <= 0.07, share(plain))
    ]


def position_bias(count: int) -> list[Row]:
    """G12: the first-listed is favoured by two logits; the preference, if any, is .8 logits."""
    rows = []
    count *= 4
    first = np.repeat(["A", "B"], 90)
    second = np.where(first == "A", "B", "A")
    sign = np.where(first == "A", 1, -1)
    for seed, lean, what, side, limit in (
        (120, 0.0, "type I at .05: position bias 2 logits, n = 180", "≤", 0.06),
        (121, 0.8, "power at .05: the same, preference .8 logits", "≥", 0.85),
    ):
        rng = rng_of(seed)
        found, plain = [], []
        for _ in range(count):
            chosen = np.where(rng.random(180) < expit(2 + sign * lean), first, second)
            table = pd.DataFrame({"first": first, "second": second, "chosen": chosen})
            [pair] = analyze_preference(table, cluster=None).pairs
            found.append(pair.p_value < 0.05)
            plain.append(number(pair, "binomial_p_value") < 0.05)
        rows.append(exactly("G12", what, side, limit, share(found), count, share(plain)))
    return rows


GOALS: tuple[Callable[[int], list[Row]], ...] = (
    null_audits,
    few_names,
    temperature_zero,
    planted,
    baseline,
    binary,
    round_robin,
    position_bias,
    *destruction.GOALS,
    *uneven.GOALS,
)


def table(rows: list[Row], first: dict[str, float]) -> str:
    """The lines of the table, by the number of the target."""
    return "".join(row.line(first) + "\n" for row in sorted(rows, key=lambda row: int(row.id[1:])))


def page_with(lines: str, count: int) -> str:
    """The page of the docs with *lines* for its table."""
    before, _, after = PAGE.read_text(encoding="utf-8").partition(HEADER)
    head, _, tail = before.partition("--audits ")
    rest = after.partition("\n\n")[2]
    return f"{head}--audits {count}{tail.lstrip('0123456789')}{HEADER}{lines}\n{rest}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--audits", type=int, default=1000, help="simulated audits a line (default 1000)"
    )
    parser.add_argument(
        "--only", nargs="*", help=f"of {', '.join(goal.__name__ for goal in GOALS)}"
    )
    parser.add_argument("--write", action="store_true", help="write docs/calibration.md")
    parser.add_argument(
        "--figures", type=Path, help="write what was measured as JSON, to be compared with"
    )
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for goal in GOALS:
        if options.only is None or goal.__name__ in options.only:
            started = time.perf_counter()
            rows += goal(options.audits)
            print(f"{goal.__name__}: {time.perf_counter() - started:.1f} s", file=sys.stderr)
    first = json.loads(FIRST_VERSION.read_text(encoding="utf-8")) if FIRST_VERSION.exists() else {}
    lines = table(rows, first)
    print(HEADER + lines)
    if options.figures:
        options.figures.write_text(
            json.dumps({row.key: row.measured for row in rows}, indent=1), encoding="utf-8"
        )
    if options.write:
        PAGE.write_text(page_with(lines, options.audits), encoding="utf-8")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
