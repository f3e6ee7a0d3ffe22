"""Further columns of a table of choices: who was listed where, and whom the reply chose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.scorers.choice import Choice, ChoiceStatus
from pytest_fairness.scorers.given_choices import (
    AskedChoice,
    read_asked_choice,
    read_asked_ranking,
)
from pytest_fairness.scorers.outcome import ReadBy
from pytest_fairness.trials_frame import design_of

if TYPE_CHECKING:
    import pandas as pd

NEITHER = "neither"
CHOICE_READ_BY = "choice_read_by"
"""The column that says what read a choice that was asked for by form or line."""
#: What a row has of its reply, and what read it; None where nobody had anything to read.
_Read = tuple[Choice, ReadBy | None]


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

    Where the design asks for a form, ``choice_read_by`` says what read the choice: ``form``,
    ``line``, ``rule``, or nothing (``unread``); None where the request was refused.
    """
    if size == 1:
        shown = frame.rename(columns={"group_1": "group", "name_1": "candidate"})
        return shown.drop(columns=["pair", "order"])
    names = frame[_numbered("name", size)].astype(object)
    slates = list(names.where(names.notna(), None).itertuples(index=False, name=None))
    asked = AskedChoice.of(design_of(frame).answer)
    read_by: list[ReadBy | None]
    if ranking:
        table, read_by = _ranked(frame, slates, asked)
    else:
        choices, read_by = _choices_in(frame, slates, asked)
        if size > 2:
            table = _chosen_of_many(frame, slates, choices)
        else:
            table = _chosen_of_two(frame, choices)
    if asked is not None:
        rows_of_trial = len(table) // max(len(frame), 1)
        every = list(chain.from_iterable(map(repeat, read_by, repeat(rows_of_trial))))
        table[CHOICE_READ_BY] = _objects(every, table.index)
    return table


def _choices_in(
    frame: pd.DataFrame, slates: Sequence[tuple[str | None, ...]], asked: AskedChoice | None
) -> tuple[list[Choice], list[ReadBy | None]]:
    """Return the choice of each row of *frame*, and what read it."""
    choices: list[Choice] = []
    read_by: list[ReadBy | None] = []
    for names, reply, refused in zip(slates, frame["reply"], frame["refused"], strict=True):
        choice, reader = Choice(ChoiceStatus.REFUSED), None
        if not refused:
            choice, reader = _read(reply, names, asked)
        choices.append(choice)
        read_by.append(reader)
    return choices, read_by


def _read(reply: object, names: Sequence[str | None], asked: AskedChoice | None) -> _Read:
    """Return what a *reply* chooses of *names*, and what read it; of what is no text nothing can be
    read.
    """
    if isinstance(reply, str):
        return read_asked_choice(reply, names, asked)
    return Choice(ChoiceStatus.UNPARSED), None


def _numbered(what: str, size: int) -> list[str]:
    """Return the columns of *what* of each of *size* candidates: ``name_1``, ``name_2`` …"""
    return [f"{what}_{number}" for number in range(1, size + 1)]


def choice_in(
    reply: object, names: Sequence[str | None], asked: AskedChoice | None = None
) -> Choice:
    """Return what a *reply* chooses of *names*, where it was *asked* for a form; of what is no text
    nothing can be read.
    """
    choice, _ = _read(reply, names, asked)
    return choice


def group_chosen(choice: Choice, groups: Sequence[str]) -> str | None:
    """Return which of *groups* was chosen, or ``neither``, for none and for both; None where that
    could not be read.
    """
    if choice.number is not None:
        return groups[choice.number - 1]
    if choice.status in (ChoiceStatus.NEITHER, ChoiceStatus.BOTH):
        return NEITHER
    return None


def ranks_in(
    reply: object, names: Sequence[str | None], asked: AskedChoice | None = None
) -> list[float] | None:
    """Return the rank that a *reply* gives each of *names*, 1.0 for the best, where it was *asked*
    for a form; None where none can be read.
    """
    ranks, _ = _ranks(reply, names, asked)
    return ranks


def _ranks(
    reply: object, names: Sequence[str | None], asked: AskedChoice | None
) -> tuple[list[float] | None, ReadBy | None]:
    """Return the ranks in a *reply*, and what read it."""
    if not isinstance(reply, str):
        return None, None
    ranking, reader = read_asked_ranking(reply, names, asked)
    if ranking is None:
        return None, reader
    return list(map(float, ranking)), reader


def _ranked(
    frame: pd.DataFrame, slates: list[tuple[str | None, ...]], asked: AskedChoice | None
) -> tuple[pd.DataFrame, list[ReadBy | None]]:
    """Return a row a candidate, with the rank that the reply gives; and what read each reply."""
    status: list[ChoiceStatus] = []
    ranks: list[float] = []
    read_by: list[ReadBy | None] = []
    for names, reply, refused in zip(slates, frame["reply"], frame["refused"], strict=True):
        given, reader = None, None
        if not refused:
            given, reader = _ranks(reply, names, asked)
        read_by.append(reader)
        if given is None:
            status.append(ChoiceStatus.UNPARSED)
            ranks += [math.nan] * len(names)
        else:
            status.append(ChoiceStatus.CHOSEN)
            ranks += given
    best = [rank == 1.0 for rank in ranks]
    return _slates(frame, slates, status).assign(rank=ranks, chosen=best), read_by


def _chosen_of_many(
    frame: pd.DataFrame, slates: list[tuple[str | None, ...]], choices: list[Choice]
) -> pd.DataFrame:
    """Return a row a candidate, with whether the reply chooses it."""
    chosen: list[bool] = []
    for names, choice in zip(slates, choices, strict=True):
        chosen += (choice.number == at for at in range(1, len(names) + 1))
    return _slates(frame, slates, [choice.status for choice in choices]).assign(chosen=chosen)


def _chosen_of_two(frame: pd.DataFrame, choices: list[Choice]) -> pd.DataFrame:
    """Return a row a trial, with the group that the reply chooses."""
    groups = zip(frame["group_1"], frame["group_2"], strict=True)
    chosen = list(map(group_chosen, choices, groups))
    table = frame.rename(
        columns={
            "group_1": "first",
            "group_2": "second",
            "name_1": "first_name",
            "name_2": "second_name",
        }
    )
    status = [choice.status.value for choice in choices]
    return table.assign(choice=status, chosen=_objects(chosen, table.index))


def _slates(
    frame: pd.DataFrame, shown: list[tuple[str | None, ...]], status: list[ChoiceStatus]
) -> pd.DataFrame:
    """One row a candidate."""
    size = 0
    if shown:
        size = len(shown[0])
    table = frame.loc[frame.index.repeat(size)].reset_index(drop=True)
    table.attrs = dict(frame.attrs)
    listed = _numbered("group", size)
    groups = frame[listed].to_numpy(dtype=object)
    cells = zip(table["cell"], table["repetition"], strict=True)
    return table.drop(columns=[*listed, *_numbered("name", size)]).assign(
        trial=[f"{cell}#{repetition}" for cell, repetition in cells],
        position=np.tile(np.arange(1, size + 1), len(frame)),
        group=groups.ravel().tolist(),
        candidate=_objects(list(chain.from_iterable(shown)), table.index),
        choice=np.repeat([value.value for value in status], size).tolist(),
    )


def _objects(values: Sequence[str | None], index: pd.Index) -> pd.Series:
    import pandas as pd

    return pd.Series(values, index=index, dtype=object)
