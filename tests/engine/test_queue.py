"""The queue: who is asked when, and in which order; what is asked again; limits and the number in
flight.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.endpoints import load_endpoints
from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Limits, Reply, Request
from pytest_fairness.endpoints.registry import create_endpoint
from pytest_fairness.engine.lane import Pace
from pytest_fairness.engine.queue import interleaved
from pytest_fairness.errors import EndpointError, UsageError
from pytest_fairness.model import Status, to_json
from pytest_fairness.runs.database import Database
from pytest_fairness.runs.store import RunStore
from tests.support.doubles import Scripted, failing, groups_of, plan, polite
from tests.support.runs import EngineMaker, records

# ------------------------------------------------------------ the order


def longest_run(values: list[str]) -> int:
    return max((len(list(group)) for _, group in itertools.groupby(values)), default=0)


@given(st.lists(st.sampled_from("abcd"), max_size=200), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_every_group_has_had_its_share_at_every_point(strata: list[str], seed: int) -> None:
    """However unequal the groups are, any beginning of the order holds each in proportion, give or
    take a few; groups of equal size alternate: none is asked more than twice running."""
    order = interleaved(strata, seed)
    assert sorted(order) == list(range(len(strata)))
    sizes, so_far = Counter(strata), Counter[str]()
    for position, index in enumerate(order, 1):
        so_far[strata[index]] += 1
        for group, size in sizes.items():
            share = size / len(strata)
            assert abs(so_far[group] - position * share) <= 1 + share * len(sizes)
    equal = [group for group in "abcdef"[: 2 + seed % 5] for _ in range(1 + len(strata) // 8)]
    assert longest_run([equal[index] for index in interleaved(equal, seed)]) <= 2


def test_the_order_is_random_and_decided_by_the_seed() -> None:
    """The same seed gives the same order, another seed another; a template that comes first in the
    plan does not come first in the run."""
    strata = list("abcd") * 25
    assert interleaved(strata, 7) == interleaved(strata, 7) != interleaved(strata, 8)
    order = interleaved(["a"] * 200, 3)
    assert order != sorted(order)
    assert 60 < sum(order[:100]) / 100 < 140


def test_groups_are_asked_interleaved_and_the_order_is_logged(engine_for: EngineMaker) -> None:
    """A plan that lists group after group is not asked group after group."""
    planned = sorted(plan(80), key=lambda one: one.cell.groups["race_ethnicity"])
    endpoint = Scripted()
    engine = engine_for(endpoint, concurrency=1, seed=5)
    engine.run(planned)
    by_prompt = {one.cell.prompt: one.cell.groups["race_ethnicity"] for one in planned}
    requested = [by_prompt[request.messages[-1].content] for request in endpoint.requests]
    assert longest_run(requested) <= 2
    logged = records(engine.store.directory, "trial")
    assert [record["order"] for record in logged] == list(range(80))
    assert {record["seed"] for record in logged} == {5}
    assert groups_of(planned) != requested


# ------------------------------------------------------------ what is asked again


def test_what_cost_nothing_is_tried_again(engine_for: EngineMaker) -> None:
    """Each attempt has its number and its record, and the wait is at least what the server asked
    for. The number of attempts is the caller's, and a trial that never got through says why."""
    for evidence in (Evidence.NOT_SENT, Evidence.THROTTLED):
        engine = engine_for(Scripted(failing(evidence, evidence, retry_after=0.1), name=evidence))
        started = time.monotonic()
        trial = engine.run(plan(1))[0]
        assert time.monotonic() - started >= 0.2
        assert (trial.status, trial.attempts) == (Status.ANSWERED, 3)
        attempts = [
            one for one in records(engine.store.directory, "attempt") if one["key"] == trial.key
        ]
        assert [(one["attempt"], one["evidence"]) for one in attempts] == [
            (1, evidence),
            (2, evidence),
            (3, None),
        ]
        sent = [one for one in records(engine.store.directory, "sent") if one["key"] == trial.key]
        assert [one["attempt"] for one in sent] == [1, 2, 3]
    endpoint = Scripted(failing(*[Evidence.THROTTLED] * 9, retry_after=0), name="never")
    trial = engine_for(endpoint, max_attempts=2).run(plan(1))[0]
    assert (trial.status, trial.error) == (Status.ERROR, "failed with throttled (after 2 attempts)")
    assert len(endpoint.requests) == 2


def test_the_first_trial_is_asked_by_itself(engine_for: EngineMaker) -> None:
    """What refuses us altogether, or cannot be reached, has had one trial; then the places fill."""
    at_once: list[int] = []

    def counted(request: Request) -> Reply:
        at_once.append(busy.most)
        return polite(request)

    busy = Scripted(counted, delay=0.01)
    engine_for(busy, concurrency=4).run(plan(20))
    assert (at_once[0], at_once[-1]) == (1, 4)
    for evidence, attempts in ((Evidence.AUTH, 1), (Evidence.NOT_SENT, 2)):
        endpoint = Scripted(failing(*[evidence] * 9, retry_after=0), name=f"locked {evidence}")
        with pytest.raises(EndpointError, match="nothing more is sent"):
            engine_for(endpoint, max_attempts=2, concurrency=4).run(plan(20))
        assert len(endpoint.requests) == attempts


def test_a_server_that_goes_away_later_is_given_time(engine_for: EngineMaker) -> None:
    """One trial without a connection is an error; the others may still find one."""

    def some(request: Request) -> Reply:
        if request.key == keys[1]:
            raise AttemptError("gone", evidence=Evidence.NOT_SENT, retry_after=0)
        keys.append(request.key)
        return polite(request)

    keys = ["", ""]
    engine, planned = engine_for(Scripted(some), max_attempts=2), plan(3)
    keys[1] = engine.key_of(planned[2])
    engine.run(planned[:1])
    trials = engine.run(planned)
    assert [trial.status for trial in trials] == [Status.ANSWERED, Status.ANSWERED, Status.ERROR]


def test_one_throttled_trial_slows_all(engine_for: EngineMaker) -> None:
    """While the server has asked for a pause, nobody sends: one trial is refused, not the 19 behind
    it.
    """
    times: list[float] = []
    answer = failing(Evidence.THROTTLED, retry_after=0.3)

    def first_only(request: Request) -> Reply:
        times.append(time.monotonic())
        return answer(request) if len(times) == 2 else polite(request)

    engine_for(Scripted(first_only), concurrency=4).run(plan(20))
    assert times[5] - times[1] >= 0.3  # the first was asked by itself, then four were under way


# ------------------------------------------------------------ the number in flight, and limits per minute


def test_no_more_than_the_allowed_number_is_under_way(engine_for: EngineMaker) -> None:
    """Concurrency is used to the full, and not beyond; an endpoint's own number counts for that
    one, whatever the session says."""
    for limits, most in ((Limits(), 5), (Limits(concurrency=2), 2)):
        endpoint = Scripted(delay=0.01, name=str(most))
        endpoint.limits = limits  # type: ignore[attr-defined]
        engine_for(endpoint, concurrency=5).run(plan(30))
        assert endpoint.most == most


def test_a_place_is_free_before_the_disk_has_its_answer(
    engine_for: EngineMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next request is announced while the answer before it is committed, and behind it: at no
    point of the log are more without an answer than may be in flight."""
    announced = threading.Event()
    commit, append = Database._commit, RunStore.append
    counts: Counter[object] = Counter()
    were_announced: list[bool] = []

    def committed(database: Database, group: Sequence[Any]) -> None:
        bodies = [getattr(waiting.operation, "body", "") for waiting in group]
        answers = sum(body.startswith('{"type":"attempt"') for body in bodies)
        if answers and not were_announced and counts["sent"] >= 2:
            were_announced.append(announced.wait(5.0))
        commit(database, group)

    def appended(store: RunStore, record: Mapping[str, Any]) -> None:
        append(store, record)
        counts[record["type"]] += 1
        if counts["sent"] == 3:
            announced.set()

    monkeypatch.setattr(Database, "_commit", committed)
    monkeypatch.setattr(RunStore, "append", appended)
    engine = engine_for(Scripted(delay=0.001), concurrency=1)
    engine.run(plan(6))
    assert were_announced == [True]  # the first is asked by itself: the third, behind the second
    unanswered = 0
    for record in records(engine.store.directory):
        unanswered += (record["type"] == "sent") - (record["type"] == "attempt")
        assert 0 <= unanswered <= 1


def test_the_pace_halves_once_for_a_round() -> None:
    """Requests that were turned away together count once; each round that goes well allows one
    more.
    """

    async def scenario() -> list[int]:
        pace = Pace(8)
        widths = [pace.width]
        for number in [await pace.enter() for _ in range(8)]:
            pace.leave(number, throttled=True)
        widths.append(pace.width)
        for _ in range(5):
            pace.leave(await pace.enter(), throttled=False)
        widths.append(pace.width)
        for _ in range(6):
            pace.leave(await pace.enter(), throttled=True)
        return [*widths, pace.width]

    assert asyncio.run(scenario()) == [8, 4, 5, 1]


def test_the_engine_holds_the_limit(engine_for: EngineMaker) -> None:
    """Twenty a second, and a second's worth to begin with: twenty-eight take at least a third of a
    second, and are all asked. What the limit lets wait until after the deadline is not run."""
    endpoint = Scripted()
    endpoint.limits = Limits(requests_per_minute=1200)  # type: ignore[attr-defined]
    engine = engine_for(endpoint, concurrency=16)
    started = time.monotonic()
    trials = engine.run(plan(28))
    assert time.monotonic() - started >= 0.3
    assert {trial.status for trial in trials} == {Status.ANSWERED}
    (introduced,) = records(engine.store.directory, "engine")
    assert introduced["limits"] == to_json(Limits(requests_per_minute=1200))
    slow = Scripted(name="slow")
    slow.limits = Limits(requests_per_minute=60)  # type: ignore[attr-defined]
    trials = engine_for(slow, deadline=0.4).run(plan(10))
    assert [trial.status for trial in trials].count(Status.NOT_RUN) == 8


def test_an_endpoint_that_cannot_hold_limits_is_refused(tmp_path: Path) -> None:
    """A limit that nobody would keep is not passed over in silence."""

    class Fixed(Scripted):
        limits = property(lambda _self: Limits())

    path = tmp_path / "endpoints.yaml"
    path.write_text('endpoints:\n  - name: "m"\n    type: "fixed"\n    requests_per_minute: 5\n')
    config = load_endpoints(path, types=["fixed"])["m"]
    with pytest.raises(UsageError, match="cannot hold limits per minute"):
        create_endpoint(config, types={"fixed": lambda _config: Fixed()})
