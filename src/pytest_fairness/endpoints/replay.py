"""A system as a recorded run knows it: who it was and how it was asked. It can be looked up, and never asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Price, Reply, Request
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON


class ReplayEndpoint:
    """Stands for the system that *recorded* describes: the ``endpoint`` of a log's ``engine`` record.

    Name, identity and parameters are those of the recording, so that content keys come out the same. Raises
    UsageError for a record of another shape.
    """

    type = "replay"

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        try:
            self.name = str(recorded["name"])
            self.simulated = bool(recorded["simulated"])
            self.supports_system_prompt = bool(recorded.get("supports_system_prompt", True))
            self.default_parameters: Mapping[str, JSON] = dict(recorded["default_parameters"])
            self._identity: dict[str, JSON] = dict(recorded["identity"])
            price = recorded.get("price")
            self.price = None if price is None else Price(**price)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"the recorded endpoint cannot be read ({error!r}): replay with the version that wrote it"
            ) from error

    def identity(self) -> dict[str, JSON]:
        return dict(self._identity)

    async def ask(self, request: Request) -> Reply:  # noqa: ARG002 - as the protocol has it
        """Raises AttemptError: a recorded run holds what it holds."""
        raise AttemptError(f"endpoint {self.name!r} is a recorded run: it cannot be asked", evidence=Evidence.NOT_SENT)

    async def aclose(self) -> None:
        """Nothing is held open."""
