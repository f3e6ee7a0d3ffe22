"""What a session is about to ask, what that costs and how long it takes, before the first call is paid for.

Requests are counted on a sample of each design's cells, so that a grid of a million cells is not expanded to be
announced; ``pytest-fairness plan --suite`` counts them all.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.false_alarms import chance, of_session
from pytest_fairness.pytest_layer import collection, marks

if TYPE_CHECKING:
    import pytest

    from pytest_fairness.context import RunContext, Settings
    from pytest_fairness.endpoints.protocol import Endpoint, Price
    from pytest_fairness.pytest_layer.plans import Planned, PlannedCell
    from pytest_fairness.scorers.scorer import Scorer

BYTES_A_TOKEN = 4
"""A rule of thumb for English text; other scripts take more tokens a byte."""
TOKENS_A_MESSAGE = 4
"""A message's role and separators, about."""
REPLY_TOKENS = 200
"""Tokens of a usual reply, where neither a scorer nor a parameter says fewer."""
LATENCY = 2.0
"""Seconds a request takes, about."""
_SAMPLE = 64


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests to an endpoint: how many, messages and UTF-8 bytes in them, and earlier replies sent along."""

    requests: float = 0
    messages: float = 0
    text: float = 0
    replies: float = 0

    def __add__(self, other: Requests) -> Requests:
        return Requests(
            self.requests + other.requests,
            self.messages + other.messages,
            self.text + other.text,
            self.replies + other.replies,
        )

    def times(self, factor: float) -> Requests:
        return Requests(self.requests * factor, self.messages * factor, self.text * factor, self.replies * factor)


def requests_of(entry: PlannedCell) -> tuple[Requests, Requests]:
    """The fewest and the most requests that one trial of *entry* makes.

    A conversation sends its earlier turns and their replies again with each turn. A pipeline gives each step the
    reply to the one before. Of strategies, the first may do, or all may be tried.
    """
    from pytest_fairness.engine.scripts import Escalation, Pipeline

    cell, script = entry.cell, entry.script
    if isinstance(script, Escalation):
        ladder = [_conversation(cell.system, rung.turns) for rung in script.rungs]
        return ladder[0], sum(ladder, Requests())
    if isinstance(script, Pipeline):
        steps = Requests()
        for step, (system, turn) in enumerate(zip(script.systems, cell.turns, strict=False)):
            steps += Requests(1, 1 + (system is not None), _size(turn) + _size(system), int(step > 0))
        return steps, steps
    whole = _conversation(cell.system, cell.turns)
    return whole, whole


def _conversation(system: str | None, turns: tuple[str, ...]) -> Requests:
    found, text = Requests(), _size(system)
    for at, turn in enumerate(turns):
        text += _size(turn)
        found += Requests(1, 2 * at + 1 + (system is not None), text, at)
    return found


def _size(text: str | None) -> int:
    return 0 if text is None else len(text.encode("utf-8", "surrogatepass"))


def usual_cost(price: Price, asked: Requests, reply_tokens: int) -> float:
    """Dollars for *asked*, with replies of *reply_tokens*."""
    tokens = input_tokens(asked, reply_tokens) * price.input_per_million
    tokens += asked.requests * reply_tokens * price.output_per_million
    return tokens / 1_000_000 + asked.requests * price.per_call


def input_tokens(asked: Requests, reply_tokens: int) -> int:
    """Tokens sent for *asked*, about: texts, what separates messages, and earlier replies."""
    return int(asked.text / BYTES_A_TOKEN + TOKENS_A_MESSAGE * asked.messages + reply_tokens * asked.replies)


def most_cost(price: Price, asked: Requests, longest: int) -> float:
    """Dollars for *asked* at the most: replies of *longest* tokens, and a byte a token, as the account has it."""
    tokens = (asked.text + 16 * asked.messages + asked.replies * longest) * price.input_per_million
    tokens += asked.requests * longest * price.output_per_million
    return tokens / 1_000_000 + asked.requests * price.per_call


@dataclass(slots=True, kw_only=True)
class Estimate:
    """What a session is going to ask. ``trials`` of designs that several tests share count once.

    ``configured`` are the requests to the endpoint of the settings, ``most`` if every strategy is tried; those to a
    system of a test's own, whose price only the test knows, are ``own``. Second samples, which an alarm asks for, count
    as often as a fair system raises one, and in ``most`` always; ``again`` are their trials if every test asks.
    ``replies`` are the configured requests by the length of their usual replies in tokens.
    ``false_alarm`` is how likely a fair system turns the session red, at most, if each test asserts once.
    """

    trials: int = 0
    configured: Requests = Requests()
    most: Requests = Requests()
    own: float = 0
    replies: list[tuple[Requests, int]] = field(default_factory=list)
    longest: int = 0
    again: int = 0
    false_alarm: float = 0

    def cost(self, price: Price) -> tuple[float, float]:
        """Dollars: usual, and at the most."""
        usual = sum(usual_cost(price, requests, tokens) for requests, tokens in self.replies)
        return usual, most_cost(price, self.most, self.longest)

    @property
    def reply_tokens(self) -> int:
        """Tokens of a usual reply, on average."""
        total = sum(requests.requests * tokens for requests, tokens in self.replies)
        return round(total / self.configured.requests) if self.configured.requests else REPLY_TOKENS


def estimate(
    context: RunContext,
    items: Sequence[pytest.Item],
    grids: Mapping[collection.Key, Planned],
    endpoint: Endpoint | None,
) -> Estimate:
    """What the fairness tests among *items* are going to ask; *endpoint* is that of the settings, where it is known."""
    from pytest_fairness.runs.money import UNLIMITED_OUTPUT, output_limit

    found, seen = Estimate(), set[tuple[Any, ...]]()
    selected = collection.selected_cells(items)
    defaults = {} if endpoint is None else dict(endpoint.default_parameters)
    longest: list[int] = []
    for key, (item, *_) in collection.asking_items(items, grids).items():
        function, tier, temperature = key
        planned, cells = grids[function], selected.get(key)
        chosen = range(len(planned.grid)) if cells is None else cells
        step = max(1, len(chosen) // _SAMPLE)
        entries = planned.entries(tier, (lambda _text: True, ""), list(chosen[::step]))
        count = len(chosen) * planned.grid.repetitions
        parameters = sorted(planned.grid.parameters.items())
        asked = (system_of(item), count, repr(parameters), temperature, tuple(map(_sent, entries)))
        if asked in seen or not entries:
            continue
        seen.add(asked)
        again = cells is None and looks_again(context.settings, planned)
        share, own, fewest, most = count / len(entries), 0.0, Requests(), Requests()
        bringing = brings_its_own(item)
        for entry in entries:
            low, high = requests_of(entry)
            if bringing or entry.asks_others:
                own += low.requests
            else:
                fewest, most = fewest + low, most + high
        limit = output_limit({**defaults, **planned.grid.parameters})
        longest.append(UNLIMITED_OUTPUT if limit is None else limit)
        usual = fewest.times(share * (1 + again * chance()))
        found.trials += count
        found.again += again * count
        found.configured += usual
        found.replies.append((usual, min(usual_reply(item, planned, context.scorers), longest[-1])))
        found.most += most.times(share * (1 + again))
        found.own += own * share
    found.longest = max(longest, default=UNLIMITED_OUTPUT)
    found.false_alarm = chance_of_red(context.settings, items, grids, selected)
    return found


def _sent(entry: PlannedCell) -> tuple[Any, ...]:
    script = None if entry.script is None else repr(entry.script.identity())
    return entry.cell.system, entry.cell.turns, entry.cell.arm, entry.first, id(entry.system), script


def brings_its_own(item: pytest.Item) -> bool:
    """Whether the project overrides the ``endpoint`` fixture: then only the test knows what is asked."""
    return any(fixture.func.__module__ != marks.FIXTURES for fixture in marks.fixtures_of(item, "endpoint")[-1:])


def system_of(item: pytest.Item) -> str:
    """What tells the system under test of one test from that of another: the ``endpoint`` fixture that it gets."""
    return " ".join(f"{one.baseid} {one.func.__module__}" for one in marks.fixtures_of(item, "endpoint"))


def looks_again(settings: Settings, planned: Planned) -> bool:
    """Whether a test of *planned* asks for a second sample before an alarm stands: there are names left to ask about,
    and nothing stands in the way of asking."""
    asks = settings.confirm and settings.replay is None and not settings.shard
    return asks and planned.on_other_names is not None


def chance_of_red(
    settings: Settings,
    items: Sequence[pytest.Item],
    grids: Mapping[collection.Key, Planned],
    cellwise: Container[collection.Selection],
) -> float:
    """How likely a fair system turns the session of *items* red, at most, if each test asserts once; tests of one cell,
    whose selections are *cellwise*, judge no groups."""
    chances = []
    for item in items:
        key = collection.selection_of(item)
        if marks.is_fairness_item(item) and not item.get_closest_marker("skip") and key not in cellwise:
            planned = grids.get(key[0])
            chances.append(chance(confirmed=planned is not None and looks_again(settings, planned)))
    return of_session(chances)


def usual_reply(item: pytest.Item, planned: Planned, scorers: Mapping[str, Scorer]) -> int:
    """Tokens of a usual reply: the most that a scorer asks for which the design or the code of the test names.

    A choice between candidates is a name. Nobody knows beforehand which scorers a test calls by other means, such as a
    fixture; without any the reply is taken to be a letter.
    """
    from pytest_fairness.scorers.scorer import SHORT_REPLY

    if planned.tiers_by_arm:
        return SHORT_REPLY
    named = [planned.scorer, *_strings(getattr(getattr(item, "function", None), "__code__", None))]
    known = [scorers[name] for name in named if isinstance(name, str) and name in scorers]
    return max((REPLY_TOKENS if one.reply_tokens is None else one.reply_tokens for one in known), default=REPLY_TOKENS)


def _strings(value: Any) -> Iterator[str]:
    """The strings among the constants of code, those of functions within it included."""
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, (tuple, frozenset)) else getattr(value, "co_consts", ()):
        yield from _strings(part)
