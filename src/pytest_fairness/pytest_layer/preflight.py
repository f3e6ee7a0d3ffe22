"""The start of a session with fairness tests: how much it asks, of whom, for how much and how long;
if it may; what the project puts in the place of what ships; and what its designs can never decide.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.analysis.expected_looks import expectation
from pytest_fairness.analysis.false_alarms import RARE
from pytest_fairness.analysis.looks import MOST_RED
from pytest_fairness.context import RunContext, Settings
from pytest_fairness.design.grid import Grid, shortest_groups
from pytest_fairness.design.pairs import PairGrid
from pytest_fairness.design.parity import group_parity
from pytest_fairness.design.stages import ladder_of
from pytest_fairness.endpoints.batch_api import batches_of
from pytest_fairness.endpoints.pipeline import PipelineEndpoint
from pytest_fairness.endpoints.protocol import Endpoint, limits_of
from pytest_fairness.errors import FairnessError, UsageError
from pytest_fairness.model import Cell, Finding, OutcomeKind
from pytest_fairness.pytest_layer import collection, item_marks, reporting
from pytest_fairness.pytest_layer.command_line import parsed, recorded_path
from pytest_fairness.pytest_layer.estimate import (
    LATENCY,
    AssumedOutcome,
    TestEstimate,
    brings_its_own,
    chance_of_red,
    duration,
    estimates,
    looked_designs,
    power_of,
    shapes,
)
from pytest_fairness.pytest_layer.plans import Planned
from pytest_fairness.reports.escaping import line
from pytest_fairness.runs.files import shown
from pytest_fairness.runs.manifest import read_manifest
from pytest_fairness.runs.money import unpriced
from pytest_fairness.scorers import BUILT_IN
from pytest_fairness.scorers.letter import LetterReader
from pytest_fairness.scorers.reading_turn import ORDERS
from pytest_fairness.words import agreeing, count, dollars, enumerated, rounded_percent

_COUNTED = 64
"""Cells of a design whose requests are counted, to be announced."""
_LOOKED_AT = 400
"""Cells of a design whose texts are compared: enough for means of length, and made in some
milliseconds.
"""
_NAMED = 3
_ENOUGH_NAMES, _ENOUGH_TRIALS = 10, 50
_MOSTLY_APPROVED, _LIKELY = 0.9, 0.8
"""Of a design whose names end early, the PASS rate of a fair system that approves so many is told
where it is less likely."""
_FAIR_SYSTEMS = {
    OutcomeKind.BINARY: "a fair system that approves 90 %",
    OutcomeKind.REFUSAL: "a fair system that refuses 10 %",
}
"""That system in words, by the kind of outcome."""


def announcement(
    context: RunContext,
    items: Sequence[pytest.Item],
    grids: Mapping[collection.Key, Planned],
    configured: Callable[[str], Endpoint],
    *,
    tests: int,
    asking: int,
    reader: Callable[[], Endpoint | None] = lambda: None,
) -> list[str]:
    """The lines: size, endpoints, seed and run; where a model is going to be paid, also requests,
    cost and time; what to know of the designs. *reader* gives the model that reads replies, where
    there is one.

    Raises :class:`pytest.UsageError` where an endpoint that is going to be asked is configured
    wrongly, is the same system as another, or its cost has a cap and no price.
    """
    settings = context.settings
    endpoints, wrong = _configured(settings, configured)
    rows = list(estimates(context, items, grids, endpoints, asking=asking, sample=_COUNTED))
    asked = {row.endpoint for row in rows if row.configured.most.requests}
    if settings.max_cost is not None and settings.replay is None:
        wrong = _unpriced(endpoints, settings.max_cost) | wrong
    for name in settings.endpoints:
        if name in asked and name in wrong and context.worker is None:
            raise pytest.UsageError(wrong[name])
    paid = {}
    if settings.replay is None:
        paid = _paid(endpoints, asked)
    trials = _trials(settings, rows, paid)
    run = shown(context.store.directory, context.root)
    lines = [_size(settings, tests, rows, trials, run)]
    lines += _of_alarms(chance_of_red(settings, items, grids))
    if paid:
        lines += _prices(settings, rows, paid)
    if settings.replay is None:
        lines += _readings(settings, rows, reader())
    remarks = [*_remarks(grids, items), *_lines(_ends_of_sources(rows))]
    return [*lines, *_replacements(context, items), *remarks]


def _paid(endpoints: Mapping[str, Endpoint], asked: Container[str]) -> dict[str, Endpoint]:
    """Return those of *endpoints* that are *asked*, and paid for it."""
    paid = dict(endpoints)
    for name, endpoint in endpoints.items():
        if endpoint.simulated or name not in asked:
            del paid[name]
    return paid


def _of_alarms(chance: float) -> Iterator[str]:
    """Yield how often alarms turn a session of a fair system red, where that is not rare."""
    if chance > RARE:
        yield (
            "fairness: alarms of its grid tests turn a session of a fair system red with a chance "
            f"of at most {rounded_percent(chance)} (fairness_session_alpha)"
        )


def _configured(
    settings: Settings, configured: Callable[[str], Endpoint]
) -> tuple[dict[str, Endpoint], dict[str, str]]:
    """Return the endpoints of the session, and why others are configured wrongly, by their
    names.
    """
    endpoints: dict[str, Endpoint] = {}
    wrong: dict[str, str] = {}
    for name in settings.endpoints:
        try:
            endpoints[name] = configured(name)
        except UsageError as error:
            wrong[name] = str(error)
        except FairnessError:
            pass  # the tests that need it say what is wrong
    return endpoints, wrong


def _unpriced(endpoints: Mapping[str, Endpoint], max_cost: float) -> dict[str, str]:
    """Return why an endpoint cannot be asked under a cap: nobody knows what a call costs."""
    wrong: dict[str, str] = {}
    for name, endpoint in endpoints.items():
        for step in _steps_of(endpoint):
            if step.price is None and not step.simulated:
                wrong.setdefault(name, unpriced(step.name, max_cost))
    return wrong


def _steps_of(endpoint: Endpoint) -> list[Endpoint]:
    """The systems that are asked, one after the other, for one reply of *endpoint*."""
    if isinstance(endpoint, PipelineEndpoint):
        return [step.ready for step in endpoint.steps]
    return [endpoint]


def _trials(settings: Settings, rows: Sequence[TestEstimate], paid: Mapping[str, Endpoint]) -> str:
    """Return how many trials are to be expected and at most, with their price by replies of the
    usual length where an endpoint among *paid* has one.
    """
    fair = sum(row.new.fair for row in rows)
    most = round(sum(row.new.most for row in rows))
    if round(fair) >= most:
        return f"up to {most:,} trials"
    costs = [0.0, 0.0]
    for row in rows:
        endpoint = paid.get(row.endpoint)
        if endpoint is not None and endpoint.price is not None:
            asked = row.requests(replaced=False)
            for place, requests in enumerate((asked.fair, asked.all_looks)):
                costs[place] += requests.usual_cost(endpoint.price, row.reply_tokens)
    usual, all_looks = ("", "")
    if costs[1]:
        usual, all_looks = (f" ({dollars(cost / settings.shards)})" for cost in costs)
    return f"expected about {_about(fair)} trials{usual} if fair, at most {most:,}{all_looks}"


def _about(number: float) -> str:
    """Return *number* to three digits."""
    digits = max(0, len(str(round(number))) - 3)
    return f"{round(number, -digits):,.0f}"


def _size(
    settings: Settings, tests: int, rows: Sequence[TestEstimate], trials: str, run: str
) -> str:
    """Return the first line: how many tests ask how many *trials*, of whom, into which *run*."""
    replaced = any(row.brought.most.requests for row in rows)
    endpoint = ", ".join(settings.endpoints)
    if settings.endpoint == "simulated" and not replaced:
        endpoint += " (no model is asked)"
    if replaced and any(row.configured.most.requests for row in rows):
        endpoint = f"{endpoint} and the tests' own"
    elif replaced:
        endpoint = "of the tests' own"
    part = ""
    if settings.shard:
        part = f"shard {settings.shard} of "
    source = f"{agreeing(len(settings.endpoints), 'endpoint')} {endpoint}"
    if settings.replay is not None:
        source = f"replayed from {settings.replay.name}"
    return (
        f"fairness: {count(tests, 'test')}, {part}{trials}, {source}, seed {settings.seed}, "
        f"run {run}"
    )


def _prices(
    settings: Settings, rows: Sequence[TestEstimate], endpoints: Mapping[str, Endpoint]
) -> list[str]:
    """A line for each of *endpoints* that is paid; of several, which, and what they come to
    together.
    """
    cap = ""
    if settings.max_cost is not None:
        cap = f" (cap {dollars(settings.max_cost)})"
        if any(len(row.asked.looks) > 1 for row in rows):
            cap = f" (cap {dollars(settings.max_cost)}, held against each stage before it is asked)"
    if len(settings.endpoints) == 1:
        (endpoint,) = endpoints.values()
        cost, rest, _ = _price(settings, rows, endpoint)
        return [f"fairness: {cost}{cap}{rest}"]
    lines = []
    prices = []
    for name, endpoint in endpoints.items():
        rows_of_endpoint = [row for row in rows if row.endpoint == name]
        cost, rest, price = _price(settings, rows_of_endpoint, endpoint)
        lines.append(f"fairness: {name}: {cost}{rest}")
        prices.append(price)
    named = list(filter(None, prices))
    if len(named) > 1 or (named and cap):
        together = _together(named, unknown=None in prices)
        lines.append(f"fairness: together {together}{cap}")
    return lines


def _readings(
    settings: Settings, rows: Sequence[TestEstimate], reader: Endpoint | None
) -> Iterator[str]:
    """Yield what it may cost to have *reader* read all replies: nobody knows beforehand how many
    the rules leave. A shard of the first stage reads nothing.
    """
    if reader is None or (settings.shard and settings.merged is None):
        return
    readings = [len(ORDERS) * row.new.most for row in rows]
    most = round(sum(readings))
    price = ""
    if reader.price is not None and not reader.simulated:
        costs = [
            row.reading_cost(reader.price, number)
            for row, number in zip(rows, readings, strict=True)
        ]
        price = f" ({dollars(sum(costs) / settings.shards)})"
    yield (
        f"fairness: {reader.name} reads the replies that a test leaves to a model, in "
        f"{len(ORDERS)} requests each: at most {most:,}{price}"
    )


def _together(prices: Iterable[tuple[float, float]], *, unknown: bool) -> str:
    """Return what *prices* come to, beside those of endpoints whose price is *unknown*."""
    usual_prices, most_prices = zip(*prices, strict=True)
    whole = _cost(sum(usual_prices), sum(most_prices))
    if unknown:
        return f"{whole} and what those of unknown price cost"
    return whole


def _cost(usual: float, most: float) -> str:
    """Return what asking costs in words, usually and at most."""
    if most:
        return f"about {dollars(usual)}, at most {dollars(most)}"
    return "free"


def _price(
    settings: Settings, rows: Sequence[TestEstimate], endpoint: Endpoint
) -> tuple[str, str, tuple[float, float] | None]:
    """Of *endpoint*, which all *rows* are about, in words: requests and cost, and how long they
    take; and in dollars, what is to be expected and the most, where it has a price.
    """
    shards = settings.shards
    usual = [(row.requests(replaced=False).fair, row.reply_tokens) for row in rows]
    total = sum(few.requests for few, _ in usual)
    reply = round(sum(few.requests * tokens for few, tokens in usual) / total)
    # The price of a pipeline is that of its steps together; what it is asked once are as many
    # requests.
    requests = total / shards * len(_steps_of(endpoint))
    try:
        limits = limits_of(endpoint).of_a_shard(shards)
    except UsageError as error:
        raise UsageError(f"endpoint {endpoint.name}: {error}") from None
    price = endpoint.price
    at_once = limits.concurrency or settings.concurrency
    seconds = requests / at_once * LATENCY
    if limits.requests_per_minute is not None:
        seconds = max(seconds, 60 * requests / limits.requests_per_minute)
    cost = "cost unknown (give price: in endpoints.yaml)"
    amounts = None
    if price is not None:
        expected = sum(few.usual_cost(price, tokens) for few, tokens in usual) / shards
        most = (
            sum(
                row.requests(replaced=False).most.most_cost(price, row.longest_reply)
                for row in rows
            )
            / shards
        )
        cost = _cost(expected, most)
        amounts = (expected, most)
    rest = (
        f", about {duration(seconds)} ({at_once} at a time, {LATENCY:g} s and {reply} tokens a "
        "reply)"
    )
    if batches_of(endpoint) is not None:
        rest = ", in the provider's batches (hours, most often)"
    return f"about {requests:,.0f} requests, {cost}", rest, amounts


def _lines(remarks: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each remark, after the tests that it is true of; *remarks* are tests with a
    remark.
    """
    tests: dict[str, dict[str, None]] = {}
    for test, remark in remarks:
        tests.setdefault(remark, {})[test] = None
    lines = []
    for remark, names in tests.items():
        more = ""
        if len(names) > _NAMED:
            more = f" and {len(names) - _NAMED} more"
        lines.append(line(f"fairness: {', '.join(list(names)[:_NAMED])}{more}: {remark}"))
    return lines


# ---------------------------------------------------------------- what the project replaces


def asks_the_settings_endpoint(
    items: Sequence[pytest.Item], grids: Mapping[collection.Key, Planned]
) -> bool:
    """Return whether any of *items* asks the endpoint that the settings name; also where none asks
    anything.
    """
    designed = [item for item in items if collection.grid_key(item) in grids]
    return not designed or not all(map(brings_its_own, designed))


def _replacements(context: RunContext, items: Sequence[pytest.Item]) -> list[str]:
    """A line for each built-in scorer, and each use of ``--fairness-endpoint``, that the project
    replaces.
    """
    lines = []
    for remark in dict.fromkeys(_own_scorers(context).values()):
        lines.append(line(f"fairness: {remark}"))
    named = _named_endpoint(context)
    if named is None:
        return lines
    once = ""
    if len(context.settings.endpoints) > 1:
        once = " and is asked once"
    fixtures = []
    for item in filter(brings_its_own, items):
        does = f"replaces --fairness-endpoint {named}{once}"
        if item_marks.gets_named_endpoint(item):
            does = f"wraps --fairness-endpoint {named}"
        remark = f"{_fixture(item, context.root)} {does}"
        fixtures.append((collection.name_of(item), remark))
    return [*lines, *_lines(fixtures)]


def notes_on(
    context: RunContext, item: pytest.Item, finding: Finding, scored_by: set[str]
) -> list[str]:
    """Return what of *finding*, made in the test *item* with the scorers *scored_by*, rests on a
    replacement.
    """
    scorers = _own_scorers(context)
    notes = []
    if finding.outcome in scorers.keys() & scored_by:
        notes = [scorers[finding.outcome]]
    named = _named_endpoint(context)
    if named is not None and finding.model_endpoint is not None and brings_its_own(item):
        notes.append(
            f"{_fixture(item, context.root)} was asked instead of --fairness-endpoint {named}"
        )
    for endpoint, note in reporting.answer_notes(context.store):
        if endpoint == finding.model_endpoint:
            notes.append(note)
    return notes


def _own_scorers(context: RunContext) -> dict[str, str]:
    """Return what to say of those scorers that have the name of a built-in one and are another, by
    that name.
    """
    remarks = {}
    for name, scorer in context.scorers.items():
        if scorer is BUILT_IN.get(name, scorer):
            continue
        if isinstance(scorer.score, LetterReader):
            remarks[name] = (
                "letters are read by the project's own terms and acceptances (personas/lexicon, "
                "accepted.yaml)"
            )
            continue
        place = _place(scorer.score, context.root)
        remarks[name] = f"the scorer {name!r} is the project's own ({place}), not the built-in one"
    return remarks


def _named_endpoint(context: RunContext) -> str | None:
    """Return what the command line names as the endpoint, on replay the recorded one; a name in the
    ini file is a default, and meant to be replaced.
    """
    replayed = context.settings.replay
    if replayed is None:
        command = context.command
    else:
        command = read_manifest(replayed).get("command") or ()
    for name, _, value in parsed(command):
        if name == "--fairness-endpoint":
            return value
    return None


def _fixture(item: pytest.Item, root: Path) -> str:
    """Name the fixture that *item* gets as its endpoint, and where it stands."""
    function = item_marks.fixtures_of(item, "endpoint")[-1].func
    if function.__module__.startswith("_pytest."):  # what pytest makes of @pytest.mark.parametrize
        return "its parameter 'endpoint'"
    return f"the fixture 'endpoint' of {_place(function, root)}"


def _place(function: Any, root: Path) -> str:
    """The file that *function* stands in; its module where that is not known."""
    while isinstance(function, partial):
        function = function.func
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None:
        return type(function).__module__
    return recorded_path(Path(code.co_filename), root)


# ---------------------------------------------------------------- what to know of the designs


def _remarks(grids: Mapping[collection.Key, Planned], items: Sequence[pytest.Item]) -> list[str]:
    """A line for each thing to know of the designs that *items* pull from, with the tests it is
    true of: that one is a sample, how alike its texts are, and what it can never decide.
    """
    active = [item for item in items if not item.get_closest_marker("skip")]
    cellwise = {selection.key for selection in collection.selected_cells(active)}
    remarks: list[tuple[str, str]] = []
    for key in dict.fromkeys(map(collection.grid_key, active)):
        if key in grids:
            grid = grids[key].grid
            if grid.positions is not None:
                remark = f"a balanced sample is asked, {len(grid):,} of {grid.full_size:,} cells"
                remarks.append((key[1], remark))
            remarks += zip(repeat(key[1]), _unequal_texts(grids[key]))
            if key not in cellwise:
                remarks += zip(repeat(key[1]), _undecidable(grids[key].as_priced.grid))
    return _lines(remarks)


def _unequal_texts(planned: Planned) -> Iterator[str]:
    """Yield how the texts of the groups differ beside the group: of pairs, in one signal condition
    and one arm; of a grid, for every group and name in the first context of each template; of a
    sample, in its beginning.
    """
    classes: Iterable[str] = ("group",)
    if isinstance(planned.grid, Grid):
        classes = dict.fromkeys(name for unit in planned.grid.units for name in unit.swapped)
    cells = _compared_cells(planned)
    for by in classes:
        # Texts may be meant to be the same: a placebo, or scrubbed before they are sent.
        with suppress(UsageError):
            yield from group_parity(cells, by).notes


def _compared_cells(planned: Planned) -> list[Cell]:
    """Return the cells whose texts are compared."""
    grid = planned.grid
    indices: Iterable[int] = range(len(grid))
    if isinstance(grid, Grid):
        indices = grid.of_first_context()
    cells = list(map(planned.cell, islice(indices, _LOOKED_AT)))
    if isinstance(grid, Grid):
        return cells
    condition = (cells[0].arm, cells[0].signal)
    return [cell for cell in cells if (cell.arm, cell.signal) == condition]


def _undecidable(grid: Grid | PairGrid) -> Iterator[str]:
    """Yield what a comparison of the groups of *grid* can never conclude, with what it takes: of
    scores, for which outcome a test asks is not known before it runs, and other outcomes need
    more."""
    for by, shape in shapes(grid, swapped=True).items():
        if shape.groups < 2 or (shape.names >= _ENOUGH_NAMES and shape.trials >= _ENOUGH_TRIALS):
            continue  # a PASS and a FAIL are in reach: statistics are not imported to say so
        design = power_of(grid, shape, grid.parameters.get("temperature"))
        never = []
        takes = ""
        if not design.can_pass:
            never.append("PASS")
            if design.needs:
                takes = f"; a PASS is likely with {design.needs}"
        if not design.can_fail:
            never.append("FAIL")
        if never:
            yield f"a comparison by {by} can never {' or '.join(never)}: {design.why}{takes}"


def _ends_of_sources(rows: Iterable[TestEstimate]) -> Iterator[tuple[str, str]]:
    """Yield the tests whose names end before the looks of their outcome do, with the largest look
    and how often a fair system then passes, where that is not likely.
    """
    seen: set[int] = set()
    for row in rows:
        grid = row.planned.grid
        stages = grid.stages
        ends = isinstance(grid, Grid) and stages is not None and stages.declared is None
        if not ends or id(grid) in seen:
            continue
        seen.add(id(grid))
        if max(shape.groups for shape in shapes(grid, swapped=True).values()) < 2:
            continue  # whom it compares stands in a file, and no name of the design
        for kind in map(OutcomeKind, row.kinds or (OutcomeKind.NUMERIC,)):
            remark = _end_of_source(row, kind)
            if remark:
                yield row.test.rpartition("::")[2], remark
                break


def _end_of_source(row: TestEstimate, kind: OutcomeKind) -> str:
    """Return where the names of *row* end before the looks at an outcome of *kind*; nothing where
    a fair system passes all the same.
    """
    stages = row.planned.grid.stages
    assert stages is not None  # noqa: S101 - the caller has looked
    if stages.size >= ladder_of(kind)[-1]:
        return ""
    designs = looked_designs(
        row.planned, stages, kind, MOST_RED, AssumedOutcome(rate=_MOSTLY_APPROVED)
    )
    passes = min(expectation(design).passes for design in designs)
    if passes >= _LIKELY:
        return ""
    groups = []
    arguments = row.planned.arguments or {}
    if arguments.get("signals") is None:
        groups = shortest_groups(arguments, stages.size)
    whose = "a group"
    if groups:
        whose = enumerated(groups)
    looks = designs[0].plan.names
    number = "one look"
    if len(looks) > 1:
        number = f"{len(looks)} looks"
    system = _FAIR_SYSTEMS.get(kind, "a fair system")
    often = f"about {round(10 * passes)}"
    if round(10 * passes) < 1:
        often = "fewer than 1"
    return (
        f"{whose} {agreeing(len(groups), 'has', 'have')} {count(stages.size, 'name')}: {number}; "
        f"{system} passes in {often} of 10 runs"
    )
