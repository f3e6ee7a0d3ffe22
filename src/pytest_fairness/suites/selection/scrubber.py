"""The quality of a scrubber: what it takes out, what it leaves of the job, and whether the group
still shows.

Everything is compared between groups, with the name as the unit: a scrubber that works better for
some names than for others is itself a disparity.

An endpoint can be asked to guess, too: add the ready-made arms ``reidentified`` (the model scrubs,
then guesses the groups from what is left), ``reidentified_by_rule`` (the same after our rules) and
``reidentified_raw`` (without scrubbing, for comparison) to ``arms=`` of ``fairness_pairs``, beside
``scrubbed`` and ``scrubbed_by_rule``, which they belong to. Their trials have replies and no
choice; :func:`scrubber_qualities` scores them against the truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from pytest_fairness import FrameError, analyze_disparity
from pytest_fairness.analysis.choice_effects import GroupShare
from pytest_fairness.statistics.arrays import Ints
from pytest_fairness.statistics.reidentification import Guessed, guess_by_words, score_guesses
from pytest_fairness.statistics.selection_rates import Rate, clustered_mean
from pytest_fairness.suites.selection.candidate_texts import (
    SEEN,
    body,
    candidate_texts,
    content,
    conveyed,
    is_removed,
    read_guesses,
    tokens,
)
from pytest_fairness.suites.selection.choice_table import (
    GROUP,
    Classes,
    crossed_classes,
    values_of,
)
from pytest_fairness.suites.selection.configuration import GUESSING
from pytest_fairness.suites.selection.results import GuessedShare, ScrubberQuality, TextShare

ALL = "all signals"
CONTENT = "job-related words"
LEAST = 0.05
"""A difference of less than five points in what is kept of the content is no finding."""


class Permutations(NamedTuple):
    """So many permutations of the truth say what chance would reach, drawn from *seed*."""

    permutations: int
    seed: int


def scrubber_qualities(
    frame: pd.DataFrame, classes: Classes, *, permutations: int, seed: int
) -> tuple[ScrubberQuality, ...]:
    """The quality of every arm that scrubs: those whose evaluator saw another text than the
    candidates' own.

    ``frame`` is the whole table of trials; ``classes`` the classes of each group, without which
    only names and pronouns are known to be signals. Nothing where no arm has ``candidates_text``.

    Raises FrameError where what the texts were before is not in the frame.
    """
    arms = _scrubbing_arms(frame)
    if not arms:
        return ()
    chance = Permutations(permutations, seed)
    classes = classes or {group: {} for group in {*frame["first"], *frame["second"]}}
    guesses = _endpoint_guesses(frame, classes, chance)
    return tuple(_quality(frame, arm, classes, guesses, chance) for arm in arms)


def _scrubbing_arms(frame: pd.DataFrame) -> list[str]:
    if SEEN not in frame.columns:
        return []
    arms = dict.fromkeys(frame["arm"][frame[SEEN].notna()].astype(str))
    return [arm for arm in arms if not arm.startswith(GUESSING)]


def _quality(
    frame: pd.DataFrame,
    arm: str,
    classes: Classes,
    guesses: _EndpointGuesses,
    chance: Permutations,
) -> ScrubberQuality:
    """Return the quality of one *arm*, with the *guesses* of the endpoint about its texts."""
    bys = (GROUP, *crossed_classes(classes))
    texts = candidate_texts(frame, arm, classes)
    # A name that stands in two groups conveys neither.
    named = bool((texts.groupby("name")[GROUP].nunique() <= 1).all())
    removed = _removed(texts, classes, named)
    kept = _kept(texts, classes)
    ordered = texts["left"].notna()
    classified = list(_classifier_guesses(texts, classes, bys, chance))
    rows = frame[(frame["arm"] == arm) & frame[SEEN].notna()]
    return ScrubberQuality(
        arm=arm,
        texts=texts["whole"].nunique(),
        recall=tuple(_recall(removed, bys)),
        content=tuple(_content(kept, bys)),
        lines=clustered_mean(
            np.asarray(ordered[::2], dtype=np.float64), rows["name"].astype(str).tolist()
        ),
        reidentified=(*classified, *guesses.about(arm)),
        notes=(*_notes(named, bool(ordered.all()), classified), *guesses.notes),
    )


def _notes(named: bool, ordered: bool, classified: Sequence[GuessedShare]) -> Iterator[str]:
    if not named:
        yield "the groups share their names, which are therefore no signal here"
    if not ordered:
        yield (
            "where candidates cannot be told apart any more, signals are looked for in the whole "
            "text"
        )
    if not any(guess.by == GROUP for guess in classified):
        yield (
            "a classifier guesses groups of two names at least: it must not have seen the name "
            "before"
        )


# ---------------------------------------------------------------- what is removed, and what is left


def _removed(texts: pd.DataFrame, classes: Classes, named: bool) -> pd.DataFrame:
    """One row a signal that stood in the raw text, and whether nothing of it is left."""
    left = texts["left"].fillna(texts["whole"])
    rows: list[int] = []
    kinds: list[str] = []
    removed: list[bool] = []
    for row, (group, name, raw, seen) in enumerate(
        zip(texts[GROUP], texts["name"], texts["raw"], left, strict=True)
    ):
        shown_name = None
        if named:
            shown_name = name
        signals = conveyed(raw, shown_name, tuple(classes[group].items()))
        for kind, words in signals.items():
            rows.append(row)
            kinds.append(kind)
            removed.append(is_removed(kind, words, seen))
    return texts.iloc[rows].reset_index(drop=True).assign(kind=kinds, removed=removed)


def _kept(texts: pd.DataFrame, classes: Classes) -> pd.DataFrame:
    """One row a candidate with job-related words: which share of them is left."""
    shares = []
    columns = [GROUP, "name", "raw", "left", "whole"]
    for group, name, raw, left, whole in texts[columns].itertuples(index=False):
        wanted = content(raw, name, tuple(classes[group].items()))
        seen = whole
        if left is not None:
            seen = body(left)
        share = None
        if wanted:
            share = len(wanted & tokens(seen)) / len(wanted)
        shares.append(share)
    return texts.assign(kept=np.array(shares, dtype=float)).dropna(subset="kept")


def _recall(removed: pd.DataFrame, bys: Sequence[str]) -> Iterator[TextShare]:
    """Yield what is removed of all kinds of signals together, and of each kind."""
    kinds = {ALL: removed}
    for kind, rows in removed.groupby("kind", sort=False):
        kinds[str(kind)] = rows
    for what, rows in kinds.items():
        for by in bys:
            if len(rows):
                yield _compared(rows, what, by, "removed")


def _content(kept: pd.DataFrame, bys: Sequence[str]) -> Iterator[TextShare]:
    for by in bys:
        if len(kept):
            yield _compared(kept, CONTENT, by, "kept")


def _compared(table: pd.DataFrame, what: str, by: str, outcome: str) -> TextShare:
    """A share measured in each group, and whether it differs between them: names are the unit."""
    shares = tuple(
        GroupShare(group=str(group), share=_mean(rows, outcome))
        for group, rows in table.groupby(by, sort=True)
    )
    share = TextShare(what=what, by=by, shares=shares, overall=_mean(table, outcome))
    if len(shares) < 2:
        return share
    kind = "binary"
    least = None
    if outcome == "kept":
        kind = "numeric"
        least = LEAST
    finding = analyze_disparity(
        table, outcome, by, cluster="unit", block="context", kind=kind, min_raw_diff=least
    )
    effects = (pair.effect for pair in finding.pairs if pair.p_value == finding.p_value)
    return replace(
        share,
        p_value=finding.p_value,
        corrected_p_value=finding.corrected_p_value,
        test_statistic=finding.test_statistic,
        effect_size=finding.effect_size,
        effect=next(effects, None),
        verdict=finding.verdict,
        reason=finding.reason,
        sentence=finding.sentence,
    )


def _mean(rows: pd.DataFrame, outcome: str) -> Rate:
    return clustered_mean(rows[outcome].to_numpy(dtype=float), rows["unit"].tolist())


# ---------------------------------------------------------------- who can still guess the group


def _classifier_guesses(
    texts: pd.DataFrame, classes: Classes, bys: Sequence[str], chance: Permutations
) -> Iterator[GuessedShare]:
    """Yield how often a classifier that never saw the name before guesses right from the ``raw`` or
    the scrubbed text.
    """
    for what, column in (("raw", "raw"), ("scrubbed", "left")):
        text = texts[column]
        usable = texts["name"].notna() & text.notna()
        names = tuple(texts["name"][usable])
        for by in bys:
            truth = texts[GROUP].map(values_of(classes, by))[usable]
            guessed = _guessed(tuple(truth), names, tuple(text[usable]), chance)
            if guessed is not None:
                yield _guessed_share(
                    guessed, sorted(set(truth)), by, what, "classifier", int((~usable).sum())
                )


@lru_cache(maxsize=16)  # arms that scrub the same texts share what is found in them raw
def _guessed(
    truth: tuple[str, ...],
    names: tuple[str, ...],
    texts: tuple[str, ...],
    chance: Permutations,
) -> Guessed | None:
    words = [tokens(body(text)) for text in texts]
    return guess_by_words(words, _codes(truth), _codes(names), **chance._asdict())


def _codes(labels: tuple[str, ...]) -> Ints:
    return np.unique(np.array(labels), return_inverse=True)[1]


@dataclass(frozen=True)
class _EndpointGuesses:
    """Guesses of the arms that guess: each with the arm about whose texts it is, empty for
    the raw texts; ``notes`` on arms of which nothing could be read.
    """

    shares: Sequence[tuple[str, GuessedShare]]
    notes: Sequence[str]

    def about(self, arm: str) -> Iterator[GuessedShare]:
        """Yield the guesses about the texts of *arm*, before and after they were scrubbed."""
        for scrubber, share in self.shares:
            if scrubber in (arm, ""):
                yield share


def _endpoint_guesses(
    frame: pd.DataFrame, classes: Classes, chance: Permutations
) -> _EndpointGuesses:
    """Return what the arms that guess come to. Raises FrameError where no classes are known."""
    shares: list[tuple[str, GuessedShare]] = []
    notes: list[str] = []
    for arm in frame["arm"].astype(str).unique():
        if not arm.startswith(GUESSING):
            continue
        rows = frame[frame["arm"] == arm]
        text = "scrubbed"
        scrubber = f"scrubbed{arm.removeprefix(GUESSING)}"
        if arm.endswith("_raw"):
            text = "raw"
            scrubber = ""
        scored = list(_scored_guesses(rows, arm, classes, text, chance))
        shares += [(scrubber, share) for share in scored]
        if not scored:
            notes.append(
                f"arm {arm}: no guess of a group could be read from its {len(rows)} replies"
            )
    return _EndpointGuesses(shares, notes)


def _scored_guesses(
    rows: pd.DataFrame, arm: str, classes: Classes, text: str, chance: Permutations
) -> Iterator[GuessedShare]:
    """Yield how often the guesses in *rows*, those of *arm*, are right: of each crossed class, and
    of the group where there are several.
    """
    wanted = list(crossed_classes(classes))
    if not wanted:
        wanted = list(dict.fromkeys(name for values in classes.values() for name in values))
    if not wanted:
        raise FrameError(f"arm {arm!r} guesses the groups' classes: give each group its classes")
    guesses = _guesses_in(rows, classes, wanted)
    bys = wanted
    if len(wanted) > 1:
        bys = [GROUP, *wanted]
    for by in bys:
        share = _scored_guess(rows, guesses, classes, by, text, chance)
        if share is not None:
            yield share


def _guesses_in(rows: pd.DataFrame, classes: Classes, wanted: Sequence[str]) -> pd.DataFrame:
    """The guesses that the replies in *rows* hold, two a reply: the *wanted* classes, and the group
    that has them. No reply is read as one in which nothing is said of anybody.
    """
    group_of: dict[tuple[str | None, ...], str] = {}
    for group, group_values in classes.items():
        group_of[tuple(map(group_values.__getitem__, wanted))] = group
    values = {}
    for name in wanted:
        values[name] = sorted({group_values[name] for group_values in classes.values()})
    guessed: list[dict[str, str | None]] = []
    for reply in rows["reply"]:
        text = ""
        if isinstance(reply, str):
            text = reply
        guessed += read_guesses(text, values)
    guesses = pd.DataFrame(guessed, columns=list(wanted))
    guesses[GROUP] = [
        group_of.get(guess, "") for guess in guesses.itertuples(index=False, name=None)
    ]
    return guesses


def _scored_guess(
    rows: pd.DataFrame,
    guesses: pd.DataFrame,
    classes: Classes,
    by: str,
    text: str,
    chance: Permutations,
) -> GuessedShare | None:
    """Return how often the *guesses* of the class *by* are right, of the candidates in *rows*; None
    where they cannot be scored.
    """
    group, name = (pd.Series(rows[list(seats)].to_numpy().ravel()) for seats in _SEATS)
    columns = [by]
    if by == GROUP:
        columns = [column for column in guesses.columns if column != GROUP]
    complete = guesses[columns].notna().all(axis=1)
    kinds, truth = np.unique(
        group.map(values_of(classes, by))[complete].astype(str), return_inverse=True
    )
    units = np.unique(name[complete].astype(str), return_inverse=True)[1]
    # A combination that no group has is a guess, and wrong.
    codes = pd.Index(kinds).get_indexer(guesses[by][complete]) % (len(kinds) + 1)
    guessed = score_guesses(codes, truth, units, **chance._asdict())
    if guessed is None:
        return None
    return _guessed_share(guessed, kinds.tolist(), by, text, "endpoint", int((~complete).sum()))


_SEATS = (("first", "second"), ("first_name", "second_name"))


def _guessed_share(
    guessed: Guessed, kinds: Sequence[str], by: str, text: str, reader: str, unread: int
) -> GuessedShare:
    names = guessed.names
    right = guessed.accuracy
    return GuessedShare(
        by=by,
        text=text,
        reader=reader,
        accuracy=Rate(names, round(right * names), right, guessed.low, guessed.high),
        chance=guessed.chance,
        p_value=guessed.p,
        per_group=tuple(
            GroupShare(group=kind, share=_right(*of_kind))
            for kind, of_kind in zip(kinds, guessed.labels, strict=True)
        ),
        unread=unread,
    )


def _right(rate: float, names: int) -> Rate:
    if np.isnan(rate):
        return Rate(names, 0)
    return Rate(names, round(rate * names), rate)
