"""Baselines that no test claims any more: reported, never deleted. Standard library only.

Whether a file is unused can only be told from a complete run: a selected (``-k``, a path), failed or
interrupted one leaves baselines unread that the next run needs. And a baseline is evidence: removing one is a
person's decision, made with ``git rm``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pytest_fairness.baselines.document import BaselineDocument
from pytest_fairness.baselines.errors import BaselineError
from pytest_fairness.baselines.folder import BaselineFolder
from pytest_fairness.baselines.slugs import baseline_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A file in the folder of baselines that nothing claims; ``test_id`` is ``None`` if it cannot be read."""

    name: str
    test_id: str | None
    score: str | None
    why: str


def find_orphans(
    folder: BaselineFolder, *, collected: Collection[str], finished: Collection[str], used: Collection[str]
) -> tuple[Orphan, ...]:
    """The baselines that no collected test claims, in order of their names.

    *collected* and *finished* are test ids, of all tests found and of those that ran to their end; *used* are
    the file names that :meth:`BaselineStore.check` looked for. A test that finished without asking for a file
    of its own no longer claims it; one that did not run keeps what it has. Call this only for a run that
    collected everything.
    """
    found = []
    for name in folder.names():
        if name in used:
            continue
        try:
            document = BaselineDocument.from_bytes(folder.read(name) or b"", where=name)
        except BaselineError as error:
            found.append(Orphan(name=name, test_id=None, score=None, why=str(error)))
            continue
        test_id, score = document.test_id, document.score
        if name != baseline_name(test_id, score):
            why = "the file was renamed: it is not where its own test and score would be looked for"
        elif test_id not in collected:
            why = "its test is gone or renamed"
        elif test_id in finished:
            why = f"its test no longer asks for the score {score!r}"
        else:
            continue
        found.append(Orphan(name=name, test_id=test_id, score=score, why=why))
    return tuple(found)
