"""What a table of choices says beyond its trials: who was listed where, and whom the reply chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fairness.scorers.choice import Choice, ChoiceStatus, read_choice, read_ranking

if TYPE_CHECKING:
    import pandas as pd

NEITHER = "neither"
_PLACES = ("first", "second")


def choice_columns(frame: pd.DataFrame, size: int, *, ranking: bool = False) -> pd.DataFrame:
    """*frame* of trials, with ``group_1`` … and ``name_1`` …, as :func:`pytest_fairness.analyze_preference` reads it.

    Between two: one row a trial, with ``first`` and ``second`` (the groups listed), ``first_name`` and
    ``second_name``, ``choice`` (what the reply comes to: chosen, neither, both, refused, unlisted, unparsed) and
    ``chosen``: the group, ``"neither"`` where the reply chose neither or both, missing where none could be read.

    One at a time there is no choice: ``group`` and ``candidate`` (the name) stand for what was shown.

    Among more, or with *ranking*: one row a candidate of a trial, with ``trial``, ``group``, ``candidate`` (the
    name), ``position`` from 1, ``choice``, ``chosen`` (yes or no) and, with *ranking*, ``rank`` (1 is best).
    """
    if size == 1:
        return frame.rename(columns={"group_1": "group", "name_1": "candidate"}).drop(columns=["pair", "order"])
    names = [f"name_{at}" for at in range(1, size + 1)]
    shown = [tuple(row) for row in frame[names].itertuples(index=False)]
    shown = [tuple(name if isinstance(name, str) else None for name in row) for row in shown]
    replies = [
        reply if isinstance(reply, str) and not refused else None
        for reply, refused in zip(frame["reply"], frame["refused"], strict=True)
    ]
    if size == 2 and not ranking:
        return _pairs(frame, shown, replies)
    return _slates(frame, size, shown, replies, ranking=ranking)


def _pairs(frame: pd.DataFrame, shown: list[tuple[str | None, ...]], replies: list[str | None]) -> pd.DataFrame:
    refused = frame["refused"].tolist()
    choices = _choices(shown, replies, refused)
    chosen: list[str | None] = []
    for choice, groups in zip(choices, zip(frame["group_1"], frame["group_2"], strict=True), strict=True):
        if choice.number is not None:
            chosen.append(groups[choice.number - 1])
        else:
            chosen.append(NEITHER if choice.status in (ChoiceStatus.NEITHER, ChoiceStatus.BOTH) else None)
    renamed = {f"group_{at}": place for at, place in enumerate(_PLACES, start=1)}
    renamed |= {f"name_{at}": f"{place}_name" for at, place in enumerate(_PLACES, start=1)}
    table = frame.rename(columns=renamed)
    table["choice"] = [choice.status.value for choice in choices]
    table["chosen"] = _objects(chosen, table.index)
    return table


def _choices(shown: list[tuple[str | None, ...]], replies: list[str | None], refused: list[bool]) -> list[Choice]:
    return [
        read_choice(reply, names)
        if reply is not None
        else Choice(ChoiceStatus.REFUSED if no else ChoiceStatus.UNPARSED)
        for names, reply, no in zip(shown, replies, refused, strict=True)
    ]


def _slates(
    frame: pd.DataFrame,
    size: int,
    shown: list[tuple[str | None, ...]],
    replies: list[str | None],
    *,
    ranking: bool,
) -> pd.DataFrame:
    table = frame.loc[frame.index.repeat(size)].reset_index(drop=True)
    table.attrs = dict(frame.attrs)
    places = list(range(1, size + 1)) * len(frame)
    rows = range(len(table))
    table["trial"] = [f"{cell}#{rep}" for cell, rep in zip(table["cell"], table["repetition"], strict=True)]
    table["position"] = places
    table["group"] = [table[f"group_{place}"].iloc[row] for row, place in zip(rows, places, strict=True)]
    table["candidate"] = _objects([name for names in shown for name in names], table.index)
    if ranking:
        ranks = [
            None if reply is None else read_ranking(reply, names) for names, reply in zip(shown, replies, strict=True)
        ]
        table["rank"] = [float("nan") if found is None else float(found[at]) for found in ranks for at in range(size)]
        table["chosen"] = table["rank"] == 1.0
        said = [ChoiceStatus.UNPARSED if found is None else ChoiceStatus.CHOSEN for found in ranks]
        table["choice"] = [one.value for one in said for _ in range(size)]
    else:
        choices = _choices(shown, replies, frame["refused"].tolist())
        table["chosen"] = [choice.number == at for choice in choices for at in range(1, size + 1)]
        table["choice"] = [choice.status.value for choice in choices for _ in range(size)]
    dropped = [f"{what}_{at}" for what in ("group", "name") for at in range(1, size + 1)]
    return table.drop(columns=dropped)


def _objects(values: list[str | None], index: pd.Index) -> pd.Series:
    import pandas as pd

    return pd.Series(values, index=index, dtype=object)
