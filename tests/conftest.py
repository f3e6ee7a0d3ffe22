"""What every test can ask for."""

from __future__ import annotations

import numpy as np  # noqa: F401 - numpy cannot be imported twice in one process, which in-process pytester would do
import pytest

pytest_plugins = ["pytester"]

MODES = {"plain": ["-p", "no:xdist"], "n0": ["-n0"], "n2": ["-n2"]}


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> list[str]:
    """Arguments that run pytest plain, with ``-n0`` and with two workers."""
    return MODES[request.param]
