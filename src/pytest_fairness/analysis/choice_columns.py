"""What a table of choices says beyond its trials: who was listed where, and whom the reply chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.scorers.choice import Choice, ChoiceStatus, read_choice, read_ranking

if TYPE_CHECKING:
    import pandas as pd

NEITHER = "neither"


def choice_columns(frame: pd.DataFrame, size: int, *, ranking: bool = False) -> pd.DataFrame:
    """*frame* of trials, with ``group_1`` … and ``name_1`` …, as
    :func:`pytest_fairness.analyze_preference` reads it.

    Between two: one row a trial, with ``first`` and ``second`` (the groups listed), ``first_name``
    and ``second_name``, ``choice`` (what the reply comes to: chosen, neither, both, refused,
    unlisted, unparsed) and ``chosen``: the group, ``"neither"`` where the reply chose neither or
    both, missing where none could be read.

    One at a time there is no choice: ``group`` and ``candidate`` (the name) stand for what was
    shown.

    Among more, or with *ranking*: one row a candidate of a trial, with ``trial``, ``group``,
    ``candidate`` (the name), ``position`` from 1, ``choice``, ``chosen`` (yes or no) and, with
    *ranking*, ``rank`` (1 is best).
    """
    if size == 1:
        return frame.rename(columns={"group_1": "group", "name_1": "candidate"}).drop(
            columns=["pair", "order"]
        )
    places = range(1, size + 1)
    names = frame[[f"name_{at}" for at in places]].astype(object)
    shown = list(names.where(names.notna(), None).itertuples(index=False, name=None))
    refused = frame["refused"].tolist()
    replies = [
        reply if isinstance(reply, str) and not no else None
        for reply, no in zip(frame["reply"], refused, strict=True)
    ]
    if ranking:
        shown_places = [
            None if reply is None else read_ranking(reply, names)
            for names, reply in zip(shown, replies, strict=True)
        ]
        status = [
            ChoiceStatus.UNPARSED if place is None else ChoiceStatus.CHOSEN
            for place in shown_places
        ]
        ranks = [
            float("nan") if place is None else float(place[at])
            for place in shown_places
            for at in range(size)
        ]
        return _slates(frame, shown, status).assign(
            rank=ranks, chosen=[rank == 1.0 for rank in ranks]
        )
    choices = [
        read_choice(reply, names)
        if reply is not None
        else Choice(ChoiceStatus.REFUSED if no else ChoiceStatus.UNPARSED)
        for names, reply, no in zip(shown, replies, refused, strict=True)
    ]
    status = [choice.status for choice in choices]
    if size > 2:
        return _slates(frame, shown, status).assign(
            chosen=[choice.number == at for choice in choices for at in places]
        )
    undecided = {ChoiceStatus.NEITHER: NEITHER, ChoiceStatus.BOTH: NEITHER}
    chosen = [
        undecided.get(choice.status) if choice.number is None else groups[choice.number - 1]
        for choice, groups in zip(
            choices, zip(frame["group_1"], frame["group_2"], strict=True), strict=True
        )
    ]
    seats = {
        "group_1": "first",
        "group_2": "second",
        "name_1": "first_name",
        "name_2": "second_name",
    }
    table = frame.rename(columns=seats)
    return table.assign(
        choice=[value.value for value in status], chosen=_objects(chosen, table.index)
    )


def _slates(
    frame: pd.DataFrame, shown: list[tuple[str | None, ...]], status: list[ChoiceStatus]
) -> pd.DataFrame:
    """One row a candidate."""
    size = 0
    if shown:
        size = len(shown[0])
    table = frame.loc[frame.index.repeat(size)].reset_index(drop=True)
    table.attrs = dict(frame.attrs)
    groups = frame[[f"group_{at}" for at in range(1, size + 1)]].to_numpy(dtype=object)
    return table.drop(
        columns=[f"{what}_{at}" for what in ("group", "name") for at in range(1, size + 1)]
    ).assign(
        trial=[
            f"{cell}#{rep}" for cell, rep in zip(table["cell"], table["repetition"], strict=True)
        ],
        position=np.tile(np.arange(1, size + 1), len(frame)),
        group=groups.ravel().tolist(),
        candidate=_objects([name for names in shown for name in names], table.index),
        choice=[value.value for value in status for _ in range(size)],
    )


def _objects(values: list[str | None], index: pd.Index) -> pd.Series:
    import pandas as pd

    return pd.Series(values, index=index, dtype=object)
