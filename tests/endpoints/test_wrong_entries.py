"""Entries of endpoints.yaml that make no sense are refused before the first call, with the place and the mend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_fairness import documents
from pytest_fairness.endpoints import create_endpoint, load_endpoints
from pytest_fairness.errors import UsageError

DATA: Any = documents.open_document(Path(__file__).with_name("wrong_entries.yaml")).data


@pytest.mark.parametrize("case", DATA["cases"], ids=range(len(DATA["cases"])))
def test_an_entry_that_makes_no_sense_is_refused_with_its_line(tmp_path: Path, case: dict[str, Any]) -> None:
    """Without repeating what may be a key."""
    base = DATA["bases"].get(case.get("base"), "")
    assert case.get("old", "") in base
    text = case.get("text", base.replace(case.get("old", ""), case.get("new", ""), 1) + case.get("add", ""))
    path = tmp_path / "endpoints.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        list(map(create_endpoint, load_endpoints(path).values()))
    message = str(caught.value)
    assert case["why"] in message
    assert "line" not in case or message.startswith(f"{path}:{case['line']}: ")
    for secret in ("sk-123456789012345678", "sk-proj-abcdefgh12345678", "secret@", "key=secret"):
        assert secret not in message
