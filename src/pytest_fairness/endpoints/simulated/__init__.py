"""The default endpoint: a simulated model, seeded, offline, with a bias that you can plant and find again."""

from __future__ import annotations

from pytest_fairness.endpoints.simulated.endpoint import SimulatedEndpoint
from pytest_fairness.endpoints.simulated.planted import Planted, planted

__all__ = ["Planted", "SimulatedEndpoint", "planted", "simulated_endpoint"]


def simulated_endpoint(*, name: str = "simulated", **options: object) -> SimulatedEndpoint:
    """A simulated endpoint, as in ``simulated_endpoint(bias={"gender": {"female": -0.5}}, seed=3)``.

    The options are those of :class:`Planted`. Raises UsageError for an unknown one or a value out of range.
    """
    return SimulatedEndpoint(planted(options), name=name)
