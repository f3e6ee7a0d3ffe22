"""How often a verdict by looks is wrong, and how many calls it takes: whole audits whose truth is
known, asked stage by stage.

Run: python benchmarks/looks.py [--audits 1000] [--rounds 20] [--part TEXT …] [--only TEXT]

Names have random effects; each is asked 5 templates × 2 repetitions, and the data of a look are the
beginning of those of the next. A group whose pairs are all settled is asked no more. Every look is
judged by the public ``analyze_…`` functions at the levels of its plan. Calls are in units of 20
names a group. Parts: table, others, names, sessions. Biased audits are two fifths of the fair ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from itertools import combinations, islice, zip_longest
from pathlib import Path

import numpy as np
import pandas as pd
from audits import ALARM, LOGIT, Design, fewer
from scipy.special import expit
from scipy.stats import t as student

from pytest_fairness import (
    Finding,
    Verdict,
    analyze_arms,
    analyze_disparity,
    analyze_equivalence,
    analyze_four_fifths,
    analyze_preference,
)
from pytest_fairness.analysis.looks import (
    DROPPING,
    GREEN,
    MOST_RED,
    Look,
    LookPlan,
    budget,
    is_final,
)
from pytest_fairness.design.stages import BASE, RATES, SCORES

SEED = 20261126
SESSION_ALPHA = 0.05
ROUNDS = 20
"""Every row is simulated in so many parts, each with a seed of its own, in turn with the others: a
program that is stopped has measured all of them."""
Analyze = Callable[..., Finding]


# ---------------------------------------------------------------- systems under audit


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What answers, and which assertion judges it.

    ``outcome`` is numeric, ratings, labels, yes/no (at ``rate``), choice (position bias ``bias``)
    or arms (*d* in the control arm, ``left`` in the treated one). ``templates`` are the shares of
    *d* in each template, ``lost`` the names that one group lacks.
    """

    outcome: str = "numeric"
    groups: int = 4
    name_sd: float = 0.2
    rate: float = 0.5
    bias: float = 0.0
    left: float = 0.0
    templates: tuple[float, ...] = (1.0,) * 5
    lost: int = 0
    assertion: str = "disparity"

    def draw(self, rng: np.random.Generator, names: int, d: float) -> np.ndarray:
        """Return the outcome of every row of the survey, group A worse by *d*."""
        design = Design(groups=self.groups, names=names, name_sd=self.name_sd)
        if self.outcome == "yes/no":
            return design.approved(rng, self.rate, d)
        if self.outcome == "choice":
            return self._choices(rng, names, d)
        if self.outcome == "arms":
            lean = rng.normal(0, self.name_sd, (self.groups, names, 1, 1))
            return np.stack([lean + design.latent(rng, d=gap) for gap in (d, self.left)])
        scores = design.latent(rng)
        scores[0] -= d * design.unit * np.array(self.templates)[:, None]
        if self.outcome == "ratings":
            return np.digitize(scores, [-1.5, -0.5, 0.5, 1.5]).astype(float)
        if self.outcome == "labels":
            return np.array(["invite", "keep", "reject"])[np.digitize(scores, [0.0, 0.8])]
        return scores

    def _choices(self, rng: np.random.Generator, sets: int, d: float) -> np.ndarray:
        """Return whether the first listed is chosen: pairs of groups × sets × templates × orders."""
        pairs = list(combinations(range(self.groups), 2))
        candidates = rng.normal(0, self.name_sd * LOGIT, (len(pairs), sets, 1, 1))
        lean = np.array([-d * LOGIT * (first == 0) for first, _ in pairs])
        sign = np.array([1.0, -1.0])
        level = self.bias + sign * (candidates + lean[:, None, None, None])
        return rng.random((len(pairs), sets, 5, 2)) < expit(level)


class Survey:
    """The rows that a *system* is asked, and what is judged of them at a look."""

    def __init__(self, system: System, names: int) -> None:
        self.system = system
        self.leaving = system.assertion in DROPPING
        self.groups = system.groups
        if system.outcome == "choice":
            self.frame = choice_frame(system.groups, names)
            self.code = np.zeros(len(self.frame), dtype=int)
        else:
            design = Design(groups=system.groups, names=names)
            group, name, _, _ = (axis.ravel() for axis in np.indices(design.shape))
            self.frame = design.frame().assign(draw=name + 1)
            self.code = group
        if system.outcome == "arms":
            arms = ("raw", "scrubbed")
            self.frame = pd.concat([self.frame.assign(arm=arm) for arm in arms], ignore_index=True)
            self.code = np.tile(self.code, 2)
        self.draw = self.frame["draw"].to_numpy()
        self.kept = ~((self.code == 0) & (self.draw <= system.lost))
        self._parts: dict[tuple[int, ...], tuple[np.ndarray, pd.DataFrame]] = {}

    def part(self, reach: tuple[int, ...]) -> tuple[np.ndarray, pd.DataFrame]:
        """Return the rows of the first names of each group, as many as *reach* says."""
        if reach not in self._parts:
            rows = np.flatnonzero((self.draw <= np.array(reach)[self.code]) & self.kept)
            part = self.frame.iloc[rows].drop(columns="draw").reset_index(drop=True)
            self._parts[reach] = rows, part
        return self._parts[reach]

    def judged(self, outcomes: np.ndarray, reach: tuple[int, ...], look: Look) -> Finding:
        """Return what the assertion finds at *look*."""
        rows, part = self.part(reach)
        values = outcomes.ravel()[rows]
        if self.system.outcome == "choice":
            frame = part.assign(chosen=np.where(values, part["first"], part["second"]))
            return analyze_preference(frame, _look=look)
        return ANALYSES[self.system.assertion](part.assign(y=values), "y", _look=look)

    def asked(self, look: Look, reach: tuple[int, ...]) -> tuple[int, ...]:
        """Return how many names of each group are asked by *look*, after *reach* before it."""
        settled = {pair[2:] for pair in look.settled}
        groups = "ABCDEFGH"[: self.groups]
        counts = []
        for group, names in zip(groups, reach, strict=True):
            pairs = {pair for pair in combinations(groups, 2) if group in pair}
            if self.leaving and pairs <= settled:
                counts.append(names)
            else:
                counts.append(look.names)
        return tuple(counts)


ANALYSES: dict[str, Analyze] = {
    "disparity": partial(analyze_disparity, by="group"),
    "four-fifths": partial(analyze_four_fifths, by="group", favourable=1.0),
    "equivalence": partial(analyze_equivalence, by="group", margin=0.5, unit="d"),
    "arms": partial(analyze_arms, treated="scrubbed", control="raw"),
}


def choice_frame(groups: int, sets: int) -> pd.DataFrame:
    """Return a row a choice: two groups, a set of candidates, a template and an order."""
    pairs = np.array(list(combinations("ABCDEFGH"[:groups], 2)))
    shape = (len(pairs), sets, 5, 2)
    pair, number, template, order = (axis.ravel() for axis in np.indices(shape))
    listed = pairs[pair]
    return pd.DataFrame(
        {
            "first": np.where(order == 0, listed[:, 0], listed[:, 1]),
            "second": np.where(order == 0, listed[:, 1], listed[:, 0]),
            "name": [
                f"{first}{second}{n}" for (first, second), n in zip(listed, number, strict=True)
            ],
            "template": template,
            "draw": number + 1,
        }
    )


# ---------------------------------------------------------------- one audit, and many


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an audit ended: the finding, the names asked of each group and the looks made."""

    finding: Finding
    reach: tuple[int, ...]
    looks: int


def audit(survey: Survey, outcomes: np.ndarray, plan: LookPlan) -> Ended:
    """Ask and judge until the verdict is final."""
    look = plan.look(1)
    reach = (look.names,) * survey.groups
    finding = survey.judged(outcomes, reach, look)
    while not is_final(finding, look):
        look = plan.look(look.number + 1, look.after(finding))
        reach = survey.asked(look, reach)
        finding = survey.judged(outcomes, reach, look)
    return Ended(finding=finding, reach=reach, looks=look.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """So many audits of a system with a difference of *d*, judged by the looks *names* at *red*."""

    part: str
    system: System
    names: tuple[int, ...]
    d: float
    audits: int
    seed: tuple[int, ...]
    red: float = MOST_RED

    @property
    def name(self) -> str:
        return key(self.part, self.names, self.d)


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of audits; ``pairs`` are those of group A, ``green`` those that pass, ``by_template``
    the red audits in which no pair as a whole alarms.
    """

    audits: int = 0
    red: int = 0
    by_template: int = 0
    passes: int = 0
    unusable: int = 0
    calls: float = 0.0
    pairs: int = 0
    green: int = 0
    looks: int = 0

    def add(self, ended: Ended) -> None:
        finding = ended.finding
        verdicts = [pair for pair in finding.pairs if pair.verdict in ALARM]
        single = [any("by itself" in note for note in pair.notes) for pair in verdicts]
        own = [pair for pair in finding.pairs if pair.group_1 == "A" and not pair.alarm_only]
        self.audits += 1
        self.red += finding.verdict in ALARM
        self.by_template += bool(single) and all(single)
        self.passes += finding.verdict is Verdict.PASS
        self.unusable += finding.reason is not None and finding.reason.unusable
        self.calls += float(np.mean(ended.reach)) / BASE
        self.pairs += len(own)
        self.green += sum(pair.verdict is Verdict.PASS for pair in own)
        self.looks += ended.looks

    def merge(self, other: Tally) -> None:
        for count in fields(self):
            setattr(self, count.name, getattr(self, count.name) + getattr(other, count.name))

    def share(self, count: str) -> float:
        """Return the share of audits, or of pairs, that *count* says."""
        whole = self.audits
        if count == "green":
            whole = self.pairs
        return float(getattr(self, count)) / max(whole, 1)


@cache
def survey_of(system: System, names: int) -> Survey:
    return Survey(system, names)


def tallied(task: Task) -> Tally:
    """Return the counts of the audits of *task*."""
    rng = np.random.default_rng([SEED, *task.seed])
    survey = survey_of(task.system, task.names[-1])
    plan = LookPlan(names=task.names, red=task.red)
    tally = Tally()
    for _ in range(task.audits):
        tally.add(audit(survey, task.system.draw(rng, task.names[-1], task.d), plan))
    return tally


def parts_of(task: Task) -> list[Task]:
    """Return *task* in parts."""
    sizes = [len(part) for part in np.array_split(np.arange(task.audits), ROUNDS) if len(part)]
    return [replace(task, audits=size, seed=(*task.seed, part)) for part, size in enumerate(sizes)]


def in_turn(every: Sequence[Task], rounds: int) -> list[Task]:
    """Return the first *rounds* parts of *every* task, the first of each first."""
    rows = islice(zip_longest(*map(parts_of, every)), rounds)
    return [part for row in rows for part in row if part is not None]


# ---------------------------------------------------------------- what is measured

FOUR = System()
APPROVALS = System(outcome="yes/no")
TABLE = {
    "numeric, 2 groups": replace(FOUR, groups=2),
    "numeric, 4 groups": FOUR,
    "numeric, 4, names SD .5": replace(FOUR, name_sd=0.5),
    "approvals .5, 4": APPROVALS,
    "approvals .9, 4": replace(APPROVALS, rate=0.9),
    "approvals .95, 4": replace(APPROVALS, rate=0.95),
    "approvals .98, 4": replace(APPROVALS, rate=0.98),
}
PLANNED: dict[tuple[str, tuple[int, ...]], tuple[float | None, ...]] = {
    ("numeric, 2 groups", SCORES): (0.010, 0.99, 0.74, 0.75, 0.97, 0.028, 0.84, 0.53),
    ("numeric, 4 groups", SCORES): (0.008, 0.99, 1.07, 0.90, 1.0, 0.018, 0.85, 0.53),
    ("numeric, 4, names SD .5", SCORES): (0.016, 0.89, 1.83, 0.60, 0.95, 0.034, 1.40, 0.73),
    ("approvals .5, 4", SCORES): (0.014, 0.99, 1.22, 0.87, 1.0, 0.025, 1.01, 0.58),
    ("approvals .9, 4", SCORES): (0.007, 0.70, 1.96, 0.54, 0.95, 0.037, 1.45, 0.71),
    ("approvals .95, 4", SCORES): (0.004, 0.29, 2.00, 0.26, 0.70, 0.038, 1.78, 1.01),
    ("approvals .98, 4", SCORES): (0.003, 0.92, 1.90, None, None, None, None, None),
    ("numeric, 2 groups", RATES): (0.007, 0.99, 0.87, 0.81, 0.98, 0.017, 0.94, 0.55),
    ("numeric, 4 groups", RATES): (0.008, 0.99, 1.21, 0.92, 1.0, 0.011, 0.94, 0.54),
    ("numeric, 4, names SD .5", RATES): (0.012, 0.99, 2.21, 0.92, 1.0, 0.013, 1.62, 0.80),
    ("approvals .9, 4", RATES): (0.009, 0.99, 2.79, 0.93, 1.0, 0.019, 1.70, 0.78),
    ("approvals .95, 4", RATES): (0.006, 0.92, 3.67, 0.72, 0.98, 0.030, 2.53, 1.12),
}
"""What a prototype of the looks measured before they were built: red, PASS and calls of fair
audits; found at d .35; found, green a pair and calls at d .5; calls at d .8."""
EFFECTS = (0.0, 0.35, 0.5, 0.8)
FIGURES = (
    (0.0, "red"),
    (0.0, "passes"),
    (0.0, "calls"),
    (0.35, "red"),
    (0.5, "red"),
    (0.5, "green"),
    (0.5, "calls"),
    (0.8, "calls"),
)

_YES = replace(APPROVALS, assertion="four-fifths")
_ALIKE = replace(FOUR, assertion="equivalence")
_ARMS = replace(FOUR, groups=2, outcome="arms", assertion="arms")
_CHOICE = replace(FOUR, groups=2, outcome="choice", assertion="preference")
OTHERS: dict[str, tuple[System, tuple[int, ...], tuple[float, ...]]] = {
    "four-fifths, .5, 2 groups": (replace(_YES, groups=2), RATES, (0.0, 0.5)),
    "four-fifths, .5, 4 groups": (_YES, RATES, (0.0, 0.5)),
    "four-fifths, .9, 4 groups": (replace(_YES, rate=0.9), RATES, (0.0, 0.8)),
    "equivalence within .5 SD, 2 groups": (replace(_ALIKE, groups=2), SCORES, (0.0, 0.5)),
    "equivalence within .5 SD, 4 groups": (_ALIKE, SCORES, (0.0, 0.5)),
    "preference, 2 groups": (_CHOICE, SCORES, (0.0, 0.35, 0.5)),
    "preference, 2 groups, position bias 2": (replace(_CHOICE, bias=2.0), SCORES, (0.0, 0.5)),
    "preference, 4 groups, position bias 1": (
        replace(_CHOICE, groups=4, bias=1.0),
        SCORES,
        (0.0, 0.5),
    ),
    "arms, the same gap in both": (replace(_ARMS, left=0.5), SCORES, (0.5,)),
    "arms, no gap in either": (_ARMS, SCORES, (0.0,)),
    "arms, the gap goes": (_ARMS, SCORES, (0.5, 0.8)),
    "arms, a gap of .8 comes": (replace(_ARMS, left=0.8), SCORES, (0.0,)),
    "ratings, 4 groups": (replace(FOUR, outcome="ratings"), SCORES, (0.0, 0.5)),
    "labels, 2 groups": (replace(FOUR, groups=2, outcome="labels"), SCORES, (0.0, 0.5)),
}
#: Differences in templates, and names that a group lacks.
NAMES: dict[str, tuple[System, tuple[int, ...], tuple[float, ...]]] = {
    "numeric, one name lost": (replace(FOUR, lost=1), SCORES, (0.0, 0.5)),
    "approvals .5, one name lost": (replace(APPROVALS, lost=1), SCORES, (0.0, 0.5)),
    "d in one of five templates": (
        replace(FOUR, templates=(0.0, 0.0, 1.0, 0.0, 0.0)),
        SCORES,
        (0.8, 1.2),
    ),
    "+d in one template, −d in another": (
        replace(FOUR, templates=(0.0, 1.0, 0.0, -1.0, 0.0)),
        SCORES,
        (0.8,),
    ),
    "14 names of a bank": (FOUR, (14,), (0.0, 0.5)),
    "10/20/30 names": (FOUR, (10, 20, 30), (0.0, 0.5)),
    "20/40 names": (FOUR, (20, 40), (0.0, 0.5)),
}
MIX = (
    replace(FOUR, groups=2),
    replace(APPROVALS, groups=2),
    FOUR,
    replace(FOUR, outcome="ratings", groups=2),
    replace(APPROVALS, rate=0.9),
    replace(FOUR, outcome="labels", groups=2),
)
"""The tests of a session, in turn; those of approvals assert four fifths, too."""
SESSIONS = (1, 3, 10, 100)
ONE_OF_MANY = {
    "numeric, looks to 40": (FOUR, SCORES),
    "approvals .5, looks to 40": (APPROVALS, SCORES),
    "approvals .9, looks to 80": (replace(APPROVALS, rate=0.9), RATES),
    "approvals .95, looks to 80": (replace(APPROVALS, rate=0.95), RATES),
}


def tasks(count: int, parts: Sequence[str]) -> Iterator[Task]:
    """Yield what is simulated, *count* fair audits each."""
    if "table" in parts:
        for row, (what, names) in enumerate(PLANNED):
            for place, d in enumerate(EFFECTS):
                seed = (1, row, place)
                audits = count
                if d:
                    audits = fewer(count)
                yield Task(
                    part=f"table: {what}",
                    system=TABLE[what],
                    names=names,
                    d=d,
                    audits=audits,
                    seed=seed,
                )
    for number, (part, rows) in enumerate((("others", OTHERS), ("names", NAMES)), 2):
        if part not in parts:
            continue
        for row, (what, (system, names, effects)) in enumerate(rows.items()):
            for place, d in enumerate(effects):
                audits = count
                if d:
                    audits = fewer(count)
                yield Task(
                    part=f"{part}: {what}",
                    system=system,
                    names=names,
                    d=d,
                    audits=audits,
                    seed=(number, row, place),
                )
    if "sessions" in parts:
        red = budget(SESSION_ALPHA, max(SESSIONS), 0, 0.05)
        for row, (what, (system, names)) in enumerate(ONE_OF_MANY.items()):
            yield Task(
                part=f"one of 100: {what}",
                system=system,
                names=names,
                d=0.5,
                audits=fewer(count),
                seed=(4, row),
                red=red,
            )


# ---------------------------------------------------------------- sessions of fair systems

LENIENT = 30
"""An audit is not judged where the t of its name means stays above the level of every look, and of
every template, times this: no verdict could be red."""


def promising(outcomes: np.ndarray, plan: LookPlan) -> bool:
    """Return whether a look could come to an alarm about *outcomes* (group × name × …)."""
    if outcomes.dtype.kind == "U":
        return any(promising((outcomes == label) * 1.0, plan) for label in np.unique(outcomes))
    names = outcomes.mean(axis=3)
    first, second = np.array(list(combinations(range(len(names)), 2))).T
    for look in range(1, len(plan.names) + 1):
        made = plan.look(look)
        means = names[:, : made.names]
        means = np.concatenate([means.mean(axis=2, keepdims=True), means], axis=2)
        error = np.sqrt(means.var(axis=1, ddof=1) / made.names)
        centre = means.mean(axis=1)
        spread = np.hypot(error[first], error[second])
        t = np.abs(centre[first] - centre[second]) / np.maximum(spread, 1e-9)
        p = 2 * student.sf(t, 2 * made.names - 2)
        level = LENIENT * made.red / first.size
        if p[:, 0].min() < level or p[:, 1:].min() < level / 25:
            return True
    return False


def red_session(seed: int, tests: int) -> bool:
    """Return whether any of so many *tests* of fair systems is red."""
    rng = np.random.default_rng([SEED, 5, tests, seed])
    for test in range(tests):
        system = MIX[test % len(MIX)]
        names = SCORES
        if system.outcome == "yes/no":
            names = RATES
        outcomes = system.draw(rng, names[-1], 0.0)
        assertions = ["disparity"]
        if system.outcome == "yes/no":
            assertions.append("four-fifths")
        for place, assertion in enumerate(assertions):
            plan = LookPlan(names=names, red=budget(SESSION_ALPHA, tests, place, 0.05))
            survey = survey_of(replace(system, assertion=assertion), names[-1])
            if not promising(outcomes, plan):
                continue
            if audit(survey, outcomes, plan).finding.verdict in ALARM:
                return True
    return False


def sessions(count: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    """Yield a line a size of session: how many are red."""
    for tests in SESSIONS:
        number = count
        red = sum(pool.map(partial(red_session, tests=tests), range(number), chunksize=5))
        yield f"| {tests} | {budget(SESSION_ALPHA, tests, 0, 0.05):.6f} | {red / number:.3f} | {number} |"


# ---------------------------------------------------------------- what is printed


def shown(value: float | None, figure: str) -> str:
    if value is None:
        return "–"
    if figure == "calls":
        return f"{value:.2f}"
    return f"{value:.3f}".replace("0.", ".")


def lines(tallies: dict[str, Tally]) -> Iterator[str]:
    """Yield the table of the looks, planned beside measured."""
    for (what, names), planned in PLANNED.items():
        cells = []
        for (d, figure), value in zip(FIGURES, planned, strict=True):
            tally = tallies.get(key(f"table: {what}", names, d))
            if tally is not None:
                cells.append(f"{shown(value, figure)} / {shown(tally.share(figure), figure)}")
        if cells:
            yield f"| {what} | {ladder(names)} | {' | '.join(cells)} |"


def ladder(names: Sequence[int]) -> str:
    return "/".join(map(str, names))


def key(part: str, names: Sequence[int], d: float) -> str:
    return f"{part} | {ladder(names)} | d {d:g}"


def line(name: str, tally: Tally) -> str:
    """Return what was measured of one row."""
    figures = ", ".join(
        f"{figure} {shown(tally.share(figure), figure)}"
        for figure in ("red", "by_template", "passes", "unusable", "calls", "green", "looks")
    )
    return f"{name}: {figures} ({tally.audits} audits)"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--audits", type=int, default=1000, help="fair audits a row (1000)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how many of the 20 parts")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--part", nargs="*", default=["table", "others", "names", "sessions"])
    parser.add_argument("--only", default="", help="rows with this text in their name")
    parser.add_argument("--figures", type=Path, help="write the counts as JSON")
    options = parser.parse_args(arguments)
    tallies: dict[str, Tally] = {}
    every = tasks(options.audits, options.part)
    turns = in_turn([task for task in every if options.only in task.name], options.rounds)
    with ProcessPoolExecutor(options.processes) as pool:
        for task, tally in zip(turns, pool.map(tallied, turns), strict=True):
            tallies.setdefault(task.name, Tally()).merge(tally)
            if options.figures:
                counts = {name: asdict(tally) for name, tally in tallies.items()}
                options.figures.write_text(json.dumps(counts, indent=1), encoding="utf-8")
        heads = ["fair: red", "PASS", "calls", "d .35 found", "d .5 found", "green a pair"]
        heads += ["calls", "d .8 calls"]
        print(f"planned / measured; green of a pair is to be at most {GREEN:g}")
        print(f"| | looks | {' | '.join(heads)} |\n|{'---|' * 10}")
        print("\n".join(lines(tallies)))
        for name, tally in tallies.items():
            if not name.startswith("table"):
                print(line(name, tally))
        if "sessions" in options.part and not options.only:
            print("| tests | A | red sessions | sessions |\n|---|---|---|---|")
            for row in sessions(options.audits, pool):
                print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
