"""The end of a session: findings.json and report.html into the run's folder, a few lines into the terminal."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from pytest_fairness.model import JSON

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_fairness.session import FairnessSession

_PACKAGES = ("pytest-fairness", "pytest", "numpy", "pandas", "scipy", "statsmodels", "vaderSentiment", "litellm")
