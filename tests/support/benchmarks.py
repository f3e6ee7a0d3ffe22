"""The scripts of ``benchmarks/`` as modules: they are no package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "benchmarks"


def benchmark(name: str) -> Any:
    """The module ``benchmarks/<name>.py``, under a name of its own; as in a script, its neighbours
    can be imported.
    """
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(
        spec
    )  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
