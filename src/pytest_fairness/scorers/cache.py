"""Scores kept by text, so that a reply is read once however many assertions ask for it."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from threading import Lock
from typing import TypeAlias

Score: TypeAlias = "float | int | bool | str | None"


class ScoreCache:
    """Scores by (scorer fingerprint, text), at most *size* of them, the oldest forgotten first.

    Only a digest of the text is kept: 16 bytes stand for a reply of any length, so a grid of long letters
    costs no memory. For scorers that are pure functions of the text.
    """

    def __init__(self, size: int = 200_000) -> None:
        self._size = size
        self._scores: dict[tuple[str, bytes], Score] = {}
        self._lock = Lock()

    def score(self, fingerprint: str, text: str, function: Callable[[str], Score]) -> Score:
        """The kept score, or ``function(text)``, kept from now on."""
        key = (fingerprint, blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())
        with self._lock:
            if key in self._scores:
                return self._scores[key]
        score = function(text)
        with self._lock:
            while len(self._scores) >= self._size:
                self._scores.pop(next(iter(self._scores)))
            self._scores[key] = score
        return score

    def __len__(self) -> int:
        return len(self._scores)
