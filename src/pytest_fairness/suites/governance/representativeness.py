"""Likeness of personas, names and a dataset to a declared population, and whom they leave out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from pytest_fairness import (
    Finding,
    GroupResult,
    InvalidEntry,
    NameBanks,
    OutcomeKind,
    PersonaMatrix,
    Reason,
    UsageError,
    Verdict,
)
from pytest_fairness.analysis.checks import checked, judge_counts, judge_representation, unchecked
from pytest_fairness.design.signals import Signals
from pytest_fairness.model import JSON
from pytest_fairness.statistics.goodness_of_fit import GroupFit, goodness_of_fit
from pytest_fairness.suites.authoring import Text, did_you_mean, project_folder
from pytest_fairness.words import listed, percent

if TYPE_CHECKING:
    import pandas as pd

#: The protected classes of the test programme.
CLASSES = (
    "race_ethnicity",
    "gender",
    "age",
    "disability",
    "religion",
    "sexual_orientation",
    "national_origin",
    "socioeconomic_status",
)
#: Those of which every pair of groups should have a persona.
CROSSED = CLASSES[:4]
#: What is tested with is data for verification; a dataset of the system's own is data for its
#: development.
OF_TESTS = {"A.7.4": "supporting", "A.6.2.4": "supporting"}
OF_DATASET = {"A.7.2": "supporting", "A.7.4": "direct"}
#: Names a group that can be drawn: what a grid asks for, and what it takes to say anything.
NAMES, FEWEST_NAMES = 20, 10
_MOST_LISTED = 8
_Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class DataOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of ``governance.yaml`` under ``data``.

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
    for name in dict.fromkeys((*CLASSES, *options.population, *options.columns)):
        column = options.columns.get(name, name)
        if column in frame.columns:
            groups = frame[column].str.strip().replace("", None)
            frame[name] = groups.replace(options.groups.get(name, {}))
            _check_groups(set(frame[name].dropna()), name, options)
        elif name in options.columns or name in options.population:
            near = did_you_mean(column, frame.columns)
            raise UsageError(
                f"governance.yaml: data: {options.dataset} has no column {column!r} for {name} "
                f"(it has: {listed(frame.columns)}){near}: name it under columns"
            )
    return PersonDataset(options.dataset, columns, frame)


def _check_groups(groups: set[str], name: str, options: DataOptions) -> None:
    """Raise UsageError for *groups* of the class *name* of which the declared population, if any,
    says nothing.
    """
    if name not in options.population:
        return
    if unknown := sorted(groups - options.population[name].keys()):
        raise UsageError(
            f"governance.yaml: data: {name} has {listed(unknown)} in {options.dataset}, of which "
            "the declared population says nothing: declare a share, or map the value to a group "
            "under groups"
        )


def representative(
    counts: Mapping[str, int], declared: Mapping[str, float], what: str, by: str, margin: float
) -> Finding:
    """Return whether each group of the class *by* has its *declared* share of *what* was sampled,
    or at least *margin* of it.

    :func:`~pytest_fairness.analysis.checks.judge_representation` decides.
    """
    import pandas as pd

    n = sum(counts.values())
    if not n:
        return unchecked(
            pd.DataFrame(),
            assertion="representative",
            reason=Reason.N,
            words=f"{what} says of nobody which group of {by} is theirs",
            protected_class=by,
            outcome=f"share of {what}",
        )
    groups = list(declared)
    fit = goodness_of_fit(
        [counts.get(group, 0) for group in groups], [declared[group] for group in groups]
    )
    fits = dict(zip(groups, fit.groups, strict=True))
    verdict, reason = judge_representation(fit, margin)
    if verdict is Verdict.PASS:
        words = (
            f"every group of {by} has at least {percent(margin)} of its declared share of {what}"
        )
    elif verdict is Verdict.INCONCLUSIVE:
        least = min(groups, key=lambda group: fits[group].low)
        words = (
            f"{n:,} of {what} are too few to tell whether {least} has {percent(margin)} of its "
            f"declared share of {by}"
        )
    else:
        worst = min(groups, key=lambda group: fits[group].ratio)
        words = (
            f"{worst} is {percent(counts.get(worst, 0) / n)} of {n:,} in {what}, and "
            f"{percent(declared[worst])} of the declared population, "
            f"{percent(fits[worst].ratio)} of its share (at most {percent(fits[worst].high)})"
        )
    return _finding(
        "representative",
        verdict,
        words,
        by,
        outcome=f"share of {what}",
        kind=OutcomeKind.CATEGORICAL,
        reason=reason,
        n_per_group={group: counts.get(group, 0) for group in groups},
        group_results=_group_results(counts, declared, fits),
        test_statistic=f"chi-square = {fit.statistic:.2f}, df = {fit.df}",
        effect_size=f"Cohen's w = {fit.w:.3f}",
        p_value=fit.p_value,
        corrected_p_value=fit.p_value,
        details={
            "declared": dict(declared),
            "standardised_residuals": {group: fits[group].residual for group in groups},
        },
    )


def _group_results(
    counts: Mapping[str, int], declared: Mapping[str, float], fits: Mapping[str, GroupFit]
) -> tuple[GroupResult, ...]:
    """The share of each group, with the interval that *fits* has of it."""
    n = sum(counts.values())
    results = []
    for group, share in declared.items():
        results.append(
            GroupResult(
                group=group,
                n=n,
                clusters=n,
                value=counts.get(group, 0) / n,
                low=fits[group].low * share,
                high=min(1.0, fits[group].high * share),
            )
        )
    return tuple(results)


def _finding(assertion: str, verdict: Verdict, words: str, by: str, **given: Any) -> Finding:
    """Return a finding about the data of a project, which is about no trials."""
    import pandas as pd

    return checked(
        pd.DataFrame(),
        assertion=assertion,
        verdict=verdict,
        words=words,
        protected_class=by,
        **given,
    )


def _counted(
    verdict: Verdict,
    sentence: str,
    details: Mapping[str, JSON],
    by: str = "",
    notes: Iterable[str] = (),
) -> Finding:
    """A finding about what was counted, with nothing left to chance."""
    return _finding(
        "coverage",
        verdict,
        sentence,
        by,
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
    words = (
        f"every group of {by} has at least {percent(margin)} of its declared share of the personas"
    )
    if low:
        words = (
            f"{listed(low)} of {by}: under {percent(margin)} of the declared share of "
            f"{len(matrix)} personas; {worst} is {counts[worst]}, and {percent(declared[worst])} "
            "of the population"
        )
    verdict = judge_counts(ratios.values(), at_least=margin)
    return _counted(verdict, words, {"personas": dict(counts), "declared": dict(declared)}, by)


def classes_covered(matrix: PersonaMatrix, banks: NameBanks, signals: Signals) -> Finding:
    """Return whether each class of the programme can be asked about: by personas, by names, or by
    words for two groups.
    """
    signal_kinds = {name: _kinds_of_signal(name, matrix, banks, signals) for name in CLASSES}
    missing = [name for name, kinds in signal_kinds.items() if not kinds]
    empty = []
    for first, second in combinations(CROSSED, 2):
        groups = [(persona.groups[first], persona.groups[second]) for persona in matrix]
        if pairs := _thin_pairs(groups, 1):
            empty.append(f"{first} × {second}: {listed(pairs[:_MOST_LISTED])}")
    notes = []
    if empty:
        notes = [f"pairs of groups without a persona: {'; '.join(empty)}"]
    words = f"all {len(CLASSES)} classes of the programme can be asked about, each by two or more groups"
    if missing:
        words = f"nothing conveys {listed(missing)}: add words in personas/signals, or names"
    verdict = judge_counts(map(len, signal_kinds.values()), at_least=1)
    details: dict[str, JSON] = {"ways": {name: list(kinds) for name, kinds in signal_kinds.items()}}
    return _counted(verdict, words, details, notes=notes)


def _kinds_of_signal(
    name: str, matrix: PersonaMatrix, banks: NameBanks, signals: Signals
) -> list[str]:
    """The kinds of signal that convey two or more groups of the class *name*."""
    kinds = []
    if len({persona.groups.get(name) for persona in matrix}) > 1:
        kinds.append("personas")
    if name in banks.protected_classes:
        kinds.append("names")
    for kind in signals.kinds_of(name):
        if len(signals.groups(name, kind)) > 1:
            kinds.append(kind)
    return kinds


def _thin_pairs(pairs: Iterable[tuple[str, str]], least: int) -> list[str]:
    """The combinations of the groups that occur, which fewer than *least* have."""
    counts = Counter(pairs)
    firsts = dict.fromkeys(first for first, _ in counts)
    seconds = dict.fromkeys(second for _, second in counts)
    thin = []
    for first, second in product(firsts, seconds):
        if counts[first, second] < least:
            thin.append(f"{first} and {second}")
    return thin


def name_banks_suffice(banks: NameBanks) -> Finding:
    """Return whether every group of every class has the twenty names that a grid asks for, or at
    least ten.
    """
    names: dict[str, dict[str, int]] = {}
    sizes: list[tuple[str, int]] = []
    for name in banks:
        names[name] = {group: len(of_group) for group, of_group in banks[name].items()}
        sizes += names[name].items()
    verdict = judge_counts((n for _, n in sizes), at_least=NAMES, fail_below=FEWEST_NAMES)
    if verdict is Verdict.FAIL:
        words = f"{_fewer(sizes, FEWEST_NAMES)}, with which nothing can be said"
    elif verdict is Verdict.FLAG:
        words = f"{_fewer(sizes, NAMES, 'the ')} that a grid asks for"
    else:
        words = f"every group of {listed(names)} has {NAMES} names or more"
    return _counted(verdict, words, {"names": {name: dict(of) for name, of in names.items()}})


def _fewer(sizes: Iterable[tuple[str, int]], least: int, article: str = "") -> str:
    """The groups that have fewer names than *least*, in words."""
    few = [f"{group} ({n})" for group, n in sizes if n < least]
    return f"{listed(few)}: fewer names than {article}{least}"


def classes_told_by(frame: pd.DataFrame) -> list[str]:
    """Return the protected classes of which a dataset has rows of two groups or more."""
    return [name for name in CLASSES if name in frame.columns and frame[name].nunique() > 1]


def intersections_covered(frame: pd.DataFrame, least: int) -> Finding:
    """Return whether each combination of groups of two classes has *least* rows of a dataset; of one
    class there is none.
    """
    classes = classes_told_by(frame)
    missing = [name for name in CLASSES if name not in classes]
    notes = []
    if missing:
        notes = [f"no column, or one group alone: {listed(missing)}"]
    if not classes:
        words = "the dataset says of no protected class who is who"
        return _counted(judge_counts([0], at_least=1), words, {}, notes=notes)
    thin: dict[str, list[str]] = {}
    for first, second in combinations(classes, 2):
        rows = frame[[first, second]].dropna()
        if pairs := _thin_pairs(zip(rows[first], rows[second], strict=True), least):
            thin[f"{first} × {second}"] = pairs
    number = sum(map(len, thin.values()))
    words = f"every combination of groups of {listed(classes)} has {least} rows or more"
    details: dict[str, JSON] = {}
    if thin:
        where, pairs = next(iter(thin.items()))
        words = (
            f"{number} combinations of groups have fewer than {least} rows, such as {pairs[0]} "
            f"({where})"
        )
        details = {"thin": {classes_: list(pairs) for classes_, pairs in thin.items()}}
    return _counted(judge_counts([number], at_most=0), words, details, notes=notes)


def few_duplicates(frame: pd.DataFrame, columns: Iterable[str], most: float) -> Finding:
    """Return whether more than the share *most* of the rows repeat another, in all *columns* of the
    file.
    """
    repeated = int(frame.duplicated(subset=list(columns)).sum())
    share = 0.0
    if len(frame):
        share = repeated / len(frame)
    words = f"{repeated:,} of {len(frame):,} rows repeat another ({percent(share)})"
    verdict = judge_counts([share], at_most=most)
    if verdict is Verdict.FLAG:
        words += f", over {percent(most)}"
    return _counted(verdict, words, {"repeated": repeated})
