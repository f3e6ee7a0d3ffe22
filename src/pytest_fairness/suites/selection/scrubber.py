"""What a scrubber does to the texts: what it takes out, what it leaves of the job, and whether the group still shows.

Everything is compared between groups, with the name as the unit: a scrubber that works better for some names than
for others is itself a disparity.

An endpoint can be asked to guess, too: add the ready-made arms ``reidentified`` (the model scrubs, then guesses the
groups from what is left), ``reidentified_by_rule`` (the same after our rules) and ``reidentified_raw`` (without
scrubbing, for comparison) to ``arms=`` of ``fairness_pairs``, beside ``scrubbed`` and ``scrubbed_by_rule``, which
they belong to. Their trials have replies and no choice; :func:`scrubber_qualities` scores them against the truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.errors import FrameError
from pytest_fairness.statistics.arrays import Floats, Ints
from pytest_fairness.statistics.reidentification import Guessed, guess_by_words, score_guesses
from pytest_fairness.statistics.selection_rates import clustered_mean
from pytest_fairness.suites.selection.candidate_texts import (
    SEEN,
    CandidateText,
    body,
    candidate_texts,
    content,
    conveyed,
    is_gone,
    named_groups,
    read_guesses,
    split,
    tokens,
)
from pytest_fairness.suites.selection.choice_table import GROUP, Classes, crossed_classes, groups_of, values_of
from pytest_fairness.suites.selection.configuration import GUESSING
from pytest_fairness.suites.selection.results import GroupsCompared, GroupShare, Reidentified, ScrubberQuality, Share

if TYPE_CHECKING:
    import pandas as pd

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
    known = classes or {group: {} for group in groups_of(frame)}
    readers = _Readers(known, permutations, seed)
    guesses, unread = readers.endpoint_guesses(frame)
    found = (_quality(frame, arm, known, guesses, readers, alpha, correction) for arm in arms)
    return tuple(msgspec.structs.replace(one, notes=(*one.notes, *unread)) for one in found)


def _quality(
    frame: pd.DataFrame,
    arm: str,
    classes: Classes,
    guesses: Sequence[tuple[str, Reidentified]],
    readers: _Readers,
    alpha: float,
    correction: str,
) -> ScrubberQuality:
    found = candidate_texts(frame, arm)
    by = (GROUP, *crossed_classes(classes))
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
    ordered = [split(str(text)) is not None for text in rows[SEEN]]
    if not all(ordered):
        notes.append("where candidates cannot be told apart any more, signals are looked for in the whole text")
    reidentified = [
        one
        for text in ("raw", "scrubbed")
        for name in by
        if (one := readers.classifier_guess(found, name, text)) is not None
    ]
    if not any(one.by == GROUP for one in reidentified):
        notes.append("a classifier guesses groups of two names at least: it must not have seen the name before")
    reidentified += [one for scrubber, one in guesses if scrubber in (arm, "")]
    unit = rows["name"].astype(str).tolist() if "name" in rows.columns else context
    return ScrubberQuality(
        arm=arm,
        texts=rows[SEEN].astype(str).nunique(),
        recall=tuple(recall),
        content=tuple(_compared(kept, CONTENT, name, "kept", LEAST, alpha, correction) for name in by if len(kept)),
        lines=_share(np.array(ordered, dtype=float), unit),
        reidentified=tuple(reidentified),
        notes=tuple(notes),
    )


# ---------------------------------------------------------------- what is gone, and what is left


def _removed(found: Sequence[CandidateText], context: Sequence[str], classes: Classes, names: bool) -> pd.DataFrame:
    """One row a signal that stood in the raw text, and whether nothing of it is left."""
    rows = [
        (one, kind, is_gone(kind, signals, one.whole if one.left is None else one.left))
        for one in found
        for kind, signals in conveyed(one.raw, one.name if names else None, classes[one.group]).items()
    ]
    kinds, gone = [row[1] for row in rows], [row[2] for row in rows]
    return _table([row[0] for row in rows], context, classes, kind=kinds, gone=gone)


def _kept(found: Sequence[CandidateText], context: Sequence[str], classes: Classes) -> pd.DataFrame:
    """One row a candidate with job-related words: which share of them is left."""
    rows = []
    for one in found:
        wanted = content(one.raw, one.name, classes[one.group])
        left = tokens(one.whole if one.left is None else body(one.left))
        if wanted:
            rows.append((one, len(wanted & left) / len(wanted)))
    return _table([row[0] for row in rows], context, classes, kept=[row[1] for row in rows])


def _table(
    some: Sequence[CandidateText], context: Sequence[str], classes: Classes, **columns: Sequence[object]
) -> pd.DataFrame:
    import pandas as pd

    margins = {name: [classes[one.group][name] for one in some] for name in crossed_classes(classes)}
    return pd.DataFrame(
        {
            GROUP: [one.group for one in some],
            **margins,
            "unit": [one.name or one.group for one in some],
            "context": [context[one.row] for one in some],
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


def _share(values: Floats, units: Sequence[object]) -> Share:
    rate = clustered_mean(values, units)
    return Share(n=rate.n, count=rate.won, value=rate.value, low=rate.low, high=rate.high)


# ---------------------------------------------------------------- who can still guess the group


@dataclass(slots=True)
class _Readers:
    """Guesses by a classifier and by the endpoint. Arms that scrub the same texts share what is found in them raw."""

    classes: Classes
    permutations: int
    seed: int
    _known: dict[tuple[object, ...], Reidentified | None] = field(default_factory=dict)

    def classifier_guess(self, found: Sequence[CandidateText], by: str, text: str) -> Reidentified | None:
        texts = tuple((one.group, one.name, one.raw if text == "raw" else one.left) for one in found)
        if (by, texts) not in self._known:
            self._known[by, texts] = self._by_classifier(found, by, text)
        return self._known[by, texts]

    def _by_classifier(self, found: Sequence[CandidateText], by: str, text: str) -> Reidentified | None:
        usable = [one for one in found if one.name is not None and (text == "raw" or one.left is not None)]
        labels, names, kinds = self._coded(usable, by)
        if len(kinds) < 2:
            return None
        words = [tokens(body(one.raw if text == "raw" else one.left or "")) for one in usable]
        guessed = guess_by_words(words, labels, names, permutations=self.permutations, seed=self.seed)
        return _reidentified(guessed, kinds, by, text, "classifier", len(found) - len(usable))

    def endpoint_guesses(self, frame: pd.DataFrame) -> tuple[list[tuple[str, Reidentified]], list[str]]:
        """What the arms that guess came to, each with the arm whose scrubbing it looks at (empty for the raw text),
        and notes on those of which nothing could be read.
        """
        found: list[tuple[str, Reidentified]] = []
        unread: list[str] = []
        wanted = crossed_classes(self.classes) or tuple(dict.fromkeys(n for own in self.classes.values() for n in own))
        asked = {name: sorted({known[name] for known in self.classes.values()}) for name in wanted}
        for arm in (str(arm) for arm in dict.fromkeys(frame["arm"]) if str(arm).startswith(GUESSING)):
            if not asked:
                raise FrameError(f"arm {arm!r} guesses the groups' classes: say them with classes=…")
            rows = frame[frame["arm"] == arm]
            raw = arm.endswith("_raw")
            some: list[CandidateText] = []
            guesses: list[dict[str, str | None]] = []
            shown = ("first", "second", "first_name", "second_name")
            for row, (reply, *seats) in enumerate(zip(rows["reply"], *(rows[name] for name in shown), strict=True)):
                # No reply is read as one in which nothing is said of anybody.
                read = read_guesses(reply if isinstance(reply, str) else "", asked)
                for at in (0, 1):
                    name = seats[at + 2] if isinstance(seats[at + 2], str) else None
                    some.append(CandidateText(row, str(seats[at]), name, "", None, ""))
                    guesses.append(read[at])
            by_all = (GROUP, *wanted) if len(wanted) > 1 else wanted
            scored = [self._scored(some, guesses, by, wanted, "raw" if raw else "scrubbed") for by in by_all]
            found += [("" if raw else f"scrubbed{arm.removeprefix(GUESSING)}", one) for one in scored if one]
            if not any(scored):
                unread.append(f"arm {arm}: no guess of a group could be read from its {len(rows)} replies")
        return found, unread

    def _scored(
        self,
        some: Sequence[CandidateText],
        guesses: Sequence[Mapping[str, str | None]],
        by: str,
        wanted: Sequence[str],
        text: str,
    ) -> Reidentified | None:
        needed = wanted if by == GROUP else (by,)
        read = [at for at, guess in enumerate(guesses) if all(guess[name] is not None for name in needed)]
        labels, names, kinds = self._coded([some[at] for at in read], by)
        if len(kinds) < 2:
            return None
        group_of = {tuple(known[name] for name in wanted): group for group, known in self.classes.items()}
        nobody = len(kinds)  # a combination that no group has is a guess, and wrong
        codes = []
        for at in read:
            value = group_of.get(tuple(str(guesses[at][name]) for name in wanted)) if by == GROUP else guesses[at][by]
            codes.append(kinds.index(value) if value in kinds else nobody)
        guessed = score_guesses(
            np.array(codes, dtype=np.intp), labels, names, permutations=self.permutations, seed=self.seed
        )
        return _reidentified(guessed, kinds, by, text, "endpoint", len(some) - len(read))

    def _coded(self, some: Sequence[CandidateText], by: str) -> tuple[Ints, Ints, tuple[str, ...]]:
        """The truth and the names of *some* as codes, and the values that the truth can have."""
        value = values_of(self.classes, by)
        kinds = tuple(sorted({value[one.group] for one in some}))
        places = {name: at for at, name in enumerate(sorted({str(one.name) for one in some}))}
        labels = np.array([kinds.index(value[one.group]) for one in some], dtype=np.intp)
        return labels, np.array([places[str(one.name)] for one in some], dtype=np.intp), kinds


def _reidentified(
    guessed: Guessed | None, kinds: Sequence[str], by: str, text: str, reader: str, unread: int
) -> Reidentified | None:
    if guessed is None:
        return None
    n, right = guessed.names, guessed.accuracy
    return Reidentified(
        by=by,
        text=text,
        reader=reader,
        accuracy=Share(n=n, count=round(right * n), value=right, low=guessed.low, high=guessed.high),
        chance=guessed.chance,
        p_value=guessed.p,
        per_group=tuple(
            GroupShare(group=kind, share=Share(n=n, count=round(rate * n), value=None if np.isnan(rate) else rate))
            for kind, rate, n in zip(kinds, guessed.by_label, guessed.sizes, strict=True)
        ),
        unread=unread,
    )
