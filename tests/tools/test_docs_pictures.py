"""The pictures of the documentation are those that the code draws; ``UPDATE_DOCS=1`` draws them
anew.
"""

from __future__ import annotations

import os
import runpy
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.support.sessions import run_pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "docs_pictures.py"))


def test_the_pictures_are_what_the_code_draws(tmp_path: Path) -> None:
    """Byte for byte; each of them is on the page, and the photographs are small."""
    drawn = TOOL["drawn"](
        tmp_path,
        lambda project, environment: run_pytest(project, *TOOL["SESSION"], environment=environment),
    )
    page = (ROOT / "docs" / "pictures.md").read_text(encoding="utf-8")
    for name, text in drawn.items():
        ET.fromstring(text)
        if os.environ.get("UPDATE_DOCS"):
            (TOOL["PICTURES"] / name).write_text(text, encoding="utf-8")
        assert (TOOL["PICTURES"] / name).read_text(encoding="utf-8") == text
        assert f"](pictures/{name})" in page
    for photograph in TOOL["PICTURES"].glob("*.png"):
        assert photograph.stat().st_size < 200_000
        assert f"](pictures/{photograph.name})" in page
