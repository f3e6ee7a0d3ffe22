"""``docs/notebook.ipynb`` is true: executed in a kernel of its own, it shows what it holds."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.markdown import ANY_DAY, ROOT

PAGE = ROOT / "docs" / "notebook.ipynb"
#: What differs from one execution to the next: the day, and how long it took.
_PASSING = (
    (re.compile(r"\d{4}-\d\d-\d\d(?=-\d{3})"), ANY_DAY),
    (re.compile(r" in \d+\.\d\ds"), " in 1.00s"),
)


def shown(cell: Any) -> list[dict[str, Any]]:
    """The outputs of a cell, with the text of one stream in one piece."""
    found: list[dict[str, Any]] = []
    for output in cell.get("outputs", ()):
        kept = {
            key: value
            for key, value in output.items()
            if key not in ("execution_count", "metadata")
        }
        if found and output["output_type"] == found[-1]["output_type"] == "stream":
            found[-1]["text"] += kept["text"]
        else:
            found.append(kept)
    return [_settled(output) for output in found]


def _settled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _settled(one) for key, one in value.items()}
    if isinstance(value, str):
        for pattern, word in _PASSING:
            value = pattern.sub(word, value)
    return value


def test_the_notebook_shows_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PYTEST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(PAGE, as_version=4)
    before = [shown(cell) for cell in notebook.cells]
    project = tmp_path / "project"
    project.mkdir()
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(project)}}).execute()
    now = [shown(cell) for cell in notebook.cells]
    if os.environ.get("UPDATE_DOCS"):
        for cell, outputs in zip(notebook.cells, now, strict=True):
            cell.metadata.pop("execution", None)
            if cell.cell_type == "code":
                cell.outputs = [
                    nbformat.from_dict(
                        {"execution_count": cell.execution_count, "metadata": {}, **output}
                    )
                    if output["output_type"] == "execute_result"
                    else nbformat.from_dict(output)
                    for output in outputs
                ]
        notebook.metadata.language_info = {"name": "python"}
        nbformat.write(notebook, PAGE)
    else:
        assert now == before, "UPDATE_DOCS=1 rewrites what has changed"
    assert "simulated endpoint: no model was asked" in str(now)
    assert {path.name for path in (project / "tables").iterdir()} >= {
        "trials.csv",
        "trials.parquet",
    }
