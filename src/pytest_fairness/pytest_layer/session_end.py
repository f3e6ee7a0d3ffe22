"""The end of a session, and the last lines in the terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_fairness.errors import InconclusiveWarning
from pytest_fairness.pytest_layer.report_texts import MESSAGE

#: So many failed tests show their tables, so many are listed, and so many warnings of undecided
#: findings, where the verdicts of a session stand by class and test.
_MOST_TABLES, _MOST_LISTED, _MOST_WARNINGS = 5, 20, 5
#: pytest's --tb and -r, where nobody has chosen any.
_USUAL = ("auto", "fE")


def fold(terminal: Any, option: Any) -> None:
    """Let *terminal* say once what would stand three times: of many failed tests by their findings
    neither tables nor names, and one warning for many of undecided findings.

    Tests that failed otherwise keep all that pytest shows of failures, and so does a session that
    was given ``--tb`` or ``-r`` as its *option*.
    """
    _fold_warnings(terminal.stats)
    failed = terminal.stats.get("failed", [])
    ended = [*failed, *terminal.stats.get("error", ())]
    chosen = (option.tbstyle, option.reportchars) != _USUAL
    if chosen or not all(hasattr(report, MESSAGE) for report in ended):
        return
    if len(failed) > _MOST_TABLES:
        option.tbstyle = "no"
    if len(failed) > _MOST_LISTED:
        terminal.reportchars = terminal.reportchars.replace("f", "")


def _fold_warnings(stats: Any) -> None:
    """Leave one warning for all of undecided findings, where there are many."""
    name = f"{InconclusiveWarning.__name__}: "
    undecided = [warning for warning in stats.get("warnings", ()) if name in warning.message]
    if len(undecided) <= _MOST_WARNINGS:
        return
    message = f"{name}{len(undecided)} findings are INCONCLUSIVE; each is in the report"
    folded = dataclasses.replace(undecided[0], message=message, nodeid=None, fslocation=None)
    others = [warning for warning in stats["warnings"] if name not in warning.message]
    stats["warnings"] = [*others, folded]


@dataclass(slots=True, kw_only=True)
class SessionEnd:
    """Outputs and troubles of a session's end, and its lines in the terminal.

    ``outputs``: where each output of the run is, once they are written. ``trouble``: why they could
    not be written. ``not_notified``: a line for each notifier that failed. ``annotations``: lines
    for the job of GitHub's that it runs in.
    """

    outputs: dict[str, Path] | None = None
    trouble: str | None = None
    interrupted: bool = False
    not_notified: Sequence[str] = ()
    annotations: Sequence[str] = field(default_factory=list)

    @property
    def says_something(self) -> bool:
        """Return whether there is anything to show."""
        return self.outputs is not None or self.trouble is not None

    def write(
        self, terminal: Any, summary: Sequence[str], orphans: Sequence[str], resume: str | None
    ) -> None:
        """Write the *summary*, the *orphans* among baselines, and which run to *resume*, if any."""
        terminal.section("fairness", sep="=")
        for line in summary:
            terminal.write_line(line)
        for line in orphans:
            terminal.write_line(line, yellow=True)
        if resume is not None:
            command = f"the same command with --fairness-resume {resume}"
            terminal.write_line(f"  to go on: {command}")
        if self.trouble is not None:
            terminal.write_line(f"fairness: the reports are not whole: {self.trouble}", red=True)
        for line in self.not_notified:
            terminal.write_line(line, yellow=True)
        for line in self.annotations:
            terminal.write_line(line)
