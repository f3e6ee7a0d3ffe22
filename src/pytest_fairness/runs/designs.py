"""What a test asked, in a few lines of the log: so that a resumed, replayed or merged run can name what has changed.

The content key of a trial says *whether* it is the same trial; it cannot say why it is not. The design record can:
its fields are those that people edit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, Self

from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.model import JSON, Cell, Message, Status, Trial, to_json
from pytest_fairness.runs.keys import canonical_json, content_key


class Script(Protocol):
    """What a trial sends, request by request."""

    @property
    def endpoints(self) -> Sequence[Endpoint | None]:
        """Whom each request asks, by its number; None, or no more of them: the system under test."""

    def identity(self) -> JSON:
        """Whatever changes what is sent, beyond the cell; it goes into the content key."""

    def next(self, cell: Cell, replies: Sequence[str], status: Status) -> tuple[Message, ...] | None:
        """The next request after *replies*, the last of which had *status*; None where the trial is over.

        Before the first reply *status* is NOT_RUN. Raises EndpointError where it cannot go on.
        """

    def columns(self, cell: Cell, trial: Trial) -> Mapping[str, JSON]:
        """What the table of trials says of the conversation, by column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrial:
    """A cell to be asked once: ``parameters`` are laid over the endpoint's defaults.

    With a ``script`` it decides what is sent after each reply, in the place of the cell's turns.
    """

    cell: Cell
    repetition: int = 0
    parameters: Mapping[str, JSON] = field(default_factory=dict)
    script: Script | None = None

    def sent_parameters(self, endpoint: Endpoint) -> dict[str, JSON]:
        return {**endpoint.default_parameters, **self.parameters}

    def key(self, endpoint: Endpoint, identity: Mapping[str, JSON]) -> str:
        """The content key under which *endpoint*, of that *identity*, is asked. Raises UsageError."""
        script = None if self.script is None else self.script.identity()
        return content_key(identity, self.sent_parameters(endpoint), self.cell, self.repetition, script)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDesign:
    """What one test asks one system. ``part`` tells several samples of one test apart, ``session`` who wrote this.

    ``templates`` maps each template to the digest of its text; ``prompts`` and ``cell_ids`` are digests over all
    cells. ``whole`` is False for a selection of cells, which another selection need not equal.
    """

    test: str
    tier: int
    endpoint: str
    identity: Mapping[str, JSON]
    part: str = ""
    session: str = ""
    parameters: Mapping[str, JSON] = field(default_factory=dict)
    repetitions: int = 1
    templates: Mapping[str, str] = field(default_factory=dict)
    system: str = ""
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    cells: int = 0
    cell_ids: str = ""
    prompts: str = ""
    script: str = ""
    seed: int = 0
    whole: bool = True

    @property
    def place(self) -> tuple[str, int, str]:
        """What is compared with each other: the same part of the same test at the same tier."""
        return self.test, self.tier, self.part

    def to_record(self) -> dict[str, Any]:
        """The record of type ``design``."""
        return {"type": "design", **to_json(self)}  # type: ignore[dict-item]

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_record`; fields of other versions are passed over."""
        known = {part.name for part in fields(cls)}
        return cls(**{key: value for key, value in record.items() if key in known})

    def same(self, other: RecordedDesign) -> bool:
        """Whether both ask the same, whoever wrote them."""
        return replace(self, session="").to_record() == replace(other, session="").to_record()


def design_of(
    planned: Sequence[PlannedTrial],
    *,
    test: str,
    tier: int,
    endpoint: str,
    identity: Mapping[str, JSON],
    parameters: Mapping[str, JSON],
    templates: Mapping[str, str],
    **more: Any,
) -> RecordedDesign:
    """The design of *planned*, asked of *endpoint* with *parameters* (the endpoint's defaults included).

    *templates* maps ids to texts; *more* is passed on.
    """
    cells = {one.cell.id: one.cell for one in planned}
    groups: dict[str, set[str]] = {}
    for cell in cells.values():
        for protected, group in cell.groups.items():
            groups.setdefault(protected, set()).add(group)
    ordered = sorted(cells.values(), key=lambda cell: cell.id)
    scripts = {one.cell.id: one.script.identity() for one in planned if one.script is not None}
    return RecordedDesign(
        test=test,
        tier=tier,
        endpoint=endpoint,
        identity=identity,
        parameters=parameters,
        repetitions=len({one.repetition for one in planned}),
        templates={key: _digest(text) for key, text in sorted(templates.items())},
        system=_digest(sorted({cell.system or "" for cell in ordered})),
        groups={protected: sorted(found) for protected, found in sorted(groups.items())},
        cells=len(cells),
        cell_ids=_digest([cell.id for cell in ordered]),
        prompts=_digest([[cell.id, cell.system, list(cell.turns), cell.arm] for cell in ordered]),
        script=_digest(scripts) if scripts else "",
        **more,
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()[:16]


def changes(before: RecordedDesign, now: RecordedDesign) -> list[str]:
    """What differs between two designs of one place, each in a few words; empty if nothing does."""
    found = _between("the endpoint", {"": before.endpoint}, {"": now.endpoint})
    found += _between("the endpoint's ", before.identity, now.identity)
    found += _between("the parameter ", before.parameters, now.parameters)
    found += _between("n: repetitions", {"": before.repetitions}, {"": now.repetitions}, plural=True)
    found += _between("the seed", {"": before.seed}, {"": now.seed})
    for key in dict.fromkeys((*before.templates, *now.templates)):
        then, since = before.templates.get(key), now.templates.get(key)
        if then is None or since is None:
            found.append(f"the prompt: template {key!r} is {'new' if then is None else 'absent'}")
        elif then != since:
            found.append(f"the prompt: the text of template {key!r} changed")
    if before.script != now.script:
        found.append("the script (steps or strategies) changed")
    if (before.whole and now.whole) or before.cell_ids == now.cell_ids:
        cells = ["the prompt: the system prompt changed"] if before.system != now.system else []
        groups = ({key: ", ".join(names) for key, names in one.groups.items()} for one in (before, now))
        cells += _between("the groups of ", *groups, plural=True, show=str)
        cells += _between("n: cells", {"": before.cells}, {"": now.cells}, plural=True)
        if not (cells or found) and (before.cell_ids, before.prompts) != (now.cell_ids, now.prompts):
            cells = ["the prompts: names, personas, context or signals changed"]
        found += cells
    return found


def _between(
    what: str,
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    *,
    plural: bool = False,
    show: Callable[[Any], str] = repr,
) -> list[str]:
    was, present = ("were", "are") if plural else ("was", "is")
    shown = [{key: show(value)[:80] for key, value in values.items()} for values in (before, now)]
    return [
        f"{what}{key} {was} {shown[0].get(key, 'not given')}, {present} {shown[1].get(key, 'not given')}"
        for key in dict.fromkeys((*before, *now))
        if key not in before or key not in now or before[key] != now[key]
    ]


def closest_changes(before: Sequence[RecordedDesign], now: RecordedDesign) -> list[str]:
    """What differs between *now* and the most alike of *before*; empty if one is the same or there is none."""
    compared = [changes(one, now) for one in before if one.place == now.place]
    return min(compared, key=len, default=[])
