"""Samples of a run's replies for a person to label: drawn at random within each group of each test,
and shown without telling the group or what was read.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_fairness.analysis.blinding import MaskedReply, blinded
from pytest_fairness.analysis.reading import as_columns
from pytest_fairness.errors import UsageError
from pytest_fairness.reports.run_tables import RunTables
from pytest_fairness.runs.judgements import READ_BY, Judgement, judgements
from pytest_fairness.runs.labels import PersonLabel
from pytest_fairness.runs.reader import reading
from pytest_fairness.scorers.labelling import Label, LabellingTask
from pytest_fairness.scorers.outcome import BUILT_IN, ReadBy
from pytest_fairness.scorers.reading_turn import ReadingTask, digest_of
from pytest_fairness.words import listed

if TYPE_CHECKING:
    import pandas as pd


class SampledReply(NamedTuple):
    """The ``key`` of a trial and the ``digest`` of its reply."""

    key: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledText:
    """A masked *text*, with the masked *prompt* where that is shown, and the *replies* that read
    so. ``id`` is a digest of both.
    """

    id: str
    text: str
    prompt: str | None
    replies: tuple[SampledReply, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSample:
    """A sample of the replies of *run* that *scorer* read, as *texts* in an order that tells
    nothing, and the *task* of who labels them.
    """

    run: str
    scorer: str
    task: LabellingTask
    texts: Sequence[SampledText]

    def labels(
        self, text: SampledText, label: Label, *, who: str, when: str
    ) -> Iterator[PersonLabel]:
        """Yield the labels of all replies that read as *text* does."""
        for reply in text.replies:
            yield PersonLabel(
                key=reply.key,
                reply=reply.digest,
                question=self.task.digest,
                label=label,
                who=who,
                when=when,
                run=self.run,
            )

    def left(self, labels: Iterable[PersonLabel], who: str) -> list[SampledText]:
        """Return the texts that *who* has not labelled, in order, by the *labels* so far."""
        done = set()
        for label in labels:
            if label.who == who and label.question == self.task.digest:
                done.add((label.key, label.reply))
        return [text for text in self.texts if not done.issuperset(text.replies)]


class _Stratum(NamedTuple):
    """Rows of one group of one test."""

    test: str
    group: tuple[str, ...]


def label_sample(
    run_dir: Path, scorer: str, *, size: int, personas: Path | None, unread: bool = False
) -> LabelSample:
    """Return a sample of *size* replies a group of each test that judged the outcome *scorer* in
    the run of *run_dir*: of those that were read, or of the *unread* ones. A larger sample holds a
    smaller one. *personas* is the project's folder of names.

    Raises UsageError where nothing was judged so, and StoreError for a damaged run.
    """
    with reading(run_dir) as records:
        judged = list(judgements(records).values())
    ours = [judgement for judgement in judged if _is_of(judgement, scorer)]
    if not ours:
        outcomes = set()
        for judgement in judged:
            if judgement.outcome is not None and judgement.outcome.scorer:
                outcomes.add(judgement.outcome.name)
        raise UsageError(
            f"{run_dir.name}: no assertion judged what a scorer {scorer!r} read; scorers of this "
            f"run: {listed(sorted(outcomes))}"
        )
    task = _task(ours, scorer)
    trials = RunTables(run_dir, check=False).trials.drop_duplicates("key").set_index("key")
    sampled: dict[SampledReply, MaskedReply] = {}
    for judgement in ours:
        frame = _with_replies(judgement.frame(), trials)
        masked = blinded(frame, personas, shows_prompt=task.shows_prompt)
        for places in _strata(frame, judgement, unread=unread).values():
            for reply, place in _drawn(frame, places, size):
                sampled[reply] = masked[place]
    texts = sorted(_texts(sampled), key=lambda text: text.id)
    return LabelSample(run=run_dir.name, scorer=scorer, task=task, texts=texts)


def _is_of(judgement: Judgement, scorer: str) -> bool:
    """Return whether *judgement* is about what *scorer* read, between groups."""
    outcome = judgement.outcome
    if outcome is None or outcome.name != scorer or not outcome.scorer:
        return False
    return bool(judgement.columns) and judgement.arguments.get("by") is not None


def _task(judged: Sequence[Judgement], scorer: str) -> LabellingTask:
    """Return what a person is asked: what a model was, or would be, asked about that outcome.

    Raises UsageError where the tests of the run ask different things, or for labels.
    """
    tasks = {}
    for judgement in judged:
        outcome = judgement.outcome
        assert outcome is not None  # noqa: S101 - it is of the scorer
        reader: Any = judgement.finding.get("details", {}).get("reader")
        reading_task: ReadingTask | None = None
        if reader:
            reading_task = ReadingTask.from_dict(reader["task"])
        elif scorer in BUILT_IN:
            reading_task = BUILT_IN[scorer].reading
        if reading_task is None:
            task = LabellingTask.of_kind(scorer, outcome.kind, outcome.low, outcome.high)
        else:
            task = LabellingTask.of_reading(reading_task, outcome.kind)
        tasks[task.digest] = task
    if len(tasks) > 1:
        questions = listed(sorted(task.question for task in tasks.values()))
        raise UsageError(
            f"the tests ask different questions under the name {scorer!r}: {questions}"
        )
    (task,) = tasks.values()
    return task


def _with_replies(frame: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """Return *frame* with the reply and the prompt of each trial of the log."""
    for column in ("reply", "prompt"):
        frame[column] = frame["key"].map(trials[column])
    return frame


def _strata(
    frame: pd.DataFrame, judgement: Judgement, *, unread: bool
) -> Mapping[_Stratum, list[int]]:
    """Return the places of the rows that were read, or of the *unread* ones, by group."""
    columns = as_columns(judgement.arguments["by"])
    strata: dict[_Stratum, list[int]] = defaultdict(list)
    groups = zip(*(frame[column].tolist() for column in columns), strict=True)
    rows = zip(frame["reply"], frame[READ_BY], groups, strict=True)
    for place, (reply, read_by, group) in enumerate(rows):
        if not isinstance(reply, str) or read_by is None:
            continue
        if (read_by in (ReadBy.UNREAD, ReadBy.PERSON)) == unread:
            strata[_Stratum(judgement.test, tuple(map(str, group)))].append(place)
    return strata


def _drawn(
    frame: pd.DataFrame, places: Sequence[int], size: int
) -> Iterator[tuple[SampledReply, int]]:
    """Yield *size* of the rows at *places*, drawn by a digest of trial and reply, which knows
    nothing of groups.
    """
    keys = frame["key"].tolist()
    replies = frame["reply"].tolist()
    drawn = []
    for place in places:
        reply = SampledReply(keys[place], digest_of(replies[place]))
        lot = hashlib.sha256(f"label\0{reply.key}\0{reply.digest}".encode()).hexdigest()
        drawn.append((lot, reply, place))
    for _, reply, place in sorted(drawn)[:size]:
        yield reply, place


def _texts(sampled: Mapping[SampledReply, MaskedReply]) -> Iterator[SampledText]:
    """Yield each masked text once, with all the replies that read so."""
    alike: dict[tuple[str, str | None], list[SampledReply]] = defaultdict(list)
    for reply, masked in sampled.items():
        alike[masked.text, masked.prompt].append(reply)
    for (text, prompt), replies in alike.items():
        yield SampledText(
            id=digest_of(text, prompt), text=text, prompt=prompt, replies=tuple(replies)
        )
