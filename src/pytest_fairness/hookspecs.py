"""Hooks that extend pytest-fairness. The built-ins are implementations of the same hooks (see ``plugin.py``).

A recipe, in a ``conftest.py`` or a plugin of one's own::

    from pytest_fairness.scorers import Scorer

    def pytest_fairness_scorers():
        return [Scorer(name="exclamations", score=lambda reply: reply.count("!"), unit="marks")]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_fairness.scorers import Scorer


@pytest.hookspec
def pytest_fairness_scorers() -> Sequence[Scorer]:  # type: ignore[empty-body]
    """Scorers that tests can name in ``outcome=``; each maps a reply to a number, a label, a yes/no or None."""


@pytest.hookspec
def pytest_fairness_endpoint_types() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """Endpoint types that ``endpoints.yaml`` can name: type → a function from its configuration to an Endpoint."""
