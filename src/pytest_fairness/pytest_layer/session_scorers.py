"""The scorers of a session: built in, of plugins and the project, and by the project's lexicon."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_fairness.documents import project_folder
from pytest_fairness.errors import FairnessError
from pytest_fairness.scorers import BUILT_IN, Scorer
from pytest_fairness.scorers.letter import letter_scorers
from pytest_fairness.scorers.lexicon import Lexicon


@dataclass(frozen=True, slots=True)
class SessionScorers:
    """Scorers by name; ``expired``: the acceptances of warnings that hold no longer."""

    by_name: Mapping[str, Any]
    expired: Sequence[str] = ()

    @classmethod
    def of(cls, config: pytest.Config) -> SessionScorers:
        """Return those of the project before the built-in ones, and its lexicon before ours. Raises
        pytest.UsageError.
        """
        scorers: dict[str, Any] = {}
        for offered in reversed(config.hook.pytest_fairness_scorers()):
            scorers |= {scorer.name: scorer for scorer in offered}
        by_lexicon, expired = _by_lexicon(config)
        for scorer in by_lexicon:
            if scorers[scorer.name] is BUILT_IN[scorer.name]:
                scorers[scorer.name] = scorer
        return cls(scorers, expired)


def _by_lexicon(config: pytest.Config) -> tuple[Sequence[Scorer], Sequence[str]]:
    """Return scorers by the lexicon of the project and by what it has accepted, where it has any,
    and what it accepts no longer.
    """
    folder = project_folder(config.rootpath)
    if folder is not None and not (folder / "lexicon").is_dir():
        folder = None
    accepted = config.rootpath / "accepted.yaml"
    if folder is None and not accepted.exists():
        return (), ()
    expired: list[str] = []
    try:
        lexicon = Lexicon.load(folder)
        if accepted.exists():
            today = datetime.datetime.now(datetime.UTC).date()
            lexicon, expired = lexicon.accepting(accepted, today)
        return letter_scorers(lexicon), expired
    except FairnessError as error:
        raise pytest.UsageError(str(error)) from None
