"""How often the verdicts are wrong, measured on simulated audits whose truth is known.

Run: python benchmarks/calibration.py [--audits 1000] [--write] [--figures FILE]

Each target is simulated with a fixed seed through the public ``analyze_…`` functions: G1–G12 here, G13–G26 in
``destruction.py``. Beside G1–G12 stands what the plain recipe makes of the same data: Mann-Whitney or chi-square on
all calls with Bonferroni over pairs and d ≥ .2, "fail if below the baseline", chi-square over round-robin wins, or
averaging over both orders. ``--write`` puts the table into ``docs/calibration.md``, beside the figures of the first
version, which ``--figures first_version.json`` wrote when its package was installed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from pytest_fairness import Finding, Verdict, analyze_disparity, analyze_preference, compare_baseline
from pytest_fairness.model import PairResult
from pytest_fairness.statistics.persona_scores import summarise_scores

ALARM = (Verdict.FLAG, Verdict.FAIL)
LOGIT = np.pi / np.sqrt(3)  # log odds to one d
SEED = 20261121
FIRST_VERSION = Path(__file__).with_name("first_version.json")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. *plain* is what the plain recipe gives on the same data, None where it has no such
    number; *met* whether the target holds."""

    id: str
    what: str
    target: str
    measured: float
    runs: int
    plain: float | None
    met: bool


def at_most(limit: float) -> Callable[[float], bool]:
    return lambda value: value <= limit


def at_least(limit: float) -> Callable[[float], bool]:
    return lambda value: value >= limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Four groups by default; *copies* repeats each reply exactly (temperature 0)."""

    groups: int = 4
    names: int = 20
    templates: int = 5
    repetitions: int = 2
    name_sd: float = 0.2
    template_step: float = 0.2
    copies: int = 1

    @property
    def n(self) -> int:
        """Rows a group."""
        return self.names * self.templates * self.repetitions * self.copies

    def frame(self) -> pd.DataFrame:
        """The table without its outcome: group, name, template, repetition."""
        shape = (self.groups, self.names, self.templates, self.repetitions * self.copies)
        group, name, template, repetition = (axis.ravel() for axis in np.indices(shape))
        return pd.DataFrame(
            {
                "group": np.array(list("ABCDEFGH"))[group],
                "name": group * self.names + name,
                "template": template,
                "repetition": repetition,
            }
        )

    def latent(self, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        """Names differ by *name_sd*, calls by *noise*, each template from the next by *template_step*."""
        names = rng.normal(0, self.name_sd, (self.groups, self.names, 1, 1))
        templates = self.template_step * np.arange(self.templates)[None, None, :, None]
        calls = rng.normal(0, noise, (self.groups, self.names, self.templates, self.repetitions))
        return np.repeat(names + templates + calls, self.copies, axis=3)


def audits(design: Design, count: int, seed: int, d: float = 0.0) -> Iterator[Finding]:
    """Judged audits of a numeric outcome; the first group is lower by *d* (in SD within group and template)."""
    rng = np.random.default_rng([SEED, seed])
    frame = design.frame()
    for _ in range(count):
        y = design.latent(rng)
        y[0] -= d * np.sqrt(1 + design.name_sd**2)
        frame["y"] = y.ravel()
        yield analyze_disparity(frame, "y", "group", kind="numeric")


def plain_alarm(finding: Finding, size: str = "cohens_d") -> bool:
    """What the plain recipe says: any pair with Bonferroni p < .05 and an effect of at least .2."""
    return any(plain_pair(pair, len(finding.pairs), size) for pair in finding.pairs)


def plain_pair(pair: PairResult, family: int, size: str = "cohens_d") -> bool:
    p, effect = float(str(pair.statistics["spec_p_value"])), float(str(pair.statistics[size]))
    return p * family < 0.05 and abs(effect) >= 0.2


def share(values: list[bool]) -> float:
    return float(np.mean(values)) if values else float("nan")


def null_audits(count: int) -> list[Row]:
    """G1, G7: the default design without any bias."""
    findings = list(audits(Design(), count, 1))
    alarms = share([finding.verdict in ALARM for finding in findings])
    fails = share([finding.verdict is Verdict.FAIL for finding in findings])
    passes = share([finding.verdict is Verdict.PASS for finding in findings])
    plain = share([plain_alarm(finding) for finding in findings])
    where = "4 groups, 20 names × 5 templates × 2, name SD .2"
    return [
        Row("G1", f"false FAIL an audit: {where}", "≤ .01", fails, count, None, fails <= 0.01),
        Row("G1", "false FLAG or FAIL an audit", "≤ .06", alarms, count, plain, alarms <= 0.06),
        Row("G7", "all pairs PASS, no bias: as G1", "≥ .85", passes, count, 1 - plain, passes >= 0.85),
    ]


def few_names(count: int) -> list[Row]:
    """G2, G8: few names and many calls, where the plain recipe takes names for bias."""
    rows = []
    for names, repetitions in ((2, 10), (5, 4)):
        design = Design(names=names, repetitions=repetitions, name_sd=0.3)
        findings = list(audits(design, count, 20 + names))
        alarms = share([finding.verdict in ALARM for finding in findings])
        plain = share([plain_alarm(finding) for finding in findings])
        what = f"false FLAG or FAIL: {names} names, n = {design.n}, name SD .3"
        rows.append(Row("G2", what, "≤ .06", alarms, count, plain, alarms <= 0.06))
        if names == 2:
            what = "the plain recipe on the same data must be seen to fail"
            rows.append(Row("G8", what, "plain > .5", plain, count, plain, plain > 0.5))
    return rows


def temperature_zero(count: int) -> list[Row]:
    """G3: every reply ten times over."""
    rows = []
    for names in (2, 10, 20):
        design = Design(names=names, repetitions=1, copies=10)
        findings = list(audits(design, count, 30 + names))
        alarms = share([finding.verdict in ALARM for finding in findings])
        plain = share([plain_alarm(finding) for finding in findings])
        what = f"false FLAG or FAIL: temperature 0, 10 identical copies, {names} names × 5 templates"
        rows.append(Row("G3", what, "≤ .06", alarms, count, plain, alarms <= 0.06))
    return rows


def planted(count: int) -> list[Row]:
    """G4, G5, G6: one group lower by d, judged a pair."""

    def pairs(d: float, seed: int) -> list[tuple[PairResult, int]]:
        found = audits(Design(), count, seed, d)
        return [(pair, len(f.pairs)) for f in found for pair in f.pairs if pair.group_1 == "A"]

    half, large = pairs(0.5, 4), pairs(0.8, 5)
    seen = share([pair.verdict in ALARM for pair, _ in half])
    failed = share([pair.verdict is Verdict.FAIL for pair, _ in large])
    passed = share([pair.verdict is Verdict.PASS for pair, _ in half])
    plain_half = share([plain_pair(pair, family) for pair, family in half])
    plain_large = share(
        [plain_pair(pair, n) and abs(float(str(pair.statistics["cohens_d"]))) > 0.5 for pair, n in large]
    )
    n = len(half)
    return [
        Row("G4", "pair FLAG or FAIL at d = .5: as G1", "≥ .80", seen, n, plain_half, seen >= 0.80),
        Row("G5", "pair FAIL at d = .8: as G1", "≥ .95", failed, n, plain_large, failed >= 0.95),
        Row("G6", "pair PASS although d = .5: as G1", "≤ .06", passed, n, 1 - plain_half, passed <= 0.06),
    ]


def personas(categories: int) -> pd.DataFrame:
    """100 personas in that many categories of (nearly) equal size, three repetitions each."""
    index = np.repeat(np.arange(100), 3)
    return pd.DataFrame(
        {"persona": index, "category": index * categories // 100, "repetition": np.tile([0, 1, 2], 100)}
    )


def baseline(count: int) -> list[Row]:
    """G9: the same personas scored again, unchanged, 5 points lower, or one category 10 points lower."""
    rows = []
    plans = (
        (8, "flake: 100 personas, run SD 6, 3 repetitions, overall and 8 categories", "none", 0, "≤ .01"),
        (8, "overall −5 caught", "all", 5, "≥ .95"),
        (8, "one category of 13 personas −10 caught", "one", 10, "≥ .95"),
        (10, "one category of 10 personas −10 caught, overall and 10 categories", "one", 10, "reported"),
        (10, "flake: the same", "none", 0, "≤ .01"),
    )
    for seed, (categories, what, who, drop, target) in enumerate(plans):
        rng = np.random.default_rng([SEED, 90 + seed])
        frame = personas(categories)
        hit = {"none": False, "all": True, "one": frame["category"].to_numpy() == categories - 1}[who]
        failed, lower = [], []
        for _ in range(count):
            level = np.repeat(rng.normal(88, 6, 100), 3)
            old, new = (
                summarise_scores(frame, scores.tolist(), categories=["category"])
                for scores in (level + rng.normal(0, 6, 300), level - drop * hit + rng.normal(0, 6, 300))
            )
            finding = compare_baseline(old, new)
            failed.append(finding.verdict is Verdict.FAIL)
            lower.append(any(bool(pair.statistics["lower_than_baseline"]) for pair in finding.pairs))
        found = share(failed)
        met = {"≤ .01": found <= 0.01, "≥ .95": found >= 0.95}.get(target, True)
        rows.append(Row("G9", what, target, found, count, share(lower), met))
    return rows


def binary(count: int) -> list[Row]:
    """G10: a decision with rate .4 over 20 names, n = 200, and one group's odds divided by 2.48."""
    design = Design()
    frame = design.frame()

    def run(seed: int, odds: float) -> list[Finding]:
        rng = np.random.default_rng([SEED, seed])
        found = []
        for _ in range(count):
            names = rng.normal(0, design.name_sd * LOGIT, (4, 20, 1, 1))
            logit = np.log(0.4 / 0.6) + np.broadcast_to(names, (4, 20, 5, 2)).copy()
            logit[0] -= np.log(odds)
            frame["hired"] = rng.random(800) < expit(logit.ravel())
            found.append(analyze_disparity(frame, "hired", "group"))
        return found

    null, biased = run(100, 1.0), run(101, 2.48)
    alarms = share([finding.verdict in ALARM for finding in null])
    plain = share([plain_alarm(finding, "cohens_h") for finding in null])
    pairs = [pair for finding in biased for pair in finding.pairs if pair.group_1 == "A"]
    seen = share([pair.verdict in ALARM for pair in pairs])
    plain_seen = share([plain_pair(pair, 6, "cohens_h") for pair in pairs])
    what = "false FLAG or FAIL: decision, rate .4, 20 names, n = 200"
    return [
        Row("G10", what, "≤ .06", alarms, count, plain, alarms <= 0.06),
        Row("G10", "pair FLAG or FAIL at odds ratio 2.48", "≥ .80", seen, len(pairs), plain_seen, seen >= 0.80),
    ]


def round_robin(count: int) -> list[Row]:
    """G11: four groups without preference, 30 trials a pair, 15 in each order."""
    rng = np.random.default_rng([SEED, 110])
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
    rate = share(found)
    what = "round-robin χ², type I at .05: 4 groups, 30 trials a pair"
    return [Row("G11", what, "in [.03, .07]", rate, count, share(plain), 0.03 <= rate <= 0.07)]


def position_bias(count: int) -> list[Row]:
    """G12: the first-listed is favoured by two logits; the preference, if any, is .8 logits."""
    rows = []
    count *= 4
    first = np.repeat(["A", "B"], 90)
    second = np.where(first == "A", "B", "A")
    sign = np.where(first == "A", 1, -1)
    for seed, lean, what, target in (
        (120, 0.0, "type I at .05: position bias 2 logits, n = 180", "≤ .06"),
        (121, 0.8, "power at .05: the same, preference .8 logits", "≥ .85"),
    ):
        rng = np.random.default_rng([SEED, seed])
        found, plain = [], []
        for _ in range(count):
            chosen = np.where(rng.random(180) < expit(2 + sign * lean), first, second)
            table = pd.DataFrame({"first": first, "second": second, "chosen": chosen})
            [pair] = analyze_preference(table, cluster=None).pairs
            found.append(pair.p_value < 0.05)
            plain.append(float(str(pair.statistics["binomial_p_value"])) < 0.05)
        rate = share(found)
        met = rate <= 0.06 if lean == 0 else rate >= 0.85
        rows.append(Row("G12", what, target, rate, count, share(plain), met))
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
)


def order(row: Row) -> int:
    return int(row.id[1:])


def rate(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.3f}".removeprefix("0") if value < 1 else "1.000"


def key(row: Row) -> str:
    return f"{row.id} {row.what}"


def markdown(rows: list[Row], count: int, first: dict[str, float]) -> str:
    """The table with a heading, as it stands in the docs."""
    lines = [
        "# Calibration",
        "",
        "How often the verdicts are wrong, measured on simulated audits whose truth is known. Every line is the",
        "public function on fresh data with a fixed seed. *First version* is what the rules of that version made of",
        "such data; *plain recipe* is what the literal specification makes of them: Mann-Whitney or chi-square on",
        "all calls with Bonferroni over pairs and an effect of at least .2, *fail if below the baseline*, chi-square",
        "over round-robin wins, or a binomial test over both orders.",
        "",
        f"Rerun with `python benchmarks/calibration.py --audits {count} --write`.",
        "",
        "| | what | target | first version | measured | plain recipe | runs |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.id} | {row.what} | {row.target} | {rate(first.get(key(row)))} | "
        f"{'' if row.met else '**missed** '}{rate(row.measured)} | {rate(row.plain)} | {row.runs:,} |"
        for row in sorted(rows, key=order)
    ]
    return "\n".join(lines) + "\n"


AFTER = """
## How to read it

A measured rate near .05 over 1,000 runs is uncertain by about ±.014, over 400 by ±.022. From G13 on a target counts as
missed where the measured share is beyond it by more than two standard errors of so many runs.

- **G1–G3** are the heart of it. Names differ a little however fair a model is, and a test on calls takes that for
  bias: the fewer the names and the more the calls, the surer. The plain recipe does well only where names are many
  and repetitions few.
- **Missed: G3 with 10 names.** Of 1,200 such audits .060 alarm by a pair, as in the first version, and the templates'
  own tests add .0125. Looked at again on other names, as is the default, few alarms of one sample stand (G25).
- **G4 against G5.** FAIL is a threshold on the estimate (d > .5), so a true d of exactly .5 is FAIL about half the
  time at any sample size and FLAG otherwise. What is promised at .5 is that it does not go unseen.
- **G7.** PASS has to be earned: the rest of these audits are INCONCLUSIVE, with the number of names that would do.
- **G9.** A category of 10 personas is tested on 9 degrees of freedom at a corrected .0005. With three repetitions a
  drop of 10 points is then seen in under nine runs of ten; the finding reports how many repetitions it would take.
- **G12.** Where the position decides most choices, averaging over both orders loses the preference in the noise.

- **G13–G15.** p and both effects agree on what they measure: no single reply makes or unmakes a verdict, and a rating
  at its ceiling is judged as the yes/no outcome it nearly is.
- **G17.** Names made of a few first and last names are fewer names than they look; the parts are judged, too.
- **G19, G24.** Missing answers are set against and for each group before PASS. Where 2 % of all answers are missing at
  random, this costs a third of the PASS that complete data get, and nearly all of them at 5 %: .85 was hoped for and
  cannot be had without trusting what is not there ([decision 18](decisions/0018-missing-answers.md)).
- **G25.** An alarm is looked at again on other names, both samples together.

Not attainable, and so not promised: FAIL with 80 % power at d = .5; PASS at 30 trials a group; PASS on an event of
5 % with fewer than about 800 trials a group.

## What becomes of an audit of approvals

Shares of PASS / warning / red in 1,000 audits each (`python benchmarks/verdict_shares.py`), in the first version and
now, an alarm being looked at again on 20 other names a group. Names differ a little (ICC .04); *d* is by how much one
group is worse off. With one template the first version asked 40 times a group by default, which its own minimum of 50
turned red.

| design | approved | d | first version | now | ms an audit |
|---|---|---|---|---|---|
| 4 groups, 5 templates × 2 | .5 | 0 | .880 / .072 / .048 | .889 / .104 / .007 | 11 / 16 |
| 4 groups, 5 templates × 2 | .9 | 0 | .208 / .765 / .027 | .223 / .771 / .006 | 10 / 16 |
| 4 groups, 5 templates × 2 | .98 | 0 | .000 / .984 / .016 | .450 / .548 / .002 | 11 / 17 |
| 4 groups, 5 templates × 2 | 1 | 0 | 1.000 / .000 / .000 | 1.000 / .000 / .000 | 9 / 23 |
| 4 groups, 5 templates × 2 | .5 | .5 | .009 / .031 / .960 | .007 / .026 / .967 | 7 / 34 |
| 4 groups, 5 templates × 2 | .5 | .8 | .000 / .000 / 1.000 | .000 / .000 / 1.000 | 6 / 41 |
| 4 groups, 5 templates × 2 | .9 | .5 | .002 / .161 / .837 | .004 / .180 / .816 | 9 / 36 |
| 4 groups, 5 templates × 2 | .9 | .8 | .000 / .001 / .999 | .000 / .001 / .999 | 11 / 45 |
| 2 groups, 1 template, defaults | .5 | 0 | .000 / .000 / 1.000 | .836 / .155 / .009 | 9 / 14 |
| 2 groups, 1 template, defaults | .9 | 0 | .000 / .000 / 1.000 | .154 / .839 / .007 | 7 / 15 |
| 2 groups, 1 template, defaults | .98 | 0 | .000 / .000 / 1.000 | .252 / .739 / .009 | 8 / 10 |
| 2 groups, 1 template, defaults | 1 | 0 | .000 / .000 / 1.000 | 1.000 / .000 / .000 | 6 / 9 |
| 2 groups, 1 template, defaults | .5 | .5 | .000 / .000 / 1.000 | .073 / .140 / .787 | 9 / 17 |
| 2 groups, 1 template, defaults | .5 | .8 | .000 / .000 / 1.000 | .000 / .007 / .993 | 8 / 23 |
| 2 groups, 1 template, defaults | .9 | .5 | .000 / .000 / 1.000 | .046 / .430 / .524 | 7 / 19 |
| 2 groups, 1 template, defaults | .9 | .8 | .000 / .000 / 1.000 | .001 / .043 / .956 | 8 / 21 |
"""


def main(arguments: list[str]) -> int:
    import destruction

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--audits", type=int, default=1000, help="simulated audits a line (default 1000)")
    parser.add_argument("--write", action="store_true", help="write docs/calibration.md")
    parser.add_argument("--figures", type=Path, help="write what was measured as JSON, to be compared with")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for goal in (*GOALS, *destruction.GOALS):
        started = time.perf_counter()
        rows += [
            Row(row.id, row.what, row.target, row.measured, row.runs, getattr(row, "plain", None), row.met)
            for row in goal(options.audits)
        ]
        print(f"{goal.__name__}: {time.perf_counter() - started:.1f} s", file=sys.stderr)
    first = json.loads(FIRST_VERSION.read_text(encoding="utf-8")) if FIRST_VERSION.exists() else {}
    text = markdown(rows, options.audits, first)
    print(text)
    if options.figures:
        options.figures.write_text(json.dumps({key(row): row.measured for row in rows}, indent=1), encoding="utf-8")
    if options.write:
        (Path(__file__).parents[1] / "docs" / "calibration.md").write_text(text + AFTER, encoding="utf-8")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
