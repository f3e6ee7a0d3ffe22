"""The past runs of the project, as the tests about its processes read them, and what these
conclude.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_fairness import Finding, Reason, Verdict, conclude
from pytest_fairness.analysis.checks import checked, judge_counts, unchecked
from pytest_fairness.asserts import unusable
from pytest_fairness.model import ALARMS
from pytest_fairness.reports import RunResults
from pytest_fairness.reports.trend import read_runs
from pytest_fairness.running_test import current_test
from pytest_fairness.runs.folder import has_begun, run_folders
from pytest_fairness.words import count, first_few

if TYPE_CHECKING:
    from pytest_fairness import RunContext

#: What judges the past is not judged by it again.
PROCESSES = ("iso42001-oversight", "iso42001-monitoring", "iso42001-thirdparty")
#: The item that says that there are none yet, for all that judge them.
PAST_RUNS = "PAST-RUNS-001"
#: Of anything that a sentence or a note lists.
MOST_LISTED = 10


@dataclass(frozen=True, slots=True)
class PastRuns:
    """All runs that can be read, the oldest first, and why others cannot be: folder and reason."""

    runs: tuple[RunResults, ...]
    unreadable: tuple[str, ...] = ()

    @property
    def judged(self) -> tuple[RunResults, ...]:
        """Those that have findings of more than these processes."""
        return tuple(run for run in self.runs if named_findings(run))

    @property
    def asked(self) -> tuple[RunResults, ...]:
        """Those that asked: a replay has the replies of another."""
        return tuple(run for run in self.runs if not run.replayed)

    def since(self, run: str) -> PastRuns:
        """Those from the run *run* on; ids grow with time."""
        return replace(self, runs=tuple(later for later in self.runs if id_of(later) >= run))


def past_runs(context: RunContext) -> PastRuns:
    """All runs of the project but the one that is going on."""
    begun = []
    later = []
    for folder in run_folders(context.settings.run_dir):
        if folder.name == context.store.directory.name:
            continue
        if has_begun(folder):
            begun.append(folder)
        else:
            later.append(f"{folder.name}: it is dated later than now")
    read = read_runs(begun)
    return PastRuns(read.runs, (*read.unreadable, *read.left_out, *later))


def id_of(run: RunResults) -> str:
    return str(run.run["id"])


def named_findings(run: RunResults) -> list[tuple[Finding, str, str]]:
    """Each finding of *run* that is no process's, with its test and its id."""
    return [named for named in run.named if named[0].test_module not in PROCESSES]


def runs_there(past: PastRuns, least_runs: int) -> Finding:
    """Return whether there are runs by which the processes can be judged: with findings, and such
    as asked. *least_runs*: those that a chart takes.
    """
    import pandas as pd

    judged, asked = len(past.judged), len(past.asked)
    frame = pd.DataFrame(
        [(run.run.get("simulated"), run.replayed) for run in past.runs],
        columns=["simulated", "replayed"],
    )
    has = f"{count(judged, 'past run')} with findings, {count(asked, 'run')} that asked"
    if judged and asked:
        return checked(
            frame,
            assertion="past_runs",
            verdict=judge_counts([judged, asked], at_least=1),
            words=f"{has}; charts of drift take {least_runs}",
            outcome="past runs",
        )
    why = ""
    if past.unreadable:
        why = f" ({first_few(past.unreadable, 1)})"
    return unchecked(
        frame,
        assertion="past_runs",
        reason=Reason.N,
        words=(
            f"{has}{why}, so that oversight (OVER), provider and model (THRD) and drift (MON) cannot "
            "be judged yet, and their tests are skipped: run the fairness tests (pytest -m fairness). "
            "The session after a run judges oversight, provider and model; drift can be "
            f"judged after {least_runs} runs with the same names and templates"
        ),
        outcome="past runs",
    )


def words_of(finding: Finding, number: str = "") -> str:
    """``sentiment by race_ethnicity, gpt-4o (f-1234567890)``."""
    words = finding.outcome or finding.assertion
    if finding.protected_class:
        words += f" by {finding.protected_class}"
    if finding.model_endpoint:
        words += f", {finding.model_endpoint}"
    if number:
        words += f" ({number})"
    return words


def conclude_each(findings: Iterable[Finding]) -> None:
    """Hand all *findings* to the running test, each FLAG with its own justification, and do what
    the worst asks for: a FLAG that is justified hides no other.
    """
    __tracebackhide__ = True
    test = current_test()
    judged = []
    for finding in findings:
        justification = finding.justification
        if test is not None and finding.verdict is Verdict.FLAG and justification is None:
            justification = test.justification(finding)
        judged.append(replace(finding, justification=justification))
    judged.sort(key=_urgency)
    if test is not None:
        for finding in judged[:-1]:
            test.emit(finding)
    if judged:
        conclude(judged[-1])


def _urgency(finding: Finding) -> int:
    """The more, the more it has to be concluded."""
    if finding.verdict in ALARMS:
        if finding.justification:
            return 2
        return 3 + finding.verdict.severity
    if finding.verdict is Verdict.PASS:
        return 0
    if unusable(finding):
        return 3
    return 1
