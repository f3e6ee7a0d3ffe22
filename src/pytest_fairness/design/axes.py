"""The axes of a design, its cells by their number, and a balanced part of a design too large to ask
in full.

Of a sample, every drawn template, context and name position is asked for all groups alike, so that
groups differ in nothing but the group: never a prefix, never a group short. Templates, the values
of each axis, and names are dealt like cards: each value is used about equally often, in
combinations left to chance.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat, starmap
from math import prod
from typing import Any, Self, TypeAlias, overload

from pytest_fairness.design.answer_forms import AnswerForm
from pytest_fairness.design.slugs import slugs
from pytest_fairness.design.stages import DRAW, Stages
from pytest_fairness.design.templates import PRONOUNS, SLOTS, UNSENDABLE, Template, pronouns
from pytest_fairness.documents import is_number
from pytest_fairness.errors import UsageError, refuse_twice
from pytest_fairness.model import JSON, Cell, fields_of


@dataclass(frozen=True, slots=True)
class Axis:
    """A context axis. ``labels`` stand in the table, ``slugs`` in ids, ``values`` in the slots, in
    the same order.
    """

    name: str
    labels: tuple[str, ...]
    slugs: tuple[str, ...]
    values: tuple[Mapping[str, str], ...]

    def __len__(self) -> int:
        return len(self.labels)

    def check_used(self, used: Collection[str], hint: str = "") -> None:
        """Raise UsageError where none of its slots are among the *used* ones."""
        if not self.values[0].keys() & used:
            raise UsageError(
                f"axis {self.name!r} is given, but no template uses it: write {{{self.name}}} in a "
                f"template, or leave the axis out{hint}"
            )


def axes(context: Mapping[str, object] | None, keywords: Mapping[str, object]) -> tuple[Axis, ...]:
    """The axes of *context* and *keywords*: each a list of values, or a mapping from a short label
    to a long text.

    Raises UsageError for an axis that both have, a name that no slot could have, and for no values
    or unfit ones.
    """
    given = [*(context or {}).items(), *keywords.items()]
    refuse_twice("axis:", (name for name, _ in given))
    return tuple(starmap(_axis, given))


def _axis(name: str, values: object) -> Axis:
    """Return the axis *name* with its *values* as texts. Raises UsageError for what is none."""
    where = f"axis {name!r}:"
    if not all((name.isidentifier(), name.isascii())):
        raise UsageError(f"{where} a slot's name is made of letters, digits and _")
    if name in SLOTS:
        raise UsageError(f"{where} {{{name}}} is a pronoun slot; choose another name")
    if isinstance(values, (str, int, float)):
        values = [values]
    if not isinstance(values, Iterable) or isinstance(values, (set, frozenset)):
        raise UsageError(
            f"{where} give a list of values, in an order that stays, not {type(values).__name__}"
        )
    if isinstance(values, Mapping):
        texts = _texts(where, values.values())
        labels = list(map(str, values))
    else:
        texts = _texts(where, values)
        labels = texts
    if not texts:
        raise UsageError(f"axis {name!r} has no values; give at least one, or leave the axis out")
    refuse_twice(f"{where} the value", texts)
    refuse_twice(f"{where} the label", labels)
    filled = map(partial(_filled, name), texts)
    return Axis(name, tuple(labels), tuple(slugs(labels).values()), tuple(filled))


def _texts(where: str, values: Iterable[object]) -> list[str]:
    """Return the *values* of an axis as texts. Raises UsageError for one that cannot be sent."""
    texts = []
    for value in values:
        is_plain = isinstance(value, str) or is_number(value)
        if not is_plain or UNSENDABLE.search(str(value)):
            raise UsageError(f"{where} {value!r:.60} cannot be sent; give text or a number")
        texts.append(str(value))
    return texts


def _filled(name: str, text: str) -> dict[str, str]:
    """Return the slots that *text* fills on the axis *name*: its own, and of pronouns every form."""
    if name != PRONOUNS:
        return {name: text}
    forms = pronouns(text)
    return {**forms, PRONOUNS: f"{forms['they']}/{forms['them']}"}


#: A protected class and one of its groups.
Pair: TypeAlias = "tuple[str, str]"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTexts:
    """The texts that a design asks, whatever the people: ``templates`` in the contexts of ``axes``,
    each in a conversation of ``turns``, with ``parameters``. ``answer`` is the form of an answer,
    None where a test has none; a text says it where ``asks_for_form``.
    """

    templates: tuple[Template, ...]
    axes: tuple[Axis, ...]
    parameters: Mapping[str, JSON]
    turns: tuple[Template, ...] = ()
    answer: AnswerForm | None = None
    asks_for_form: bool = True

    @property
    def asked(self) -> dict[str, Any]:
        """Return these fields by their names, for another object that has them."""
        return fields_of(AskedTexts, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LazyCells(AskedTexts, Sequence[Cell]):
    """The cells of a design by their number, all or those at ``positions``, made when they are
    read; each is asked ``repetitions`` times. ``stages`` are those that they can be asked in; None
    where they are asked as a whole. ``locale`` is the language that a test asks in, None for
    English.
    """

    repetitions: int
    positions: tuple[int, ...] | None = None
    stages: Stages | None = None
    locale: str | None = None

    @property
    @abstractmethod
    def radices(self) -> tuple[int, ...]:
        """Return how many values each axis of the design has; their product is how many cells there
        are.
        """

    @abstractmethod
    def cell_at(self, position: int) -> Cell:
        """The cell at *position* of all cells, sampled or not."""

    @property
    def full_size(self) -> int:
        """Return how many cells there are without sampling."""
        return prod(self.radices)

    @property
    def calls(self) -> int:
        """Return how many trials: cells times repetitions. A trial of a pipeline is more than one
        request.
        """
        return len(self) * self.repetitions

    def position(self, index: int) -> int:
        """Return where the cell at *index* stands among all cells."""
        index = range(len(self))[index]
        if self.positions is None:
            return index
        return self.positions[index]

    def digits(self, position: int) -> list[int]:
        """*position* as one choice an axis of the design, the last axis varying fastest."""
        choices = []
        for radix in reversed(self.radices):
            position, choice = divmod(position, radix)
            choices.append(choice)
        return choices[::-1]

    def context(self, choices: Sequence[int]) -> tuple[dict[str, str], dict[str, str], list[str]]:
        """Return what the context axes put into slots at *choices*, their labels by axis, and the
        parts of an id.
        """
        values: dict[str, str] = {}
        labels: dict[str, str] = {}
        parts: list[str] = []
        for axis, choice in zip(self.axes, choices, strict=True):
            values |= axis.values[choice]
            labels[axis.name] = axis.labels[choice]
            parts.append(axis.slugs[choice])
        return values, labels, parts

    def stage(self, names: int, fewer: Mapping[Pair, int]) -> list[int]:
        """Return the indices of the cells of the first *names* of each group (or sets of
        candidates); of a group among *fewer*, by class and label, so many as that says.
        """
        kept = []
        for index in range(len(self)):
            if self.is_of_stage(self.position(index), names, fewer):
                kept.append(index)
        return kept

    def is_of_stage(self, position: int, names: int, fewer: Mapping[Pair, int]) -> bool:
        """Return whether the cell at *position* of all cells is one that :meth:`stage` keeps."""
        number, groups = self.drawn(position)
        most = names
        for group in fewer.keys() & groups:
            most = min(most, fewer[group])
        return number <= most

    def sampled(
        self, cells: int | None, seed: int, group_size: int, alike: str = "combinations of groups"
    ) -> Self:
        """Return the design with a balanced sample of at most so many *cells*; with all for None.
        Raises UsageError as :func:`positions`, which has *group_size* and *alike* as well.
        """
        if cells is None or cells >= len(self):
            return self
        blocks = self.radices[: 1 + len(self.axes)]
        units = len(self) // prod(blocks)
        drawn = positions(blocks, units, group_size, cells, seed, alike=alike)
        return replace(self, positions=drawn)

    def chosen_texts(self, chosen: Iterable[str]) -> frozenset[str]:
        """Return the templates that are asked where a pilot has *chosen* these texts: they, and
        those of no series.
        """
        texts = {template.id for template in self.templates if not template.series}
        return frozenset(texts.union(chosen))

    def of_texts(self, indices: Iterable[int], texts: Container[str]) -> list[int]:
        """Return those of *indices* whose cells are of the templates called *texts*."""
        kept = []
        for index in indices:
            template_at = self.digits(self.position(index))[0]
            if self.templates[template_at].id in texts:
                kept.append(index)
        return kept

    @abstractmethod
    def drawn(self, position: int) -> tuple[int, Set[Pair]]:
        """Return in which place of the order the name (or set of candidates) of the cell at
        *position* was drawn, from 1, and the groups, by class and label, that it is swapped for.
        """

    def _draw(self, position: int) -> dict[str, JSON]:
        """Return the column that says in which place of the order a cell was drawn, where there are
        stages.
        """
        if self.stages is None:
            return {}
        place, _ = self.drawn(position)
        return {DRAW: place}

    def __len__(self) -> int:
        if self.positions is None:
            return self.full_size
        return len(self.positions)

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> list[Cell]: ...
    def __getitem__(self, index: int | slice) -> Cell | list[Cell]:
        """Return the cell at *index*, made now, or those of a slice."""
        if isinstance(index, slice):
            return [self[at] for at in range(len(self))[index]]
        return self.cell_at(self.position(index))


def check_counts(**numbers: int | None) -> None:
    """Raise UsageError for a number that is given and is no whole number from 1."""
    for what, number in numbers.items():
        # type(): True is an int, and no number of anything.
        if number is not None and (type(number) is not int or number < 1):
            raise UsageError(f"{what}={number!r}: give a whole number from 1")


def positions(
    radices: Sequence[int],
    units: int,
    group_size: int,
    cells: int,
    seed: int,
    *,
    alike: str,
) -> tuple[int, ...]:
    """Return which cells to keep, in order: at most *cells* of them.

    *radices* are the numbers of templates and of values of each axis; *units* come in runs of
    *group_size*, one run a combination (*alike* in words). Raises UsageError where *cells* is less
    than one for each.
    """
    combinations = units // group_size
    draws = min(cells // combinations, prod(radices) * group_size)
    if draws < 1:
        raise UsageError(
            f"sample={cells}: the grid has {combinations} {alike}, which are asked alike; give at "
            f"least {combinations}"
        )
    names = _deal(group_size, f"{seed}.name")
    kept: list[int] = []
    for block, count in _drawn_blocks(radices, draws, seed):
        chosen: set[int] = set()
        while len(chosen) < count:
            chosen.add(next(names))
        for combination in range(combinations):
            first = block * units + combination * group_size
            kept += [first + name for name in sorted(chosen)]
    return tuple(kept)


def _drawn_blocks(radices: Sequence[int], draws: int, seed: int) -> list[tuple[int, int]]:
    """The blocks, one a template and value of each axis, that *draws* fall on, with how many each
    gets.
    """
    blocks = prod(radices)
    if draws > blocks // 2:
        # So many that nearly all are asked: spread evenly, by differences of a running share.
        drawn = []
        for block in range(blocks):
            count = (block + 1) * draws // blocks - block * draws // blocks
            if count:
                drawn.append((block, count))
        return drawn
    decks = [_deal(radix, f"{seed}.axis{number}") for number, radix in enumerate(radices)]
    apart: set[int] = set()
    while len(apart) < draws:
        block = 0
        for radix, deck in zip(radices, decks, strict=True):
            block = block * radix + next(deck)
        apart.add(block)
    return list(zip(sorted(apart), repeat(1), strict=False))


def _deal(size: int, seed: str) -> Iterator[int]:
    """The numbers below *size* in a random order, and again in another, without end."""
    turn = 0
    while True:
        # A hash rather than Python's generator, whose shuffle may change between versions.
        yield from sorted(
            range(size), key=lambda k: hashlib.sha256(f"{seed}.{turn}.{k}".encode()).digest()
        )
        turn += 1
