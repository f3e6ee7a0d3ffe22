"""Names each line of ``frameworks.toml`` that nobody has read again for a year:
``python tools/stale_frameworks.py``.

Ends with status 1 where there is one. It goes by the calendar, so it is no test: a workflow runs it
every week.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping

from pytest_fairness.analysis.frameworks import Framework, frameworks, is_old


def stale(every: Mapping[str, Framework], today: datetime.date) -> list[str]:
    """A sentence for each rule and clause that is old *today*."""
    sentences = []
    for name, framework in every.items():
        read = [("the rule", framework.source, framework.checked_on)]
        read += [(line.clause, line.source, line.checked_on) for line in framework.lines]
        for what, source, checked_on in read:
            if is_old(checked_on, today):
                sentences.append(f"{name}, {what}: read on {checked_on}, read it again: {source}")
    return sentences


def main() -> int:
    """Write what is old, and how to mend it."""
    sentences = stale(frameworks(), datetime.datetime.now(datetime.UTC).date())
    for sentence in sentences:
        sys.stderr.write(f"{sentence}\n")
    if sentences:
        sys.stderr.write(
            "Where a source still says so, set checked_on to the day in "
            "src/pytest_fairness/analysis/frameworks.toml; else mend the line, or take it out.\n"
        )
    return int(bool(sentences))


if __name__ == "__main__":
    sys.exit(main())
