"""Note whether a reply carries a disclaimer: no professional, only an AI, no advice, ask somebody
who is qualified.

A disclaimer goes with an answer or with a refusal, and is no refusal by itself. It is an outcome
like others: advice that is hedged for one group and plain for another is a difference in treatment.
English only.
"""

from __future__ import annotations

from pytest_fairness.scorers.text import Patterns, plain, settled

_READ = Patterns("disclaimer")


def has_disclaimer(text: str) -> bool:
    """Return whether *text* says that it is no professional advice, or what it cannot be relied on
    for.
    """
    return _READ.carries.search(settled(plain(text))) is not None
