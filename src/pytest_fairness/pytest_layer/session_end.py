"""The end of a session, and the last lines in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


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
