"""What a session with fairness tests starts with: how much it asks, of whom, for how much and how long; if it may."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_fairness.analysis.false_alarms import words
from pytest_fairness.errors import FairnessError, UsageError
from pytest_fairness.pytest_layer import estimate, reporting
from pytest_fairness.pytest_layer.design_remarks import remarks
from pytest_fairness.pytest_layer.replacements import replacements

if TYPE_CHECKING:
    import pytest

    from pytest_fairness.context import Settings
    from pytest_fairness.endpoints.protocol import Endpoint
    from pytest_fairness.pytest_layer.estimate import Estimate
    from pytest_fairness.pytest_layer.session import FairnessSession


def announcement(session: FairnessSession, items: Sequence[pytest.Item], tests: int) -> list[str]:
    """The lines: size, endpoint, seed and run; where a model is going to be paid, also requests, cost and time; what
    to know of the designs.

    Raises :class:`pytest.UsageError` where the endpoint that is going to be asked is configured wrongly, or its cost
    has a cap and no price.
    """
    settings = session.settings
    endpoint, wrong = _endpoint(session)
    expected = estimate.estimate(session, items, endpoint)
    if wrong is not None and expected.configured.requests and session.worker is None:
        raise _ends(wrong)
    if endpoint is not None and expected.configured.requests and session.worker is None:
        _refuse_unpriced(settings, endpoint)
    lines = [_size(settings, tests, expected, reporting.shown(session.store.directory, session.config.rootpath))]
    lines += _false_alarm(expected)
    if endpoint is not None and not endpoint.simulated and settings.replay is None and expected.configured.requests:
        lines.append(_price(settings, expected, endpoint))
    return [*lines, *replacements(session, items), *remarks(session.grids, items)]


def _refuse_unpriced(settings: Settings, endpoint: Endpoint) -> None:
    """Raise :class:`pytest.UsageError` where a cap is set and nobody knows what a call costs: before any test runs."""
    import pytest

    from pytest_fairness.endpoints.pipeline import PipelineEndpoint
    from pytest_fairness.runs.money import unpriced

    if settings.max_cost is None or settings.replay is not None:
        return
    systems = [step.asked for step in endpoint.steps] if isinstance(endpoint, PipelineEndpoint) else [endpoint]
    for system in systems:
        if system.price is None and not system.simulated:
            raise pytest.UsageError(unpriced(system.name, settings.max_cost))


def _endpoint(session: FairnessSession) -> tuple[Endpoint | None, UsageError | None]:
    """The endpoint that the settings name, and what is wrong with its configuration."""
    try:
        return session.configured_endpoint(), None
    except UsageError as error:
        return None, error
    except FairnessError:
        return None, None  # the tests that need it say what is wrong


def _ends(error: UsageError) -> pytest.UsageError:
    """*error* as it ends the session, with exit status 4: before any test runs."""
    import pytest

    return pytest.UsageError(str(error))


def _size(settings: Settings, tests: int, expected: Estimate, run: str) -> str:
    trials, made_up = expected.trials, settings.endpoint == "simulated" and not expected.own
    endpoint = settings.endpoint + (" (no model is asked)" if made_up else "")
    if expected.own:
        endpoint = f"{endpoint} and the tests' own" if expected.configured.requests else "of the tests' own"
    part = f"shard {settings.shard} of " if settings.shard else ""
    source = f"replayed from {settings.replay.name}" if settings.replay is not None else f"endpoint {endpoint}"
    return (
        f"fairness: {tests} test{'s' * (tests != 1)}, {part}up to {trials:,} trials, {source}, "
        f"seed {settings.seed}, run {run}"
    )


def _false_alarm(expected: Estimate) -> list[str]:
    if not expected.false_alarm:
        return []
    told = f"fairness: chance of a false red at most {words(expected.false_alarm)}, if each test asserts once"
    if expected.again:
        told += f"; an alarm is first asked about again, with up to {expected.again:,} trials more"
    return [told]


def _price(settings: Settings, expected: Estimate, endpoint: Endpoint) -> str:
    from pytest_fairness.endpoints.batch_protocol import batches_of
    from pytest_fairness.endpoints.pipeline import PipelineEndpoint
    from pytest_fairness.endpoints.protocol import limits_of

    parts = 1 if not settings.shard else int(settings.shard.partition("/")[2])
    # The price of a pipeline is that of its steps together; what it is asked once are as many requests.
    requests = (
        expected.configured.requests / parts * (len(endpoint.steps) if isinstance(endpoint, PipelineEndpoint) else 1)
    )
    at_once = limits_of(endpoint).concurrency or settings.concurrency
    seconds = requests / at_once * estimate.LATENCY
    a_minute = limits_of(endpoint).requests_per_minute
    if a_minute is not None:
        seconds = max(seconds, 60 * requests / a_minute)
    if endpoint.price is None:
        cost = "cost unknown (give price: in endpoints.yaml)"
    else:
        usual, most = (amount / parts for amount in expected.cost(endpoint.price))
        cost = f"about {_dollars(usual)}, at most {_dollars(most)}" if most else "free"
    cap = "" if settings.max_cost is None else f" (cap {_dollars(settings.max_cost)})"
    if batches_of(endpoint) is not None:
        return f"fairness: about {requests:,.0f} requests, {cost}{cap}, in the provider's batches (hours, most often)"
    return (
        f"fairness: about {requests:,.0f} requests, {cost}{cap}, about {_duration(seconds)} "
        f"({at_once} at a time, {estimate.LATENCY:g} s and {expected.reply_tokens} tokens a reply)"
    )


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 0.01 or not amount else f"${amount:.4f}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60):,} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"
