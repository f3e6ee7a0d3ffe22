"""Designs of tests, in a few lines of the log: so that a resumed, replayed or merged run can name
what has changed.

The content key of a trial says *whether* it is the same trial; it cannot say why it is not. The
design record can: its fields are those that people edit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import msgspec

from pytest_fairness.endpoints.protocol import Endpoint, takes_structured_output
from pytest_fairness.model import JSON, Cell, Message, Status, Thread, Trial
from pytest_fairness.runs.keys import canonical_json, content_key
from pytest_fairness.runs.lines import plain
from pytest_fairness.words import enumerated


class Script(Protocol):
    """The script of a trial: what it sends, request by request."""

    @property
    def endpoints(self) -> Sequence[Endpoint | None]:
        """Return whom each request asks, by its number; None, or no more of them: the system under
        test.
        """

    def identity(self) -> JSON:
        """Whatever changes what is sent, beyond the cell; it goes into the content key."""

    def next(
        self, cell: Cell, replies: Sequence[str], status: Status
    ) -> tuple[Message, ...] | None:
        """The next request after *replies*, the last of which had *status*; None where the trial is
        over.

        Before the first reply *status* is NOT_RUN. Raises EndpointError where it cannot go on.
        """

    def threads(
        self, cell: Cell, replies: Sequence[str], statuses: Mapping[int, Status], ended: Status
    ) -> tuple[Thread, ...]:
        """The conversations of a trial that came to *replies* and *ended* so, where there were
        several; *statuses* are those of the replies, by their number.
        """

    def columns(self, cell: Cell, trial: Trial) -> Mapping[str, JSON]:
        """Return what the table of trials says of the conversation, by column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrial:
    """A cell to be asked once: ``parameters`` are laid over the endpoint's defaults, and over what
    says in which form the answer is wanted, ``structured``, where the endpoint can be asked for
    one.

    With a ``script`` it decides what is sent after each reply, in the place of the cell's turns.
    ``dealt_by``: the cell by which it is dealt out to shards, which know nothing yet of the form in
    which an endpoint is asked; None for its own.
    """

    cell: Cell
    repetition: int = 0
    parameters: Mapping[str, JSON] = field(default_factory=dict)
    script: Script | None = None
    structured: Mapping[str, JSON] = field(default_factory=dict)
    dealt_by: Cell | None = None

    def sent_parameters(self, endpoint: Endpoint) -> dict[str, JSON]:
        """Return the parameters with which *endpoint* is asked."""
        parameters = dict(endpoint.default_parameters)
        if takes_structured_output(endpoint):
            parameters |= self.structured
        return {**parameters, **self.parameters}

    def parameters_at(self, turn: int, sent: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Return those of the parameters *sent* that go with the request of *turn*, from 0: of a
        script's, the last one alone is asked for a form.
        """
        if self.script is None or not self.structured or turn == len(self.cell.turns) - 1:
            return sent
        return {name: value for name, value in sent.items() if name not in self.structured}

    def key(self, endpoint: Endpoint, identity: Mapping[str, JSON]) -> str:
        """The content key under which *endpoint*, of that *identity*, is asked. Raises UsageError."""
        script = None
        if self.script is not None:
            script = self.script.identity()
        return content_key(
            identity, self.sent_parameters(endpoint), self.cell, self.repetition, script
        )


class RecordedDesign(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="design"):
    """The design by which one test asks one system. ``part`` tells several samples of one test
    apart, ``session`` who wrote this.

    ``templates`` maps each template to the digest of its text, ``texts`` to the text, ``systems``
    are the system prompts, the first ones where each cell has its own; ``prompts`` and ``cell_ids``
    are digests over all cells. ``whole`` is False for a selection of cells, which another selection
    need not equal; ``trials`` are those of this shard. ``looks``: the looks that the test can have,
    in names a group or the like, and ``score_looks`` those of an outcome that is no rate; empty
    where its cells are asked one by one.
    """

    test: str
    tier: int
    endpoint: str
    identity: Mapping[str, Any]
    part: str = ""
    session: str = ""
    parameters: Mapping[str, Any] = {}
    repetitions: int = 1
    templates: Mapping[str, str] = {}
    system: str = ""
    groups: Mapping[str, list[str]] = {}
    cells: int = 0
    cell_ids: str = ""
    prompts: str = ""
    script: str = ""
    seed: int = 0
    whole: bool = True
    trials: int = 0
    texts: Mapping[str, str] = {}
    systems: list[str] = []
    looks: list[int] = []
    score_looks: list[int] = []

    @property
    def place(self) -> tuple[str, int, str]:
        """Return what is compared with each other: the same part of the same test at the same tier."""
        return self.test, self.tier, self.part

    def to_record(self) -> dict[str, Any]:
        """The record of type ``design``."""
        record: dict[str, Any] = msgspec.to_builtins(self, enc_hook=plain)
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_record`; fields of other versions are passed over."""
        return msgspec.convert(record, cls)

    def same(self, other: RecordedDesign) -> bool:
        """Return whether both ask the same, whoever wrote them."""
        return self._asked() == other._asked()

    def _asked(self) -> bytes:
        """Return all of the design but who wrote it."""
        return canonical_json({**self.to_record(), "session": ""})


_MOST_SYSTEMS = 20
_NOT_GIVEN = "not given"
#: Characters of a value that a change shows.
_LONGEST_FACT = 80


def design_of(
    planned: Sequence[PlannedTrial], *, templates: Mapping[str, str], **about: Any
) -> RecordedDesign:
    """The design of *planned*. *templates* maps ids to texts; *about* are the fields that the
    trials do not show.
    """
    by_id = {trial.cell.id: trial.cell for trial in planned}
    cells = sorted(by_id.values(), key=lambda cell: cell.id)
    groups: dict[str, set[str]] = {}
    systems = set()
    prompts = []
    for cell in cells:
        prompts.append([cell.id, cell.system, list(cell.turns), cell.arm])
        systems.add(cell.system or "")
        for protected, group in cell.groups.items():
            groups.setdefault(protected, set()).add(group)
    return RecordedDesign(
        **about,
        repetitions=len({trial.repetition for trial in planned}),
        templates={key: _digest(text) for key, text in sorted(templates.items())},
        system=_digest(sorted(systems)),
        groups={protected: sorted(names) for protected, names in sorted(groups.items())},
        cells=len(cells),
        cell_ids=_digest([cell.id for cell in cells]),
        prompts=_digest(prompts),
        script=_digest_of_scripts(planned),
        texts=dict(sorted(templates.items())),
        systems=sorted(filter(None, systems))[:_MOST_SYSTEMS],
    )


def _digest_of_scripts(planned: Sequence[PlannedTrial]) -> str:
    """Return the digest of the script of each cell; empty where no trial has one."""
    scripts = {}
    for trial in planned:
        if trial.script is not None:
            scripts[trial.cell.id] = trial.script.identity()
    if not scripts:
        return ""
    return _digest(scripts)


def _digest(value: Any) -> str:
    """Return 16 digits that tell *value* from another."""
    return hashlib.sha256(canonical_json(value)).hexdigest()[:16]


def changes(before: RecordedDesign, now: RecordedDesign) -> list[str]:
    """Return what differs between two designs of one place, each in a few words; empty if nothing
    does.
    """
    every = (before.whole and now.whole) or before.cell_ids == now.cell_ids
    differences = [*_changed_facts(_facts(before, every=every), _facts(now, every=every))]
    differences += _changed_templates(before.templates, now.templates)
    if before.script != now.script:
        differences.append("the script (steps or strategies) changed")
    if every and before.system != now.system:
        differences.append("the prompt: the system prompt changed")
    same_cells = (before.cell_ids, before.prompts) == (now.cell_ids, now.prompts)
    if every and not differences and not same_cells:
        differences.append("the prompts: names, personas, context or signals changed")
    return differences


def _changed_facts(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Yield what was another fact in *old* than it is in *new*, cut where it is long."""
    for what in dict.fromkeys((*old, *new)):
        if old.get(what) == new.get(what):
            continue
        was = old.get(what, _NOT_GIVEN)[:_LONGEST_FACT]
        now = new.get(what, _NOT_GIVEN)[:_LONGEST_FACT]
        if what.startswith(("n: ", "the groups of ")):
            yield f"{what} were {was}, are {now}"
        else:
            yield f"{what} was {was}, is {now}"


def _changed_templates(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Yield which templates are new, gone, or have another text."""
    for key in dict.fromkeys((*old, *new)):
        if key not in old:
            yield f"the prompt: template {key!r} is new"
        elif key not in new:
            yield f"the prompt: template {key!r} is absent"
        elif old[key] != new[key]:
            yield f"the prompt: the text of template {key!r} changed"


def _facts(design: RecordedDesign, *, every: bool) -> dict[str, str]:
    """Return what people edit, by the words for it; what is of all cells where *every* one is
    asked.
    """
    facts = {"the endpoint": repr(design.endpoint)}
    facts |= {f"the endpoint's {key}": repr(value) for key, value in design.identity.items()}
    facts |= {f"the parameter {key}": repr(value) for key, value in design.parameters.items()}
    facts |= {"n: repetitions": str(design.repetitions), "the seed": str(design.seed)}
    if every:
        facts |= {f"the groups of {key}": ", ".join(names) for key, names in design.groups.items()}
        facts["n: cells"] = str(design.cells)
    return facts


def changed_looks(before: Sequence[RecordedDesign], now: RecordedDesign) -> list[str]:
    """Return in what the looks of *now* differ from those of *before*, whatever stage was asked."""
    for design in before:
        if (design.test, design.tier) != (now.test, now.tier):
            continue
        for was, are in ((design.looks, now.looks), (design.score_looks, now.score_looks)):
            if was and are and was != are:
                looks = [enumerated(list(map(str, names)), 9) for names in (was, are)]
                return [f"the looks were {looks[0]}, are {looks[1]}"]
    return []


def closest_changes(before: Sequence[RecordedDesign], now: RecordedDesign) -> list[str]:
    """Return what differs between *now* and the most alike of *before*; empty if one is the same or
    there is none.
    """
    compared = [changes(change, now) for change in before if change.place == now.place]
    return min(compared, key=len, default=[])
