"""What a scrubber does to the texts: what it takes out, what it leaves of the job, and whether the group still shows.

Everything is compared between groups, with the name as the unit: a scrubber that works better for some names than
for others is itself a disparity.

An endpoint can be asked to guess, too: add the ready-made arms ``reidentified`` (the model scrubs, then guesses the
groups from what is left), ``reidentified_by_rule`` (the same after our rules) and ``reidentified_raw`` (without
scrubbing, for comparison) to ``arms=`` of ``fairness_pairs``, beside ``scrubbed`` and ``scrubbed_by_rule``, which
they are told with. Their trials have replies and no choice; :func:`scrubber_qualities` scores them against the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.errors import FrameError
from pytest_fairness.statistics.reidentification import Guessed, guess_by_words, score_guesses
from pytest_fairness.statistics.selection_rates import clustered_mean
from pytest_fairness.suites.selection.configuration import GUESSING
from pytest_fairness.suites.selection.design import GROUP, margins_of
from pytest_fairness.suites.selection.guesses import read_guesses
from pytest_fairness.suites.selection.reading import Classes
from pytest_fairness.suites.selection.results import (
    GroupsCompared,
    GroupShare,
    Reidentified,
    ScrubberQuality,
    Share,
)
from pytest_fairness.suites.selection.texts import (
    SEEN,
    Part,
    body,
    content,
    conveyed,
    in_order,
    is_gone,
    named_groups,
    parts,
    tokens,
    values_of,
)

if TYPE_CHECKING:
    import pandas as pd

_RAW = "_raw"
ALL = "all signals"
CONTENT = "job-related words"
LEAST = 0.05
"""A difference of less than five points in what is kept of the content is no finding."""


def scrubber_qualities(
    frame: pd.DataFrame,
    classes: Classes,
    *,
    alpha: float = 0.05,
    correction: str = "bonferroni",
    permutations: int = 199,
    seed: int = 0,
) -> tuple[ScrubberQuality, ...]:
    """The quality of every arm that scrubs: those whose evaluator saw another text than the candidates' own.

    ``frame`` is the whole table of trials; ``classes`` the classes of each group, without which only names and
    pronouns are known to be signals. Nothing where no arm has ``candidates_text``.

    Raises FrameError where what the texts were before is not in the frame.
    """
    if SEEN not in frame.columns:
        return ()
    scrubbing = tuple(map(str, dict.fromkeys(frame["arm"][frame[SEEN].notna()])))
    arms = [arm for arm in scrubbing if not arm.startswith(GUESSING)]
    if not arms:
        return ()
    known = classes or {str(g): {} for g in dict.fromkeys([*frame["first"], *frame["second"]])}
    guesses, unread = _by_endpoint(frame, known, permutations, seed)
    readers = _Classifiers(permutations, seed)
    found = (_quality(frame, arm, known, guesses, readers, alpha, correction) for arm in arms)
    return tuple(replace(one, notes=(*one.notes, *unread)) for one in found)


class _Classifiers:
    """Guesses by classifier; arms that scrub the same texts share what is found in them unscrubbed."""

    def __init__(self, permutations: int, seed: int) -> None:
        self._permutations, self._seed = permutations, seed
        self._known: dict[tuple[object, ...], Reidentified | None] = {}

    def guess(self, found: Sequence[Part], value: dict[str, str], by: str, text: str) -> Reidentified | None:
        texts = [(part.group, part.name, part.raw if text == "raw" else part.left) for part in found]
        key = (by, text, tuple(texts))
        if key not in self._known:
            self._known[key] = _by_classifier(found, value, by, text, self._permutations, self._seed)
        return self._known[key]


def _quality(
    frame: pd.DataFrame,
    arm: str,
    classes: Classes,
    guesses: Sequence[tuple[str, Reidentified]],
    readers: _Classifiers,
    alpha: float,
    correction: str,
) -> ScrubberQuality:
    found = parts(frame, arm)
    by = (GROUP, *margins_of(classes))
    names = named_groups(found)
    notes = [] if names else ["the groups share their names, which are therefore no signal here"]
    rows = frame[(frame["arm"] == arm) & frame[SEEN].notna()]
    context = rows["template"].astype(str).tolist() if "template" in rows.columns else [""] * len(rows)
    removed = _removed(found, context, classes, names)
    kept = _kept(found, context, classes)
    recall: list[GroupsCompared] = []
    for what in (ALL, *dict.fromkeys(removed["kind"])):
        some = removed if what == ALL else removed[removed["kind"] == what]
        recall += [_compared(some, what, name, "gone", None, alpha, correction) for name in by if len(some)]
    texts = dict.fromkeys(str(text) for text in rows[SEEN])
    ordered = [in_order(str(text)) for text in rows[SEEN]]
    if not all(ordered):
        notes.append("where candidates cannot be told apart any more, signals are looked for in the whole text")
    reidentified = [
        one
        for text in ("raw", "scrubbed")
        for name in by
        if (one := readers.guess(found, values_of(classes, name), name, text)) is not None
    ]
    if not any(one.by == GROUP for one in reidentified):
        notes.append("a classifier guesses groups of two names at least: it must not have seen the name before")
    reidentified += [one for scrubber, one in guesses if scrubber in (arm, "")]
    unit = rows["name"].astype(str).tolist() if "name" in rows.columns else context
    return ScrubberQuality(
        arm=arm,
        texts=len(texts),
        recall=tuple(recall),
        content=tuple(_compared(kept, CONTENT, name, "kept", LEAST, alpha, correction) for name in by if len(kept)),
        lines=_share(np.array(ordered, dtype=float), unit),
        reidentified=tuple(reidentified),
        notes=tuple(notes),
    )


def _removed(found: Sequence[Part], context: Sequence[str], classes: Classes, names: bool) -> pd.DataFrame:
    """One row a signal that stood in the raw text, and whether nothing of it is left."""
    rows = []
    for part in found:
        told = conveyed(part.raw, part.name if names else None, classes[part.group])
        left = part.whole if part.left is None else part.left
        rows += [(part, kind, is_gone(kind, signals, left)) for kind, signals in told.items()]
    return _table([row[0] for row in rows], context, classes, kind=[r[1] for r in rows], gone=[r[2] for r in rows])


def _kept(found: Sequence[Part], context: Sequence[str], classes: Classes) -> pd.DataFrame:
    """One row a candidate with job-related words: which share of them is left."""
    rows = []
    for part in found:
        wanted = content(part.raw, part.name, classes[part.group])
        left = tokens(part.whole if part.left is None else body(part.left))
        if wanted:
            rows.append((part, len(wanted & left) / len(wanted)))
    return _table([row[0] for row in rows], context, classes, kept=[row[1] for row in rows])


def _table(some: Sequence[Part], context: Sequence[str], classes: Classes, **columns: list[object]) -> pd.DataFrame:
    import pandas as pd

    margins = {name: [classes[part.group][name] for part in some] for name in margins_of(classes)}
    return pd.DataFrame(
        {
            GROUP: [part.group for part in some],
            **margins,
            "unit": [part.name or part.group for part in some],
            "context": [context[part.row] for part in some],
            **columns,
        }
    )


def _compared(
    table: pd.DataFrame, what: str, by: str, outcome: str, least: float | None, alpha: float, correction: str
) -> GroupsCompared:
    shares = tuple(
        GroupShare(group=str(group), share=_share(own[outcome].to_numpy(dtype=float), own["unit"].tolist()))
        for group, own in table.groupby(by, sort=True)
    )
    overall = _share(table[outcome].to_numpy(dtype=float), table["unit"].tolist())
    if len(shares) < 2:
        return GroupsCompared(what=what, by=by, shares=shares, overall=overall)
    finding = analyze_disparity(
        table,
        outcome,
        by,
        cluster="unit",
        block="context",
        kind="binary" if outcome == "gone" else "numeric",
        alpha=alpha,
        correction=correction,
        min_raw_diff=least,
    )
    decider = next((pair for pair in finding.pairs if pair.p_value == finding.p_value), None)
    return GroupsCompared(
        what=what,
        by=by,
        shares=shares,
        overall=overall,
        p_value=finding.p_value,
        corrected_p_value=finding.corrected_p_value,
        effect=None if decider is None else decider.effect,
        verdict=finding.verdict,
        reason=finding.reason,
        sentence=finding.sentence,
    )


def _share(values: np.ndarray[tuple[int], np.dtype[np.float64]], units: Sequence[object]) -> Share:
    rate = clustered_mean(values, units)
    return Share(n=rate.n, count=rate.won, value=rate.value, low=rate.low, high=rate.high)


def _by_classifier(
    found: Sequence[Part], value: dict[str, str], by: str, text: str, permutations: int, seed: int
) -> Reidentified | None:
    usable = [part for part in found if part.name is not None and (text == "raw" or part.left is not None)]
    labels, names, kinds = _coded(usable, value)
    if len(kinds) < 2:
        return None
    read = [tokens(body(part.raw if text == "raw" else part.left or "")) for part in usable]
    guessed = guess_by_words(read, labels, names, permutations=permutations, seed=seed)
    return None if guessed is None else _told(guessed, kinds, by, text, "classifier", unread=len(found) - len(usable))


def _coded(
    some: Sequence[Part], value: dict[str, str]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], np.ndarray[tuple[int], np.dtype[np.intp]], tuple[str, ...]]:
    kinds = tuple(sorted({value[part.group] for part in some}))
    names = {name: at for at, name in enumerate(sorted({str(part.name) for part in some}))}
    labels = np.array([kinds.index(value[part.group]) for part in some], dtype=np.intp)
    return labels, np.array([names[str(part.name)] for part in some], dtype=np.intp), kinds


def _told(guessed: Guessed, kinds: Sequence[str], by: str, text: str, reader: str, unread: int) -> Reidentified:
    n = guessed.names
    return Reidentified(
        by=by,
        text=text,
        reader=reader,
        accuracy=Share(
            n=n, count=round(guessed.accuracy * n), value=guessed.accuracy, low=guessed.low, high=guessed.high
        ),
        chance=guessed.chance,
        p_value=guessed.p,
        per_group=tuple(
            GroupShare(group=kind, share=Share(n=n, count=round(rate * n), value=None if np.isnan(rate) else rate))
            for kind, rate, n in zip(kinds, guessed.by_label, guessed.sizes, strict=True)
        ),
        unread=unread,
    )


def _by_endpoint(
    frame: pd.DataFrame, classes: Classes, permutations: int, seed: int
) -> tuple[list[tuple[str, Reidentified]], list[str]]:
    """What the arms that guess came to, each with the arm whose scrubbing it looks at (empty for the raw text), and
    notes on those of which nothing could be read.
    """
    told: list[tuple[str, Reidentified]] = []
    unread: list[str] = []
    wanted = margins_of(classes) or tuple(dict.fromkeys(name for known in classes.values() for name in known))
    asked = {name: sorted({known[name] for known in classes.values()}) for name in wanted}
    for arm in (str(arm) for arm in dict.fromkeys(frame["arm"]) if str(arm).startswith(GUESSING)):
        if not asked:
            raise FrameError(f"arm {arm!r} guesses the groups' classes: say them with classes=…")
        rows = frame[frame["arm"] == arm]
        scrubber = "" if arm.endswith(_RAW) else f"scrubbed{arm.removeprefix(GUESSING)}"
        text = "raw" if scrubber == "" else "scrubbed"
        some, said = [], []
        for row, (reply, *shown) in enumerate(
            zip(rows["reply"], rows["first"], rows["second"], rows["first_name"], rows["second_name"], strict=True)
        ):
            read = (
                read_guesses(reply, asked) if isinstance(reply, str) else (dict.fromkeys(asked), dict.fromkeys(asked))
            )
            for at in (0, 1):
                name = shown[at + 2] if isinstance(shown[at + 2], str) else None
                some.append(Part(row, at + 1, str(shown[at]), name, "", None, ""))
                said.append(read[at])
        by_all = (GROUP, *wanted) if len(wanted) > 1 else wanted
        scored = [_scored(some, said, classes, by, wanted, text, permutations, seed) for by in by_all]
        told += [(scrubber, one) for one in scored if one is not None]
        if not any(scored):
            unread.append(f"arm {arm}: no guess of a group could be read from its {len(rows)} replies")
    return told, unread


def _scored(
    some: Sequence[Part],
    said: Sequence[dict[str, str | None]],
    classes: Classes,
    by: str,
    wanted: Sequence[str],
    text: str,
    permutations: int,
    seed: int,
) -> Reidentified | None:
    needed = wanted if by == GROUP else (by,)
    read = [at for at, guess in enumerate(said) if all(guess[name] is not None for name in needed)]
    usable = [some[at] for at in read]
    labels, names, kinds = _coded(usable, values_of(classes, by))
    if len(kinds) < 2:
        return None
    group_of = {tuple(known[name] for name in wanted): group for group, known in classes.items()}
    nobody = len(kinds)  # a combination that no group has is a guess, and wrong
    guesses = []
    for at in read:
        value = group_of.get(tuple(str(said[at][name]) for name in wanted)) if by == GROUP else said[at][by]
        guesses.append(kinds.index(value) if value in kinds else nobody)
    guessed = score_guesses(np.array(guesses, dtype=np.intp), labels, names, permutations=permutations, seed=seed)
    if guessed is None:
        return None
    return _told(guessed, kinds, by, text, "endpoint", unread=len(some) - len(usable))
