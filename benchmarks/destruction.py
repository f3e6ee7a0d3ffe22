"""Audits made to mislead the verdicts: outliers, heavy tails, ratings at the ceiling, ragged
designs, missing answers.

The targets G13–G26 of the calibration, each simulated with a fixed seed through the public
``analyze_…`` functions: a fair system must not raise the alarm, a biased one must not pass.
``python benchmarks/calibration.py --only GOAL …`` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pandas as pd
from audits import (
    ALARM,
    LOGIT,
    Design,
    Make,
    Row,
    alarmed,
    at_least,
    at_most,
    confirmed_audit,
    fewer,
    green,
    judged,
    number,
    own_pairs,
    passed,
    share,
)
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr, ndtri

from pytest_fairness import (
    Finding,
    Verdict,
    analyze_disparity,
    analyze_four_fifths,
    analyze_preference,
    compare_baseline,
    plan_sample,
)
from pytest_fairness.analysis.baseline import summarise_scores
from pytest_fairness.statistics.power import label_shares

SEED = 20261122


def rng_of(*seed: int) -> np.random.Generator:
    return np.random.default_rng([SEED, *seed])


def fair_and_biased(
    id_: str,
    what: str,
    frame: pd.DataFrame,
    make: Make,
    count: int,
    *seed: int,
    alarms: float = 0.06,
    passes: float = 0.06,
    pair: str = ", a pair",
    d: str = "d",
    kind: str = "numeric",
) -> tuple[list[Row], list[Finding], list[Finding]]:
    """How often a fair audit alarms, and how often one with d = .5 passes; and the findings of
    both.
    """
    fair = judged(frame, make, count, rng_of(*seed, 0), 0.0, kind=kind)
    half = judged(frame, make, fewer(count), rng_of(*seed, 1), 0.5, kind=kind)
    rows = [
        at_most(id_, f"{what}: fair audit alarms", alarms, alarmed(fair)),
        at_most(id_, f"{what}: {d} = .5 passes{pair}", passes, green(half)),
    ]
    return rows, fair, half


def covers(found: Sequence[Finding], effect: str) -> list[bool]:
    """Whether the 90 % interval of *effect* holds −.5."""
    return [
        number(p, f"{effect}_low") < -0.5 < number(p, f"{effect}_high") for p in own_pairs(found)
    ]


def outliers(count: int) -> list[Row]:
    """G13: one reply 12 or 100 standard deviations out, in the group that is worse off."""
    design, rows = Design(), []
    for size in (12, 100):

        def make(rng: np.random.Generator, d: float, size: int = size) -> np.ndarray:
            y = design.latent(rng, d=d)
            y[0].ravel()[rng.integers(y[0].size)] += size  # ravel of a contiguous part is a view
            return y

        what = f"one reply {size} SD out"
        found, _, half = fair_and_biased("G13", what, design.frame(), make, count, 13, size)
        named = [p.worse_off == "A" for p in own_pairs(half) if p.verdict in ALARM]
        rows += [*found, at_least("G13", f"{what}: the right group is named", 0.99, named)]
    return rows


def heavy_tails(count: int) -> list[Row]:
    """G14: noise with heavy tails."""
    design, rows = Design(), []
    for at, (kind, limit) in enumerate((("t3", 0.06), ("lognormal", 0.06), ("t2", 0.12))):

        def make(rng: np.random.Generator, d: float, kind: str = kind) -> np.ndarray:
            y = design.latent(rng, _noise(kind, rng, design.shape))
            y[0] -= tail_shift(kind, d) if d else 0.0
            return y

        what = f"noise {kind}"
        found, _, half = fair_and_biased(
            "G14", what, design.frame(), make, count, 14, at, passes=limit, d="d of δ"
        )
        held = covers(half, "d_from_cliffs_delta")
        rows += [*found, at_least("G14", f"{what}: 90 % interval of d of δ covers", 0.88, held)]
    return rows


@cache
def tail_shift(kind: str, d: float) -> float:
    """The shift that makes δ that of two normal groups *d* apart, names included."""
    rng = np.random.default_rng(7)
    one, other = (_noise(kind, rng, (400_000,)) + rng.normal(0, 0.2, 400_000) for _ in range(2))
    wanted, ordered = 2 * float(ndtr(d / np.sqrt(2))) - 1, np.sort(other)
    return _bisect(
        lambda shift: 2 * float(np.mean(np.searchsorted(ordered, one + shift))) / ordered.size - 1,
        wanted,
    )


def _bisect(grows: Callable[[float], float], wanted: float, steps: int = 40) -> float:
    low, high = 0.0, 5.0
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if grows(middle) < wanted else (low, middle)
    return (low + high) / 2


def _noise(kind: str, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return (
        rng.lognormal(0, 1, shape) if kind == "lognormal" else rng.standard_t(int(kind[1:]), shape)
    )


def ceiling(count: int) -> list[Row]:
    """G15: ratings at the ceiling; the rating and the yes/no of the same replies have to agree."""
    rows = []
    for at, top in enumerate((0.90, 0.97)):
        cuts = logit(np.cumsum((1 - top) * np.array([0.1, 0.2, 0.3, 0.4])))
        for repetitions in (2, 8):
            design = Design(repetitions=repetitions)

            def make(
                rng: np.random.Generator, d: float, design: Design = design, cuts: np.ndarray = cuts
            ) -> np.ndarray:
                names = rng.normal(0, design.name_sd * LOGIT, (design.groups, design.names, 1, 1))
                level = rng.logistic(size=design.shape) + names
                level[0] -= d * LOGIT
                return 1 + np.sum(level[..., None] > cuts, axis=-1)

            what = f"ratings, {100 * top:.0f} % fives, {design.n} a group"
            frame = design.frame()
            if repetitions == 8 and at:
                continue
            fair = judged(frame, make, count, rng_of(15, at, repetitions), kind="ordinal")
            if repetitions == 8:
                rows.append(at_least("G15", f"{what}: fair audit passes", 0.85, passed(fair)))
                continue
            rng, ratings, apart = rng_of(15, at, 99), [], []
            for _ in range(fewer(count)):
                ratings += judged(frame, make, 1, rng, 0.5, kind="ordinal")
                yes_no = analyze_disparity(frame.assign(y=frame["y"] == 5), "y", "group")
                both = zip(ratings[-1].pairs, yes_no.pairs, strict=True)
                apart += [{p.verdict, q.verdict} == {Verdict.PASS, Verdict.FAIL} for p, q in both]
            rows += [
                at_most("G15", f"{what}: fair audit alarms", 0.06, alarmed(fair)),
                at_most("G15", f"{what}: d = .5 passes, a pair", 0.06, green(ratings)),
                at_most(
                    "G15",
                    f"{what}: rating and yes/no of the same replies PASS against FAIL",
                    0.0,
                    apart,
                ),
            ]
    return rows


def unequal(count: int) -> list[Row]:
    """G16: 2, 3 or 5 names against 20."""
    rows = []
    for few in (2, 3, 5):
        cells = [
            (letter, f"{letter}{n}", t, r)
            for letter, names in (("A", few), ("B", 20))
            for n, t, r in np.ndindex(names, 5, 2 if names == 20 else 20 // few)
        ]
        frame = pd.DataFrame(cells, columns=["group", "name", "template", "repetition"])
        codes, first = pd.factorize(frame["name"])[0], (frame["group"] == "A").to_numpy()

        def make(rng: np.random.Generator, d: float, codes=codes, first=first) -> np.ndarray:
            y = rng.normal(0, 0.2, codes.max() + 1)[codes] + rng.normal(size=codes.size)
            return y - d * np.sqrt(1.04) * first

        rows += fair_and_biased(
            "G16", f"{few} names against 20", frame, make, count, 16, few, pair=""
        )[0]
    return rows


def paired(count: int) -> list[Row]:
    """G16: the same personas in both groups, differing among themselves by 1.5 SD."""
    rows = []
    for people in (6, 20):
        shape = (2, people, 5, 4 if people == 6 else 2)
        side, person, template, repetition = (axis.ravel() for axis in np.indices(shape))
        names = np.char.add("p", person.astype(str))
        groups = np.array(["A", "B"])[side]
        frame = pd.DataFrame(
            {"group": groups, "name": names, "template": template, "repetition": repetition}
        )

        def make(
            rng: np.random.Generator, d: float, people=people, side=side, person=person
        ) -> np.ndarray:
            personas, own = rng.normal(0, 1.5, people), rng.normal(0, 0.2, (2, people))
            y = personas[person] + own[side, person] + rng.normal(size=side.size)
            return y - d * np.sqrt(1 + 1.5**2) * (side == 0)

        what = f"{people} paired personas of SD 1.5"
        found, _, half = fair_and_biased("G16", what, frame, make, count, 16, 100 + people, pair="")
        rows += [
            *found,
            at_least("G16", f"{what}: 90 % interval of g covers", 0.87, covers(half, "hedges_g")),
        ]
    return rows


def parts(count: int) -> list[Row]:
    """G17: names made of parts."""
    rows = []
    designs = {
        "first × last 4 × 5": (4, 5),
        "first × last 10 × 2": (10, 2),
        "own bank, 20 names": 20,
        "own bank, 40": 40,
    }
    for at, (what, size) in enumerate(designs.items()):
        names = _bank(size) if isinstance(size, int) else _combined(*size)
        frame, first, last = _parts_frame(names)
        codes, own = pd.factorize(frame["name"])[0], (frame["group"] == "A").to_numpy()

        def make(
            rng: np.random.Generator, d: float, both=(first, last), codes=codes, own=own
        ) -> np.ndarray:
            y = rng.normal(size=codes.size) + rng.normal(0, 0.1, codes.max() + 1)[codes]
            for part in both:
                y = y + rng.normal(0, 0.2, part.max() + 1)[part]
            return y - d * np.sqrt(1 + 2 * 0.04 + 0.01) * own

        rows += fair_and_biased("G17", what, frame, make, count, 17, at, passes=0.07)[0]
    return rows


def _combined(firsts: int, lasts: int) -> dict[str, list[tuple[str, str]]]:
    letters = str.maketrans("0123456789", "abcdefghij")  # a name with a digit is a label
    return {
        group: [
            (f"{group}f{a}x".translate(letters), f"{group}l{b}y".translate(letters))
            for a in range(firsts)
            for b in range(lasts)
        ]
        for group in "ABCD"
    }


def _bank(count: int) -> dict[str, list[tuple[str, str]]]:
    from pytest_fairness.design.names import NameBanks

    banks = NameBanks.load(None)
    found = {}
    for letter, group in zip("ABCD", ("white", "black", "hispanic", "asian"), strict=True):
        names = banks.names("race_ethnicity", group, count, seed=0)
        found[letter] = [(name.first, name.last) for name in names]
    return found


def _parts_frame(
    labels: dict[str, list[tuple[str, str]]],
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rows = [
        (letter, f"{first} {last}", first, last, template, repetition)
        for letter, names in labels.items()
        for first, last in names
        for template, repetition in np.ndindex(5, 2)
    ]
    frame = pd.DataFrame(
        rows, columns=["group", "name", "first_name", "last_name", "template", "repetition"]
    )
    first, last = (
        pd.factorize(frame["group"] + frame[column])[0] for column in ("first_name", "last_name")
    )
    return frame, first, last


def one_template(count: int) -> list[Row]:
    """G18: a difference in one template, or opposite ones in two."""
    design = Design()
    frame = design.frame()

    def shifted(*shifts: float) -> Make:
        return lambda rng, _: (
            design.latent(rng)
            - design.unit * np.eye(4)[0][:, None, None, None] * np.array(shifts)[:, None]
        )

    fair = judged(frame, shifted(0, 0, 0, 0, 0), count, rng_of(18), kind="numeric")
    rows = [at_most("G18", "5 templates: fair audit alarms", 0.06, alarmed(fair))]
    for at, (what, shifts, limit) in enumerate(
        (
            ("d = .8 in one of five templates", (0, 0, 0.8, 0, 0), 0.25),
            ("d = 1.2 in one of five templates", (0, 0, 1.2, 0, 0), 0.02),
            ("+.8 in one template, −.8 in another", (0, 0.8, 0, -0.8, 0), 0.06),
        )
    ):
        biased = judged(frame, shifted(*shifts), fewer(count), rng_of(18, at, 1), kind="numeric")
        rows.append(at_most("G18", f"{what}: audit passes", limit, passed(biased)))
        if at == 1:
            notes = [
                " ".join(n for p in f.pairs for n in p.notes) for f in biased if f.verdict in ALARM
            ]
            named = ["template '2'" in note for note in notes]
            rows.append(at_least("G18", f"{what}: the template is named", 0.95, named))
    return rows


def missing(count: int) -> list[Row]:
    """G19: unscored replies, at random or the lowest."""
    design, rows = Design(), []
    frame = design.frame()
    for at, lost in enumerate((0.03, 0.06, 0.20)):
        for lowest in (False, True):

            def make(
                rng: np.random.Generator, d: float, lost: float = lost, lowest: bool = lowest
            ) -> np.ndarray:
                y = design.latent(rng, d=d)
                out, size = np.zeros(y.shape, dtype=bool), y[0].size
                for group in range(4):
                    chosen = rng.choice(size, round(lost * size), replace=False)
                    if lowest and group == 0:
                        chosen = np.argsort(y[0].ravel())[: round(lost * size)]
                    out[group].ravel()[chosen] = True
                return np.where(out, np.nan, y)

            what = (
                f"{100 * lost:.0f} % unscored, "
                f"{'the lowest of one group, others at random' if lowest else 'at random'}"
            )
            seed = 19, 10 * at + lowest
            rows += fair_and_biased("G19", what, frame, make, count, *seed, alarms=0.04)[0]
            if lost == 0.06:
                large = judged(frame, make, fewer(count), rng_of(*seed, 2), 0.8, kind="numeric")
                rows.append(at_least("G19", f"{what}: d = .8 found", 0.90, alarmed(large)))
    return rows


def approvals(count: int) -> list[Row]:
    """G20: fair approvals, common and rare."""
    rows, design = [], Design(groups=2)
    for at, (approved, least) in enumerate(((0.5, 0.90), (0.9, 0.55), (0.98, 0.70), (1.0, 1.0))):
        found = judged(
            design.frame(),
            lambda rng, _, r=approved: design.approved(rng, r),
            count,
            rng_of(20, at),
        )
        what = f"approvals at {approved:g}, fair, 2 groups"
        rows += [
            at_most("G20", f"{what}: red", 0.05, [colour(finding) == "red" for finding in found]),
            at_least("G20", f"{what}: PASS", least, passed(found)),
        ]
    return rows


def colour(finding: Finding) -> str:
    """PASS, warning, or red, which fails the test."""
    if finding.verdict is Verdict.PASS:
        return "PASS"
    return (
        "red"
        if finding.verdict in ALARM or finding.reason is None or finding.reason.unusable
        else "warning"
    )


def four_fifths(count: int) -> list[Row]:
    """G21: decisions about unrelated cases."""

    def run(runs: int, n: int, rates: list[float], *seed: int) -> list[Finding]:
        frame = pd.DataFrame({"group": np.repeat(list("ABCDEFGH"[: len(rates)]), n)})
        probability = np.repeat(rates, n)
        make: Make = lambda rng, _: rng.random(probability.size) < probability  # noqa: E731
        return judged(
            frame, make, runs, rng_of(21, *seed), analyze=analyze_four_fifths, cluster=None
        )

    rows = []
    for groups in (2, 4, 8):
        for n in (100, 200, 1000):
            what = f"four-fifths, {groups} groups of {n}, rate .4: fair audit alarms"
            rows.append(
                at_most("G21", what, 0.065, alarmed(run(count, n, [0.4] * groups, groups, n)))
            )
    biased = run(fewer(count), 200, [0.24, 0.4, 0.4, 0.4], 1)
    what = "four-fifths, ratio .6, 4 groups of 200"
    return [
        *rows,
        at_least("G21", f"{what}: found", 0.80, alarmed(biased)),
        at_most("G21", f"{what}: passes", 0.05, passed(biased)),
    ]


def choices(count: int) -> list[Row]:
    """G22: choice under position bias."""
    pair, context, order, repetition = (axis.ravel() for axis in np.indices((20, 5, 2, 2)))
    sides = np.array([["A", "B"], ["B", "A"]])[order]
    table = pd.DataFrame(
        {
            "first": sides[:, 0],
            "second": sides[:, 1],
            "name": pair,
            "template": context,
            "repetition": repetition,
        }
    )
    sign = np.where(order == 0, 1.0, -1.0)

    def run(runs: int, bias: float, lean: float, *seed: int) -> list[Finding]:
        rng, found = rng_of(22, *seed), []
        for _ in range(runs):
            own = rng.normal(0, 0.2 * LOGIT, 20)[pair]
            won = rng.random(pair.size) < expit(bias + sign * (own - lean))
            table["chosen"] = np.where(won, table["first"], table["second"])
            found.append(analyze_preference(table))
        return found

    rows = []
    for bias in (0, 1, 2, 3):
        what = f"choice, position bias {bias} logits"
        half = run(fewer(count), bias, 0.5 * LOGIT, bias, 1)
        rows += [
            at_most(
                "G22", f"{what}: fair audit alarms", 0.06, alarmed(run(count, bias, 0.0, bias, 0))
            ),
            at_most("G22", f"{what}: d = .5 passes", 0.07, passed(half)),
        ]
    lean = _bisect(lambda lean: (expit(2 + lean) + expit(-2 + lean)) / 2, 0.57, 50)
    found = alarmed(run(fewer(count), 2, lean, 9))
    return [*rows, at_least("G22", "choice, win rate .57 at 2 logits: found", 0.80, found)]


def gate(count: int) -> list[Row]:
    """G23: the baseline gate."""
    rows = []
    plans: tuple[tuple[str, dict[str, float], str, float], ...] = (
        ("one category with three times the noise: flake", {"noisy": 3}, "≤", 0.01),
        ("one reply of 1000: flake", {"wild": 1000}, "≤", 0.01),
        ("one repetition: flake", {"repetitions": 1}, "≤", 0.01),
        ("30 personas: flake", {"personas": 30}, "≤", 0.01),
        ("five personas −40: found", {"five": 40}, "≥", 0.98),
        ("five personas −10: found", {"five": 10}, "≥", 0.60),
        ("everyone −5 with one reply of 1000: found", {"all": 5, "wild": 1000}, "≥", 0.98),
    )
    for at, (what, plan, side, limit) in enumerate(plans):
        rng = rng_of(23, at)
        failed = [
            _gate(rng, plan).verdict is Verdict.FAIL
            for _ in range(count if side == "≤" else fewer(count))
        ]
        rows.append((at_most if side == "≤" else at_least)("G23", f"gate, {what}", limit, failed))
    return rows


def _gate(rng: np.random.Generator, plan: dict[str, float]) -> Finding:
    people, times = int(plan.get("personas", 100)), int(plan.get("repetitions", 3))
    index = np.repeat(np.arange(people), times)
    small = np.arange(people) < 5
    category = np.where(small, 0, 1 + np.arange(people) % 7)[index]
    frame = pd.DataFrame(
        {"persona": index, "category": category, "repetition": np.tile(np.arange(times), people)}
    )
    level = rng.normal(80, 6, people)[index]
    noise = np.where(category == 1, plan.get("noisy", 1), 1) * 6
    scores = [level + rng.normal(0, noise), level + rng.normal(0, noise)]
    scores[1] = scores[1] - plan.get("all", 0) - plan.get("five", 0) * small[index]
    if "wild" in plan:
        scores[1][rng.integers(index.size)] = plan["wild"]
    old, new = (summarise_scores(frame, one.tolist(), categories=["category"]) for one in scores)
    return compare_baseline(old, new, margin_overall=1.0, margin_category=3.0)


def refused(count: int) -> list[Row]:
    """G24: refused or unanswered."""
    rows, design = [], Design()
    frame = design.frame()
    own = (frame["group"] == "A").to_numpy()

    def run(
        runs: int, how: str, share_own: float, share_others: float, *seed: int
    ) -> list[Finding]:
        def make(rng: np.random.Generator, d: float) -> np.ndarray:
            y = design.latent(rng, d=d).ravel()
            out = rng.random(own.size) < np.where(own, share_own, share_others)
            frame["refused"] = out & (how == "refused")
            return np.where(out, np.nan, y)

        return judged(frame, make, runs, rng_of(24, *seed), kind="numeric")

    for kind, how in enumerate(("refused", "unanswered")):
        for at, everywhere in enumerate((0.02, 0.05)):
            fair = run(count, how, everywhere, everywhere, kind, at)
            what = f"{100 * everywhere:.0f} % {how} everywhere"
            passes = f"{what}: fair audit passes"
            rows.append(at_most("G24", f"{what}: fair audit alarms", 0.06, alarmed(fair)))
            if how == "unanswered":
                rows.append(Row("G24", passes, "reported", share(passed(fair)), len(fair), True))
            else:
                rows.append(at_least("G24", passes, 0.85, passed(fair)))
        for what, seed, limit, ours, theirs in (
            ("2 % against 15 %", 5, 0.95, 0.15, 0.02),
            ("0 against 100 %", 6, 1.0, 1.0, 0.0),
        ):
            found = alarmed(run(fewer(count), how, ours, theirs, kind, seed))
            rows.append(at_least("G24", f"{what} {how}: found", limit, found))
    return rows


def confirmation(count: int) -> list[Row]:
    """G25: an alarm is judged again with 20 other names a group, both samples together, at half of
    alpha.
    """
    design = Design()

    def run(runs: int, d: float, seed: int) -> tuple[list[Finding], list[bool]]:
        rng = rng_of(25, seed)
        make: Make = lambda rng, d: design.latent(rng, d=d)  # noqa: E731
        looks = [confirmed_audit(rng, design, make, d, kind="numeric") for _ in range(runs)]
        return [finding for finding, _ in looks], [again for _, again in looks]

    (fair, again), (half, _), (third, _) = (
        run(2 * count, 0.0, 0),
        run(fewer(count), 0.5, 1),
        run(fewer(count), 0.35, 2),
    )
    return [
        at_most("G25", "confirmation: fair audit alarms", 0.015, alarmed(fair)),
        at_most("G25", "confirmation: d = .5 passes, a pair", 0.03, green(half)),
        at_least("G25", "confirmation: d = .5 found", 0.95, alarmed(half)),
        at_least("G25", "confirmation: d = .35 found", 0.70, alarmed(third)),
        at_most("G25", "confirmation: more calls on a fair system", 0.06, again),
    ]


PLANS: tuple[tuple[str, float, dict[str, float]], ...] = (
    ("numeric", 0.0, {}),
    ("numeric", 0.1, {"groups": 4}),
    ("numeric", 0.3, {}),
    ("numeric", 0.1, {"templates": 1}),
    ("numeric", 0.0, {"names": 1, "repetitions": 20}),
    ("ordinal", 0.0, {}),
    ("ordinal", 0.3, {}),
    ("ordinal", 0.1, {"templates": 1}),
    ("ordinal", 0.0, {"names": 1, "repetitions": 20}),
    ("binary", 0.0, {}),
    ("binary", 0.1, {"groups": 4}),
    ("binary", 0.3, {}),
    ("binary", 0.1, {"templates": 1}),
    ("binary", 0.0, {"names": 1, "repetitions": 20}),
    ("binary", 0.0, {"rate": 0.1}),
    ("binary", 0.3, {"rate": 0.1}),
    ("binary", 0.1, {"rate": 0.9}),
    ("binary", 0.0, {"rate": 0.9, "names": 1, "repetitions": 20}),
    ("refusal", 0.1, {"rate": 0.05}),
    ("numeric", 0.04, {"names": 12}),
    ("binary", 0.04, {"rate": 0.8}),
    ("categorical", 0.04, {"levels": 4}),
    ("categorical", 0.0, {}),
    ("categorical", 0.1, {"groups": 4}),
    ("categorical", 0.3, {}),
    ("categorical", 0.1, {"templates": 1}),
    ("categorical", 0.0, {"names": 1, "repetitions": 20}),
)
"""Kind, ICC, and the other arguments of ``plan_sample``: the design that it gives is simulated."""
WITHIN = 0.03


def plans(count: int) -> list[Row]:
    """G26: pairs d = .5 apart are found, and equal ones pass, as often as a plan promises."""
    rows = []
    for at, (kind, icc, options) in enumerate(PLANS):
        plan = plan_sample(kind, icc=icc, **options)
        design = Design(
            groups=plan.groups,
            names=plan.names,
            templates=plan.templates,
            repetitions=plan.repetitions,
        )
        settings = ", ".join(f"{name} {value:g}" for name, value in {"ICC": icc, **options}.items())
        what = (
            f"{plan.outcome.partition(',')[0]}, {settings}: {plan.names} × {plan.templates} × "
            f"{plan.repetitions}"
        )

        def make(
            rng: np.random.Generator, d: float, kind=kind, icc=icc, design=design, options=options
        ) -> np.ndarray:
            return _outcomes(
                rng, design, kind, d, icc, options.get("rate", 0.5), int(options.get("levels", 3))
            )

        as_kind = "binary" if kind == "refusal" else kind
        half, equal = (
            judged(design.frame(), make, count, rng_of(26, at, seed), d, kind=as_kind)
            for seed, d in ((0, 0.5), (1, 0.0))
        )
        found = [pair.verdict in ALARM for pair in own_pairs(half)]
        equals = [
            pair.verdict is Verdict.PASS
            for finding in equal
            for pair in finding.pairs
            if pair.metric == "y"
        ]
        rows += [
            promised(f"{what}: found", plan.power, found),
            promised(f"{what}: PASS", plan.pass_probability, equals),
        ]
    return rows


def promised(what: str, wanted: float, values: list[bool]) -> Row:
    """Met within .03, and twice the standard error of so few runs."""
    found = share(values)
    room = WITHIN + 2 * np.sqrt(wanted * (1 - wanted) / len(values))
    return Row(
        "G26", what, f"{wanted:.3f}".lstrip("0"), found, len(values), abs(found - wanted) <= room
    )


def _outcomes(
    rng: np.random.Generator,
    design: Design,
    kind: str,
    d: float,
    icc: float,
    rate: float,
    labels: int = 3,
) -> np.ndarray:
    """Outcomes with the share *icc* of their variance between names, group A worse by *d*;
    marginals are exact.
    """
    if kind == "categorical":
        shares = label_shares(d, labels)
        which = [0] + [1] * (design.groups - 1)
        names = [
            rng.dirichlet(shares[g] * (1 - icc) / icc, design.names)
            if icc
            else np.tile(shares[g], (design.names, 1))
            for g in which
        ]
        edges = np.cumsum(np.stack(names), axis=2)[:, :, None, None, :-1]
        return np.array(["interview", "keep", "reject", "wait"])[
            (rng.random(design.shape)[..., None] > edges).sum(axis=-1)
        ]
    cuts = (0.2, 0.4, 0.6, 0.8) if kind == "ordinal" else (1 - rate,)
    latent = icc if kind == "numeric" else _latent(cuts, icc)
    y = np.sqrt(latent) * rng.normal(size=(*design.shape[:2], 1, 1))
    y = y + np.sqrt(1 - latent) * rng.normal(size=design.shape)
    if kind == "numeric":
        y[0] -= d
        return y + 0.2 * np.sin(np.arange(design.templates))[None, None, :, None]
    y = logit(ndtr(y))
    y[0] += (np.copysign(d, rate - 0.5) if kind != "ordinal" else -d) * LOGIT
    return (y[..., None] > logit(np.array(cuts))).sum(axis=-1).astype(float)


@cache
def _latent(cuts: tuple[float, ...], icc: float) -> float:
    """The ICC of a normal variable whose levels, cut at these quantiles, have *icc*."""
    if icc == 0:
        return 0.0
    x, weight = np.polynomial.hermite_e.hermegauss(80)
    weight = weight / weight.sum()
    shares = np.diff(cuts, prepend=0.0, append=1.0)
    level = np.arange(shares.size)
    variance = float(shares @ level**2 - (shares @ level) ** 2)

    def missing(latent: float) -> float:
        below = ndtr((ndtri(np.array(cuts))[:, None] - np.sqrt(latent) * x) / np.sqrt(1 - latent))
        mean = len(cuts) - below.sum(axis=0)
        return float(weight @ mean**2 - (weight @ mean) ** 2) - icc * variance

    return float(brentq(missing, 1e-9, 0.999))


GOALS: tuple[Callable[[int], list[Row]], ...] = (
    outliers,
    heavy_tails,
    ceiling,
    unequal,
    paired,
    parts,
    one_template,
    missing,
    approvals,
    four_fifths,
    choices,
    gate,
    refused,
    confirmation,
    plans,
)
