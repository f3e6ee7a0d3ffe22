"""Choices between candidates of different groups: every pair in both orders, or every group in every position.

A choice among k lists them in the k orders of a Latin square, so that each stands in each position equally often,
and (for an even k) behind each other equally often. Repetitions are spread over distinct tuples of names or
résumés, which are the unit of evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from pathlib import Path
from typing import overload

from pytest_fairness.design.arms import Arm, arms_of
from pytest_fairness.design.axes import Axis, axes
from pytest_fairness.design.candidates import Candidate, Casting, Group, Roster, candidate_groups
from pytest_fairness.design.conveyance import Condition, conditions
from pytest_fairness.design.name_banks import NameBanks
from pytest_fairness.design.pair_cells import PairMaker, Prepared, prepare
from pytest_fairness.design.pair_text import QUALIFICATIONS
from pytest_fairness.design.sampling import positions
from pytest_fairness.design.scrubbing import RuleScrubber
from pytest_fairness.design.signals import Signals
from pytest_fairness.design.templates import Template, TemplateLike, templates
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Cell


def latin_square(size: int) -> tuple[tuple[int, ...], ...]:
    """*size* orders of ``range(size)``: everything once in every position (Williams 1949 for an even size).

    Williams, Australian Journal of Scientific Research A 2:149-168: the zigzag 0, 1, k−1, 2, k−2 … moved on by one.
    """
    zigzag = [(step + 1) // 2 if step % 2 else (size - step // 2) % size for step in range(size)]
    return tuple(tuple((place + turn) % size for place in zigzag) for turn in range(size))


@dataclass(frozen=True, slots=True)
class Slate:
    """Groups in the order in which they are listed; ``order`` numbers the orders of one set of groups from 1."""

    groups: tuple[str, ...]
    order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairGrid(Sequence[Cell]):
    """Every choice, as a sequence of cells that are made when they are read.

    Order: templates, context, signal conditions, arms, slates, tuples of candidates. ``repetitions`` is how often
    each cell is asked; ``ranking`` says that replies are whole rankings.
    """

    templates: tuple[Template, ...]
    axes: tuple[Axis, ...]
    rosters: tuple[Roster, ...]
    arms: tuple[Arm, ...]
    slates: tuple[Slate, ...]
    tuples: int
    repetitions: int
    parameters: Mapping[str, JSON]
    maker: PairMaker
    ranking: bool = False
    positions: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.full_size if self.positions is None else len(self.positions)

    @property
    def full_size(self) -> int:
        """How many cells there are without sampling."""
        return prod(self._radices)

    @property
    def calls(self) -> int:
        """How many trials: cells times repetitions. A trial of a pipeline is more than one request."""
        return self.size * self.repetitions

    @property
    def choice_size(self) -> int:
        """Among how many candidates a choice is."""
        return len(self.slates[0].groups)

    @property
    def system(self) -> Template | None:
        """None: what a choice has of system prompts belongs to its arms."""
        return None

    @property
    def needs_system_prompt(self) -> bool:
        return any(arm.needs_system_prompt for arm in self.arms)

    @property
    def _radices(self) -> tuple[int, ...]:
        contexts = [len(axis.texts) for axis in self.axes]
        return (len(self.templates), *contexts, len(self.rosters), len(self.arms), len(self.slates), self.tuples)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Cell]:
        return (self.prepared(index).cell for index in range(self.size))

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> list[Cell]: ...
    def __getitem__(self, index: int | slice) -> Cell | list[Cell]:
        if isinstance(index, slice):
            return [self.prepared(at).cell for at in range(*index.indices(self.size))]
        if not -self.size <= index < self.size:
            raise IndexError(index)
        return self.prepared(index % self.size).cell

    def prepared(self, index: int) -> Prepared:
        """The cell at *index* with the steps that its arm takes."""
        index = index if self.positions is None else self.positions[index]
        choices = []
        for radix in reversed(self._radices):
            index, choice = divmod(index, radix)
            choices.append(choice)
        template, *context, roster, arm, slate, number = reversed(choices)
        made = self.maker.make(
            self.templates[template],
            tuple(zip(self.axes, context, strict=True)),
            self.rosters[roster],
            self.arms[arm],
            self.slates[slate],
            number,
            many_rosters=len(self.rosters) > 1,
        )
        return replace(made, number=slate * self.tuples + number)

    def describe(self) -> str:
        """The size in words, with what deserves a second thought."""
        k = self.choice_size
        contexts = prod(len(axis.texts) for axis in self.axes) * len(self.templates) * len(self.rosters)
        configurations = len(self.slates) * contexts
        shown = {1: "groups", 2: "pairs"}.get(k, f"slates of {k}")
        lines = [
            f"{len(self.slates) // k} {shown} × {k} orders × {contexts} contexts = {configurations:,} configurations "
            f"× {len(self.arms)} arm{'s' * (len(self.arms) != 1)}",
            f"× {self.tuples} sets of names × {self.repetitions} repetitions = "
            f"{self.full_size * self.repetitions:,} trials",
        ]
        if self.positions is not None:
            lines.append(f"of which a balanced sample of {self.calls:,} is asked")
        requests = sum(max(1, self.maker.requests(arm)) for arm in self.arms) * self.calls // len(self.arms)
        if requests != self.calls:
            lines.append(f"with the steps of its arms: {requests:,} requests")
        distinct = min(roster.distinct for roster in self.rosters)
        if self.tuples == 1:
            lines.append("one name a group: what is found is about these names as much as about the groups")
        elif distinct < self.tuples:
            lines.append(
                f"{distinct} names a group make {self.tuples} pairs by meeting again with others, which are not "
                "independent: compare with cluster=('first_name', 'second_name')"
            )
        return "\n".join(lines)


def expand_pairs(
    *,
    template: TemplateLike | Iterable[TemplateLike] | Mapping[str, str | Path],
    candidates: object,
    repetitions: int = 30,
    arms: object = None,
    system: str | None = None,
    signal: str | Sequence[str] | None = None,
    qualifications: object = None,
    size: int = 2,
    ranking: bool = False,
    names: int | None = None,
    context: Mapping[str, object] | None = None,
    parameters: Mapping[str, JSON] | None = None,
    seed: int = 0,
    sample: int | None = None,
    personas_folder: Path | None = None,
    banks: NameBanks | None = None,
    signals: Signals | None = None,
    refused: Callable[[str], bool] = lambda _text: False,
    **axis: object,
) -> PairGrid:
    """Every choice of *template* × context × arms × pairs of groups in both orders.

    - ``template``: a text with slots for each candidate (``{name_1}``, ``{demographics_1}``, ``{candidate_1}``,
      ``{resume_1}`` …) or for the whole list (``{candidates}``), and for the axes.
    - ``candidates``: see :func:`pytest_fairness.design.candidates.candidate_groups`; ``"four_groups"`` draws names
      from the banks, ``"four_names"`` is the design with one name a group.
    - ``repetitions``: how often each configuration (pair, order, context) is asked, spread evenly over tuples of names
      that are all distinct: 30 over 15 pairs of names where the banks have 21 a group. ``names`` asks for another
      number; for more than there are, names meet again with others (see :meth:`PairGrid.describe`).
    - ``arms``: names of ready-made arms, :class:`Arm` objects, or ``{name: system prompt}``; without any, one run
      with ``system``.
    - ``signal``: ``name``, ``label``, ``name+label``, or a list of them. By default ``name+label`` where the
      template has ``{demographics_1}``, else ``name``.
    - ``qualifications``: a text, or several, the same for all candidates of a choice; for ``{qualifications}``.
    - ``size``: among how many groups a choice is: 2, or all of them; 1 shows one candidate at a time, for what is not
      a choice (a salary). ``ranking``: the reply ranks them all.
    - ``context``, or any other keyword (``role=``, ``criteria=``): an axis.
    - ``sample``: ask a balanced part of at most so many cells. Every drawn context and tuple of names is asked of
      all pairs, in all orders, signal conditions and arms (:mod:`pytest_fairness.design.sampling`).
    - ``refused``: tells a reply that declines, with which a pipeline ends.

    Raises UsageError, with the mend, for whatever would make the experiment other than it looks.
    """
    _check_numbers(repetitions=repetitions, names=names, size=size, sample=sample)
    parsed = templates(template)
    groups = candidate_groups(candidates, personas_folder)
    if size not in (1, 2, len(groups)):
        raise UsageError(f"size={size}: a choice is between 2, or among all {len(groups)} groups; 1 is one at a time")
    given = {**(context or {}), **axis}
    if qualifications is not None:
        given[QUALIFICATIONS] = [qualifications] if isinstance(qualifications, str) else qualifications
    banks, signals = banks or NameBanks.load(personas_folder), signals or Signals.load(personas_folder)
    casting = Casting(banks=banks, signals=signals, wanted=names or repetitions, seed=seed)
    rosters = tuple(casting.roster(groups, condition) for condition in _conditions(signal, parsed))
    tuples = _tuples(groups, rosters, repetitions, names)
    known = tuple({c.name: None for roster in rosters for found in roster.groups.values() for c in found if c.name})
    chosen = arms_of(arms, personas_folder, rules=RuleScrubber(banks, signals, known))
    if chosen and system is not None:
        raise UsageError("give the system prompt to the arms, Arm(name=..., system=...), or leave arms out")
    made_axes = axes(given)
    plain = Arm(name="single", system=system)
    maker = prepare(
        templates=parsed,
        axes=made_axes,
        rosters=rosters,
        arms=chosen or (plain,),
        tuples=tuples,
        size=size,
        named=bool(chosen),
        refused=refused,
        placebo=lambda: _placebo(groups, casting, rosters, tuples),
    )
    grid = PairGrid(
        templates=parsed,
        axes=made_axes,
        rosters=rosters,
        arms=chosen or (plain,),
        slates=tuple(_slates([group.label for group in groups], size)),
        tuples=tuples,
        repetitions=repetitions // tuples,
        parameters=dict(parameters or {}),
        maker=maker,
        ranking=ranking,
    )
    if sample is None or sample >= grid.size:
        return grid
    radices = [len(parsed), *(len(each.texts) for each in made_axes)]
    alike = "combinations of groups, order, signal condition and arm"
    return replace(grid, positions=positions(radices, grid.size // prod(radices), tuples, sample, seed, alike=alike))


def _check_numbers(**numbers: int | None) -> None:
    for what, number in numbers.items():
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise UsageError(f"{what}={number!r}: give a whole number from 1")


def _conditions(signal: str | Sequence[str] | None, parsed: Sequence[Template]) -> tuple[Condition, ...]:
    if signal is None:
        stated = any(slot.startswith("demographics_") for template in parsed for slot in template.slots)
        signal = "name+label" if stated else "name"
    return conditions(signal)


def _slates(labels: Sequence[str], size: int) -> Iterator[Slate]:
    for chosen in combinations(labels, size):
        for order, places in enumerate(latin_square(size), start=1):
            yield Slate(tuple(chosen[place] for place in places), order)


def _tuples(groups: Sequence[Group], rosters: Sequence[Roster], repetitions: int, names: int | None) -> int:
    """How many distinct tuples of candidates the repetitions are spread over."""
    own = min((len(group.given) for group in groups if group.given), default=0)
    if own and names is not None and names > own:
        raise UsageError(f"names={names}, and the groups have {own} candidates each; give more, or ask for fewer")
    distinct = min(roster.distinct for roster in rosters)
    if own or names is not None:
        tuples = min(names or own, own or distinct * distinct, repetitions)
    else:
        # No name twice, and every name as often: names that met again with others would count as evidence anew.
        tuples = next(n for n in range(min(distinct, repetitions), 0, -1) if repetitions % n == 0)
    if repetitions % tuples:
        below = repetitions // tuples * tuples
        raise UsageError(
            f"repetitions={repetitions} cannot be spread evenly over {tuples} candidates a group: give {below} or "
            f"{below + tuples}"
        )
    return tuples


def _placebo(
    groups: Sequence[Group], casting: Casting, rosters: Sequence[Roster], tuples: int
) -> Mapping[str, tuple[tuple[Candidate, ...], tuple[Candidate, ...]]]:
    """For each signal condition two disjoint sets of candidates of one group, the first that has enough."""
    found = {}
    for roster, condition in zip(rosters, conditions([roster.condition for roster in rosters]), strict=True):
        wide = Casting(banks=casting.banks, signals=casting.signals, wanted=2 * tuples, seed=casting.seed)
        stock = wide.roster(groups[:1], condition).groups[groups[0].label]
        if len(stock) < 2:
            raise UsageError(
                f"arm 'placebo' takes two disjoint sets of names of one group, and {groups[0].label!r} has one name; "
                "give it more, or draw from the banks with candidates='four_groups'"
            )
        half = len(stock) // 2
        found[roster.condition] = (stock[:half], stock[half : 2 * half])
    return found
