"""Strategies: ways to ask again, without a system prompt, where a reply was refused or cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_fairness.design.slugs import is_slug
from pytest_fairness.design.sources import entries
from pytest_fairness.documents import Text
from pytest_fairness.errors import InvalidEntry, UsageError, did_you_mean, listed, refuse_twice

DIRECT = "direct"
_REQUEST, _KEY = "{request}", "{key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One way to ask: ``turns`` of one conversation, with ``{request}`` where the test's prompt belongs.

    Raises UsageError for a name that is no slug, and for turns in which ``{request}`` does not stand exactly once.
    """

    name: str
    turns: tuple[Text, ...]
    description: str = ""
    use_when: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "turns", tuple(self.turns))
        why = None
        if not is_slug(self.name) or self.name in (DIRECT, "none"):
            why = "use the characters a-z 0-9 _ . -, and neither 'direct' nor 'none'"
        elif not self.turns or not all(isinstance(turn, str) and turn.strip() for turn in self.turns):
            why = "turns is a list of one or more texts"
        elif sum(turn.count(_REQUEST) for turn in self.turns) != 1:
            why = f"{_REQUEST} stands exactly once, where the test's prompt belongs"
        if why is not None:
            raise InvalidEntry(f"strategy {self.name!r}: {why}")

    def fill(self, request: str, key: str) -> tuple[str, ...]:
        """The turns for one prompt. What *request* holds is never read for slots."""
        return tuple(request.join(part.replace(_KEY, key) for part in turn.split(_REQUEST)) for turn in self.turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Strategies in the order in which they are tried. ``scorer`` says whether a reply can be used, beside refusals."""

    strategies: tuple[Strategy, ...]
    scorer: Any = None

    def rungs(self, prompt: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Names and turns for one prompt, the plain request first."""
        key = self.scorer if isinstance(self.scorer, str) else "answer"
        return ((DIRECT, (prompt,)), *((each.name, each.fill(prompt, key)) for each in self.strategies))


def load_strategies(folder: Path | None = None) -> dict[str, Strategy]:
    """The shipped strategies by name, extended or replaced by the user's ``personas`` *folder*. Raises UsageError."""
    return entries("strategies.yaml", folder, Strategy)


def ladder_of(strategies: object, scorer: object = None, folder: Path | None = None) -> Ladder | None:
    """The ladder of ``strategies=``: ``"all"``, a list of names and :class:`Strategy`, or None for no escalation.

    Raises UsageError for an unknown name, a strategy that stands twice, and a *scorer* without strategies.
    """
    if strategies is None and scorer is None:
        return None
    if strategies is None:
        raise UsageError("scorer= says which replies escalate, so it needs strategies=, for example strategies='all'")
    known = load_strategies(folder)
    given = list(known) if strategies == "all" else strategies
    given = [given] if isinstance(given, (str, Strategy)) else given
    if not isinstance(given, Sequence) or not given:
        raise UsageError("strategies: give 'all', or a list of names")
    chosen = []
    for item in given:
        strategy = known.get(item) if isinstance(item, str) else item
        if not isinstance(strategy, Strategy):
            hint = did_you_mean(str(item), known)
            raise UsageError(f"strategies: there is no strategy {item!r} (there are: {listed(known)}){hint}")
        chosen.append(strategy)
    refuse_twice("strategies:", (each.name for each in chosen))
    return Ladder(strategies=tuple(chosen), scorer=scorer)
