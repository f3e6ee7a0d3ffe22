"""Texts that were written to measure the readers on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_fairness import documents


def written(reader: str) -> Any:
    """The lists of texts for *reader*, each text with what is to be read off it where that is not
    the list's name.
    """
    return documents.open_document(Path(__file__).with_name(f"{reader}_texts.yaml")).data
