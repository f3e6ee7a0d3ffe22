"""From a ``fairness_grid`` or ``fairness_pairs`` marker to pytest items: one of all, or one a cell;
tiers apart.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from itertools import chain, product, starmap
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import pytest

from pytest_fairness.analysis.controls import checked_controls
from pytest_fairness.analysis.false_alarms import ALPHA
from pytest_fairness.baselines.justifications import Justification, parse
from pytest_fairness.design.answer_forms import AnswerForm
from pytest_fairness.design.grid import Grid, expand_grid, pilot_grid, staged_grid
from pytest_fairness.design.pairs import expand_pairs, staged_pairs
from pytest_fairness.design.pooled_grid import pooled_grid, pooled_pilot
from pytest_fairness.design.strategies import Ladder, ladder_of
from pytest_fairness.documents import project_folder
from pytest_fairness.errors import UsageError, did_you_mean
from pytest_fairness.model import SCENARIO, OutcomeKind
from pytest_fairness.pytest_layer.item_marks import (
    DESIGNS,
    GRID,
    PAIRS,
    PULLS,
    SkipReason,
    class_in,
    gets_named_endpoint,
    has_design,
    is_fairness_item,
)
from pytest_fairness.pytest_layer.markers import signature_of
from pytest_fairness.pytest_layer.plans import (
    Pilot,
    Planned,
    PlannedGrid,
    PlannedPairs,
    Resolve,
    Usable,
)
from pytest_fairness.running_test import TestLabels
from pytest_fairness.scorers import Scorer, is_refusal
from pytest_fairness.scorers.given_answers import given_answer
from pytest_fairness.words import listed, names_in

#: Items of one test. Each takes pytest some 4 kB and 0.2 ms before the first one runs.
_MOST_ITEMS = 20_000
#: Replies of a design of which a session keeps whether they can be used.
_MOST_REPLIES = 4096

#: The designs of a session with their markers, which are kept so that no other has their id; by
#: marker, by module, and by whether they are asked in stages.
_DRAWN = pytest.StashKey["dict[tuple[object, ...], tuple[pytest.Mark, Planned]]"]()

#: Why a test is skipped at a tier that it does not have.
TIER_OF_ARMS = SkipReason(
    "its arms have system prompts, so they are of tier 1: give arms without, to run it in tier 2"
)
NO_TIER_1 = SkipReason("tier 1 needs a system prompt: give fairness_grid(system=...)")
#: Identifies a design: the node id of the parent of its test function, and the function's name,
#: with the protected class in brackets where the function has a design for each of several.
Key: TypeAlias = tuple[str, str]
#: The parameter of an item whose test has a design for each of several protected classes.
CLASS = "fairness_protected_class"


class Selection(NamedTuple):
    """A test function, its tier (2 where it has none), its temperature (None: the deployment's
    own), and which of several endpoints it asks, by name.
    """

    key: Key
    tier: int
    temperature: float | None
    endpoint: str | None


@dataclass(frozen=True, slots=True)
class Undrawn:
    """The design of a test that the session leaves out, as far as its marker says: what its items
    are made of. ``draw`` makes the design of it.
    """

    tiers_by_arm: ClassVar[bool] = False

    has_system_prompt: bool
    temperatures: tuple[float | None, ...]
    draw: Callable[[], Planned]


def name_of(item: pytest.Item) -> str:
    """The name of the item's test function, without its parameters."""
    return str(getattr(item, "originalname", item.name))


def grid_key(item: Any) -> Key:
    """The key of the grid that *item*, or the definition of a test, pulls from."""
    return _key(item, _parameters(item).get(CLASS))


def _key(item: Any, protected_class: str | None) -> Key:
    """Return the key of the design of *item* for a class; of its only design for None."""
    parameter = ""
    if protected_class is not None:
        parameter = f"[{protected_class}]"
    return item.parent.nodeid, f"{name_of(item)}{parameter}"


def _grid_arguments(item: pytest.Item) -> Mapping[str, Any]:
    """Return the arguments of the grid of *item*; none where it has no grid."""
    marker = item.get_closest_marker(GRID)
    if marker is None:
        return {}
    return marker.kwargs


def class_of(item: pytest.Item) -> tuple[str, ...]:
    """The protected classes that *item* is about, as far as its design or its parameters say."""
    label = _parameters(item).get(CLASS)
    if label is not None:
        return (class_in(label),)
    classes: dict[str, None] = {}
    for groups in _groups_of(_grid_arguments(item)):
        classes |= dict.fromkeys(groups)
    return tuple(classes)


def nodeid_of(item: pytest.Item) -> str:
    """The node id as it is without xdist, which adds ``@group`` to it under ``--dist loadgroup``."""
    grouped = item.get_closest_marker("xdist_group") and "@" in item.nodeid
    if grouped:
        return item.nodeid.rpartition("@")[0]
    return item.nodeid


def ask_each(metafunc: pytest.Metafunc, endpoints: Sequence[str]) -> None:
    """Make an item of each of several *endpoints*, where the test asks what the settings name; a
    single one leaves the test's id as it is.
    """
    if len(endpoints) < 2 or not gets_named_endpoint(metafunc.definition):
        return
    markers = metafunc.definition.iter_markers("parametrize")
    if not any("endpoint" in _parametrised(marker) for marker in markers):
        metafunc.parametrize("endpoint", endpoints, ids=endpoints, indirect=True)


def _parametrised(marker: pytest.Mark) -> list[str]:
    """Return the names that a ``parametrize`` *marker* gives values for."""
    if marker.args:
        given = marker.args[0]
    else:
        given = marker.kwargs["argnames"]
    if isinstance(given, str):
        return list(map(str.strip, given.split(",")))
    return list(given)


class DesignMeans(NamedTuple):
    """The means by which designs are planned: the scorers that tests can name, the way to a system,
    and the project's looks, in names a group.
    """

    scorers: Callable[[], Mapping[str, Any]]
    resolve: Resolve
    looks: tuple[int, ...] | None


def expand(
    metafunc: pytest.Metafunc,
    tier: str,
    scorers: Callable[[], Mapping[str, Any]],
    resolve: Resolve,
    looks: tuple[int, ...] | None,
    tests: str,
) -> dict[Key, Planned | Undrawn]:
    """Parametrise a test from its ``fairness_grid`` or ``fairness_pairs`` marker; what it plans, a
    design or several. *looks* are those of the project, in names a group. A grid whose id is not
    among *tests*, which ``--fairness-test`` names, is not drawn.

    A design that makes no sense is a collection error which names the test and the mend.
    """
    wanted = PULLS.intersection(metafunc.fixturenames)
    problem = ""
    means = DesignMeans(scorers, resolve, looks)
    try:
        designs = _designs_of(metafunc, wanted, means, names_in(tests))
        planned = _alike(designs)
        if not isinstance(planned, Undrawn):
            _refuse_too_many_items(planned, wanted)
    except UsageError as error:
        problem = str(error)
    if problem:  # outside the except block: one error is shown, not two
        pytest.fail(f"{metafunc.definition.nodeid}: {problem}", pytrace=False)
    if classes := [design_class for design_class in designs if design_class is not None]:
        metafunc.parametrize(CLASS, classes, ids=classes, indirect=True)
    tiers, ids = _tiers(planned, tier, declared=gets_named_endpoint(metafunc.definition))
    metafunc.parametrize("tier", tiers, ids=ids, indirect=True)
    if planned.temperatures:
        named = list(map(_temperature_id, planned.temperatures))
        metafunc.parametrize("fairness_temperature", planned.temperatures, ids=named, indirect=True)
    if "cell" in wanted and not isinstance(planned, Undrawn):
        cells = [planned.cell(index).id for index in range(len(planned.grid))]
        metafunc.parametrize("cell", range(len(cells)), ids=cells, indirect=True)
    plans: dict[Key, Planned | Undrawn] = {}
    for design_class, design in designs.items():
        plans[_key(metafunc.definition, design_class)] = design
    return plans


def _temperature_id(temperature: float | None) -> str:
    """Return what the id of an item says of its *temperature*, None being the deployment's own."""
    if temperature is None:
        return "t-default"
    return f"t-{temperature:g}"


def _designs_of(
    metafunc: pytest.Metafunc,
    wanted: Set[str],
    means: DesignMeans,
    names: Sequence[str],
) -> dict[str | None, Planned | Undrawn]:
    """The designs of the test's marker, by the protected class that each is for; undrawn those of
    tests that *names* leave out. Raises UsageError where there is none that the test can have.
    """
    marker, *more = filter(None, map(metafunc.definition.get_closest_marker, DESIGNS))
    if more:
        raise UsageError(f"has both {GRID} and {PAIRS}; write two tests")
    if not wanted:
        raise UsageError(
            f"has a {marker.name} but asks for neither 'trials' (the whole grid) nor 'cell' (one "
            "at a time)"
        )
    if wanted == PULLS:
        raise UsageError(
            "asks for both 'trials' and 'cell'; write two tests: they share their replies"
        )
    designs: dict[str | None, Planned | Undrawn] = {}
    for design_class, design in _marks(marker, wanted).items():
        draw = partial(_planned_once, design, metafunc, means)
        if wanted == {"trials"} and _is_left_out(metafunc.definition, design_class, names):
            temperatures = _temperatures(dict(design.kwargs))
            has_system_prompt = design.kwargs.get("system") is not None
            designs[design_class] = Undrawn(has_system_prompt, temperatures, draw)
        else:
            designs[design_class] = draw()
    return designs


def _is_left_out(definition: pytest.Item, design_class: str | None, names: Sequence[str]) -> bool:
    """Return whether the markers of a grid give its items an id that none of *names* has; False
    where there are no names. A hook may give them another id all the same.
    """
    if not names or definition.get_closest_marker(GRID) is None:
        return False
    each = _grid_arguments(definition).get("each") or {}
    label = each.get(design_class, {}).get("id") or _keywords_of(definition).get("id")
    return bool(label) and not _have_name([str(label)], names)


def _refuse_too_many_items(planned: Planned, wanted: Set[str]) -> None:
    """Raise UsageError where a test of single cells would make more items than pytest can take."""
    if "cell" in wanted and len(planned.grid) > _MOST_ITEMS:
        raise UsageError(
            f"would make {len(planned.grid):,} items, a cell each (at most {_MOST_ITEMS:,}): ask "
            "for 'trials', the whole grid as one table, or give sample="
        )


def _marks(marker: pytest.Mark, wanted: Container[str]) -> dict[str | None, pytest.Mark]:
    """The marker of each design: one, or one a protected class where the marker says ``each=``."""
    each = marker.kwargs.get("each")
    if each is None:
        return {None: marker}
    if marker.name == PAIRS or "cell" in wanted:
        raise UsageError(
            "each= makes a design for each protected class, for a fairness_grid whose test asks "
            "for 'trials'"
        )
    if not _is_mapping_of_mappings(each):
        raise UsageError(
            "each= is a mapping: {'gender': {'groups': {...}, ...}, ...}, a protected class an "
            "entry"
        )
    common = {name: value for name, value in marker.kwargs.items() if name != "each"}
    marks: dict[str | None, pytest.Mark] = {}
    for label, arguments in each.items():
        design = {**common, **arguments}
        if "id" in arguments:  # a name for reports, and no axis
            del design["id"]
        protected = class_in(label)
        if any(protected not in groups for groups in _groups_of(design)):
            raise UsageError(
                f"each={{{label!r}: ...}} has no groups of {protected!r}: give "
                f"groups={{{protected!r}: [...]}}"
            )
        marks[str(label)] = pytest.Mark(marker.name, (), design, _ispytest=True)
    return marks


def _groups_of(design: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what ``groups=`` of *design* says; of ``signals=`` what each of them says."""
    signals = design.get("signals")
    if signals is None or not _is_mapping_of_mappings(signals):
        return [design.get("groups") or {}]
    return [signal.get("groups") or {} for signal in signals.values()]


def _is_mapping_of_mappings(value: object) -> bool:
    """Return whether *value* has the form of ``each=``: arguments of a design for each class."""
    if not isinstance(value, Mapping) or not value:
        return False
    return all(isinstance(entry, Mapping) for entry in value.values())


def _alike(designs: Mapping[str | None, Planned | Undrawn]) -> Planned | Undrawn:
    """One of *designs*, which have to share their tiers and temperatures: those are axes of the
    test.
    """
    first, *others = designs.values()
    axes = first.has_system_prompt, first.temperatures
    if any((other.has_system_prompt, other.temperatures) != axes for other in others):
        raise UsageError(
            "each=: all designs of a test have a system prompt or none, and the same temperatures"
        )
    return first


def _planned_once(
    marker: pytest.Mark,
    metafunc: pytest.Metafunc,
    means: DesignMeans,
) -> Planned:
    """Return the design of one *marker*: the same for all tests of a module whose markers have the
    very same arguments, so that they share the cells that are made of it. Raises UsageError where
    it makes no sense.
    """
    drawn = metafunc.config.stash.setdefault(_DRAWN, {})
    # A marker of each= is made anew for every test; its arguments are not.
    arguments = [*enumerate(marker.args), *marker.kwargs.items()]
    place = (
        marker.name,
        frozenset((name, id(value)) for name, value in arguments),
        Path(metafunc.definition.path),
        "trials" in metafunc.fixturenames,
    )
    if place not in drawn:
        drawn[place] = marker, _planned(marker, metafunc, means)
    _, planned = drawn[place]
    return planned


def _planned(
    marker: pytest.Mark,
    metafunc: pytest.Metafunc,
    means: DesignMeans,
) -> Planned:
    """Return the design of one *marker*, with the arguments as the test's place resolves them.
    Raises UsageError where it makes no sense.
    """
    root = metafunc.config.rootpath
    folder = Path(metafunc.definition.path).parent
    if marker.args:
        example = "candidates"
        if marker.name == GRID:
            example = "groups"
        raise UsageError(
            f"{marker.name} takes keyword arguments only, for example template=..., {example}=..."
        )
    arguments = {key: _located(value, folder, root) for key, value in marker.kwargs.items()}
    arguments.setdefault("personas_folder", project_folder(root))
    if arguments.get("signals") is None:
        arguments.pop("signals", None)  # no axis
    temperatures = _temperatures(arguments)
    ladder = None
    pilot_calls = scorer = None
    if marker.name == GRID:
        pilot_calls = arguments.pop("pilot", None)
        scorer = arguments.pop("scorer", None)
        ladder = _ladder(arguments.pop("strategies", None), scorer, pilot_calls, arguments)
        arguments.pop("room", None)  # of the verdict, not of what is asked
    try:
        signature_of(marker.name).bind(**marker.kwargs)
    except TypeError as error:
        raise UsageError(f"{marker.name}: {error}{_meant(marker)}") from None
    # An item a cell has the base design: it judges no groups.
    staged = "trials" in metafunc.fixturenames
    if marker.name == PAIRS:
        make_pairs = expand_pairs
        if staged:
            make_pairs = staged_pairs
        return PlannedPairs(make_pairs(**arguments), temperatures, arguments, means.resolve)
    make_grid, make_pilot = _grid_makers(arguments, means.looks, staged=staged)
    planned = PlannedGrid(make_grid(**arguments), temperatures, arguments, ladder)
    if ladder is not None:
        judge = usable(ladder.scorer, means.scorers())
        planned = replace(planned, usable=_usable_by_labels(judge, planned.grid.answer))
    if pilot_calls is None:
        return planned
    if not staged:
        raise UsageError("pilot= chooses texts for a whole grid: ask for 'trials', not 'cell'")
    _refuse_no_decision(scorer, means.scorers())
    # Without arguments: a strategy that shows a second person would show a group's.
    asked = replace(planned, grid=make_pilot(pilot_calls, **arguments), arguments=None)
    return replace(planned, pilot=Pilot(asked, scorer))


def _grid_makers(
    arguments: Mapping[str, Any], looks: tuple[int, ...] | None, *, staged: bool
) -> tuple[Callable[..., Grid], Callable[..., Grid]]:
    """Return what makes the grid of *arguments* and that of its pilot. Raises UsageError where signals
    are pooled and an item is a cell.
    """
    if "signals" not in arguments:
        if staged:
            return partial(staged_grid, looks), pilot_grid
        return expand_grid, pilot_grid
    if not staged:
        raise UsageError("signals= pools a whole grid: ask for 'trials', not 'cell'")
    return partial(pooled_grid, looks), pooled_pilot


def _ladder(
    strategies: object, scorer: object, pilot_calls: object, arguments: Mapping[str, Any]
) -> Ladder | None:
    """Return the strategies of a design. The *scorer* says which replies escalate; a pilot reads by
    it as well, and needs no strategies.
    """
    if strategies is None and pilot_calls is not None:
        return None
    folder = arguments["personas_folder"]
    return ladder_of(strategies, scorer, folder, arguments.get("locale"))


def _refuse_no_decision(scorer: object, scorers: Mapping[str, Any]) -> None:
    """Raise UsageError where *scorer*, by which a pilot is read, gives no yes or no."""
    if isinstance(scorer, str):
        scorer = scorers.get(scorer)
    kind = getattr(scorer, "kind", OutcomeKind.BINARY)
    if scorer is None or kind != OutcomeKind.BINARY:
        raise UsageError(
            "pilot= needs scorer=, which says of an answer whether it is favourable: a scorer of a "
            "yes or no, such as scorer='decision'"
        )


def _meant(marker: pytest.Mark) -> str:
    """The argument that is missing, where one that *marker* has, taken for an axis, is close to it."""
    arguments = marker.kwargs
    parameters = signature_of(marker.name).parameters
    missing = []
    for name, parameter in parameters.items():
        is_required = parameter.default is parameter.empty
        if is_required and parameter.kind is parameter.KEYWORD_ONLY and name not in arguments:
            missing.append(name)
    for name in arguments:
        meant = did_you_mean(name, missing)
        if meant and name not in parameters:
            return f" (there is {name!r}){meant}"
    return ""


def usable(scorer: Any, scorers: Mapping[str, Any]) -> Usable:
    """Return what tells a reply that can be used: it does not decline, and *scorer*, if there is
    one, reads it.
    """
    if scorer is None:
        return (lambda text: bool(text.strip()) and not is_refusal(text)), "not refused"
    if isinstance(scorer, str):
        if scorer not in scorers:
            raise UsageError(
                f"scorer={scorer!r}: there is no such scorer (there are: {', '.join(scorers)})"
            )
        scorer = scorers[scorer]
    if not isinstance(scorer, Scorer):
        scorer = Scorer(name="own", score=scorer)

    # A reply is read as it comes and for each table that has it, and short ones come many times.
    @lru_cache(maxsize=_MOST_REPLIES)
    def is_usable(text: str) -> bool:
        return not is_refusal(text) and scorer.score(text) is not None

    return is_usable, scorer.fingerprint


def _usable_by_labels(judge: Usable, form: AnswerForm | None) -> Usable:
    """Return *judge*, or what also takes the labels of a *form* that no scorer reads, since they say
    themselves what they mean.
    """
    if form is None or not form.meanings:
        return judge
    reads, version = judge

    def is_usable(text: str) -> bool:
        given = given_answer(text, form.key, form.answers)
        if given is None:
            return reads(text)
        return given.text is not None

    return is_usable, f"{version}, {form.key}: {', '.join(form.answers)}"


def _temperatures(arguments: dict[str, Any]) -> tuple[float | None, ...]:
    """``temperatures=["default", 0.0]``: None for the deployment's own. Each is an item of its own."""
    given = arguments.pop("temperatures", None)
    if given is None:
        return ()
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise UsageError("temperatures: give a list, such as ['default', 0.0]")
    if "temperature" in (arguments.get("parameters") or {}):
        raise UsageError(
            "temperatures and parameters={'temperature': ...} both set the temperature; keep one"
        )
    temperatures = list(map(_temperature, given))
    if len(set(temperatures)) != len(temperatures):
        raise UsageError("temperatures: one stands twice; keep one")
    return tuple(temperatures)


def _temperature(value: object) -> float | None:
    """Return one of ``temperatures=``, None for the deployment's own. Raises UsageError."""
    if value == "default":
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 2:
        return float(value)
    raise UsageError(f"temperatures: {value!r} is neither 'default' nor a number from 0 to 2")


def _located(value: Any, folder: Path, root: Path) -> Any:
    """Relative paths are looked for beside the test, then at the root directory."""
    if isinstance(value, list):
        return [_located(item, folder, root) for item in value]
    if isinstance(value, dict):
        return {key: _located(item, folder, root) for key, item in value.items()}
    if not isinstance(value, Path):
        return value
    places = (folder / value, root / value)  # an absolute path is itself in either
    for place in places:
        if place.exists():
            return place
    return places[0]


def _tiers(grid: Planned | Undrawn, tier: str, *, declared: bool) -> tuple[list[Any], list[Any]]:
    """Parameters and ids of the ``tier`` axis; a single tier leaves the test's id as it is.
    *declared*: the system under test is one of the settings; of a test's own nobody knows yet
    whether it takes a system prompt.
    """
    only = pytest.param(2)
    if not grid.has_system_prompt:
        if tier == "1":
            only = pytest.param(1, marks=pytest.mark.skip(reason=NO_TIER_1))
    elif tier == "all" and not grid.tiers_by_arm:
        return [1, 2], ["tier1", "tier2"]
    elif tier != "2":
        only = pytest.param(1)
    elif grid.tiers_by_arm and declared:
        only = pytest.param(1, marks=pytest.mark.skip(reason=TIER_OF_ARMS))
    return [only], [pytest.HIDDEN_PARAM]


def selection_of(item: pytest.Item) -> Selection:
    """Return which cells *item* pulls from, and of whom: by its design and its parameters."""
    parameters = _parameters(item)
    endpoint = parameters.get("endpoint")
    if not isinstance(endpoint, str):
        endpoint = None
    return Selection(
        key=grid_key(item),
        tier=parameters.get("tier", 2),
        temperature=parameters.get("fairness_temperature"),
        endpoint=endpoint,
    )


def _parameters(item: pytest.Item) -> Mapping[str, Any]:
    return getattr(getattr(item, "callspec", None), "params", {})


def selected_cells(items: Sequence[pytest.Item]) -> dict[Selection, tuple[int, ...]]:
    """Return which cells of which grid (tier, temperature, endpoint) the selected per-cell items
    will ask for.
    """
    chosen: dict[Selection, set[int]] = {}
    for item in items:
        parameters = _parameters(item)
        if "cell" in parameters and has_design(item):
            chosen.setdefault(selection_of(item), set()).add(parameters["cell"])
    return {key: tuple(sorted(indices)) for key, indices in chosen.items()}


def active_items(
    items: Iterable[pytest.Item], grids: Container[Key]
) -> dict[Selection, list[pytest.Item]]:
    """The items of each selection that is going to ask."""
    active: dict[Selection, list[pytest.Item]] = {}
    for item in items:
        key = selection_of(item)
        if key.key in grids and not item.get_closest_marker("skip"):
            active.setdefault(key, []).append(item)
    return active


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels(TestLabels):
    """The labels of a test, and the ``justifications`` that stand at it. ``finding``: it is there
    to draw one, and does not judge by asserts of its own.
    """

    justifications: tuple[Justification, ...]
    finding: bool = True


def labels_of(item: pytest.Item) -> Labels:
    """The labels of *item*; the nearest marker wins. Raises UsageError for unknown keys."""
    keywords = _keywords_of(item)
    labels = signature_of("fairness").parameters
    for key in keywords.keys() - labels.keys():
        raise UsageError(
            f"{item.nodeid}: @pytest.mark.fairness has no {key!r}; it takes {', '.join(labels)}"
        )
    label = _design_arguments(item).get("id")
    if label:
        keywords["id"] = label
    if not isinstance(keywords.get("finding", True), bool):
        raise UsageError(
            f"{item.nodeid}: finding={keywords['finding']!r}; say False where it judges by its own "
            "asserts"
        )
    if level_of(item) is None:
        raise UsageError(
            f"{item.nodeid}: alpha={keywords['alpha']!r} is no level; give a number between 0 and 1"
        )
    stated: tuple[Justification, ...] = ()
    if keywords.get("justification") is not None:
        stated = (parse(keywords["justification"], f"{item.nodeid}: justification"),)
    module = getattr(getattr(item, "module", None), "__name__", "")
    return Labels(
        test_id=str(keywords.get("id") or nodeid_of(item)),
        test_module=str(keywords.get("module") or module),
        description=str(keywords.get("description") or _description(item)),
        controls=checked_controls(keywords.get("controls"), item.nodeid),
        scenario=_scenario(item, keywords),
        justifications=stated,
        finding=keywords.get("finding", True),
        room=_promises_room(item),
    )


def _keywords_of(item: pytest.Item) -> dict[str, Any]:
    """Return what the markers ``fairness`` of *item* say; the nearest wins."""
    keywords: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("fairness"))):
        keywords |= marker.kwargs
    return keywords


def _design_arguments(item: pytest.Item) -> Mapping[str, Any]:
    """Return what ``each=`` says of the protected class of *item*; nothing of a single design."""
    each: Mapping[Any, Mapping[str, Any]] = _grid_arguments(item).get("each") or {}
    return each.get(_parameters(item).get(CLASS), {})


def _scenario(item: pytest.Item, keywords: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what the marker of *item* says of the bias scenario that it tests. Raises UsageError
    for what is no text.
    """
    stated = {name: keywords[name] for name in SCENARIO if keywords.get(name) is not None}
    for name, text in stated.items():
        if not isinstance(text, str) or not text.strip():
            raise UsageError(f"{item.nodeid}: {name}={text!r}: say it in words")
    return stated


def _description(item: pytest.Item) -> str:
    """Return the first line of the docstring of *item*, or its name as words."""
    docstring = inspect.getdoc(getattr(item, "function", item)) or ""
    first_line = docstring.strip().partition("\n")[0]
    return first_line or name_of(item).removeprefix("test_").replace("_", " ")


def _promises_room(item: pytest.Item) -> bool:
    """Return whether a marker says that *item* is to be told how much room a verdict leaves."""
    markers = chain(item.iter_markers("fairness"), item.iter_markers(GRID))
    return any(marker.kwargs.get("room") for marker in markers)


def level_of(item: pytest.Item) -> float | None:
    """The level at which *item* says that it judges, .05 if it says none; None for what is no
    level.
    """
    alpha = _keywords_of(item).get("alpha", ALPHA)
    if isinstance(alpha, float) and 0 < alpha < 1:
        return alpha
    return None


def selected(items: Sequence[pytest.Item], tests: str, classes: str) -> list[pytest.Item]:
    """The fairness tests among *items* with an id among *tests*, and about one of *classes*: names,
    or patterns with ``*``, with commas between them; empty for any. Raises UsageError for a name
    that no item has.
    """
    fairness_items = list(filter(is_fairness_item, items))
    by_test = _Choice("--fairness-test", names_in(tests), lambda item: (labels_of(item).test_id,))
    by_class = _Choice("--fairness-protected-class", names_in(classes), class_of)
    return by_class.of(by_test.of(fairness_items))


class _Choice(NamedTuple):
    """An option that chooses items by *names*, or patterns; *labels_of* an item are what it is
    chosen by.
    """

    option: str
    names: list[str]
    labels_of: Callable[[pytest.Item], Iterable[str]]

    def of(self, items: list[pytest.Item]) -> list[pytest.Item]:
        """Return those of *items* that have a name; all where the option is not given.

        Raises UsageError for a name that no item has.
        """
        if not self.names:
            return items
        labels = {item: tuple(self.labels_of(item)) for item in items}
        every = dict.fromkeys(chain.from_iterable(labels.values()))
        for name in self.names:
            if not any(fnmatchcase(label, name) for label in every):
                raise UsageError(
                    f"{self.option}: no test collected here has {name!r}; there are: "
                    f"{listed(list(every)[:20])}"
                )
        return [item for item in items if _have_name(labels[item], self.names)]


def _have_name(labels: Iterable[str], names: Sequence[str]) -> bool:
    """Return whether one of *labels* is among *names*, or fits a pattern among them."""
    return any(starmap(fnmatchcase, product(labels, names)))
