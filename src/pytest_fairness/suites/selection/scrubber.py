"""What a scrubber does to the texts: what it takes out, what it leaves of the job, and whether the
group still shows.

Everything is compared between groups, with the name as the unit: a scrubber that works better for
some names than for others is itself a disparity.

An endpoint can be asked to guess, too: add the ready-made arms ``reidentified`` (the model scrubs,
then guesses the groups from what is left), ``reidentified_by_rule`` (the same after our rules) and
``reidentified_raw`` (without scrubbing, for comparison) to ``arms=`` of ``fairness_pairs``, beside
``scrubbed`` and ``scrubbed_by_rule``, which they belong to. Their trials have replies and no
choice; :func:`scrubber_qualities` scores them against the truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.errors import FrameError
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
    Record,
    crossed_classes,
    values_of,
)
from pytest_fairness.suites.selection.configuration import GUESSING

ALL = "all signals"
CONTENT = "job-related words"
#: What a finding about a comparison says of it.
JUDGED = ("p_value", "corrected_p_value", "test_statistic", "effect_size", "verdict", "reason")
LEAST = 0.05
"""A difference of less than five points in what is kept of the content is no finding."""


def scrubber_qualities(
    frame: pd.DataFrame, classes: Classes, *, permutations: int, seed: int
) -> list[Record]:
    """The quality of every arm that scrubs: those whose evaluator saw another text than the
    candidates' own.

    ``frame`` is the whole table of trials; ``classes`` the classes of each group, without which
    only names and pronouns are known to be signals. Nothing where no arm has ``candidates_text``.

    ``recall``: of the signals that stood in the raw text, the share that is removed, for all kinds
    together and each kind (name, words of a class, pronoun); ``content``: of the job-related words
    and numbers, the share that is left; ``lines``: the share of texts whose candidates can still be
    told apart, in their order.

    Raises FrameError where what the texts were before is not in the frame.
    """
    if SEEN not in frame.columns:
        return []
    arms = [
        arm
        for arm in dict.fromkeys(frame["arm"][frame[SEEN].notna()].astype(str))
        if not arm.startswith(GUESSING)
    ]
    if not arms:
        return []
    chance = {"permutations": permutations, "seed": seed}
    classes = classes or {group: {} for group in {*frame["first"], *frame["second"]}}
    bys = (GROUP, *crossed_classes(classes))
    guesses, unread = _endpoint_guesses(frame, classes, chance)
    qualities = []
    for arm in arms:
        texts = candidate_texts(frame, arm, classes)
        # A name that stands in two groups conveys neither.
        named = bool((texts.groupby("name")[GROUP].nunique() <= 1).all())
        ordered = texts["left"].notna()
        classified = [
            _classifier_guess(texts, classes, by, what, chance)
            for what in ("raw", "scrubbed")
            for by in bys
        ]
        classified_ = [person for person in classified if person is not None]
        notes = []
        if not named:
            notes.append("the groups share their names, which are therefore no signal here")
        if not ordered.all():
            notes.append(
                "where candidates cannot be told apart any more, signals are looked for in the "
                "whole text"
            )
        if not any(label.by == GROUP for label in classified_):
            notes.append(
                "a classifier guesses groups of two names at least: it must not have seen the name "
                "before"
            )
        removed = _removed(texts, classes, named)
        kept = _kept(texts, classes)
        kinds = {ALL: removed} | {
            str(kind): some for kind, some in removed.groupby("kind", sort=False)
        }
        rows = frame[(frame["arm"] == arm) & frame[SEEN].notna()]
        quality = Record(
            arm=arm,
            texts=texts["whole"].nunique(),
            recall=[
                _compared(some, what, by, "removed")
                for what, some in kinds.items()
                for by in bys
                if len(some)
            ],
            content=[_compared(kept, CONTENT, by, "kept", LEAST) for by in bys if len(kept)],
            lines=clustered_mean(
                np.asarray(ordered[::2], dtype=np.float64), rows["name"].astype(str).tolist()
            ),
            reidentified=[
                *classified_,
                *(guess for scrubber, guess in guesses if scrubber in (arm, "")),
            ],
            notes=[*notes, *unread],
        )
        qualities.append(quality)
    return qualities


# ---------------------------------------------------------------- what is removed, and what is left


def _removed(texts: pd.DataFrame, classes: Classes, named: bool) -> pd.DataFrame:
    """One row a signal that stood in the raw text, and whether nothing of it is left."""
    left = texts["left"].fillna(texts["whole"])
    rows = [
        (at, kind, is_removed(kind, signals, seen))
        for at, (group, name, raw, seen) in enumerate(
            zip(texts[GROUP], texts["name"], texts["raw"], left, strict=True)
        )
        for kind, signals in conveyed(
            raw, name if named else None, tuple(classes[group].items())
        ).items()
    ]
    texts_ = texts.iloc[[at for at, _, _ in rows]].reset_index(drop=True)
    return texts_.assign(
        kind=[kind for _, kind, _ in rows], removed=[removed for _, _, removed in rows]
    )


def _kept(texts: pd.DataFrame, classes: Classes) -> pd.DataFrame:
    """One row a candidate with job-related words: which share of them is left."""
    shares = []
    for group, name, raw, left, whole in texts[[GROUP, "name", "raw", "left", "whole"]].itertuples(
        index=False
    ):
        wanted = content(raw, name, tuple(classes[group].items()))
        seen = tokens(whole if left is None else body(left))
        shares.append(len(wanted & seen) / len(wanted) if wanted else None)
    return texts.assign(kept=np.array(shares, dtype=float)).dropna(subset="kept")


def _compared(
    table: pd.DataFrame, what: str, by: str, outcome: str, least: float | None = None
) -> Record:
    """A share measured in each group, and whether it differs between them (the names are the unit)."""

    def share(some: pd.DataFrame) -> Rate:
        return clustered_mean(some[outcome].to_numpy(dtype=float), some["unit"].tolist())

    shares = [
        Record(group=str(group), share=share(rows)) for group, rows in table.groupby(by, sort=True)
    ]
    quality = Record(what=what, by=by, shares=shares, overall=share(table))
    if len(shares) < 2:
        return Record(quality | dict.fromkeys((*JUDGED, "effect")), sentence="")
    finding = analyze_disparity(
        table,
        outcome,
        by,
        cluster="unit",
        block="context",
        kind="binary" if outcome == "removed" else "numeric",
        min_raw_diff=least,
    )
    effects = (pair.effect for pair in finding.pairs if pair.p_value == finding.p_value)
    judged_as = {name: getattr(finding, name) for name in (*JUDGED, "sentence")}
    return Record(quality | judged_as, effect=next(effects, None))


# ---------------------------------------------------------------- who can still guess the group


def _classifier_guess(
    texts: pd.DataFrame, classes: Classes, by: str, what: str, chance: Mapping[str, int]
) -> Record | None:
    """Return how often a classifier that never saw the name before guesses right from the ``raw``
    or the scrubbed text.
    """
    text = texts["raw" if what == "raw" else "left"]
    usable = texts["name"].notna() & text.notna()
    truth = texts[GROUP].map(values_of(classes, by))[usable]
    guessed = _guessed(tuple(truth), tuple(texts["name"][usable]), tuple(text[usable]), **chance)
    return _reidentified(guessed, sorted(set(truth)), by, what, "classifier", int((~usable).sum()))


@lru_cache(maxsize=16)  # arms that scrub the same texts share what is found in them raw
def _guessed(
    truth: tuple[str, ...],
    names: tuple[str, ...],
    texts: tuple[str, ...],
    permutations: int,
    seed: int,
) -> Guessed | None:
    labels, units = (
        np.unique(labels, return_inverse=True)[1] for labels in (np.array(truth), np.array(names))
    )
    return guess_by_words(
        [tokens(body(text)) for text in texts], labels, units, permutations=permutations, seed=seed
    )


def _endpoint_guesses(
    frame: pd.DataFrame, classes: Classes, chance: Mapping[str, int]
) -> tuple[list[tuple[str, Record]], list[str]]:
    """Return what the arms that guess come to, each with the arm whose scrubbing it looks at (empty
    for the raw text), and notes on those of which nothing could be read.
    """
    qualities: list[tuple[str, Record]] = []
    unread: list[str] = []
    every = dict.fromkeys(name for own in classes.values() for name in own)
    wanted = list(crossed_classes(classes) or every)
    for arm in map(str, dict.fromkeys(frame["arm"])):
        if not arm.startswith(GUESSING):
            continue
        if not wanted:
            raise FrameError(
                f"arm {arm!r} guesses the groups' classes: give each group its classes"
            )
        rows = frame[frame["arm"] == arm]
        text = "scrubbed"
        whose = f"scrubbed{arm.removeprefix(GUESSING)}"
        if arm.endswith("_raw"):
            text = "raw"
            whose = ""
        guesses = _guesses_in(rows, classes, wanted)
        bys = wanted
        if len(wanted) > 1:
            bys = [GROUP, *wanted]
        scored = [_scored_guess(rows, guesses, classes, by, text, chance) for by in bys]
        qualities += [(whose, guess) for guess in scored if guess is not None]
        if not any(scored):
            unread.append(
                f"arm {arm}: no guess of a group could be read from its {len(rows)} replies"
            )
    return qualities, unread


def _guesses_in(rows: pd.DataFrame, classes: Classes, wanted: Sequence[str]) -> pd.DataFrame:
    """The guesses that the replies in *rows* hold, two a reply: the *wanted* classes, and the group
    that has them. No reply is read as one in which nothing is said of anybody.
    """
    values = {name: sorted({own[name] for own in classes.values()}) for name in wanted}
    group_of = {tuple(own[name] for name in wanted): group for group, own in classes.items()}
    read: list[Any] = []
    for reply in rows["reply"]:
        text = ""
        if isinstance(reply, str):
            text = reply
        read += read_guesses(text, values)
    guesses = pd.DataFrame(read, columns=list(wanted))
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
    chance: Mapping[str, int],
) -> Record | None:
    """How often the *guesses* of the class *by* are right, of the candidates in *rows*."""
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
    guessed = score_guesses(codes, truth, units, **chance)
    return _reidentified(guessed, kinds.tolist(), by, text, "endpoint", int((~complete).sum()))


_SEATS = (("first", "second"), ("first_name", "second_name"))


def _reidentified(
    guessed: Guessed | None, kinds: Sequence[str], by: str, text: str, reader: str, unread: int
) -> Record | None:
    """Return how often the group (or one class of it, *by*) is guessed right from one candidate's
    *text*.

    ``chance`` is what guessing without the text would reach; ``p_value`` is from permuting the
    truth over the names.
    """
    if guessed is None:
        return None
    n = guessed.names
    right = guessed.accuracy
    return Record(
        by=by,
        text=text,
        reader=reader,
        accuracy=Rate(n, round(right * n), right, guessed.low, guessed.high),
        chance=guessed.chance,
        p_value=guessed.p,
        per_group=[
            Record(group=kind, share=Rate(n, round(rate * n), None if np.isnan(rate) else rate))
            for kind, rate, n in zip(kinds, guessed.by_label, guessed.sizes, strict=True)
        ],
        unread=unread,
    )
