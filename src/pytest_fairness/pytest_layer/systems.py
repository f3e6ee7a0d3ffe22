"""From what a project names to an endpoint: a name of ``endpoints.yaml``, an import path, a function, a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_fairness.endpoints.protocol import Endpoint
    from pytest_fairness.pytest_layer.session import FairnessSession


class Systems:
    """The systems of one session. On replay those that have a name are what the recording knows by it."""

    def __init__(self, session: FairnessSession) -> None:
        self._session = session
        self._named: dict[str, Endpoint] = {}

    def resolve(self, system: Any) -> Endpoint:
        """*system* as an endpoint; the names in a pipeline are resolved too. Raises UsageError for what is none."""
        from pytest_fairness.endpoints import as_endpoint
        from pytest_fairness.endpoints.pipeline import PipelineEndpoint

        if isinstance(system, str):
            return self.named(system)
        if isinstance(system, PipelineEndpoint):
            return system.resolved(self.resolve)
        return as_endpoint(system)

    def named(self, name: str) -> Endpoint:
        """The endpoint called *name*, made once; an import path, where no endpoint is called so.

        Only Python says import paths: the option ``--fairness-endpoint`` does not come here.
        """
        if name not in self._named:
            self._named[name] = self._found(name)
        return self._named[name]

    def _found(self, name: str) -> Endpoint:
        from pytest_fairness.endpoints import callable_endpoint
        from pytest_fairness.endpoints.function import is_import_path

        if is_import_path(name) and not self._is_listed(name):
            return callable_endpoint(name)
        return self._session.endpoint_called(name)

    def _is_listed(self, name: str) -> bool:
        from pytest_fairness.endpoints import load_endpoints

        path = self._session.settings.endpoints_file
        return path.exists() and name in load_endpoints(path, types=self._session.endpoint_types)
