"""A run as tables, for a notebook or a script: :func:`open_run`."""

from __future__ import annotations

import contextlib
import csv
import json
import os
from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness import words
from pytest_fairness.errors import FairnessError, MissingExtra, UsageError
from pytest_fairness.model import Cell, Finding, Trial
from pytest_fairness.reports import notebook
from pytest_fairness.reports.escaping import csv_cell, html, shortened
from pytest_fairness.reports.findings_json import RunResults, read_results
from pytest_fairness.reports.formatting import justified, without_verdict
from pytest_fairness.reports.judged_tables import JudgedTables
from pytest_fairness.runs.judgements import judgements
from pytest_fairness.runs.manifest import read_manifest
from pytest_fairness.runs.project import chosen_run
from pytest_fairness.runs.reader import reading
from pytest_fairness.runs.records import cell_of, trial_of
from pytest_fairness.trials_frame import EndpointFacts, any_text, trials_frame

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("trials", "findings", "groups", "pairs")
_FINDING = (
    "verdict", "reason", "outcome", "protected_class", "model_endpoint", "tier", "assertion", "effect_size",
    "test_statistic", "p_value", "corrected_p_value", "spec_verdict", "kind", "unit", "cluster", "block", "simulated",
    "replayed", "sentence",
)  # fmt: skip
#: What a row of a judged table is found by in the log.
_ROW = ["key", "cell"]
MOST_FINDINGS = 20


def open_run(run: str | os.PathLike[str] = "last", *, check: bool = True) -> RunTables:
    """The run in a folder, or the one of this project that an id, the beginning of one, or ``last``
    means.

    Every record is checked first: StoreError names one that was changed, added or removed.
    ``check=False`` leaves that out. Raises UsageError where *run* means none.
    """
    return RunTables(chosen_run(run), check=check)


class RunTables:
    """Trials, findings, groups and pairs of a run, a pandas DataFrame each, made from its folder
    when first asked for.

    ``trials`` has a row a trial, ``findings`` a row a finding with its id as the index, ``groups``
    and ``pairs`` those of all findings under each other. ``manifest`` is ``manifest.json``,
    ``directory`` the folder.
    """

    def __init__(self, directory: Path, *, check: bool = True) -> None:
        self.directory = directory
        self.manifest: dict[str, Any] = read_manifest(directory)
        if check:
            with reading(directory):
                pass

    @cached_property
    def results(self) -> RunResults:
        """Return what ``findings.json`` holds. Raises FairnessError where the run did not finish."""
        return read_results(self.directory)

    # ------------------------------------------------------------ tables

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row a trial (one a cell, where cells share a trial), by endpoint, cell and
        repetition.

        The columns are those of the ``trials`` fixture, with ``attempts``, ``input_tokens`` and
        ``output_tokens``; then what was read off the replies, a column an outcome, missing where a
        trial was not judged on it. Where two findings read different values under one name, there
        is a column each, ``NAME [ID]``, and none with the bare name. Tables with several rows a
        trial, or none, are in :meth:`judged` alone.
        """
        rows: dict[str, list[tuple[Cell, Trial, str]]] = {}
        with reading(self.directory, check=False) as reader:
            for record in reader.all_records():
                cell = cell_of(record["cell"])
                sent = cell.prompt
                # As it was sent: a cell's last turn may have had a slot for an earlier reply.
                if record["messages"]:
                    sent = record["messages"][-1]["content"]
                of_endpoint = rows.setdefault(record["endpoint"]["name"], [])
                of_endpoint.append((cell, trial_of(record), sent))
        frames = [self._of_endpoint(name, trials) for name, trials in sorted(rows.items())]
        if not frames:
            frames = [trials_frame([], EndpointFacts(name="", simulated=False))]
        if len(frames) == 1:
            return self._with_scores(frames[0])
        return self._with_scores(_concatenated(frames))

    def _of_endpoint(self, name: str, rows: list[tuple[Cell, Trial, str]]) -> pd.DataFrame:
        """The table of the trials of one endpoint: *rows* are cell, trial and the prompt as sent."""
        import pandas as pd

        rows.sort(key=lambda row: (row[0].id, row[1].repetition))
        facts = EndpointFacts(name=name, simulated=False, replayed="replay_of" in self.manifest)
        frame = trials_frame([(cell, trial) for cell, trial, _ in rows], facts)
        with any_text():
            frame["prompt"] = [prompt for _, _, prompt in rows]
        frame["attempts"] = [trial.attempts for _, trial, _ in rows]
        for tokens in ("input_tokens", "output_tokens"):
            used = [getattr(trial.usage, tokens, None) for _, trial, _ in rows]
            frame[tokens] = pd.array(used, dtype="Int64")
        return frame

    @cached_property
    def findings(self) -> pd.DataFrame:
        """One row a finding, by its id: who made it (``nodeid``), how that test ended (``test``),
        the verdict and the fields of the finding that are one value; ``n`` is the number of trials
        compared, ``justified`` the reason."""
        import pandas as pd

        rows = []
        for at, finding in enumerate(self.results.findings):
            maker = self.results.maker_of(at)
            rows.append(
                {
                    "nodeid": self.results.test_of(at),
                    "test": maker.outcome,
                    **{name: _text(getattr(finding, name)) for name in _FINDING},
                    "n": sum(finding.n_per_group.values()),
                    "justified": justified(finding).get("reason"),
                    "notes": "; ".join(finding.notes),
                }
            )
        with any_text():
            return pd.DataFrame(rows, index=pd.Index(self.results.ids, name="id"))

    @cached_property
    def groups(self) -> pd.DataFrame:
        """``Finding.to_frame("groups")`` of every finding, after its id, verdict, outcome and
        class.
        """
        return self._under_each_other("groups")

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """``Finding.to_frame("pairs")`` of every finding, after its id, outcome and class."""
        return self._under_each_other("pairs")

    def _under_each_other(self, of: str) -> pd.DataFrame:
        import pandas as pd

        frames = []
        for identity, finding in zip(self.results.ids, self.results.findings, strict=True):
            frame = finding.to_frame(of)
            about = {
                "id": identity,
                "outcome": finding.outcome,
                "protected_class": finding.protected_class,
            }
            about |= {"finding_verdict": str(finding.verdict)}
            for at, (name, value) in enumerate(about.items()):
                frame.insert(at, name, value)
            if len(frame):
                frames.append(frame)
        if frames:
            return _concatenated(frames)
        return pd.DataFrame()

    # ------------------------------------------------------------ one finding

    def finding(self, which: str | int) -> Finding:
        """The finding of that id, or at that place of ``findings``. Raises UsageError."""
        return self.results.findings[self._place(which)]

    def judged(self, which: str | int) -> pd.DataFrame:
        """The table from which a finding (its id or place) was judged, as it was analysed, with the
        outcome's values in the column of its name. Raises UsageError where the run has none.
        """
        place = self.results.place_of(self._place(which))
        with reading(self.directory, check=False) as reader:
            judged_ = judgements(reader).get(place)
        if judged_ is None:
            raise UsageError(f"the run has no record of the table from which {which!r} was judged")
        return judged_.frame()

    def plot(self, which: str | int, of: str | None = None) -> notebook.Picture:
        """The picture of a finding (its id or place), as ``Finding.plot``, in which every name is a
        dot.
        """
        at = self._place(which)
        judged = JudgedTables(self.directory).of(self.results, at)
        return notebook.finding_picture(self.results.findings[at], of, judged)

    def _place(self, which: str | int) -> int:
        ids = self.results.ids
        if isinstance(which, int) and -len(ids) <= which < len(ids):
            return which % len(ids)
        if isinstance(which, str) and which in ids:
            return ids.index(which)
        raise UsageError(
            f"the run has no finding {which!r}; there are {len(ids)}: {', '.join(ids[:8])}"
        )

    def _with_scores(self, frame: pd.DataFrame) -> pd.DataFrame:
        """*frame* with what was read off its replies, by all judgements that have a row a trial."""
        import pandas as pd

        with reading(self.directory, check=False) as reader:
            judged = judgements(reader)
        ids: dict[tuple[str, int], str] = {}
        with contextlib.suppress(FairnessError):  # a session that was killed has no findings.json
            ids = {
                self.results.place_of(at): identity for at, identity in enumerate(self.results.ids)
            }
        scores_of: dict[str, list[tuple[str, Any]]] = {}
        for place, judgement in judged.items():
            whose = ids.get(place, f"{place[0]} {place[1]}")
            for name, scores in _scores_in(judgement.frame(), frame.columns):
                scores_of.setdefault(name, []).append((whose, scores))
        rows = pd.MultiIndex.from_frame(frame[_ROW])
        for name, several in scores_of.items():
            for title, scores in _columns_of(name, several).items():
                frame[title] = scores.reindex(rows).to_numpy()
        return frame

    # ------------------------------------------------------------ files

    def to_csv(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write ``trials.csv``, ``findings.csv``, ``groups.csv`` and ``pairs.csv`` into *folder*;
        their paths.

        A text that a spreadsheet would run as a formula gets an apostrophe in front, and characters
        that nobody sees are spelt out: what was answered verbatim is in the run, and in
        :meth:`to_parquet`.
        """
        written = []
        for name, frame in self._tables(folder):
            written.append(Path(folder) / f"{name}.csv")
            with written[-1].open("w", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream)
                writer.writerow(map(csv_cell, map(str, frame.columns)))
                for row in zip(*(frame[column].tolist() for column in frame.columns), strict=True):
                    writer.writerow(csv_cell(_scalar(value)) for value in row)
        return written

    def to_parquet(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the same four tables as Parquet, types and texts as they are; their paths. Raises
        MissingExtra.

        A column of texts and numbers is written as text.
        """
        try:
            import pyarrow  # noqa: F401 - pandas looks for it, and names another command where it is missing
        except ImportError as error:
            raise MissingExtra("Parquet", "parquet") from error
        written = []
        for name, frame in self._tables(folder):
            written.append(Path(folder) / f"{name}.parquet")
            frame.apply(_typed).to_parquet(written[-1], engine="pyarrow", index=False)
        return written

    def _tables(self, folder: str | os.PathLike[str]) -> Iterator[tuple[str, pd.DataFrame]]:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            frame: pd.DataFrame = getattr(self, name)
            if frame.index.name:
                frame = frame.reset_index()
            yield name, frame

    # ------------------------------------------------------------ as a notebook shows it

    def __repr__(self) -> str:
        return f"<RunTables {self.directory.name}: {self._summary()}>"

    def _repr_html_(self) -> str:
        rows = [f"<p><strong>Run {html(self.directory.name)}</strong>: {html(self._summary())}</p>"]
        with contextlib.suppress(FairnessError):
            results = self.results
            shown = [
                (
                    results.ids[at],
                    finding.verdict,
                    shortened(without_verdict(finding.sentence, finding.verdict), 200),
                )
                for at, finding in enumerate(results.findings[:MOST_FINDINGS])
            ]
            if shown:
                rows.append(
                    notebook.table(
                        ("id", "verdict", "what was found"), shown, len(results.findings), {0}
                    )
                )
        return f"<div>{''.join(rows)}</div>"

    def _summary(self) -> str:
        try:
            results = self.results
        except FairnessError:
            return "no findings that can be read"
        from pytest_fairness.reports.overview import counted_findings

        trials = results.trials
        parts = [words.count(int(trials), "trial"), counted_findings(results)]
        if results.simulated:
            parts.append("simulated")
        if results.replayed:
            parts.append("replayed")
        return "; ".join(parts)


def _columns_of(name: str, several: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the scores called *name* as one column where all that read them agree, else as one for
    each finding.
    """
    agreed = several[0][1]
    for _, scores in several[1:]:
        if agreed is not None:
            agreed = _agreed(agreed, scores)
    if agreed is not None:
        return {name: agreed}
    return {f"{name} [{whose}]": scores for whose, scores in several}


def _concatenated(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """*frames* under each other; a column that is empty in one does not decide the type that it has
    in another.
    """
    import pandas as pd

    with any_text():
        return pd.concat(
            [frame.astype(object) for frame in frames], ignore_index=True
        ).infer_objects()


def _scores_in(table: pd.DataFrame, logged: Container[str]) -> Iterator[tuple[str, Any]]:
    """The columns of a judged *table* that the log does not have, each by trial; none of a table
    that has several rows a trial, or no trials.
    """
    if not set(_ROW) <= set(table.columns):
        return
    for name in table.columns:
        if name in logged:
            continue
        scores = table[[*_ROW, name]].drop_duplicates().set_index(_ROW)[name]
        if scores.index.is_unique:
            yield name, scores


def _agreed(value: Any, other: Any) -> Any:
    """Two columns as one, None where they differ in a row that both have."""
    import pandas as pd

    both = value.index.intersection(other.index)
    first = value.loc[both]
    second = other.loc[both]
    if not ((first == second) | (first.isna() & second.isna())).all():
        return None
    return pd.concat([value.astype(object), other.drop(both).astype(object)]).infer_objects()


def _text(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    return value


def _scalar(value: Any) -> Any:
    """A value as a cell: nothing for a missing one, JSON for a list."""
    import pandas as pd

    if isinstance(value, (list, dict)):
        return json.dumps(value)
    if pd.isna(value):
        return None
    return value


def _typed(column: pd.Series[Any]) -> pd.Series[Any]:
    """*column* as a type that Parquet has. A lone surrogate is no text to others, and is spelt out."""
    import pandas as pd

    values = list(map(_scalar, column))
    if all(value is None or isinstance(value, (bool, int, float)) for value in values):
        return pd.Series(values, index=column.index, dtype=object).convert_dtypes()
    texts: list[str | None] = []
    for value in values:
        text = None
        if value is not None:
            text = str(value).encode("utf-8", "backslashreplace").decode()
        texts.append(text)
    return pd.Series(texts, index=column.index, dtype="string")
