"""Logs of other tools as tables that every assertion takes, and the meaning of their columns."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import FrameError
from pytest_fairness.model import Status
from pytest_fairness.scorers import is_refusal
from pytest_fairness.statistics.arrays import refuse_text_numbers
from pytest_fairness.trials_frame import any_text

if TYPE_CHECKING:
    import pandas as pd

#: Texts that mean yes or no; those of Inspect are correct, incorrect, partly, no answer.
_YES_NO = ({"true", "false"}, {"yes", "no"}, {"pass", "fail"}, {"c", "i", "p", "n"})


def trials_from(
    frame: pd.DataFrame,
    *,
    group: str | Mapping[str, str],
    name: str | None,
    template: str | None,
    reply: str | None = None,
    scores: Sequence[str] = (),
    endpoint: str | None = None,
) -> pd.DataFrame:
    """The rows of *frame*, which another tool recorded, as a table of trials.

    *group* is the column that says which group a row is about, or a mapping of protected class to
    column. *name* is the column of the person: what several rows have in common, and so the unit of
    evidence; None where every row is about another person. *template* is the column that says from
    which text the prompt was made, before the name was put in; None where there is one. *reply* is
    the column of the model's text, *scores* are columns to be judged as they are,
    *endpoint* is the column that says which model answered.

    The table has these columns under our names, and ``repetition``; of a *reply* also whether it is
    ``refused`` (as our scorers read it), and ``status``, ``error`` and ``undetermined`` where there
    is none. Raises FrameError for a column that is not there, and for one that cannot be what it is
    said to be: see ``docs/other_logs.md``.
    """
    import pandas as pd

    if isinstance(group, str):
        group = {group: group}
    groups = dict(group)
    meant = {**groups, "name": name, "template": template, "reply": reply, "endpoint": endpoint}
    _require_columns(frame, [*meant.items(), *zip(scores, scores, strict=True)])
    columns: dict[str, Any] = {}
    for what, column in groups.items():
        columns[what] = _complete(frame, column, what)
    columns["name"] = list(range(len(frame)))
    columns["template"] = ["one"] * len(frame)
    if name is not None:
        columns["name"] = _complete(frame, name, "name")
    if template is not None:
        columns["template"] = _complete(frame, template, "template")
    if endpoint is not None:
        columns["endpoint"] = columns["model"] = _complete(frame, endpoint, "endpoint")
    if reply is not None:
        columns |= _of_replies(frame[reply].tolist())
    for score in scores:
        columns[score] = _judgeable(frame[score])
    with any_text():
        table = pd.DataFrame(columns)
    if name is not None:
        _check_names(table, list(groups), name)
    if template is not None:
        _check_templates(table, list(groups), template)
    table["repetition"] = table.groupby([*groups, "name", "template"]).cumcount()
    return table


def _require_columns(frame: pd.DataFrame, meant: Sequence[tuple[str, str | None]]) -> None:
    """Raise FrameError for a column that is not there; *meant*: what each is for, None for none."""
    for what, column in meant:
        if column is not None and column not in frame.columns:
            raise FrameError(_not_there(frame, what, column))


def _not_there(frame: pd.DataFrame, what: str, column: str) -> str:
    columns = list(map(str, frame.columns))
    near = difflib.get_close_matches(column, columns, n=3)
    if not near:
        near = [title for title in columns if column.lower() in title.lower()][:3]
    missing = f"there is no column {column!r} for the {what}"
    if near:
        return f"{missing}; did you mean {' or '.join(map(repr, near))}?"
    more = ""
    if len(columns) > 30:
        more = " …"
    return f"{missing}. The columns are {', '.join(columns[:30])}{more}"


def _complete(frame: pd.DataFrame, column: str, what: str) -> list[str]:
    """A column as text. Raises FrameError where a row has none."""
    absent = frame[column].isna()
    if absent.any():
        row = absent[absent].index[0]
        raise FrameError(
            f"column {column!r} is empty in {int(absent.sum()):,} of {len(frame):,} rows, first in "
            f"{row!r}: every row "
            f"needs its {what}; fill it in, or leave those rows out and say so"
        )
    return list(map(str, frame[column].tolist()))


def _status(text: str | None, refused: bool) -> Status:
    """Return what a reply comes to."""
    if text is None:
        return Status.ERROR
    if refused:
        return Status.REFUSED
    if text.strip():
        return Status.ANSWERED
    return Status.EMPTY


def _of_replies(replies: list[Any]) -> dict[str, Any]:
    texts: list[str | None] = []
    errors: list[str | None] = []
    for reply in replies:
        is_text = isinstance(reply, str)
        texts.append(reply if is_text else None)
        errors.append(None if is_text else "the log has no text")
    if not any(texts):
        raise FrameError(
            "no row has a reply that is text: name the column of what the model answered"
        )
    refused = [text is not None and is_refusal(text) for text in texts]
    status = list(map(_status, texts, refused))
    return {
        "reply": texts,
        "status": list(map(str, status)),
        "error": errors,
        "refused": refused,
        "undetermined": [value in (Status.ERROR, Status.EMPTY) for value in status],
    }


def _judgeable(column: pd.Series[Any]) -> list[Any]:
    """A score as it is. Raises FrameError for numbers, yes and no that are written as text."""
    values = column.tolist()
    texts = {value.strip().lower() for value in values if isinstance(value, str)}
    if not texts:
        return values
    example = next(value for value in values if isinstance(value, str))
    refuse_text_numbers(str(column.name), column, labels=False)
    if any(texts <= words for words in _YES_NO):
        raise FrameError(
            f"column {column.name!r} holds yes and no written as text ({example!r}): say which is "
            "yes, "
            f"frame[{column.name!r}] = frame[{column.name!r}] == {example!r}"
        )
    return values


def _check_names(table: pd.DataFrame, groups: list[str], column: str) -> None:
    names = table["name"].nunique()
    if names == len(table) and table["template"].nunique() > 1:
        raise FrameError(
            f"column {column!r} has another value in each of {len(table):,} rows, so that every "
            "row would be a person "
            "of its own: it numbers the rows; name the column of the person, or give name=None if "
            "each row is indeed "
            "about another one"
        )
    for group in groups:
        held = table.groupby("name")[group].nunique()
        several = held[held > 1]
        if 0 < len(several) < names:
            row = several.index[0]
            among = sorted(table.loc[table["name"] == row, group].unique())
            raise FrameError(
                f"{len(several)} of {names} names stand in several groups of {group}, as {row!r} "
                "does in "
                f"{', '.join(among)}: are these different people (put the group into the name), or "
                "is the group wrong? "
                "Only where every name is asked in several groups are they taken for the same "
                "people"
            )


def _check_templates(table: pd.DataFrame, groups: list[str], column: str) -> None:
    templates = table["template"].nunique()
    if templates > 1 and (table.groupby("template")["name"].nunique() == 1).all():
        raise FrameError(
            f"each of the {templates:,} values of column {column!r} goes with one name alone: that "
            "is the prompt as it "
            "was sent, with the name in it. Name the column of the text before the name was put "
            "in, or give "
            "template=None if there was one"
        )
    for group in groups:
        if table[group].nunique() > 1 and (table.groupby("template")[group].nunique() == 1).all():
            raise FrameError(
                f"each of the {templates:,} values of column {column!r} goes with one group of "
                f"{group} alone, so that "
                "no two groups were asked the same: name the column of the text before the group "
                "was put in, or give "
                "template=None"
            )
