"""Strategies: ways to ask again, without a system prompt, where a reply was refused or cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_fairness.design.resources import layers
from pytest_fairness.design.slugs import is_slug
from pytest_fairness.documents import Plain, load_path
from pytest_fairness.errors import UsageError, did_you_mean, listed

DIRECT = "direct"
_REQUEST, _KEY = "{request}", "{key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One way to ask: ``turns`` of one conversation, with ``{request}`` where the test's prompt belongs.

    Raises UsageError for a name that is no slug, and for turns in which ``{request}`` does not stand exactly once.
    """

    name: str
    turns: tuple[str, ...]
    description: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "turns", tuple(self.turns))
        if not is_slug(self.name) or self.name in (DIRECT, "none"):
            raise UsageError(
                f"strategy {self.name!r}: use the characters a-z 0-9 _ . -, and neither 'direct' nor 'none'"
            )
        if not self.turns or not all(isinstance(turn, str) and turn.strip() for turn in self.turns):
            raise UsageError(f"strategy {self.name!r}: turns is a list of one or more texts")
        if sum(turn.count(_REQUEST) for turn in self.turns) != 1:
            raise UsageError(f"strategy {self.name!r}: {_REQUEST} stands exactly once, where the test's prompt belongs")

    def fill(self, request: str, key: str) -> tuple[str, ...]:
        """The turns for one prompt. What *request* holds is never read for slots."""
        filled = []
        for turn in self.turns:
            before, found, after = turn.partition(_REQUEST)
            parts = [before.replace(_KEY, key), after.replace(_KEY, key)]
            filled.append(request.join(parts) if found else parts[0])
        return tuple(filled)


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
    found: dict[str, Strategy] = {}
    for path in layers("strategies.yaml", folder):
        document = load_path(path)
        if not isinstance(document, dict):
            raise UsageError(f"{path}: expected a mapping from the names of strategies to their turns")
        found |= {name: _strategy(name, body, f"{path}: {name}") for name, body in document.items()}
    return found


def _strategy(name: str, body: Plain, where: str) -> Strategy:
    if not isinstance(body, dict) or not isinstance(body.get("turns"), list):
        raise UsageError(f"{where}: expected turns, a list of texts, and the source")
    unknown = sorted(body.keys() - {"turns", "description", "use_when", "source"})
    if unknown:
        raise UsageError(f"{where}: unknown key {unknown[0]!r} (known: description, source, turns, use_when)")
    if not isinstance(body.get("source"), str):
        raise UsageError(f"{where}: source is missing: say where the strategy comes from")
    turns = body["turns"]
    texts = [turn for turn in turns if isinstance(turn, str)] if isinstance(turns, list) else []
    if not isinstance(turns, list) or len(texts) != len(turns):
        raise UsageError(f"{where}: a turn is text; put it in quotes")
    return Strategy(
        name=name, turns=tuple(texts), description=str(body.get("description", "")), source=str(body["source"])
    )


def ladder_of(strategies: object, scorer: object = None, folder: Path | None = None) -> Ladder | None:
    """The ladder of ``strategies=``: ``"all"``, a list of names and :class:`Strategy`, or None for no escalation.

    Raises UsageError for an unknown name, a strategy that stands twice, and a *scorer* without strategies.
    """
    if strategies is None:
        if scorer is not None:
            raise UsageError(
                "scorer= says which replies escalate, so it needs strategies=, for example strategies='all'"
            )
        return None
    known = load_strategies(folder)
    if strategies == "all":
        return Ladder(strategies=tuple(known.values()), scorer=scorer)
    given = [strategies] if isinstance(strategies, (str, Strategy)) else strategies
    if not isinstance(given, Sequence) or not given:
        raise UsageError("strategies: give 'all', or a list of names")
    chosen = []
    for item in given:
        if isinstance(item, str) and item in known:
            chosen.append(known[item])
        elif isinstance(item, Strategy):
            chosen.append(item)
        else:
            raise UsageError(
                f"strategies: there is no strategy {item!r} (there are: {listed(known)})"
                f"{did_you_mean(item, known) if isinstance(item, str) else ''}"
            )
    names = [each.name for each in chosen]
    if len(set(names)) != len(names):
        raise UsageError("strategies: one stands twice; keep one")
    return Ladder(strategies=tuple(chosen), scorer=scorer)
