"""Two runs, or two endpoints of one, on the trials that they share: :func:`compare_runs`. From
their folders alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.looks import stopped_early
from pytest_fairness.analysis.side_by_side import (
    ALIKE,
    COMPARABLE,
    LARGER,
    OPEN,
    SMALLER,
    TURNED,
    SharedCells,
    SideChange,
    SideContrast,
    changes_of,
    contrasts_of,
)
from pytest_fairness.design.stages import BASE, DRAW
from pytest_fairness.errors import FairnessError, UsageError, unknown
from pytest_fairness.model import JSON
from pytest_fairness.runs.judgements import Judgement, judgements
from pytest_fairness.runs.project import chosen_run
from pytest_fairness.runs.reader import reading
from pytest_fairness.words import led, listed

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
_ORDER = (LARGER, TURNED, SMALLER, OPEN, ALIKE)
#: Columns that a notebook shows.
_SHOWN = (
    "test",
    "outcome",
    "by",
    "group_1",
    "group_2",
    "before",
    "after",
    "change",
    "low",
    "high",
    "verdict",
)
#: What a trial is matched by, beside what its test compares, where the table has it.
_CELL = ("cell", "arm", "tier", "signal", "repetition")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunComparison:
    """Comparison of which of several *sides* is fairer on what: each but the first is compared with
    the first.

    ``sides`` says of each which runs and endpoints it stands for; ``changes`` has every two groups
    that were compared, the worst for the later side first; ``left_out`` says what was not compared,
    and why.
    """

    sides: Mapping[str, str]
    changes: tuple[SideChange, ...]
    left_out: tuple[str, ...]
    simulated: bool
    replayed: bool
    alpha: float
    correction: str

    @property
    def counts(self) -> dict[str, int]:
        """Return how often each verdict was reached."""
        return dict(Counter(change.verdict for change in self.changes))

    @property
    def worse(self) -> bool:
        """Return whether a side is less fair than the first on anything."""
        return LARGER in {change.became for change in self.changes}

    def __repr__(self) -> str:
        parts = [f"{count} {verdict}" for verdict, count in self.counts.items()]
        if self.simulated:
            parts.append("simulated")
        return f"<RunComparison of {', '.join(self.sides)}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        from pytest_fairness.reports.escaping import html

        frame = self.to_frame()[list(_SHOWN)]
        return f"<p>{html(repr(self))}</p>{frame.to_html(index=False, escape=True)}"

    def to_frame(self) -> pd.DataFrame:
        """One row for every two groups that were compared: the fields of the change, its verdict
        and sentence.
        """
        import pandas as pd

        return pd.DataFrame(self._rows())

    def to_dict(self) -> dict[str, JSON]:
        """All of it as plain JSON."""
        return {
            "schema": SCHEMA,
            "sides": dict(self.sides),
            "simulated": self.simulated,
            "replayed": self.replayed,
            "family": {"size": len(self.changes), "method": self.correction, "alpha": self.alpha},
            "changes": self._rows(),
            "left_out": list(self.left_out),
        }

    def _rows(self) -> list[Any]:
        return [change.to_dict() for change in self.changes]


def compare_runs(
    *runs: str | os.PathLike[str],
    endpoints: Sequence[str] = (),
    alpha: float = 0.05,
    correction: str = "holm",
) -> RunComparison:
    """Say which of two or more runs, or with *endpoints* which of these in *runs*, is fairer on
    what.

    Compared is what both sides judged: the same test, assertion, outcome and class, on the same
    trials (cell, repetition and every word that was sent). The disparity between two groups on one
    side is held against that on the other, name by name:
    :func:`pytest_fairness.analysis.side_by_side.changes_of`. All that is compared is one family,
    corrected by *correction*.

    Each of *runs* is a folder or what :func:`pytest_fairness.open_run` takes. Of several runs that
    judged the same with the same endpoint, *endpoints* takes the last. Raises UsageError where
    there are not two sides or nothing is shared, and StoreError for a run whose records are
    damaged.
    """
    folders = list(map(chosen_run, runs))
    if _repeats(map(Path.resolve, folders)):
        raise UsageError(
            "the same run stands twice: give two runs, or one and the endpoints to compare in it"
        )
    judged = list(map(_Judged.of_run, folders))
    left_out: list[str] = []
    if endpoints:
        sides = _by_endpoint(judged, endpoints)
        left_out += _without_endpoint(judged)
    else:
        sides = _by_run(judged)
    if len(sides) < 2:
        raise UsageError(
            "a comparison takes two sides: give two runs, or one run and two endpoints of it"
        )
    (first, before), *others = sides.items()
    contrasts: list[SideContrast] = []
    frames: list[pd.DataFrame] = []
    for second, after in others:
        for shared, of_shared in _contrasts(before, after, (first, second), left_out):
            contrasts += of_shared
            frames.append(shared.frame)
    if not contrasts:
        why = "; ".join(dict.fromkeys(left_out)) or "they hold no findings"
        raise UsageError(f"{' and '.join(sides)} share nothing that can be compared: {why}")
    changes = changes_of(contrasts, alpha=alpha, correction=correction)
    return RunComparison(
        sides={name: _about(entries) for name, entries in sides.items()},
        changes=tuple(sorted(changes, key=_urgency)),
        left_out=tuple(dict.fromkeys(left_out)),
        simulated=_marked(frames, "simulated"),
        replayed=_marked(frames, "replayed"),
        alpha=alpha,
        correction=correction,
    )


def _contrasts(
    before: Sequence[_Entry], after: Sequence[_Entry], sides: tuple[str, str], left_out: list[str]
) -> Iterator[tuple[SharedCells, list[SideContrast]]]:
    """Yield the cells that both sides judged, with what they contrast; what cannot be compared is
    *left_out*, with why.
    """
    for entry, counterpart in _matched(before, after, sides, left_out):
        try:
            shared = _shared(entry, counterpart, sides, left_out)
            yield shared, list(contrasts_of(shared))
        except FairnessError as error:
            left_out.append(f"{entry.about}: {error}")


def _repeats(values: Iterable[object]) -> bool:
    """Return whether any of *values* stands twice."""
    return max(Counter(values).values(), default=0) > 1


def _urgency(change: SideChange) -> tuple[int, float]:
    return _ORDER.index(change.became), change.corrected_p_value or 0.0


# ---------------------------------------------------------------- what a run judged


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One judgement of one endpoint: its *rows* of the table. ``key`` is the same for what is
    compared.
    """

    run: _Judged
    test: str
    endpoint: str
    judgement: Judgement
    rows: pd.DataFrame
    key: tuple[str, ...]

    @property
    def stopped_early(self) -> bool:
        """Return whether an alarm ended the asking before its plan did."""
        details: Mapping[str, Any] = self.judgement.finding.get("details") or {}
        return stopped_early(details.get("looks"))

    @property
    def about(self) -> str:
        by = self.judgement.arguments.get("by")
        if isinstance(by, (list, tuple)):
            by = " × ".join(by)
        return f"{self.test}, {self.key[2]} by {by}"


class _Judged:
    """The judgements of a run, each an entry for every endpoint, and what was sent in each of its
    trials.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: list[_Entry] = []
        self._sent: dict[str, str] = {}

    @classmethod
    def of_run(cls, folder: Path) -> _Judged:
        """Read the run. Raises StoreError where a record is damaged."""
        made = cls(folder)
        with reading(folder) as reader:
            for (test, _), judgement in judgements(reader).items():
                rows = judgement.frame()
                if DRAW in rows.columns:
                    rows = rows[rows[DRAW] <= BASE]
                made._add(test, judgement, rows)
            keys: set[str] = set()
            for entry in made.entries:
                if "key" in entry.rows:
                    keys.update(map(str, entry.rows["key"]))
            for record in filter(None, reader.records(keys)):
                parameters = record["parameters"]["requested"]
                sent = [record["cell"]["system"], record["cell"]["turns"], parameters]
                digest = hashlib.sha256(json.dumps(sent).encode()).hexdigest()
                made._sent[record["key"]] = digest
        return made

    def _add(self, test: str, judgement: Judgement, rows: pd.DataFrame) -> None:
        """An entry for each endpoint that *rows* are about; of several comparisons that are called
        alike, each is numbered.
        """
        parts = {"": rows}
        if "endpoint" in rows:
            endpoints = rows["endpoint"].map(str)
            parts = {name: rows[endpoints == name] for name in endpoints.unique()}
        outcome = "choices"
        if judgement.outcome:
            outcome = judgement.outcome.name
        by = json.dumps(judgement.arguments.get("by"))
        for name, part in parts.items():
            key = (_without(test, name), judgement.analysis, outcome, by)
            number = sum(entry.endpoint == name and entry.key[:-1] == key for entry in self.entries)
            self.entries.append(
                _Entry(
                    run=self,
                    test=test,
                    endpoint=name,
                    judgement=judgement,
                    rows=part,
                    key=(*key, str(number)),
                )
            )

    @property
    def only_endpoint(self) -> str:
        """Return the endpoint that the run asked; empty where it asked several."""
        endpoints = {entry.endpoint for entry in self.entries}
        if len(endpoints) == 1:
            return endpoints.pop()
        return ""

    def sent(self, keys: Iterable[object]) -> list[str]:
        """Return what tells apart what was sent in trials: its digest; of a trial that is not in
        the run, its key.
        """
        return [self._sent.get(str(key), str(key)) for key in keys]


def _without(test: str, endpoint: str) -> str:
    """The name of *test* without that of the *endpoint*, which stands before its other parameters."""
    name, bracket, parameters = test.partition("[")
    if not bracket or not endpoint or not f"{parameters[:-1]}-".startswith(f"{endpoint}-"):
        return test
    left = parameters[:-1].removeprefix(endpoint).removeprefix("-")
    if left:
        return f"{name}[{left}]"
    return name


# ---------------------------------------------------------------- sides


def _by_run(judged: Sequence[_Judged]) -> dict[str, list[_Entry]]:
    """A side for each run: called by its endpoint where that tells the runs apart, else by its id."""
    names = [run.only_endpoint for run in judged]
    if _repeats(names) or "" in names:
        names = [run.folder.name for run in judged]
    if _repeats(names):
        names = [str(run.folder) for run in judged]
    return {name: run.entries for name, run in zip(names, judged, strict=True)}


def _without_endpoint(judged: Sequence[_Judged]) -> Iterator[str]:
    """Yield what no endpoint can be compared on."""
    for run in judged:
        for entry in run.entries:
            if not entry.endpoint:
                yield f"{entry.about}: its table does not say which endpoint answered"


def _by_endpoint(judged: Sequence[_Judged], endpoints: Sequence[str]) -> dict[str, list[_Entry]]:
    """A side for each of *endpoints*; of what several runs judged, the last. Raises UsageError."""
    by_endpoint: dict[str, dict[tuple[str, ...], _Entry]] = {}
    for run in judged:
        for entry in run.entries:
            by_endpoint.setdefault(entry.endpoint, {})[entry.key] = entry
    for name in endpoints:
        if name not in by_endpoint:
            where = ", ".join(run.folder.name for run in judged)
            raise UsageError(
                f"{where}: {unknown('endpoint', name, sorted(filter(None, by_endpoint)))}"
            )
    if _repeats(endpoints):
        raise UsageError(f"endpoints={','.join(endpoints)}: the same endpoint stands twice")
    return {name: list(by_endpoint[name].values()) for name in endpoints}


def _matched(
    before: Sequence[_Entry], after: Sequence[_Entry], sides: tuple[str, str], left_out: list[str]
) -> list[tuple[_Entry, _Entry]]:
    """Return what both sides judged: by the same endpoint where both have it, else by the one that
    each has.
    """
    names = [{entry.endpoint for entry in entries} for entries in (before, after)]
    apart = bool(names[0] & names[1])
    if not apart and max(map(len, names)) > 1:
        raise UsageError(
            f"{' and '.join(sides)} asked several endpoints, and none that both did: name two of "
            "them"
        )
    mine = _by_key(before, with_endpoint=apart)
    theirs = _by_key(after, with_endpoint=apart)
    both = []
    for key, entry in mine.items():
        if key in theirs:
            both.append((entry, theirs[key]))
        else:
            left_out.append(f"{entry.about}: only {sides[0]} judged it")
    for key, entry in theirs.items():
        if key not in mine:
            left_out.append(f"{entry.about}: only {sides[1]} judged it")
    return both


def _by_key(
    entries: Iterable[_Entry], *, with_endpoint: bool
) -> dict[tuple[tuple[str, ...], str], _Entry]:
    """Return *entries* by what is the same on both sides."""
    if with_endpoint:
        return {(entry.key, entry.endpoint): entry for entry in entries}
    return {(entry.key, ""): entry for entry in entries}


def _shared(
    entry: _Entry, other: _Entry, sides: tuple[str, str], left_out: list[str]
) -> SharedCells:
    """The rows of both that have a counterpart. Raises UsageError where they cannot be compared."""
    import pandas as pd

    _refuse_incomparable(entry.judgement, other.judgement)
    tables = [side.rows.reset_index(drop=True) for side in (entry, other)]
    shared = set(tables[0].columns) & set(tables[1].columns)
    if not {"cell", "key"} <= shared:
        raise UsageError(
            "its table has no cells and keys of trials, by which the two sides could be matched"
        )
    columns = [name for name in _matched_by(entry.judgement) if name in shared]
    both = _counterparts(tables, (entry.run, other.run), columns)
    if both.empty:
        raise UsageError(
            f"{sides[0]} and {sides[1]} share no trial: they asked about other cells, or in other "
            "words"
        )
    if max(map(len, tables)) > len(both):
        alone = [f"{len(table) - len(both):,} of {len(table):,}" for table in tables]
        left_out.append(
            f"{entry.about}: {' and '.join(alone)} trials have no counterpart on the other side "
            "(another cell, or other words)"
        )
    first, second = tables
    rows = [first.loc[both["at_1"]].astype(object), second.loc[both["at_2"]].astype(object)]
    frame = pd.concat(rows, ignore_index=True).infer_objects()
    early = []
    for name, side in zip(sides, (entry, other), strict=True):
        if side.stopped_early:
            early.append(name)
    test = entry.test
    if entry.endpoint != other.endpoint:
        # Where both sides asked several endpoints, the test's own name says which this is about.
        test = entry.key[0]
    return SharedCells(
        sides=sides,
        test=test,
        analysis=entry.judgement.analysis,
        arguments=entry.judgement.arguments,
        frame=frame,
        outcome=entry.judgement.outcome_in(frame),
        early=tuple(early),
    )


def _refuse_incomparable(mine: Judgement, theirs: Judgement) -> None:
    """Raise UsageError for an analysis without a gap, and for scores of different scorers."""
    if mine.analysis not in COMPARABLE:
        raise UsageError(
            f"a judgement of {mine.analysis.replace('_', ' ')} is not compared: it has no gap of "
            "its own"
        )
    if mine.outcome and theirs.outcome and mine.outcome.scorer != theirs.outcome.scorer:
        raise UsageError(
            "the two sides were scored by different versions of the scorer: judge one of them again"
        )


def _matched_by(judgement: Judgement) -> dict[str, None]:
    """Return the columns that trials of both sides are matched by, each once."""
    names: list[Any] = [*_CELL]
    for argument in ("by", "cluster", "block", "first", "second"):
        value = judgement.arguments.get(argument)
        if isinstance(value, list):
            names += value
        else:
            names.append(value)
    return dict.fromkeys(names)


def _counterparts(
    tables: Sequence[pd.DataFrame], runs: Sequence[_Judged], columns: list[str]
) -> pd.DataFrame:
    """Return a row for each two trials that match, with their places in the two *tables*."""
    match = []
    for table, run in zip(tables, runs, strict=True):
        text = table[columns].map(str).assign(sent=run.sent(table["key"]))
        match.append(text.assign(again=text.groupby([*text.columns]).cumcount(), at=table.index))
    on = [*match[0].columns.drop("at")]
    return match[0].merge(match[1], on=on, suffixes=("_1", "_2")).sort_values("at_1")


def _about(entries: Sequence[_Entry]) -> str:
    runs: dict[str, None] = {}
    endpoints: dict[str, None] = {}
    models: dict[str, None] = {}
    for entry in entries:
        runs[entry.run.folder.name] = None
        endpoints[entry.endpoint] = None
        if "model" in entry.rows:
            models |= dict.fromkeys(map(str, entry.rows["model"].dropna().unique()))
    asked = listed(filter(None, endpoints), none="unknown")
    answered = led(", answered by ", ", ".join(models))
    return f"run {', '.join(runs)}, endpoint {asked}{answered}"


def _marked(frames: Sequence[pd.DataFrame], column: str) -> bool:
    """Return whether any trial of *frames* is marked in *column*."""
    for frame in frames:
        if column in frame and (frame[column] == True).any():  # noqa: E712 - objects, some missing
            return True
    return False
