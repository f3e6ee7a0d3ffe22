"""The systems under test of a session, made once each from what a test or the settings name."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import Any

import pytest

from pytest_fairness.context import RunContext
from pytest_fairness.endpoints import as_endpoint, callable_endpoint, load_endpoints, named_endpoint
from pytest_fairness.endpoints.function import is_import_path
from pytest_fairness.endpoints.pipeline import PipelineEndpoint
from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.endpoints.registry import RecordedEndpoint
from pytest_fairness.errors import UsageError
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.words import listed


class Systems:
    """A name of ``endpoints.yaml``, an import path, a function or a pipeline as an endpoint.

    On replay those that have a name are what the recording knows by it.
    """

    def __init__(self, context: RunContext, config: pytest.Config) -> None:
        self._context = context
        self._config = config
        self._named: dict[str, Endpoint] = {}
        self._configured: dict[str, Endpoint] = {}

    def resolve(self, system: Any) -> Endpoint:
        """*system* as an endpoint, the names in a pipeline resolved too; a name, or an import path
        where no endpoint is called so, is made one once. Raises UsageError for what is none.
        """
        if isinstance(system, PipelineEndpoint):
            return system.resolved(self.resolve)
        if not isinstance(system, str):
            return as_endpoint(system)
        if system not in self._named:
            # Only Python says import paths, the option --fairness-endpoint does not.
            path = self._context.settings.endpoints_file
            named = not is_import_path(system) or (
                path.exists() and system in load_endpoints(path, types=self._types)
            )
            if named:
                self._named[system] = self._listed(system)
            else:
                self._named[system] = self._imported(system)
        return self._named[system]

    def _imported(self, path: str) -> Endpoint:
        """The function at the import *path*. Raises UsageError."""
        # As ``python -m pytest`` has it, so that a project needs no installation; last, so that it
        # hides nothing, and for good, as a function may import when it is called.
        root = str(self._context.root)
        if root not in sys.path:
            sys.path.append(root)
        return callable_endpoint(path)

    def configured(self, name: str | None = None) -> Endpoint:
        """The endpoint that the settings name; of several, *name*. Raises UsageError."""
        names = self._context.settings.endpoints
        if name is None and len(names) > 1:
            raise UsageError(
                f"{len(names)} endpoints are to be asked ({', '.join(names)}), and this test does "
                "not say which: let "
                "it, or its fixtures, have a parameter called endpoint, and it becomes one item "
                "for each"
            )
        if name is None:
            name = names[0]
        if name not in self._configured:
            made = self._listed(name)
            for other, endpoint in self._configured.items():
                if identity_hash(endpoint.identity()) == identity_hash(made.identity()):
                    raise UsageError(
                        f"endpoints {other!r} and {name!r} are the same system: name one of them"
                    )
            self._configured[name] = made
        return self._configured[name]

    def _listed(self, name: str) -> Endpoint:
        """The endpoint *name* of endpoints.yaml; on replay, as the recording knows it. Raises
        UsageError.
        """
        self._context.raise_refusal()
        settings = self._context.settings
        recording = self._context.recording
        if recording is None:
            return named_endpoint(
                name,
                path=settings.endpoints_file,
                types=self._types,
                concurrency=settings.concurrency,
            )
        systems: dict[str, list[Any]] = {}
        for record in recording.engines.values():
            system = record["endpoint"]
            systems.setdefault(system["name"], []).append(system)
        run = recording.directory.name
        if name not in systems:
            names = listed(sorted(systems))
            raise UsageError(f"run {run} did not ask endpoint {name!r}; it asked: {names}")
        if len(systems[name]) > 1:
            raise UsageError(
                f"run {run} asked {len(systems[name])} systems called {name!r}: replay them from "
                "the fixture that made them"
            )
        return RecordedEndpoint(systems[name][0])

    @cached_property
    def _types(self) -> dict[str, Any]:
        """Type → factory: the built-in ones and those of the project, which win."""
        types: dict[str, Any] = {}
        for mapping in reversed(self._config.hook.pytest_fairness_endpoint_types()):
            types |= mapping
        return types
