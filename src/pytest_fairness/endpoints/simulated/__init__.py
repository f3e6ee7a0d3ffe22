"""The default endpoint: a simulated model, seeded, offline, with a bias that you can plant and find again."""

from __future__ import annotations

from pytest_fairness import documents
from pytest_fairness.endpoints.simulated.endpoint import SimulatedEndpoint
from pytest_fairness.endpoints.simulated.planted import Planted
from pytest_fairness.model import to_json

__all__ = ["Planted", "SimulatedEndpoint", "simulated_endpoint"]


def simulated_endpoint(*, name: str = "simulated", **options: object) -> SimulatedEndpoint:
    """A simulated endpoint, as in ``simulated_endpoint(bias={"gender": {"female": -0.5}}, seed=3)``.

    The options are those of :class:`Planted`. Raises UsageError for an unknown one or a value out of range.
    """
    given = documents.Document("simulated endpoint", to_json({"name": name, **options}))
    return SimulatedEndpoint(given.convert(Planted))
