"""Judgements, as records of the run: the table as it was analysed, its outcome, the arguments, the
finding.

With them a report shows every name, a notebook has the scores, and an audit derives the verdict
again from the log. A finding stands in the log as it was written, so that neither leaving its test
out nor editing a file makes it go away.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Self

import msgspec

from pytest_fairness.errors import StoreError
from pytest_fairness.model import JSON, Status, to_json
from pytest_fairness.runs.reader import RunRecords
from pytest_fairness.scorers.outcome import Outcome, fingerprint_of
from pytest_fairness.trials_frame import DESIGN, CarriedDesign, any_text, columns_named

if TYPE_CHECKING:
    import pandas as pd

TYPE = "judgement"
#: Columns of a judged table: what read each outcome, and the labels of persons.
READ_BY = "outcome_read_by"
LABELS = "outcome_labels"
#: Arguments of an assertion that are the table, or stand beside it.
_NOT_KEPT = frozenset(("frame", "outcome", "scorers"))
#: Arguments that are the outcome by another name, by analysis.
_OUTCOME_OF = {"baseline": "score"}
#: Columns that the log has under the trial's key, too long to stand here again.
_IN_LOG = frozenset(("prompt", "reply", "cost", "seconds"))
#: Columns that any analysis reads where the table has them.
_TRIAL = (
    "key cell template name persona first_name last_name arm tier signal repetition status error "
    "refused undetermined draw"
)
#: Those of a table of counts.
_OF_COUNTS = "number_of_rows number_of_clusters offset_in_bin squares_in_bin"
_READ = frozenset((
    *(*_TRIAL.split(), *_OF_COUNTS.split()),
    *("cut_short", "endpoint", "model", "simulated", "replayed"),
))  # fmt: skip


#: Trials that a later session may ask: only these may come to something else.
_UNSETTLED = frozenset((Status.UNKNOWN.value, Status.ERROR.value, Status.NOT_RUN.value))
#: Columns that say where a reply comes from, not what it is.
_OF_THE_SOURCE = frozenset(("replayed",))
#: What tells the findings of a suite's own analysis apart, of which no arguments are known.
_COMPARISON = ("assertion", "outcome", "protected_class", "model_endpoint", "tier")

#: Types of most values, which are plain JSON as they stand.
_PLAIN = frozenset((str, bool, int, type(None)))
#: Bytes of a table, some hundred a row: a judgement may come from somebody else's bundle.
_LONGEST = 2**31


class ScoreFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the outcome of a judgement: those of an :class:`Outcome`, without the values.

    ``scorer`` is the fingerprint of the scorer, empty for a column of the table.
    """

    name: str
    kind: str | None = None
    unit: str = ""
    lower_is_worse: bool = True
    low: float | None = None
    high: float | None = None
    scorer: str = ""


class Judgement(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=TYPE):
    """One assertion: finding number ``place`` (from 0) of the test ``test``, judged at ``time`` in
    session number ``session`` (from 1) of the run.

    ``analysis`` is ``disparity``, ``strata``, ``four_fifths``, ``error_rates``, ``preference``,
    ``equivalence``, ``arm_contrast`` or ``baseline``, empty for a suite's own; ``arguments`` are
    those of the assertion, without table, outcome and scorers. ``looks``: what was fixed before the
    first look. ``changed``: the columns of the trials that the test had changed before. ``rows`` is
    the number of rows, ``columns`` the table, packed. ``controls`` are those that the test declares. ``finding`` is the
    finding as it was written, ``justified_by`` where the reason for its FLAG stands.
    """

    test: str = ""
    place: int = 0
    session: int = 0
    time: str = ""
    controls: Mapping[str, str] = {}
    finding: Mapping[str, Any] = {}
    justified_by: Mapping[str, str] = {}
    analysis: str = ""
    arguments: Mapping[str, Any] = {}
    outcome: ScoreFacts | None = None
    looks: Mapping[str, Any] = {}
    changed: tuple[str, ...] = ()
    rows: int = 0
    columns: str = ""

    @classmethod
    def of(
        cls,
        analysis: str,
        arguments: Mapping[str, Any],
        frame: pd.DataFrame,
        outcome: Outcome | None,
        **about: Any,
    ) -> Self:
        """The judgement of *analysis* on *frame* with *arguments*, which may hold more than is
        kept.
        """
        not_kept = {*_NOT_KEPT, _OUTCOME_OF.get(analysis)}
        kept = {key: value for key, value in arguments.items() if key not in not_kept}
        values = None
        facts = None
        read_by = None
        labels = None
        if outcome is not None:
            values = _packed(outcome.values)
            facts = _facts(outcome)
            if outcome.read_by is not None:
                read_by = _packed(outcome.read_by)
            if outcome.labels is not None:
                labels = _packed(outcome.labels)
        columns = {name: _packed(frame[name]) for name in _wanted_columns(frame, kept)}
        table = {
            "columns": columns,
            "values": values,
            "read_by": read_by,
            "labels": labels,
            "design": _plain(frame.attrs.get(DESIGN)),
        }
        packed = zlib.compress(json.dumps(table).encode("ascii"), 1)
        return cls(
            analysis=analysis,
            arguments={key: _plain(value) for key, value in kept.items()},
            outcome=facts,
            rows=len(frame),
            columns=base64.b64encode(packed).decode("ascii"),
            **about,
        )

    def to_record(self, test: str, place: int, **concluded: Any) -> dict[str, Any]:
        """The record of type ``judgement`` for finding number *place* of *test*, with what was
        *concluded*.
        """
        details = {name: _plain(value) for name, value in concluded.items()}
        record: dict[str, Any] = msgspec.to_builtins(
            msgspec.structs.replace(self, test=test, place=place, **details)
        )
        return record

    def answers(self, earlier: Judgement) -> bool:
        """Tell whether this judges again what *earlier* did: the same question of the same test, on
        every row that was settled then. Raises StoreError where a table cannot be read.
        """
        if (self.test, self.analysis) != (earlier.test, earlier.analysis):
            return False
        if not self.analysis:
            return self._comparison == earlier._comparison
        if (self.arguments, self.outcome) != (earlier.arguments, earlier.outcome):
            return False
        if not earlier.columns:  # the table stayed in the log of its run
            return bool(self.finding.get("verdict") == earlier.finding.get("verdict"))
        before = earlier._table()
        now = self._table()
        names = sorted(before["columns"].keys() - _OF_THE_SOURCE)
        if not now["columns"].keys() >= set(names):
            return False
        # What a person has read since may stand in the place of a score.
        if now.get("labels") is not None:
            before["values"] = now["values"] = None
        rows = _rows(before, names, earlier.rows)
        settled = Counter(row for row, status in rows if status not in _UNSETTLED)
        return not settled - Counter(row for row, _ in _rows(now, names, self.rows))

    @property
    def _comparison(self) -> list[Any]:
        """Return what tells a finding of a suite's own analysis from others."""
        return list(map(self.finding.get, _COMPARISON))

    def frame(self) -> pd.DataFrame:
        """The table as it was analysed, one row a trial, with the outcome's values in the column of
        its name.

        Raises StoreError where the record cannot be read.
        """
        import pandas as pd

        table = self._table()
        columns = {name: _unpacked(column) for name, column in table["columns"].items()}
        if self.outcome is not None and table["values"] is not None:
            columns[self.outcome.name] = _unpacked(table["values"])
        with any_text():
            frame = pd.DataFrame(columns, index=range(self.rows))
            if table.get("read_by") is not None:
                frame[READ_BY] = _unpacked(table["read_by"])
            if table.get("labels") is not None:
                frame[LABELS] = _unpacked(table["labels"])
        if table["design"] is not None:
            frame.attrs[DESIGN] = CarriedDesign(table["design"])
        return frame

    def outcome_in(self, frame: pd.DataFrame) -> Outcome | None:
        """The outcome as the analysis read it, on the rows of *frame*, which are rows of
        :meth:`frame`.
        """
        if self.outcome is None:
            return None
        facts = msgspec.to_builtins(self.outcome)
        given = {"values": frame[self.outcome.name], "scorer": None}
        for name, column in (("read_by", READ_BY), ("labels", LABELS)):
            if column in frame.columns:
                given[name] = frame[column]
        return Outcome(**{**facts, **given})

    def _table(self) -> dict[str, Any]:
        """Return the table that was judged, unpacked. Raises StoreError."""
        unpacking = zlib.decompressobj()
        try:
            text = unpacking.decompress(base64.b64decode(self.columns), _LONGEST)
            if not unpacking.eof:
                raise ValueError("it is cut short, or too long to be meant")
            table: dict[str, Any] = json.loads(text)
        except (ValueError, zlib.error) as error:
            raise StoreError(f"the judgement of {self.test} cannot be read ({error})") from error
        return table


def _wanted_columns(frame: pd.DataFrame, arguments: Mapping[str, Any]) -> list[str]:
    """The columns of *frame* that an analysis reads, or that *arguments* name, each once."""
    named = list(chain.from_iterable(map(columns_named, arguments.values())))
    read = _READ
    if DESIGN in frame.attrs:
        read = frozenset(frame.columns)
    read -= _IN_LOG
    wanted = []
    for name in dict.fromkeys(frame.columns):
        if isinstance(name, str) and (name in read or name in named):
            wanted.append(name)
    return wanted


def _rows(
    table: Mapping[str, Any], names: Sequence[str], count: int
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The first *count* rows of a *table*: columns *names* and score; and the trial's status."""
    columns = [_unpacked(table["columns"][name]) for name in names]
    if table["values"] is not None:
        columns += [_unpacked(table["values"])]
    statuses = _unpacked(table["columns"].get("status") or [None] * count)
    yield from zip(islice(zip(*columns, strict=True), count), statuses, strict=False)


def _facts(outcome: Outcome) -> ScoreFacts:
    """Return what a judgement keeps of *outcome*, without its values."""
    kind = None
    if outcome.kind is not None:
        kind = str(outcome.kind)
    return ScoreFacts(
        name=outcome.name,
        kind=kind,
        unit=outcome.unit,
        lower_is_worse=outcome.lower_is_worse,
        low=outcome.low,
        high=outcome.high,
        scorer=fingerprint_of(outcome),
    )


def _packed(column: pd.Series[Any]) -> JSON:
    """The values of a column; where few are different, these and a number for each row."""
    import pandas as pd

    # 1, 1.0 and True are one value to pandas: a column of several kinds is compared with its types.
    if column.dtype != object or pd.api.types.infer_dtype(column) in ("string", "boolean"):
        codes, distinct = pd.factorize(column, use_na_sentinel=False)
        coded = list[JSON](codes.tolist())
        labels = _cells(distinct.tolist())
    else:
        values: dict[tuple[type, Any], int] = {}
        coded = []
        for value in _cells(column.tolist()):
            coded.append(values.setdefault((type(value), value), len(values)))
        labels = [value for _, value in values]
    if 2 * len(labels) > len(coded):
        return _cells(column.tolist())
    return {"labels": labels, "codes": coded}


def _cells(values: list[Any]) -> list[JSON]:
    """Each of *values* as plain JSON; what is no scalar of it, as words."""
    cells: list[JSON] = []
    for value in values:
        cell = _plain(value)
        if isinstance(cell, (list, dict)):
            cell = json.dumps(cell)
        cells.append(cell)
    return cells


def _unpacked(column: Any) -> list[Any]:
    """Return the values of a packed *column*."""
    if isinstance(column, dict):
        return [column["labels"][code] for code in column["codes"]]
    return list(column)


def _plain(value: Any) -> JSON:
    """Plain JSON; what is no scalar of it, as words."""
    if type(value) in _PLAIN:
        return value  # type: ignore[no-any-return]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(map(_plain, value))
    if isinstance(value, str):  # of numpy, or an enum
        return str.__str__(value)
    try:
        return to_json(value)
    except TypeError:
        return str(value)


def all_judgements(run: RunRecords) -> list[Judgement]:
    """Every judgement of *run*, in the order in which they were made.

    Raises StoreError where one cannot be read.
    """
    try:
        judgements = [msgspec.convert(record, Judgement) for record in run.of_type(TYPE)]
    except msgspec.ValidationError as error:
        raise StoreError(f"a judgement of the run cannot be read ({error})") from error
    return sorted(judgements, key=lambda judgement: (judgement.session, judgement.time))


def judgements(run: RunRecords) -> dict[tuple[str, int], Judgement]:
    """The judgements of *run* by test and number of its finding, but for those of a suite's own
    analysis; of a test that ran again, the last.

    Raises StoreError where one cannot be read.
    """
    by_place = {}
    for judgement in all_judgements(run):
        if judgement.analysis:
            by_place[judgement.test, judgement.place] = judgement
    return by_place
