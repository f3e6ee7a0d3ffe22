"""A notebook as a page in Markdown, with the outputs that it holds; nothing is run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def page(path: Path) -> str:
    """The notebook at *path* as Markdown."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _parts(cell)) + "\n"


def _parts(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield _code(source)
    for output in cell["outputs"]:
        yield _output(output)


def _code(source: str) -> str:
    """A cell of code: a command for the shell, a file that is written, or Python."""
    if source.startswith("!"):
        return f"```sh\n{source.removeprefix('!')}\n```"
    if source.startswith("%%writefile "):
        first, _, rest = source.partition("\n")
        source = f"# {first.removeprefix('%%writefile ')}\n{rest}"
    return f"```python\n{source}\n```"


def _output(output: Mapping[str, Any]) -> str:
    """A picture or table as it is, text as a block."""
    data = output.get("data", {})
    for kind in ("image/svg+xml", "text/html"):
        if kind in data:
            shown = "".join(data[kind])
            return f'```{{raw}} html\n<div class="table-wrapper">{shown}</div>\n```'
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```"
