"""Tables of any size, reduced to counts: how many rows hold the same groups, cluster, block and
outcome. One GROUP BY, made by the engine that holds the table.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import FrameError, MissingExtra, UsageError, did_you_mean
from pytest_fairness.scorers.outcome import Outcome
from pytest_fairness.statistics.arrays import (
    DEFAULT_BLOCK,
    NAME_PARTS,
    ROWS,
    column_names,
    counted_rows,
    every_row,
    repeated_places,
)

if TYPE_CHECKING:
    import pandas as pd

_PARQUET = (".parquet", ".pq")
_EXTRA = "tables"
MOST_ROWS = 1_000_000
"""Of numbers that are judged by their rows where there is no cluster; those of more stand in bins."""
_FIRST, _MANY = 10_000, 1_000
#: Types of Arrow, and what DuckDB makes of them for pandas where a value is missing.
_WITH_MISSING = {"bool": "boolean", "int32": "Int32", "int64": "Int64"}
#: Columns that a comparison reads beside those that it is given, few values each.
_READ = (
    *("refused", "undetermined", "status", "endpoint", "model", "tier"),
    *("simulated", "replayed"),
)
#: Columns that only trials have: each of their rows is read by itself.
_OF_TRIALS = frozenset((
    *("cell", "key", "reply", "prompt", "repetition", "refused_first", "empty_first"),
    *("disclaims", "cut_short", "one_message", "elicitation", "strategy", "error", "draw"),
))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """A table reduced to counts of an outcome.

    ``table`` has a row for each combination of the columns ``by``, ``cluster``, ``block``,
    ``within``, ``truth`` and ``outcome`` that occurs, and in ``number_of_rows`` how often.
    """

    table: pd.DataFrame
    outcome: str
    by: tuple[str, ...]
    cluster: str | None = None
    block: str | None = None
    within: tuple[str, ...] = ()
    truth: str | None = None

    @property
    def rows(self) -> int:
        """Return how many rows were counted."""
        return int(self.table[ROWS].sum())


def counts_of(
    table: Any,
    outcome: str,
    by: str | Sequence[str],
    *,
    cluster: str | None = None,
    block: str | None = None,
    within: str | Sequence[str] = (),
    truth: str | None = None,
) -> RowCounts:
    """Return how often each combination of groups, cluster, block and outcome occurs in *table*.

    Args:
        table: a table of pandas, polars (eager or lazy), pyarrow, Dask, Ibis or Spark, a DuckDB
            relation, or the path of Parquet or CSV files, which may hold ``*``. A column
            ``number_of_rows`` says that it is a table of counts already.
        outcome, by, cluster, block: columns, as for ``analyze_disparity``.
        within: columns of strata.
        truth: the column of what was right.

    Raises:
        FrameError: the table lacks a column, or has no rows.
        UsageError: a file cannot be read; MissingExtra where its engine is not installed.
    """
    classes = column_names(by)
    strata = column_names(within)
    named = [*classes, outcome, cluster, block, *strata, truth]
    source = _opened(table)
    columns = _columns(source)
    counted = _counted(source, _keys(columns, named), counts=ROWS in columns)
    if _is_csv(table) and has_engine():
        counted = _typed(counted)
    if not len(counted):
        raise FrameError("the table has no rows: there is nothing to compare")
    return RowCounts(
        table=counted,
        outcome=outcome,
        by=classes,
        cluster=cluster,
        block=block,
        within=strata,
        truth=truth,
    )


def _keys(columns: Sequence[str], named: Sequence[str | None]) -> list[str]:
    """Return the *named* columns, and those beside them that a comparison reads, of the *columns*
    of a table. Raises FrameError for one that the table lacks.
    """
    wanted = [name for name in dict.fromkeys(named) if name is not None]
    for name in wanted:
        if name not in columns:
            mend = did_you_mean(name, columns)
            raise FrameError(f"the table has no column {name!r}{mend}; it has {columns}")
    return [*wanted, *(name for name in _READ if name in columns and name not in wanted)]


def sql_of(table: str, columns: Sequence[str], dialect: str = "ansi") -> str:
    """Return the SQL that reduces *table* to counts of *columns*: Spark, as BigQuery and MySQL,
    takes a name in double quotes for a text, and wants backticks.
    """
    names = ", ".join(map(quoted, columns))
    if dialect == "spark":
        names = ", ".join("`" + name.replace("`", "``") + "`" for name in columns)
    return f"SELECT {names}, COUNT(*) AS {ROWS}\nFROM {table}\nGROUP BY {names}"


def countable(
    table: Any,
    outcome: Any,
    by: str | Sequence[str],
    cluster: str | None,
    block: str | None,
    truth: str | None = None,
    within: str | Sequence[str | None] = (),
    labels: str | None = None,
    *,
    alike: bool = False,
) -> Any:
    """Return *table* as pandas has it: the counts of *outcome*, by *truth* where it is given, and
    by the columns *within* which it is compared, of a column of another engine, a file or a
    reduction; its rows where a column of *labels* corrects them, and a table of pandas as it is.
    *alike*: many clusters may be counted together where they have the same rows.
    """
    import pandas as pd

    if isinstance(table, RowCounts):
        return table.table
    if isinstance(table, pd.DataFrame):
        return _that_count(table)
    if labels is not None:
        return as_rows(table)
    source = _opened(table)
    if isinstance(source, pd.DataFrame):
        return _that_count(source)
    columns = _columns(source)
    if block == DEFAULT_BLOCK and block not in columns:
        block = None
    strata = [column for column in column_names(within) if column is not None]
    given: dict[str, Any] = {"cluster": cluster, "block": block, "truth": truth, "within": strata}
    if ROWS in columns:
        return counts_of(table, outcome, by, **given).table
    if not _is_counted(columns, outcome):
        return as_rows(table)
    keys = _keys(columns, (*column_names(by), outcome, cluster))
    first = as_pandas(_native(source).select(*keys).head(_FIRST))
    together = None
    if alike and not any((block, *strata, truth)) and not _is_csv(table):
        together = _alike(source, first, outcome, column_names(by), cluster)
    if together is not None:
        return together
    if first[outcome].nunique() <= _MANY:
        return counts_of(table, outcome, by, **given).table
    named = (*column_names(by), outcome, cluster, block, *strata, truth)
    return _numbers(table, source, _keys(columns, named), outcome, by_cluster=cluster is not None)


def _alike(
    source: Any, first: pd.DataFrame, outcome: str, by: Sequence[str], cluster: str | None
) -> pd.DataFrame | None:
    """Return the counts of *source*, of which these are the *first* rows, with the clusters alike
    together; None where that engine, or that table, has none to be put together.
    """
    from pytest_fairness.analysis.alike_clusters import AlikeClusters

    nw = _narwhals()
    frame = _native(source)
    if cluster is None or not isinstance(frame, nw.LazyFrame):
        return None
    schema = frame.collect_schema()
    if any(schema[name].is_float() for name in (*by, cluster)):
        return None
    clusters = AlikeClusters.of(first, outcome, by, cluster)
    if clusters is None:
        return None
    return clusters.counted(nw, frame, as_pandas)


def _that_count(table: pd.DataFrame) -> pd.DataFrame:
    """Return *table* without the rows that stand for none, of a table of counts."""
    weight = counted_rows(table)
    if weight is None or weight.all():
        return table
    return table[weight > 0]


def columns_of(path: str) -> list[str]:
    """Return the names of the columns of the files at *path*. Raises UsageError for what cannot be
    read.
    """
    return _columns(_opened(path))


def as_rows(table: Any) -> Any:
    """Return *table* as pandas has it, one row a row."""
    import pandas as pd

    if isinstance(table, RowCounts):
        table = table.table
    if not isinstance(table, pd.DataFrame):
        table = _whole(table)
    return every_row(table)


def _whole(table: Any) -> pd.DataFrame:
    import pandas as pd

    source = _opened(table)
    if isinstance(source, pd.DataFrame):
        return source
    return _read(table, source, _columns(source))


def _read(table: Any, source: Any, columns: Sequence[str]) -> pd.DataFrame:
    """Return the *columns* of *source*, which is the *table* opened, as pandas has them."""
    rows = as_pandas(_native(source).select(*columns))
    if _is_csv(table):
        return _typed(rows)
    return rows


def has_engine() -> bool:
    """Return whether files are read by DuckDB, which gives the cells of a CSV file as texts."""
    return bool(find_spec("duckdb") and find_spec("narwhals"))


def readable(frame: pd.DataFrame, outcome: Any, labels: str | None) -> tuple[pd.DataFrame, Any]:
    """Return *frame* and the outcome on it: a table of counts as the rows that it stands for where
    it has no column of *outcome*, for a function reads rows, or a person's *labels* are of rows.
    """
    is_read = not isinstance(outcome, Outcome) and outcome not in frame.columns
    if labels is not None or (is_read and counted_rows(frame) is not None):
        return by_rows(frame, outcome)
    return frame, outcome


def by_rows(frame: pd.DataFrame, outcome: Any) -> tuple[pd.DataFrame, Any]:
    """Return a table of counts as the rows that it stands for, and the outcome on them; a table of
    rows as it is.
    """
    weight = counted_rows(frame)
    if weight is not None and isinstance(outcome, Outcome):
        values = outcome.values.iloc[repeated_places(weight)].reset_index(drop=True)
        outcome = replace(outcome, values=values)
    return every_row(frame), outcome


def literal(text: str) -> str:
    """Return *text* as SQL writes it."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def quoted(name: str) -> str:
    """Return the *name* of a column as SQL writes it."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _opened(table: Any) -> Any:
    """Return *table*, opened by DuckDB, or read by pandas, where it is a path."""
    if isinstance(table, (str, Path)):
        return opened_file(str(table))
    return table


def opened_file(path: str) -> Any:
    """Return the files at *path* as a DuckDB relation; as a table of pandas without DuckDB, which
    reads single files. Raises UsageError for what cannot be read.
    """
    try:
        import duckdb
        import narwhals  # noqa: F401 - both or neither
    except ImportError:
        return read_by_pandas(path)
    query = f"SELECT * FROM read_csv({literal(path)}, header = true, all_varchar = true)"  # noqa: S608
    if is_parquet(path):
        query = f"SELECT * FROM read_parquet({literal(path)})"  # noqa: S608
    try:
        return duckdb.connect().sql(query)
    except duckdb.Error as error:
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())}") from None


def is_parquet(path: str) -> bool:
    """Return whether *path* is that of a Parquet file."""
    return path.lower().endswith(_PARQUET)


def is_pattern(path: str) -> bool:
    """Return whether *path* stands for several files."""
    return any(sign in path for sign in "*?[")


def read_by_pandas(path: str) -> pd.DataFrame:
    """Return the rows of the file at *path*. Raises UsageError for what cannot be read."""
    import pandas as pd

    if is_pattern(path):
        raise MissingExtra("a table of several files", _EXTRA)
    try:
        if is_parquet(path):
            return pd.read_parquet(path)
        return pd.read_csv(path, low_memory=False)
    except ImportError:
        raise MissingExtra("a Parquet file", _EXTRA) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())}") from None


def _columns(source: Any) -> list[str]:
    """Return the names of the columns of *source*."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return list(map(str, source.columns))
    frame = _native(source)
    return list(map(str, frame.collect_schema().names()))


def _native(table: Any) -> Any:
    """Return *table* as narwhals has it. Raises FrameError for what is no table."""
    narwhals = _narwhals()
    try:
        with warnings.catch_warnings():
            # Of a package that will take Dask's part over, and cannot be installed yet.
            warnings.filterwarnings("ignore", "Dask support is moving out", FutureWarning)
            return narwhals.from_native(table)
    except TypeError:
        raise FrameError(
            f"expected a pandas DataFrame with one row a trial, or a table of another engine, got "
            f"{type(table).__name__}"
        ) from None


def _narwhals() -> Any:
    try:
        import narwhals
    except ImportError:
        raise MissingExtra("a table that is not pandas'", _EXTRA) from None
    return narwhals


def _counted(source: Any, keys: list[str], *, counts: bool) -> pd.DataFrame:
    """Return the counts of the combinations of *keys*, with those of a table of *counts* added."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return _counted_by_pandas(source, keys, counts=counts)
    nw = _narwhals()
    number = nw.lit(1).alias(ROWS)
    if counts:
        number = nw.col(ROWS).cast(nw.Int64)
    frame = _native(source).select(*keys, number)
    grouped = frame.group_by(*keys, drop_null_keys=False).agg(nw.col(ROWS).sum())
    counted = as_pandas(grouped.with_columns(nw.col(ROWS).cast(nw.Int64)))
    if not counted[ROWS].all():
        counted = _that_count(counted).reset_index(drop=True)
    return counted


def _counted_by_pandas(source: pd.DataFrame, keys: list[str], *, counts: bool) -> pd.DataFrame:
    grouped = source.groupby(keys, dropna=False, observed=True, sort=False)
    if counts:
        counted = grouped[ROWS].sum().reset_index()
    else:
        counted = grouped.size().reset_index(name=ROWS)
    kept: pd.DataFrame = counted[counted[ROWS] > 0].reset_index(drop=True)
    return kept


def _is_counted(columns: Sequence[str], outcome: Any) -> bool:
    """Return whether *outcome* is one of the *columns* of a table that is not of trials."""
    return isinstance(outcome, str) and outcome in columns and not _OF_TRIALS & set(columns)


def _numbers(
    table: Any, source: Any, keys: Sequence[str], outcome: str, *, by_cluster: bool
) -> pd.DataFrame:
    """Return the columns *keys* of *source*, which is the *table* opened: its counts by bins of the
    numbers of *outcome* where it has many and clusters do not tell its rows apart, else its rows.
    """
    binned = None
    if not by_cluster:
        binned = _binned(source, keys, outcome)
    if binned is not None:
        return binned
    columns = _columns(source)
    parts = [name for name in NAME_PARTS if name in columns and name not in keys]
    return _read(table, source, [*keys, *parts])


def _binned(source: Any, keys: Sequence[str], outcome: str) -> pd.DataFrame | None:
    """Return the counts of *source* by *keys* and bins of the numbers of *outcome*; None where it
    has too few rows, or no numbers.
    """
    from pytest_fairness.analysis.binned_numbers import binned_numbers

    nw = _narwhals()
    frame = _native(source).lazy()
    number_of_rows = as_pandas(frame.select(nw.len().alias(ROWS)))[ROWS].iloc[0]
    if number_of_rows <= MOST_ROWS or not frame.collect_schema()[outcome].is_numeric():
        return None
    return binned_numbers(nw, frame, outcome, keys, as_pandas)


def _is_csv(table: Any) -> bool:
    return isinstance(table, (str, Path)) and not is_parquet(str(table))


def _typed(texts: pd.DataFrame) -> pd.DataFrame:
    """Return a table of *texts* with the types that pandas reads in a CSV file."""
    import io

    import pandas as pd

    return pd.read_csv(io.StringIO(texts.to_csv(index=False)), low_memory=False)


def as_pandas(frame: Any) -> pd.DataFrame:
    """Return *frame* of narwhals as a table of pandas."""
    nw = _narwhals()
    if isinstance(frame, nw.LazyFrame):
        if _goes_by_arrow(nw, frame):
            return _of_arrow(_collected(frame, "pyarrow").to_arrow())
        frame = _collected(frame, "pandas")
    table: pd.DataFrame = frame.to_pandas()
    return table


def _goes_by_arrow(nw: Any, frame: Any) -> bool:
    """Return whether DuckDB hands a lazy *frame* over as Arrow: a million texts are not copied."""
    if not frame.implementation.is_duckdb() or find_spec("pyarrow") is None:
        return False
    plain = (nw.String, nw.Boolean, nw.Float64, nw.Int64, nw.Int32)
    return all(dtype in plain for dtype in frame.collect_schema().values())


def _of_arrow(table: Any) -> pd.DataFrame:
    """Return a *table* of Arrow as DuckDB gives it to pandas: whole numbers of which some are
    missing stay whole.
    """
    frame: pd.DataFrame = table.to_pandas()
    for name in table.column_names:
        whole = _WITH_MISSING.get(str(table[name].type))
        if whole is not None and table[name].null_count:
            frame[name] = frame[name].astype(whole)
    return frame


def _collected(frame: Any, backend: str) -> Any:
    """Return a lazy *frame* with its rows. Raises UsageError where DuckDB cannot read them: what is
    wrong with the second of several files is seen no earlier.
    """
    if find_spec("duckdb") is None:
        return frame.collect(backend=backend)
    import duckdb

    try:
        return frame.collect(backend=backend)
    except duckdb.Error as error:
        what = re.split("Potential Fixes|Candidate names|If you are trying", str(error))[0]
        raise UsageError(f"the table cannot be read: {' '.join(what.split())}") from None
