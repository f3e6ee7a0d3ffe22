"""Whether what was found was decided, by whom, and in time: from the project's own files alone."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from pytest_fairness.analysis.checks import checked, judge_checklist
from pytest_fairness.baselines import justifications, mitigations
from pytest_fairness.baselines.approval import APPROVER_VARIABLE, git
from pytest_fairness.baselines.history import Version, versions
from pytest_fairness.baselines.justifications import Justification
from pytest_fairness.baselines.mitigations import Mitigation
from pytest_fairness.documents import Text, open_document
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Finding, Reason, Verdict
from pytest_fairness.reports.sections import Columns, Entry, Section, table
from pytest_fairness.scorers.lexicon import AcceptedWarning
from pytest_fairness.suites.governance.past_results import (
    MOST_LISTED,
    PastRuns,
    id_of,
    listed_few,
    named_findings,
    words_of,
)
from pytest_fairness.words import count

if TYPE_CHECKING:
    from pytest_fairness.context import RunContext
    from pytest_fairness.reports.findings_json import RunResults

LAST = "last"
_Days = Annotated[int, msgspec.Meta(ge=1)]
#: As far as a trailer of a commit says that its author did not decide alone.
_REVIEWED = ("Reviewed-by", "Approved-by", "Acked-by", "Signed-off-by")
NO_RUN = "run the fairness tests first (pytest -m fairness), then this test again"


class OversightOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``governance.yaml`` may say under ``oversight``.

    ``run``: the run whose findings are judged, by id, or ``last`` for the newest whatever it
    tested; without it the newest, and nothing passes while alarms of earlier runs were not tested
    again. ``overdue_days``: after which a mitigation is overdue that has no ``due``. ``soon_days``:
    what expires so soon is listed. ``longest_days``: an expiry further away is none. ``change``:
    what a baseline depends on, as patterns of git, from the root on.
    """

    run: str = ""
    overdue_days: _Days = 90
    soon_days: _Days = 30
    longest_days: _Days = 731
    change: tuple[Text, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OversightRecord:
    """What the project's files say: its past runs, and what was decided of them by ``today``."""

    past: PastRuns
    options: OversightOptions
    root: Path
    baselines: Path
    endpoints: Path
    today: datetime.date
    justifications: tuple[Justification, ...] = ()
    mitigations: tuple[Mitigation, ...] = ()
    accepted: tuple[AcceptedWarning, ...] = ()

    @property
    def judged(self) -> RunResults | None:
        """The run whose findings are judged. Raises UsageError where the one that is named is not
        there.
        """
        wanted = self.options.run
        if wanted in ("", LAST):
            if self.past.judged:
                return self.past.judged[-1]
            return None
        runs = [run for run in self.past.judged if id_of(run) == wanted]
        if not runs:
            raise UsageError(
                f"governance.yaml: oversight: run: there is no run {wanted!r} that can be judged"
            )
        return runs[0]

    def left_out(self, verdict: Verdict) -> list[str]:
        """Alarms of earlier runs whose comparison the judged run did not make again, and newer runs
        that cannot be read; none where a run is named.
        """
        run = self.judged
        if run is None or self.options.run:
            return []
        latest = {
            number: (id_of(run), finding, nodeid)
            for run in self.past.judged
            for finding, nodeid, number in named_findings(run)
        }
        newer = [f"run {why}" for why in self.past.unreadable if why.partition(":")[0] > id_of(run)]
        return newer + [
            f"{words_of(finding, number)} of run {findings}"
            for number, (findings, finding, nodeid) in latest.items()
            if findings != id_of(run)
            and finding.verdict is verdict
            and not self.answered(finding, nodeid, number)
        ]

    def answered(self, finding: Finding, nodeid: str, number: str) -> bool:
        """Return whether a justification in force, or a mitigation, is about *finding*."""
        if finding.verdict is Verdict.FLAG and self.in_force(finding, nodeid):
            return True
        return any(entry.covers(finding, nodeid, number) for entry in self.mitigations)

    def in_force(self, finding: Finding, nodeid: str) -> bool:
        """Return whether a justification covers *finding* today: one of the file, or the one that
        its run has recorded.
        """
        recorded = finding.justification or {}
        until = str(recorded.get("expiry", ""))[:10]
        if recorded and (not until or datetime.date.fromisoformat(until) >= self.today):
            return True  # an approved regression has no end: the next approval takes its place
        return any(
            justification.covers(finding, nodeid, self.today)
            for justification in self.justifications
        )


def oversight_record(
    context: RunContext, past: PastRuns, options: OversightOptions
) -> OversightRecord:
    """Return what the files of this project say today. Raises UsageError, with the line, for one
    that cannot be read.
    """
    root = context.root
    accepted = context.root / "accepted.yaml"
    return OversightRecord(
        past=past,
        options=options,
        root=root,
        baselines=context.settings.baseline_dir,
        endpoints=context.settings.endpoints_file,
        today=datetime.datetime.now(datetime.UTC).date(),
        justifications=justifications.read_file(root / "justifications.yaml"),
        mitigations=mitigations.read_file(root / mitigations.NAME),
        accepted=open_document(accepted).convert(tuple[AcceptedWarning, ...])
        if accepted.exists()
        else (),
    )


class FollowUp(msgspec.Struct, frozen=True):
    """One thing that had to be decided: what it is, what became of it, and what that is worth."""

    what: str
    state: str
    verdict: Verdict


def _concluded(
    of: str,
    followed: Sequence[FollowUp],
    record: OversightRecord,
    *,
    fails: str,
    unknown: str,
    passes: str,
    notes: Sequence[str] = (),
    reason: Reason = Reason.UNRECORDED,
) -> Finding:
    """The finding on *followed*: its worst. *passes* is its sentence; *fails* and *unknown* follow
    how many are so.
    """
    verdict = judge_checklist(step.verdict for step in followed)
    worst = [
        f"{step.what}: {step.state}" if step.state else step.what
        for step in followed
        if step.verdict is verdict
    ]
    counted = (
        f"{len(worst)} {unknown if verdict is Verdict.INCONCLUSIVE else fails}: {listed_few(worst)}"
    )
    return _finding(
        of,
        verdict,
        passes if verdict is Verdict.PASS else counted,
        record,
        reason=reason if verdict is Verdict.INCONCLUSIVE else None,
        notes=(*notes, *(worst[3:MOST_LISTED] if verdict is not Verdict.PASS else ())),
        followed=followed,
    )


def _finding(
    of: str,
    verdict: Verdict,
    words: str,
    record: OversightRecord,
    *,
    reason: Reason | None = None,
    notes: Sequence[str] = (),
    followed: Sequence[FollowUp] = (),
) -> Finding:
    import pandas as pd

    run = record.judged
    findings = []
    if run is not None:
        findings = [finding for finding, _, _ in named_findings(run)]
    frame = pd.DataFrame(
        {
            name: [getattr(finding, name) for finding in findings]
            for name in ("simulated", "replayed")
        }
    )
    return checked(
        frame,
        assertion="oversight",
        verdict=verdict,
        words=words,
        reason=reason,
        outcome=of,
        notes=tuple(notes),
        details={
            "run": None if run is None else id_of(run),
            "followed_up": msgspec.to_builtins(tuple(followed)),
        },
    )


def _no_run(of: str, record: OversightRecord) -> Finding:
    """Return what is concluded where there is no run to judge."""
    why = ""
    if record.past.unreadable:
        why = f" ({listed_few(record.past.unreadable, 1)})"
    words = f"there is no past run with findings{why}: {NO_RUN}"
    return _finding(of, Verdict.INCONCLUSIVE, words, record, reason=Reason.N)


# ---------------------------------------------------------------- FLAGs and FAILs


def justified(record: OversightRecord) -> Finding:
    """Return whether each FLAG of the judged run has a justification in force."""
    run = record.judged
    if run is None:
        return _no_run("justifications", record)
    followed = []
    for finding, nodeid, number in named_findings(run):
        if finding.verdict is Verdict.FLAG:
            holds = record.in_force(finding, nodeid)
            expired = (
                any(
                    justification.is_about(finding, nodeid)
                    for justification in record.justifications
                )
                or finding.justification
            )
            if holds:
                state = "justified"
            elif expired:
                state = "its justification has expired"
            else:
                state = "nobody has justified it"
            followed.append(
                FollowUp(words_of(finding, number), state, Verdict.PASS if holds else Verdict.FAIL)
            )
    flags = len(followed)
    followed += [
        FollowUp(entry, "not tested again", Verdict.INCONCLUSIVE)
        for entry in record.left_out(Verdict.FLAG)
    ]
    has = f"run {id_of(run)} has {count(len(named_findings(run)), 'finding')}"
    return _concluded(
        "justifications",
        followed,
        record,
        fails=f"of {count(flags, 'FLAG')} of run {id_of(run)} without a justification in force",
        unknown=f"not settled: run {id_of(run)} leaves out what was flagged before and nobody has justified",
        passes=f"{has}, and {count(flags, 'FLAG')}, each justified"
        if flags
        else f"{has} and no FLAG",
        reason=Reason.INCOMPLETE,
    )


def mitigated(record: OversightRecord) -> Finding:
    """Return whether each FAIL of the judged run has a mitigation, none is overdue, and what is
    done was tested again.
    """
    run = record.judged
    if run is None:
        return _no_run("mitigations", record)
    followed = [
        FollowUp(
            words_of(finding, number), f"no entry of {mitigations.NAME} is about it", Verdict.FAIL
        )
        for finding, nodeid, number in named_findings(run)
        if finding.verdict is Verdict.FAIL and not record.answered(finding, nodeid, number)
    ]
    followed += [_follow_up(entry, record) for entry in record.mitigations]
    followed += [
        FollowUp(entry, "not tested again, and no mitigation is about it", Verdict.INCONCLUSIVE)
        for entry in record.left_out(Verdict.FAIL)
    ]
    fails = sum(finding.verdict is Verdict.FAIL for finding, _, _ in named_findings(run))
    entries = len(record.mitigations)
    return _concluded(
        "mitigations",
        followed,
        record,
        fails=f"not followed up, of {count(fails, 'FAIL')} of run {id_of(run)} and {count(entries, 'mitigation')}",
        unknown="of which nobody knows whether it is mended",
        passes=f"run {id_of(run)} has no FAIL without a mitigation ({count(fails, 'FAIL')}); of "
        f"{count(entries, 'mitigation')} none is overdue, and each that is done was tested again "
        "and passed",
        reason=Reason.INCOMPLETE,
    )


def _follow_up(entry: Mitigation, record: OversightRecord) -> FollowUp:
    """Return what became of *entry*, by the newest run from the day on which it was done that
    tested what it is about.
    """
    about = f"{entry.action} ({entry.owner}, {entry.date}, {entry.finding or entry.test})"
    tested: tuple[str, Verdict] | None = None
    for run in record.past.judged:
        covered = [
            finding.verdict
            for finding, nodeid, number in named_findings(run)
            if entry.covers(finding, nodeid, number)
        ]
        if covered and (
            entry.done is None or str(run.run["started"])[:10] >= entry.done.isoformat()
        ):
            tested = id_of(run), Verdict.worst(covered)
    if tested is not None and tested[1] is Verdict.PASS:
        return FollowUp(about, f"passes in run {tested[0]}", Verdict.PASS)
    if entry.done is not None and tested is not None:
        return FollowUp(
            about,
            f"done {entry.done}, and the re-test in run {tested[0]} is {tested[1]}",
            Verdict.FAIL,
        )
    due = entry.due or entry.date + datetime.timedelta(days=record.options.overdue_days)
    if entry.done is not None:
        late = (record.today - entry.done).days > record.options.overdue_days
        return FollowUp(
            about,
            f"done {entry.done}, not tested since",
            Verdict.FAIL if late else Verdict.INCONCLUSIVE,
        )
    if due < record.today:
        return FollowUp(about, f"overdue since {due}", Verdict.FAIL)
    return FollowUp(about, f"open until {due}", Verdict.PASS)


# ---------------------------------------------------------------- approvals


class GitPerson(msgspec.Struct, frozen=True):
    """A name as git has it, with the address; either may be empty."""

    name: str
    address: str = ""

    @classmethod
    def of(cls, text: str) -> GitPerson:
        name, _, address = text.partition("<")
        return cls(" ".join(name.split()).casefold(), address.partition(">")[0].strip().casefold())

    def is_(self, other: GitPerson) -> bool:
        """Return whether both are one person, as far as names and addresses tell."""
        same_address = bool(self.address) and self.address == other.address
        return same_address or (bool(self.name) and self.name == other.name)


def approved(record: OversightRecord) -> Finding:
    """Return whether somebody else approved each baseline than whoever changed what its scores
    depend on.
    """
    approvals = []
    for path in sorted(record.baselines.glob("*.json")):
        approvals += [FollowUp(path.name, *_approval(path, record))]
    if not approvals:
        words = (
            f"{record.baselines.name}/ holds no approved baseline, so that nobody has approved "
            "anything: approve one "
            "(assert_baseline with --fairness-approve)"
        )
        return _finding("approvals", Verdict.INCONCLUSIVE, words, record, reason=Reason.UNRECORDED)
    return _concluded(
        "approvals",
        approvals,
        record,
        fails=f"of {count(len(approvals), 'baseline')} not approved by somebody else than the author of the change",
        unknown=f"of {count(len(approvals), 'baseline')} of which nothing shows who approved whose change",
        passes=f"{count(len(approvals), 'baseline')}, each approved by somebody else than the author of the change",
        notes=("names are as git has them: everybody can set their own, and only a protected branch or a signature "
               "proves one",),
    )  # fmt: skip


def _approval(path: Path, record: OversightRecord) -> tuple[str, Verdict]:
    """Return what the files and git show of the approval of the baseline at *path*."""
    history, why = versions(path, record.root)
    newest = None
    if history:
        newest = history[0]
    if newest is None or newest.document is None or newest.document.approval is None:
        return f"cannot be read: {newest.why if newest else why}", Verdict.FAIL
    approval = newest.document.approval
    by = approval.approved_by
    source = approval.approved_by_source
    if why or not newest.commit:
        return (
            f"approved by {by}; {why or 'as it is now it is not committed'}",
            Verdict.INCONCLUSIVE,
        )
    approver = GitPerson.of(by)
    authors = _authors(newest, history[1:], record)
    if [author for author in authors if approver.is_(author)]:
        return f"{by} approved a change of their own", Verdict.FAIL
    if not authors:
        return (
            f"approved by {by}; git does not show who changed what was approved",
            Verdict.INCONCLUSIVE,
        )
    if approval.dirty and not _in_commit(newest, record):
        return f"approved by {by} with changes that were never committed", Verdict.INCONCLUSIVE
    named = ", ".join(sorted({author.name or author.address for author in authors}))
    if source == "git" or any(approver.is_(witness) for witness in _witnesses(newest, record)):
        return f"approved by {by}, changed by {named}", Verdict.PASS
    told = "the login"
    if source == APPROVER_VARIABLE:
        told = f"the variable {APPROVER_VARIABLE}"
    return (
        f"{told} alone says that {by} approved the change of {named}, and no commit bears it out",
        (Verdict.INCONCLUSIVE),
    )


def _paths(version: Version, record: OversightRecord) -> list[str]:
    """Return what the scores of a baseline depend on, as patterns of git: the folder of its test,
    prompts, who is asked.
    """
    if record.options.change:
        return list(record.options.change)
    module = Path(version.document.test_id.partition("::")[0] if version.document else "")
    if len(module.parts) > 1:
        paths = [f"{module.parent.as_posix()}/"]
    else:
        paths = [module.as_posix(), "conftest.py"]
    if not (record.root / module).exists():
        paths = []
    endpoints = record.endpoints
    if endpoints.is_relative_to(record.root):
        paths.append(endpoints.relative_to(record.root).as_posix())
    decided = (
        "justifications",
        "mitigations",
        "accepted",
        "governance",
    )  # of the scores, not what they come from
    return [
        *paths,
        "personas",
        ":(glob)*.txt",
        ":(glob)*.yaml",
        *(f":(exclude){path}.yaml" for path in decided),
    ]


def _authors(
    version: Version, older: Sequence[Version], record: OversightRecord
) -> list[GitPerson]:
    """Return who changed what *version* depends on since the approval before it; of a first one, or
    where nothing changed since, who changed it last.
    """
    approval = version.document.approval if version.document else None
    before = next(
        (
            version.document.approval.git_commit
            for version in older
            if version.document and version.document.approval
        ),
        None,
    )
    last = (
        version.commit
        if approval is not None and approval.dirty
        else approval and approval.git_commit
    )
    if not last:
        return []
    paths = _paths(version, record)
    since = []
    if before:
        since = _people(record, f"{before}..{last}", paths)
    return since or _people(record, last, paths, "-1")


def _in_commit(version: Version, record: OversightRecord) -> bool:
    """Return whether the commit of the baseline holds a change of what it depends on, too."""
    paths = _paths(version, record)
    return bool(git(record.root, "log", "-1", "--format=%H", f"{version.commit}^!", "--", *paths))


def _people(
    record: OversightRecord, commits: str, paths: Sequence[str], *more: str
) -> list[GitPerson]:
    form = "--format=%aN <%aE>%n%(trailers:key=Co-authored-by,valueonly)"
    text = git(record.root, "log", "--no-merges", *more, form, commits, "--", *paths) or ""
    return [GitPerson.of(line) for line in text.splitlines() if line.strip()]


def _witnesses(version: Version, record: OversightRecord) -> list[GitPerson]:
    """Return who stands in the commit of the baseline: author, committer, and who reviewed it."""
    trailers = "".join(f"%n%(trailers:key={key},valueonly)" for key in _REVIEWED)
    text = (
        git(record.root, "log", "-1", f"--format=%aN <%aE>%n%cN <%cE>{trailers}", version.commit)
        or ""
    )
    return [GitPerson.of(line) for line in text.splitlines() if line.strip()]


# ---------------------------------------------------------------- expiries


def unexpired(record: OversightRecord) -> Finding:
    """Return whether what excuses a finding or a warning has an end, and has not passed it."""
    excuses = list(_excuses(record))
    if not excuses and record.judged is None:
        return _no_run("expiries", record)
    expired = []
    soon = []
    for what, since, until in excuses:
        days = (until - record.today).days
        if days < 0:
            expired.append(FollowUp(what, f"expired on {until}", Verdict.FAIL))
        elif since is not None and (until - since).days > record.options.longest_days:
            state = (
                f"ends on {until}, over {record.options.longest_days} days after {since}, which is "
                "no end"
            )
            expired.append(FollowUp(what, state, Verdict.FLAG))
        else:
            expired.append(FollowUp(what, f"until {until}", Verdict.PASS))
            if days <= record.options.soon_days:
                soon += [f"{what} expires on {until}, in {days} days"]
    return _concluded(
        "expiries",
        expired,
        record,
        fails=f"of {len(expired)} justifications and accepted warnings that expired, or have no end",
        unknown="",
        passes=f"none of {len(expired)} justifications and accepted warnings has expired"
        + (f"; {len(soon)} expire within {record.options.soon_days} days" if soon else "")
        if expired
        else "nothing is justified or accepted, so that nothing can expire",
        notes=soon[:MOST_LISTED],
    )


def _excuses(record: OversightRecord) -> Iterator[tuple[str, datetime.date | None, datetime.date]]:
    """Yield what each excuse is, since when it holds, where that is said, and until when."""
    for justification in record.justifications:
        yield (
            f"justification of {justification.test} ({justification.approver})",
            justification.date,
            justification.expiry,
        )
    for entry in record.accepted:
        since = record.today  # it says only how long it holds
        yield f"accepted warning {entry.term or entry.phrase} ({entry.who})", since, entry.until
    recorded = []
    if record.judged is not None:
        recorded = named_findings(record.judged)
    excuses = {
        (justification.reason, justification.approver, justification.expiry)
        for justification in record.justifications
    }
    for finding, nodeid, _ in recorded:
        given: Mapping[str, Any] = finding.justification or {}
        if expiry := str(given.get("expiry", ""))[:10]:
            until = datetime.date.fromisoformat(expiry)
            if (given.get("reason"), given.get("approver"), until) not in excuses:
                since = datetime.date.fromisoformat(str(given["date"])[:10])
                yield f"marker of {nodeid} ({given.get('approver')})", since, until


# ---------------------------------------------------------------- as the report shows it


def oversight_section(finding: Finding) -> Section:
    """Return what was followed up, a row each, the worst first."""
    rows = msgspec.convert(finding.details["followed_up"], tuple[FollowUp, ...])
    columns: Columns = {
        "what": lambda row: row.what,
        "what became of it": lambda row: row.state,
        "verdict": lambda row: Entry(verdict=row.verdict),
    }
    ordered = sorted(rows, key=lambda row: -row.verdict.severity)
    caption = f"Each of {len(rows)}, the worst first"
    parts = (table(caption, ordered, columns, words=("what became of it",)),) if rows else ()
    return Section(
        id=f"oversight-{finding.outcome}", heading=f"Oversight: {finding.outcome}", parts=parts
    )
