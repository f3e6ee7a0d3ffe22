"""How far personas, name banks and a dataset are like a declared population, and whom they leave
out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from pytest_fairness.analysis.checks import checked, judge_representation
from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.personas import PersonaMatrix
from pytest_fairness.design.signals import Signals
from pytest_fairness.documents import Text, project_folder
from pytest_fairness.errors import InvalidEntry, UsageError, did_you_mean
from pytest_fairness.model import JSON, Finding, GroupResult, OutcomeKind, Reason, Verdict
from pytest_fairness.statistics.goodness_of_fit import GoodnessOfFit, goodness_of_fit
from pytest_fairness.words import listed, percent

if TYPE_CHECKING:
    import pandas as pd

#: The protected classes of the test programme.
CLASSES = (
    "race_ethnicity", "gender", "age", "disability", "religion", "sexual_orientation", "national_origin",
    "socioeconomic_status",
)  # fmt: skip
#: What is tested with is data for verification; a dataset of the system's own is data for its
#: development.
OF_TESTS = {"A.7.4": "supporting", "A.6.2.4": "supporting"}
OF_DATASET = {"A.7.2": "supporting", "A.7.4": "direct"}
#: Names a group that can be drawn: what a grid asks for, and what it takes to say anything.
NAMES, FEWEST_NAMES = 20, 10
_MOST_LISTED = 8
_Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class DataOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``governance.yaml`` may say under ``data``.

    ``dataset``: a CSV file at the project's root, a row a person. ``columns``: protected class →
    column, where it is not called like the class. ``groups``: class → value in the file → group.
    ``population``: class → group → declared share; the shares of a class sum to 1. ``margin``: the
    least share of a group, as a part of its declared one. ``least``: rows that every combination of
    two classes has. ``most_duplicates``: the greatest share of rows that repeat another.
    """

    dataset: str = ""
    columns: dict[str, Text] = {}
    groups: dict[str, dict[str, Text]] = {}
    population: dict[str, dict[str, _Share]] = {}
    margin: _Share = 0.8
    least: Annotated[int, msgspec.Meta(ge=1)] = 10
    most_duplicates: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.01

    def __post_init__(self) -> None:
        for name, shares in self.population.items():
            if len(shares) < 2 or abs(sum(shares.values()) - 1) > 0.005:
                raise InvalidEntry(
                    f"population: the shares of {name} are of two or more groups and sum to 1"
                )


@dataclass(frozen=True, slots=True)
class PersonDataset:
    """A row a person: the ``columns`` of the file, as texts, and one a protected class with the
    groups.
    """

    name: str
    columns: tuple[str, ...]
    frame: pd.DataFrame

    def with_missing(self, by: str) -> pd.DataFrame:
        """The rows whose group of *by* is known, with ``incomplete``: whether a column of the file
        says nothing.
        """
        rows = self.frame[self.frame[by].notna()]
        return rows.assign(incomplete=rows[list(self.columns)].isna().any(axis=1))


def signals_of(root: Path) -> Signals:
    """The words that convey groups: those that ship and those of the project at *root*."""
    return Signals.load(project_folder(root))


def dataset_of(options: DataOptions, root: Path) -> PersonDataset:
    """The dataset that ``governance.yaml`` names. Raises UsageError."""
    import pandas as pd

    path = root / options.dataset
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=True)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"governance.yaml: data: dataset: {options.dataset!r} cannot be read: {error}"
        ) from None
    columns = tuple(map(str, frame.columns))
    wanted = {
        name: options.columns.get(name, name)
        for name in (*CLASSES, *options.population, *options.columns)
    }
    for name, column in wanted.items():
        if column not in frame.columns:
            if name in options.columns or name in options.population:
                near = did_you_mean(column, frame.columns)
                raise UsageError(
                    f"governance.yaml: data: {options.dataset} has no column {column!r} for {name} "
                    "(it has: "
                    f"{listed(frame.columns)}){near}: name it under columns"
                )
            continue
        frame[name] = (
            frame[column].str.strip().replace("", None).replace(options.groups.get(name, {}))
        )
        unknown = sorted({*frame[name].dropna()} - options.population.get(name, {}).keys())
        if unknown and name in options.population:
            raise UsageError(
                f"governance.yaml: data: {name} has {listed(unknown)} in {options.dataset}, of "
                "which the declared "
                "population says nothing: declare a share, or map the value to a group under groups"
            )
    return PersonDataset(options.dataset, columns, frame)


def representative(
    counts: Mapping[str, int], declared: Mapping[str, float], what: str, by: str, margin: float
) -> Finding:
    """Return whether each group of the class *by* has its *declared* share of *what* was sampled,
    or at least *margin* of it.

    :func:`~pytest_fairness.analysis.checks.judge_representation` decides.
    """
    n = sum(counts.values())
    if not n:
        return _unusable(f"{what} says of nobody which group of {by} is theirs", by, what)
    groups = list(declared)
    fit = goodness_of_fit(
        [counts.get(group, 0) for group in groups], [declared[group] for group in groups]
    )
    worst = min(range(len(groups)), key=lambda at: fit.ratios[at])
    share = counts.get(groups[worst], 0) / n
    wanted = declared[groups[worst]]
    words = (
        f"{groups[worst]} is {_percent(share)} of {n:,} in {what}, and {_percent(wanted)} of the "
        "declared population"
    )
    below = (
        f"{words}, {_percent(fit.ratios[worst])} of its share (at most {_percent(fit.high[worst])})"
    )
    verdict, reason = judge_representation(fit, margin)
    if verdict is Verdict.PASS:
        sentence = (
            f"every group of {by} has at least {_percent(margin)} of its declared share of {what}"
        )
    elif verdict is Verdict.INCONCLUSIVE:
        least = groups[min(range(len(groups)), key=lambda at: fit.low[at])]
        sentence = (
            f"{n:,} of {what} are too few to tell whether {least} has {_percent(margin)} of its "
            f"declared share of {by}"
        )
    else:
        sentence = below
    return _finding(verdict, sentence, by, what, reason, n, counts, declared, fit)


def _finding(
    verdict: Verdict, sentence: str, by: str, what: str, reason: Reason | None, n: int, counts: Mapping[str, int],
    declared: Mapping[str, float], fit: GoodnessOfFit,
) -> Finding:  # fmt: skip
    import pandas as pd

    results = [
        GroupResult(
            group=group, n=n, clusters=n, value=counts.get(group, 0) / n, low=fit.low[at] * declared[group],
            high=min(1.0, fit.high[at] * declared[group]),
        )
        for at, group in enumerate(declared)
    ]  # fmt: skip
    residuals: dict[str, JSON] = dict(zip(declared, fit.residuals, strict=True))
    return checked(
        pd.DataFrame(),
        assertion="representative",
        verdict=verdict,
        words=sentence,
        protected_class=by,
        outcome=f"share of {what}",
        kind=OutcomeKind.CATEGORICAL,
        reason=reason,
        n_per_group={group: counts.get(group, 0) for group in declared},
        group_results=tuple(results),
        test_statistic=f"chi-square = {fit.statistic:.2f}, df = {fit.df}",
        effect_size=f"Cohen's w = {fit.w:.3f}",
        p_value=fit.p_value,
        corrected_p_value=fit.p_value,
        details={"declared": dict(declared), "standardised_residuals": residuals},
    )


def _unusable(sentence: str, by: str, what: str) -> Finding:
    import pandas as pd

    return checked(
        pd.DataFrame(),
        assertion="representative",
        verdict=Verdict.INCONCLUSIVE,
        words=sentence,
        reason=Reason.N,
        protected_class=by,
        outcome=f"share of {what}",
    )


def _counted(
    verdict: Verdict,
    sentence: str,
    details: Mapping[str, JSON],
    by: str = "",
    notes: Iterable[str] = (),
) -> Finding:
    """A finding about what was counted, with nothing left to chance."""
    import pandas as pd

    return checked(
        pd.DataFrame(),
        assertion="coverage",
        verdict=verdict,
        words=sentence,
        protected_class=by,
        outcome="coverage",
        test_statistic="counted, so nothing was tested",
        effect_size="counted, so there is no effect",
        details=dict(details),
        notes=tuple(notes),
    )


def matrix_shares(
    matrix: PersonaMatrix, by: str, declared: Mapping[str, float], margin: float
) -> Finding:
    """Return whether each group of *by* has at least *margin* of its declared share of the
    personas, which are no sample.
    """
    counts = Counter(persona.groups.get(by, "") for persona in matrix)
    ratios = {group: counts[group] / len(matrix) / share for group, share in declared.items()}
    worst = min(ratios, key=lambda group: ratios[group])
    low = [group for group, ratio in ratios.items() if ratio < margin]
    sentence = (
        f"every group of {by} has at least {_percent(margin)} of its declared share of the personas"
    )
    if low:
        sentence = (
            f"{listed(low)} of {by}: under {_percent(margin)} of the declared share of "
            f"{len(matrix)} personas; {worst} is {counts[worst]}, and {_percent(declared[worst])} "
            "of the population"
        )
    return _counted(
        Verdict.FLAG if low else Verdict.PASS,
        sentence,
        {"personas": dict(counts), "declared": dict(declared)},
        by,
    )


def classes_covered(matrix: PersonaMatrix, banks: NameBanks, signals: Signals) -> Finding:
    """Return whether each class of the programme can be asked about: by personas, by names, or by
    words for two groups.
    """
    ways: dict[str, JSON] = {}
    for name in CLASSES:
        uncovered = []
        if len({persona.groups.get(name) for persona in matrix}) > 1:
            uncovered = ["personas"]
        if name in banks.protected_classes:
            uncovered += ["names"]
        uncovered += [
            kind for kind in signals.kinds_of(name) if len(signals.groups(name, kind)) > 1
        ]
        ways[name] = list(uncovered)
    missing = [name for name, ways_ in ways.items() if not ways_]
    empty = [
        f"{first} × {second}: {', '.join(f'{a} and {b}' for a, b in pairs[:_MOST_LISTED])}"
        for first, second in combinations(("race_ethnicity", "gender", "age", "disability"), 2)
        if (
            pairs := _empty_pairs(
                [(persona.groups[first], persona.groups[second]) for persona in matrix], 1
            )
        )
    ]
    notes = []
    if empty:
        notes = [f"pairs of groups without a persona: {'; '.join(empty)}"]
    sentence = f"all {len(CLASSES)} classes of the programme can be asked about, each by two or more groups"
    if missing:
        sentence = f"nothing conveys {listed(missing)}: add words in personas/signals, or names"
    return _counted(
        Verdict.FLAG if missing else Verdict.PASS, sentence, {"ways": ways}, notes=notes
    )


def _empty_pairs(pairs: Iterable[tuple[str, str]], least: int) -> list[tuple[str, str]]:
    """The combinations of the groups that occur, which fewer than *least* have."""
    counts = Counter(pairs)
    firsts = dict.fromkeys(a for a, _ in counts)
    seconds = dict.fromkeys(b for _, b in counts)
    return [(a, b) for a in firsts for b in seconds if counts[a, b] < least]


def name_banks_suffice(banks: NameBanks) -> Finding:
    """Return whether every group of every class has the twenty names that a grid asks for, or at
    least ten.
    """
    names = {name: {group: len(of) for group, of in banks[name].items()} for name in banks}
    few = [
        (name, group, n)
        for name, groups in names.items()
        for group, n in groups.items()
        if n < NAMES
    ]
    too_few = [bank for bank in few if bank[2] < FEWEST_NAMES]
    if too_few:
        verdict = Verdict.FAIL
    elif few:
        verdict = Verdict.FLAG
    else:
        verdict = Verdict.PASS
    sentence = f"{listed([f'{group} ({n})' for _, group, n in too_few or few])}: fewer names than "
    if verdict is Verdict.PASS:
        sentence = f"every group of {listed(names)} has {NAMES} names or more"
    elif verdict is Verdict.FAIL:
        sentence += f"{FEWEST_NAMES}, with which nothing can be said"
    else:
        sentence += f"the {NAMES} that a grid asks for"
    return _counted(verdict, sentence, {"names": {name: dict(of) for name, of in names.items()}})


def intersections_covered(frame: pd.DataFrame, least: int) -> Finding:
    """Return whether each combination of groups of two classes has *least* rows of a dataset."""
    classes = [name for name in CLASSES if name in frame.columns and frame[name].nunique() > 1]
    missing = [name for name in CLASSES if name not in classes]
    thin: dict[str, list[str]] = {}
    for first, second in combinations(classes, 2):
        rows = frame[[first, second]].dropna()
        if few := _empty_pairs(zip(rows[first], rows[second], strict=True), least):
            thin[f"{first} × {second}"] = [f"{a} and {b}" for a, b in few]
    notes = []
    if missing:
        notes = [f"no column, or one group alone: {listed(missing)}"]
    if len(classes) < 2:
        counted = _counted(
            Verdict.FLAG,
            "the dataset says of fewer than two protected classes who is who",
            {},
            notes=notes,
        )
    elif thin:
        where, of = next(iter(thin.items()))
        number = sum(map(len, thin.values()))
        words = f"{number} combinations of groups have fewer than {least} rows, such as {of[0]} ({where})"
        counted = _counted(
            Verdict.FLAG,
            words,
            {"thin": {key: list(pairs) for key, pairs in thin.items()}},
            notes=notes,
        )
    else:
        words = f"every combination of groups of {listed(classes)} has {least} rows or more"
        counted = _counted(Verdict.PASS, words, {}, notes=notes)
    return counted


def few_duplicates(frame: pd.DataFrame, columns: Iterable[str], most: float) -> Finding:
    """Return whether more than the share *most* of the rows repeat another, in all *columns* of the
    file.
    """
    repeated = int(frame.duplicated(subset=list(columns)).sum())
    share = 0.0
    if len(frame):
        share = repeated / len(frame)
    words = f"{repeated:,} of {len(frame):,} rows repeat another ({_percent(share)})"
    if share > most:
        return _counted(Verdict.FLAG, f"{words}, over {_percent(most)}", {"repeated": repeated})
    return _counted(Verdict.PASS, words, {"repeated": repeated})


def _percent(share: float) -> str:
    return f"{percent(share)}"
