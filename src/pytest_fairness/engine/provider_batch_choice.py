"""Whether trials are asked one by one or in a provider's batches: as their endpoint says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pytest_fairness.endpoints.batch_protocol import batches_of
from pytest_fairness.endpoints.protocol import Endpoint, limits_of
from pytest_fairness.engine.attempt import Asker
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.engine.progress import ProgressSink
from pytest_fairness.engine.queue import Policy
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Trial
from pytest_fairness.runs.money import Budget
from pytest_fairness.runs.store import RunStore

if TYPE_CHECKING:
    from pytest_fairness.engine.provider_batch import ProviderBatches


def provider_batches(
    endpoint: Endpoint,
    keys: Sequence[str],
    *,
    begin: Callable[[str, int], Conversation],
    asker: Asker,
    store: object,
    budget: Budget,
    policy: Policy,
    finish: Callable[[Conversation], Trial],
    progress: ProgressSink | None,
    of: str,
) -> ProviderBatches | None:
    """The batches in which *endpoint* is asked for *keys*; None where it is asked one by one.

    Raises UsageError where the run's folder, in which what is sent must lie, is not to be had.
    """
    api = batches_of(endpoint)
    if api is None:
        return None
    if not isinstance(store, RunStore):
        raise UsageError(
            f"endpoint {endpoint.name!r} is asked in batches, which a worker on another machine cannot do: run without "
            "-n or --tx, or take `batch:` out of endpoints.yaml"
        )
    from pytest_fairness.engine.provider_batch import ProviderBatches
    from pytest_fairness.engine.provider_batch_endings import Endings

    endings = Endings(
        asker=asker,
        budget=budget,
        policy=policy,
        finish=finish,
        progress=progress,
        label=endpoint.name,
        server_error_attempts=limits_of(endpoint).server_error_attempts,
    )
    return ProviderBatches(
        keys,
        begin=begin,
        api=api,
        asker=asker,
        store=store,
        budget=budget,
        policy=policy,
        endings=endings,
        progress=progress,
        label=endpoint.name,
        of=of,
    )
