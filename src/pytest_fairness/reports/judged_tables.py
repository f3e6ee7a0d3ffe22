"""Tables that a finding was judged from, for whoever wants to see them: the mean of each name, and
matched replies.

Two replies are matched where all but the person is the same: template, context and repetition, and
the place of the two names in their groups' lists, which the design pairs. They are chosen by a rule
that stands beside them; see ``docs/decisions/0115-matched-replies.md``.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import pandas as pd

from pytest_fairness import words
from pytest_fairness.analysis.reading import ScoredRows, as_columns, groupings, read
from pytest_fairness.errors import FairnessError
from pytest_fairness.model import Finding, OutcomeKind, PairResult, deciding_pair
from pytest_fairness.reports import formatting
from pytest_fairness.reports.examples import each_trial
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.reports.sections import ScoredReply, SideBySide
from pytest_fairness.runs.judgements import TYPE, Judgement
from pytest_fairness.runs.reader import record_lines
from pytest_fairness.scorers.text import SIGNAL_WORDS, names_of
from pytest_fairness.statistics.arrays import ROWS, Ints
from pytest_fairness.trials_frame import design_of

Replies: TypeAlias = "Callable[[Sequence[str]], Mapping[str, str]]"
"""Finds the replies of trials by their keys."""

#: Analyses that compare groups of people on what was replied to each.
_OF_GROUPS = ("disparity", "four_fifths", "equivalence")
#: What has to be the same of two matched trials, beside their context.
_SAME = ("template", "arm", "tier", "signal", "endpoint", "repetition")
#: Columns that are no context, whatever they hold.
_NO_CONTEXT = (
    *(
        "cell",
        "name",
        "persona",
        "first_name",
        "last_name",
        "prompt",
        "reply",
        "status",
        "error",
        "refused",
    ),
    *(
        "undetermined",
        "cut_short",
        "model",
        "simulated",
        "replayed",
        "cost",
        "seconds",
        "key",
        "requests",
    ),
    SIGNAL_WORDS,
)
#: Characters and words of a reply that are compared; up to so many words, one that stands alone may
#: be alike.
_LONGEST, _MOST_WORDS, _SHORT = 1200, 300, 8
_WORDS = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")


class Matches(NamedTuple):
    """All matched replies of the pair that decides a finding, ``first`` better off than ``second``.

    ``rows`` are their places in the table (M × 2), ``values`` their outcomes (codes, where there
    are ``labels``), ``contrast`` how far the second is worse off (of labels, whether they differ);
    ``same`` names the columns that they agree on, and others do not.
    """

    first: str
    second: str
    rows: Any
    values: Any
    labels: tuple[str, ...]
    contrast: Any
    same: tuple[str, ...]

    def chosen(self) -> dict[str, int]:
        """The widest contrast in the finding's direction, and another one nearest to the median."""
        widest = int(np.argmax(self.contrast))
        away = np.abs(self.contrast - np.median(self.contrast))
        away[widest] = np.inf
        chosen_ = {}
        if self.contrast[widest] > 0:
            chosen_["The widest contrast"] = widest
        if len(away) > 1 or not chosen_:
            chosen_["A typical pair"] = int(np.argmin(away))
        return chosen_


@dataclass(frozen=True, slots=True)
class JudgedTable:
    """The table that *analysis* read with its *arguments*, and the outcome, as the assertion was
    given them.
    """

    analysis: str
    frame: pd.DataFrame
    outcome: Any
    arguments: Mapping[str, Any]

    def _scored(self) -> Iterator[ScoredRows]:
        """The outcome by each grouping. Raises FairnessError for a table that cannot be compared."""
        given = self.arguments
        kind = given.get("kind")
        if self.analysis == "four_fifths":
            kind = kind or "binary"
        reading = read(
            self.frame,
            self.outcome,
            kind,
            given.get("lower_is_worse"),
            given.get("scorers"),
            given.get("favourable"),
        )
        for by, design in groupings(
            self.frame, as_columns(given["by"]), given.get("cluster"), given.get("block")
        ):
            yield ScoredRows.of(design, reading, by)

    def dots(self, finding: Finding) -> dict[str, tuple[tuple[str, float], ...]]:
        """By group, the mean of each name (persona …), rows where there are none; empty where the
        means have under three values, or the outcome is a label.
        """
        if self.analysis not in _OF_GROUPS or finding.kind is OutcomeKind.CATEGORICAL:
            return {}
        if ROWS in self.frame.columns:
            return {}
        means: dict[str, tuple[tuple[str, float], ...]] = {}
        for scored in self._scored():
            labels = scored.design.group.labels
            for group in finding.group_results:
                if group.group in labels and group.group not in means:
                    means[group.group] = self._means(scored, group.group)
        if len({value for dots in means.values() for _, value in dots}) > 2:
            return means
        return {}

    def _means(self, scored: ScoredRows, group: str) -> tuple[tuple[str, float], ...]:
        """Return the mean of each name in *group*."""
        design = scored.design
        rows = _rows_of(scored, group)
        if not rows.size:
            return ()
        _, first, codes = np.unique(design.cluster[rows], return_index=True, return_inverse=True)
        means = np.bincount(codes, scored.reading.values.values[rows]) / np.bincount(codes)
        places = rows[first].tolist()
        if design.cluster_name is None:
            called = [f"row {place}" for place in places]
        else:
            names = self.frame[design.cluster_name].tolist()
            called = [str(names[place]) for place in places]
        return tuple(zip(called, means.tolist(), strict=True))

    def matches(self, finding: Finding) -> Matches | None:
        """The matched replies of the pair that decides *finding*; None where there are none."""
        pairs = []
        for pair in finding.pairs:
            if pair.metric == finding.outcome and not pair.alarm_only:
                pairs.append(pair)
        if not pairs or self.analysis not in _OF_GROUPS:
            return None
        decider = deciding_pair(pairs) or pairs[0]
        for scored in self._scored():
            if {decider.group_1, decider.group_2} <= set(scored.design.group.labels):
                return self._matched(scored, decider, finding.kind is OutcomeKind.CATEGORICAL)
        return None

    def _matched(self, scored: ScoredRows, pair: PairResult, of_labels: bool) -> Matches | None:
        frame = self.frame
        first, second = sorted(
            (pair.group_1, pair.group_2), key=lambda group: group == pair.worse_off
        )
        same, classes = self._same(scored)
        codes = {column: _codes(frame[column]) for column in (*same, *classes)}
        places = _places(scored, [codes[column] for column in classes])
        agreed = _crossed([*codes.values(), places])
        rows = _paired(agreed, _rows_of(scored, first), _rows_of(scored, second))
        if not len(rows):
            return None
        outcome = scored.reading.values
        values = outcome.values[rows]
        contrast = values[:, 1] - values[:, 0]
        if scored.reading.lower_is_worse:
            contrast = values[:, 0] - values[:, 1]
        if of_labels:
            contrast = (contrast != 0).astype(float)
        elif pair.worse_off is None and contrast.mean() < 0:
            first, second, rows, values, contrast = (
                second,
                first,
                rows[:, ::-1],
                values[:, ::-1],
                -contrast,
            )
        varied = tuple(column for column in same if codes[column].max() > codes[column].min())
        return Matches(first, second, rows, values, outcome.categories, contrast, varied)

    def _same(self, scored: ScoredRows) -> tuple[list[str], list[str]]:
        """The columns that two matched trials agree on: what was asked; and the protected classes
        that are not compared.
        """
        frame = self.frame
        design = scored.design
        compared = scored.by.split(" × ")
        name = design.cluster_name
        classes = []
        for protected in design_of(frame).protected_classes:
            if protected in frame and protected not in compared:
                classes.append(protected)
        asked = dict.fromkeys([*_SAME, design.block_name or "template"])
        same = [column for column in asked if column in frame]
        if name is None:
            return same, classes
        columns = {*_NO_CONTEXT, *asked, *compared, *classes, scored.reading.name, name}
        for column in frame.columns:
            if not isinstance(column, str) or column in columns:
                continue
            # A context is crossed with the names; what differs from name to name is a score, or of
            # the person.
            if _is_crossed(_codes(frame[column]), design.cluster):
                same.append(column)
        return same, classes

    def side_by_side(
        self, finding: Finding, matches: Matches, at: int, replies: Sequence[str], called: str
    ) -> SideBySide:
        """Two *replies*, matched at a place, with their scores, names and the words in which they
        differ.
        """
        frame = self.frame
        rows = matches.rows[at].tolist()
        names = names_of(frame.iloc[rows])
        about = [f"{column} {frame[column].iloc[rows[0]]}" for column in matches.same]
        sides = zip(
            (matches.first, matches.second),
            rows,
            matches.values[at],
            differing(replies, names),
            strict=True,
        )
        shown = []
        for group, row, value, runs in sides:
            who = group
            if finding.cluster in frame.columns:
                who = f"{group}: {frame[finding.cluster].iloc[row]}"
            score = _score(value, finding, matches.labels)
            shown.append(ScoredReply(who=who, score=score, words=runs))
        return SideBySide(about=" · ".join([called, *about]), replies=tuple(shown))


def _rows_of(scored: ScoredRows, group: str) -> Ints:
    """Return the rows of *group* that are used."""
    groups = scored.design.group
    return np.flatnonzero(scored.used & (groups.codes == groups.labels.index(group)))


def _codes(column: pd.Series[Any]) -> Ints:
    """Return a number for each value of *column*, -1 for a missing one."""
    return pd.factorize(column)[0].astype(np.intp)


def _crossed(columns: Sequence[Ints]) -> Ints:
    """Return a number for each row, from 0, which rows share that agree in all *columns*."""
    crossed = np.zeros(columns[0].size, dtype=np.intp)
    for codes in columns:
        crossed = pd.factorize(crossed * (codes.max(initial=0) + 2) + codes)[0].astype(np.intp)
    return crossed


def _is_crossed(codes: Ints, clusters: Ints) -> bool:
    """Return whether each of *clusters* has every value of a column that has several, given by its
    *codes*.
    """
    values = pd.unique(codes).size
    both = pd.unique(_crossed([codes, clusters])).size
    return values > 1 and both == values * pd.unique(clusters).size


def _repeats(codes: Ints) -> Ints:
    """Return for each row how many rows before it have the same code."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    repeats = np.empty_like(codes)
    repeats[order] = np.arange(codes.size) - np.repeat(begins, np.diff(begins, append=codes.size))
    return repeats


def _places(scored: ScoredRows, classes: Sequence[Ints]) -> Ints:
    """Return for each row the place of its name among those of its group that are alike in every
    other of the protected *classes*, in the order of the rows that are used.
    """
    design = scored.design
    alike = _crossed([*classes, design.group.codes])
    people = _crossed([alike, design.cluster])
    used = np.flatnonzero(scored.used)
    _, begins = np.unique(people[used], return_index=True)
    firsts = used[np.sort(begins)]
    places = np.zeros(people.max(initial=0) + 1, dtype=np.intp)
    places[people[firsts]] = _repeats(alike[firsts])
    return places[people]


def _paired(agreed: Ints, first: Ints, second: Ints) -> Ints:
    """Return the rows of the *first* side and of the *second* that share a number in *agreed*, each
    row once (M × 2), in the order of the first.
    """
    marks = agreed[first] * agreed.size + _repeats(agreed[first])
    others = agreed[second] * agreed.size + _repeats(agreed[second])
    _, at_first, at_second = np.intersect1d(marks, others, assume_unique=True, return_indices=True)
    order = np.argsort(at_first)
    return np.column_stack([first[at_first[order]], second[at_second[order]]])


def _score(value: float, finding: Finding, labels: Sequence[str]) -> str:
    if labels:
        return labels[int(value)]
    if finding.kind in (OutcomeKind.BINARY, OutcomeKind.REFUSAL):
        return words.yes_or_no(value)
    return f"{formatting.value(float(value), finding)} {finding.unit}".strip()


def differing(
    replies: Sequence[str], names: Sequence[tuple[str, ...]]
) -> list[tuple[tuple[str, str], ...]]:
    """Both *replies* in runs of words: alike, ``differs``, or ``name`` for the words of either
    person's *names*.
    """
    people = frozenset(word for words in names for word in words)
    split = [_WORDS.findall(_cut(reply))[:_MOST_WORDS] for reply in replies]
    compared = [_words_compared(words, people) for words in split]
    kinds = [_kinds(words, "differs") for words in compared]
    for first, second, size in _alike(*compared):
        for side, begin in enumerate((first, second)):
            run = slice(begin, begin + size)
            kinds[side][run] = _kinds(compared[side][run], "")
    return [tuple(_runs(words, kind)) for words, kind in zip(split, kinds, strict=True)]


def _alike(first: list[str], second: list[str]) -> Iterator[tuple[int, int, int]]:
    """Yield where runs of words that two texts have in common begin in each, and how long they
    are.
    """
    least = 1
    if min(len(first), len(second)) > _SHORT:
        least = 2
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    for begin, other, size in matcher.get_matching_blocks():
        # Else it is a word that two long texts have in common by chance.
        if size >= least or first[begin : begin + size] == [_NAME]:
            yield begin, other, size


#: Stands for each word of a person's name, so that names are alike.
_NAME = "\0"


def _words_compared(words: Iterable[str], people: Container[str]) -> list[str]:
    """Return *words* without blanks, those of *people* alike."""
    compared = []
    for word in words:
        bare = word.strip()
        if bare in people:
            bare = _NAME
        compared.append(bare)
    return compared


def _kinds(words: Iterable[str], otherwise: str) -> list[str]:
    """Return ``name`` for each of *words* that is a person's, *otherwise* for the others."""
    kinds = []
    for word in words:
        kind = otherwise
        if word == _NAME:
            kind = "name"
        kinds.append(kind)
    return kinds


def _runs(words: Sequence[str], kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Neighbouring *words* of a kind as one, without the blank behind it."""
    for kind, some in groupby(zip(words, kinds, strict=True), key=lambda pair: pair[1]):
        text = "".join(word for word, _ in some)
        shown = text
        if kind:
            shown = text.rstrip()
        yield shown, kind
        if shown != text:
            yield text[len(shown) :], ""


def _cut(reply: str) -> str:
    if len(reply) <= _LONGEST:
        return reply
    return f"{reply[:_LONGEST].rstrip()} …"


# ---------------------------------------------------------------- of a run


class JudgedTables:
    """Tables that the findings of a run were judged from, as far as its files tell; unchecked, as
    all that a report shows.
    """

    def __init__(self, run_dir: Path, wanted: Container[tuple[str, int]] | None = None) -> None:
        """*wanted*: those alone, by test and number of its finding; a run may hold more than memory
        does.
        """
        self._run_dir = run_dir
        self._lines: dict[tuple[str, int], Any] = {}
        for line in record_lines(run_dir, TYPE):
            try:
                record = json.loads(line)
                if wanted is None or (record["test"], record["place"]) in wanted:
                    self._lines[record["test"], record["place"]] = line
            except (KeyError, TypeError, ValueError, RecursionError):
                continue

    def of(self, results: RunResults, at: int) -> JudgedTable | None:
        """Return what the finding at a place of *results* was judged from; None where that is not
        known.
        """
        line = self._lines.get(results.place_of(at))
        if line is None:
            return None
        try:
            judgement = msgspec.convert(json.loads(line), Judgement)
            frame = judgement.frame()
            return JudgedTable(
                judgement.analysis, frame, judgement.outcome_in(frame), judgement.arguments
            )
        except (FairnessError, KeyError, TypeError, ValueError):
            return None

    def replies(self, keys: Sequence[str]) -> dict[str, str]:
        """The last reply of each of the trials *keys* that the log has."""
        texts = {logged.trial.key: logged.trial.reply for logged in each_trial(self._run_dir, keys)}
        return {key: reply for key, reply in texts.items() if reply is not None}


def matched_replies(
    judged: JudgedTable, finding: Finding, replies: Replies | None = None
) -> tuple[Matches, list[SideBySide]] | None:
    """The matched replies of *finding*, and those to show; None where there are none. *replies*
    finds texts by the keys of trials; without it they stand in the table.
    """
    try:
        matches = judged.matches(finding)
    except (FairnessError, KeyError, TypeError, ValueError):
        return None
    frame = judged.frame
    column = "key"
    if replies is None:
        column = "reply"
    if matches is None or column not in frame.columns:
        return None
    shown = []
    for called, at in matches.chosen().items():
        texts = frame[column].iloc[matches.rows[at]].tolist()
        if replies is not None:
            texts = list(map(replies(texts).get, texts))
        if all(isinstance(text, str) for text in texts):
            shown.append(judged.side_by_side(finding, matches, at, texts, called))
    if shown:
        return (matches, shown)
    return None


def chosen_how(finding: Finding, matches: Matches) -> str:
    """Return how the replies that are shown were chosen, and how many there are to choose from."""
    total = len(matches.contrast)
    ahead = int((matches.contrast > 0).sum())
    behind = int((matches.contrast < 0).sum())
    same = "".join(f"the same {column}, " for column in matches.same)
    if finding.kind is OutcomeKind.CATEGORICAL:
        shares = f"the answers differ in {words.part_of(ahead, total)}"
        shown = "the first that differs, and one that is typical"
    else:
        worse = f"{matches.second} is worse off than {matches.first}"
        shares = (
            f"{worse} in {words.part_of(ahead, total)}, better off in "
            f"{words.part_of(behind, total)}, alike in "
            f"{words.part_of(total - ahead - behind, total)}"
        )
        shown = (
            "the one that is furthest apart in this direction, and the one nearest to the median"
        )
    return (
        f"{words.count(total, 'pair')} of replies to what is alike but for the person "
        f"({same}the same place in "
        f"the two lists of names): {shares}. Below: {shown}."
    )
