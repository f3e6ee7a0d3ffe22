"""What a session is about to ask, what that costs and how long it takes, before the first call is paid for.

Requests are counted on a sample of each design's cells, so that a grid of a million cells is not expanded to be
announced; ``pytest-fairness plan --suite`` counts them all.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.false_alarms import chance, of_session
from pytest_fairness.pytest_layer import collection, guest

if TYPE_CHECKING:
    import pytest

    from pytest_fairness.context import Settings
    from pytest_fairness.endpoints.protocol import Endpoint, Price
    from pytest_fairness.pytest_layer.plans import Entry, Planned
    from pytest_fairness.pytest_layer.session import FairnessSession
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
_OUR_FIXTURES = "pytest_fairness.pytest_layer.fixtures"


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
        """The same, *factor* times over."""
        return Requests(self.requests * factor, self.messages * factor, self.text * factor, self.replies * factor)


def requests_of(entry: Entry) -> tuple[Requests, Requests]:
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
        for step, turn in enumerate(cell.turns):
            system = script.systems[step]
            steps += Requests(1, 1 + (system is not None), _size(turn) + _size(system), int(step > 0))
        return steps, steps
    whole = _conversation(cell.system, cell.turns)
    return whole, whole


def _conversation(system: str | None, turns: tuple[str, ...]) -> Requests:
    found = Requests()
    for at in range(len(turns)):
        said = sum(_size(turn) for turn in turns[: at + 1]) + _size(system)
        found += Requests(1, 2 * at + 1 + (system is not None), said, at)
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


def brings_its_own(item: pytest.Item) -> bool:
    """Whether the project overrides the ``endpoint`` fixture: then only the test knows what is asked."""
    return any(fixture.func.__module__ != _OUR_FIXTURES for fixture in endpoint_fixtures(item)[-1:])


def system_of(item: pytest.Item) -> str:
    """What tells the system under test of one test from that of another: the ``endpoint`` fixture that it gets."""
    return " ".join(f"{fixture.baseid} {fixture.func.__module__}" for fixture in endpoint_fixtures(item))


def endpoint_fixtures(item: pytest.Item) -> Sequence[Any]:
    """The definitions of the fixture ``endpoint`` that *item* sees, the one that it gets last."""
    fixtures = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return fixtures.get("endpoint") or ()


@dataclass(frozen=True, slots=True, kw_only=True)
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
    replies: tuple[tuple[Requests, int], ...] = ()
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
        said = sum(requests.requests * tokens for requests, tokens in self.replies)
        return round(said / self.configured.requests) if self.configured.requests else REPLY_TOKENS


def estimate(session: FairnessSession, items: Sequence[pytest.Item], endpoint: Endpoint | None) -> Estimate:
    """What the fairness tests among *items* are going to ask; *endpoint* is that of the settings, where it is known."""
    from pytest_fairness.runs.money import UNLIMITED_OUTPUT, output_limit

    seen: set[tuple[Any, ...]] = set()
    found = Estimate(longest=1)
    defaults = {} if endpoint is None else dict(endpoint.default_parameters)
    limits: list[int | None] = []
    for key, item in _selections(session, items).items():
        function, tier, temperature = key
        planned = session.grids[function]
        cells = session.selected.get(key)
        entries = _sampled(planned, tier, cells)
        count = (len(planned.grid) if cells is None else len(cells)) * planned.repetitions
        again = cells is None and looks_again(session.settings, planned)
        parameters = sorted(planned.parameters.items())
        asked = (system_of(item), count, repr(parameters), temperature, tuple(_sent(entry) for entry in entries))
        if asked in seen or not entries:
            continue
        seen.add(asked)
        found = replace(found, trials=found.trials + count, again=found.again + again * count)
        share = count / len(entries)
        bringing = brings_its_own(item)
        own = [entry for entry in entries if bringing or asks_others(entry)]
        fewest, most = _total(entry for entry in entries if not bringing and not asks_others(entry))
        limit = output_limit({**defaults, **planned.parameters})
        limits.append(limit)
        usual = fewest.times(share * (1 + again * chance()))
        tokens = usual_reply(item, planned, session.scorers)
        found = replace(
            found,
            configured=found.configured + usual,
            replies=(*found.replies, (usual, tokens if limit is None else min(tokens, limit))),
            most=found.most + most.times(share * (1 + again)),
            own=found.own + _total(own)[0].requests * share,
        )
    longest = max((UNLIMITED_OUTPUT if limit is None else limit for limit in limits), default=UNLIMITED_OUTPUT)
    return replace(
        found,
        longest=longest,
        false_alarm=chance_of_red(session, items, session.selected),
    )


def looks_again(settings: Settings, planned: Planned) -> bool:
    """Whether a test of *planned* asks for a second sample before an alarm stands: there are names left to ask about,
    and nothing stands in the way of asking."""
    asks = settings.confirm and settings.replay is None and not settings.shard
    return asks and planned.on_other_names is not None


def chance_of_red(session: FairnessSession, items: Sequence[pytest.Item], cellwise: Container[Any]) -> float:
    """How likely a fair system turns the session of *items* red, at most, if each test asserts once; tests of one cell,
    whose selections are *cellwise*, judge no groups."""
    chances = []
    for item in items:
        key = collection.selection_of(item)
        if guest.is_fairness_item(item) and not item.get_closest_marker("skip") and key not in cellwise:
            planned = session.grids.get(key[0])
            chances.append(chance(confirmed=planned is not None and looks_again(session.settings, planned)))
    return of_session(chances)


def usual_reply(item: pytest.Item, planned: Planned, scorers: Mapping[str, Scorer]) -> int:
    """Tokens of a usual reply: the most that a scorer asks for which the design or the code of the test names.

    A choice between candidates is a name. Nobody knows beforehand which scorers a test calls by other means, such as a
    fixture; without any the reply is taken to be a letter.
    """
    from pytest_fairness.scorers.scorer import SHORT_REPLY

    if planned.tiers_by_arm:
        return SHORT_REPLY
    named = [planned.scorer, *_named(getattr(getattr(item, "function", None), "__code__", None))]
    known = [scorers[name] for name in named if isinstance(name, str) and name in scorers]
    return max((REPLY_TOKENS if one.reply_tokens is None else one.reply_tokens for one in known), default=REPLY_TOKENS)


def _named(value: Any) -> Iterator[str]:
    """The strings among the constants of code, those of functions within it included."""
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, (tuple, frozenset)) else getattr(value, "co_consts", ()):
        yield from _named(part)


def asks_others(entry: Entry) -> bool:
    """Whether a trial of *entry* asks, in one of its requests at least, another system than the test's."""
    return entry.system is not None or (
        entry.script is not None and any(system is not None for system in entry.script.endpoints)
    )


def _selections(session: FairnessSession, items: Sequence[pytest.Item]) -> dict[collection.Selection, pytest.Item]:
    """An item of each selection that is going to ask."""
    found: dict[collection.Selection, pytest.Item] = {}
    for item in items:
        key = collection.selection_of(item)
        if key[0] in session.grids and not item.get_closest_marker("skip"):
            found.setdefault(key, item)
    return found


def _sampled(planned: Planned, tier: int, cells: Sequence[int] | None) -> Sequence[Entry]:
    """Cells of *planned*, evenly spread."""
    chosen = range(len(planned.grid)) if cells is None else cells
    step = max(1, len(chosen) // _SAMPLE)
    return planned.entries(tier, (lambda _text: True, ""), list(chosen[::step]))


def _sent(entry: Entry) -> tuple[Any, ...]:
    script = None if entry.script is None else repr(entry.script.identity())
    return entry.cell.system, entry.cell.turns, entry.cell.arm, entry.first, id(entry.system), script


def _total(entries: Iterable[Entry]) -> tuple[Requests, Requests]:
    fewest, most = Requests(), Requests()
    for entry in entries:
        low, high = requests_of(entry)
        fewest, most = fewest + low, most + high
    return fewest, most
