"""Hooks that extend pytest-fairness. The built-ins are implementations of the same hooks (see
``plugin.py``).

A recipe, in a ``conftest.py`` or a plugin of one's own::

    from pytest_fairness import scorer

    @scorer(kind="numeric", unit="marks", low=0)
    def exclamations(reply):
        return reply.count("!")

    def pytest_fairness_scorers():
        return [exclamations]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_fairness.reports.changes import FindingChange
    from pytest_fairness.reports.findings_json import RunResults
    from pytest_fairness.scorers import Scorer


@pytest.hookspec
def pytest_fairness_scorers() -> Sequence[Scorer]:  # type: ignore[empty-body]
    """Scorers that tests can name in ``outcome=``; each maps a reply to a number, a label, a yes/no
    or None.

    What a :class:`Scorer` declares (``kind``, ``unit``, the ends of its scale) holds whatever the
    replies are; without a kind, the values decide it.
    """


@pytest.hookspec
def pytest_fairness_endpoint_types() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """Endpoint types that ``endpoints.yaml`` can name: type → a function from its configuration to
    an Endpoint.

    One adapter and one entry; what the entry says under ``options`` is its own::

        class Echo:
            type, simulated, supports_system_prompt = "echo", False, True
            price = Price(input_per_million=0, output_per_million=0)  # None: unknown

            def __init__(self, config):  # a ThirdPartyConfig
                self.name, self.default_parameters = config.name, config.default_parameters

            def identity(self):  # what changes the answers, and no secret
                return {"type": self.type}

            async def ask(self, request):  # one attempt; AttemptError where none came
                return Reply(text=request.messages[-1].content)

            async def aclose(self):
                pass

        def pytest_fairness_endpoint_types():
            return {"echo": Echo}

    A type of a project wins over a built-in one of the same name.
    """


@pytest.hookspec
def pytest_fairness_max_cost(config: pytest.Config) -> float | None:
    """US dollars that a suite caps its run at; None for no cap. ``--fairness-max-cost`` wins, lower
    or higher.
    """


@pytest.hookspec
def pytest_fairness_notify(
    config: pytest.Config,
    results: RunResults,
    changes: Sequence[FindingChange] | None,
    report: Path,
) -> None:
    """Send on what a session found: called once, after its reports are written, where it was not
    interrupted.

    *results* are those of ``findings.json``; *changes* what has become of each finding since the
    run that
    ``--fairness-against`` names, None without one; *report* the HTML page. A recipe::

        def pytest_fairness_notify(results, report):
            if failed := results.counts["FAIL"]:
                my_chat.send(f"{failed} findings FAIL: {report}")

    Each implementation runs in a thread of its own for 20 seconds at the most. What it raises is
    shown in one line and changes neither verdict nor exit status. Sentences and ids are text from
    outside: escape them for where they go.
    """
