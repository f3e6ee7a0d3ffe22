"""Over the wire: what the server saw, what the log says, and what a second process adds, agree one to one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import GRID, Run
