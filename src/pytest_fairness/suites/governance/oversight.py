"""Decisions about findings, by whom, and whether in time: from the project's own files alone."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from pytest_fairness import Finding, Reason, UsageError, Verdict
from pytest_fairness.analysis.checklist import RecordState, Step, judge_checklist
from pytest_fairness.analysis.checks import checked, unchecked
from pytest_fairness.baselines import justifications, mitigations
from pytest_fairness.baselines.approval import APPROVER_VARIABLE, Approval, git
from pytest_fairness.baselines.history import Version, versions
from pytest_fairness.baselines.justifications import Justification
from pytest_fairness.baselines.mitigations import Mitigation
from pytest_fairness.model import JSON
from pytest_fairness.reports import Columns, Entry, Part, Section, table
from pytest_fairness.scorers.lexicon import AcceptedWarning
from pytest_fairness.suites.authoring import Text, open_document
from pytest_fairness.suites.governance.past_results import (
    MOST_LISTED,
    PastRuns,
    id_of,
    named_findings,
    words_of,
)
from pytest_fairness.words import count, first_few

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness import RunContext
    from pytest_fairness.reports import RunResults

LAST = "last"
_Days = Annotated[int, msgspec.Meta(ge=1)]
#: As far as a trailer of a commit says that its author did not decide alone.
_REVIEWED = ("Reviewed-by", "Approved-by", "Acked-by", "Signed-off-by")
NO_RUN = "run the fairness tests first (pytest -m fairness), then this test again"


class OversightOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of ``governance.yaml`` under ``oversight``.

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
    """The record in the project's files: past runs, and what was decided of them by ``today``."""

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

    def left_out(self, is_alarm: Callable[[Finding], bool]) -> list[str]:
        """Alarms of earlier runs whose comparison the judged run did not make again, and newer runs
        that cannot be read; none where a run is named.
        """
        judged = self.judged
        if judged is None or self.options.run:
            return []
        latest: dict[str, tuple[str, Finding, str]] = {}
        for run in self.past.judged:
            for finding, nodeid, number in named_findings(run):
                latest[number] = id_of(run), finding, nodeid
        left = []
        for why in self.past.unreadable:
            if why.partition(":")[0] > id_of(judged):
                left.append(f"run {why}")
        for number, (run_id, finding, nodeid) in latest.items():
            if run_id == id_of(judged) or not is_alarm(finding):
                continue
            if not self.answered(finding, nodeid, number):
                left.append(f"{words_of(finding, number)} of run {run_id}")
        return left

    def newest_test(self, entry: Mitigation) -> tuple[str, Verdict] | None:
        """The newest run, from the day on which the action of *entry* was done, that tested what it
        is about, and its worst verdict on that.
        """
        newest = None
        for run in self.past.judged:
            if entry.done is not None and str(run.run["started"])[:10] < entry.done.isoformat():
                continue
            verdicts = []
            for finding, nodeid, number in named_findings(run):
                if entry.covers(finding, nodeid, number):
                    verdicts.append(finding.verdict)
            if verdicts:
                newest = id_of(run), Verdict.worst(verdicts)
        return newest

    def answered(self, finding: Finding, nodeid: str, number: str) -> bool:
        """Return whether a justification in force, or a mitigation, is about *finding*."""
        if is_flag(finding) and self.in_force(finding, nodeid):
            return True
        return any(entry.covers(finding, nodeid, number) for entry in self.mitigations)

    def in_force(self, finding: Finding, nodeid: str) -> bool:
        """Return whether a justification covers *finding* today: one of the file, or the one that
        its run has recorded.
        """
        recorded = finding.justification or {}
        until = str(recorded.get("expiry", ""))[:10]
        # An approved regression has no end: the next approval takes its place.
        if recorded and (not until or datetime.date.fromisoformat(until) >= self.today):
            return True
        return any(
            justification.covers(finding, nodeid, self.today)
            for justification in self.justifications
        )

    def was_justified(self, finding: Finding, nodeid: str) -> bool:
        """Return whether a justification was about *finding*, whether in force or not."""
        entries = self.justifications
        return bool(finding.justification) or any(
            entry.is_about(finding, nodeid) for entry in entries
        )


def is_flag(finding: Finding) -> bool:
    return finding.verdict is Verdict.FLAG


def is_fail(finding: Finding) -> bool:
    return finding.verdict is Verdict.FAIL


def oversight_record(
    context: RunContext, past: PastRuns, options: OversightOptions
) -> OversightRecord:
    """Return what the files of this project say today. Raises UsageError, with the line, for one
    that cannot be read.
    """
    root = context.root
    path = root / "accepted.yaml"
    accepted: tuple[AcceptedWarning, ...] = ()
    if path.exists():
        accepted = open_document(path).convert(tuple[AcceptedWarning, ...])
    return OversightRecord(
        past=past,
        options=options,
        root=root,
        baselines=context.settings.baseline_dir,
        endpoints=context.settings.endpoints_file,
        today=datetime.datetime.now(datetime.UTC).date(),
        justifications=justifications.read_file(root / "justifications.yaml"),
        mitigations=mitigations.read_file(root / mitigations.NAME),
        accepted=accepted,
    )


@dataclass(frozen=True, kw_only=True)
class Phrases:
    """The sentences on a checklist: *fails* and *unknown* follow how many steps are so, *passes*
    stands by itself.
    """

    fails: str
    unknown: str
    passes: str


def _concluded(
    of: str,
    steps: Sequence[Step],
    record: OversightRecord,
    phrases: Phrases,
    notes: Sequence[str] = (),
) -> Finding:
    """The finding on *steps*, as :func:`~pytest_fairness.analysis.checklist.judge_checklist` judges
    them.
    """
    decision = judge_checklist(steps)
    worst = [step.words for step in steps if step.verdict is decision.verdict]
    if decision.verdict is Verdict.PASS:
        words = phrases.passes
    else:
        phrase = phrases.fails
        if decision.verdict is Verdict.INCONCLUSIVE:
            phrase = phrases.unknown
        words = f"{len(worst)} {phrase}: {first_few(worst)}"
        notes = [*notes, *worst[3:MOST_LISTED]]
    return checked(
        _origin(record),
        assertion="oversight",
        verdict=decision.verdict,
        words=words,
        reason=decision.reason,
        outcome=of,
        notes=tuple(notes),
        details=_details(record, steps),
    )


def _undecided(of: str, record: OversightRecord, reason: Reason, words: str) -> Finding:
    """The finding where there is nothing to follow up."""
    return unchecked(
        _origin(record),
        assertion="oversight",
        reason=reason,
        words=words,
        outcome=of,
        details=_details(record, ()),
    )


def _origin(record: OversightRecord) -> pd.DataFrame:
    """Of each finding of the judged run whether it is simulated or replayed."""
    import pandas as pd

    run = record.judged
    rows = []
    if run is not None:
        rows = [(finding.simulated, finding.replayed) for finding, _, _ in named_findings(run)]
    return pd.DataFrame(rows, columns=["simulated", "replayed"])


def _details(record: OversightRecord, steps: Sequence[Step]) -> dict[str, JSON]:
    """The run that is judged, and each step with what became of it."""
    run_id = None
    if record.judged is not None:
        run_id = id_of(record.judged)
    rows: list[JSON] = [
        {"what": step.what, "state": step.remark, "verdict": step.verdict.value} for step in steps
    ]
    return {"run": run_id, "followed_up": rows}


def _no_run(of: str, record: OversightRecord) -> Finding:
    """Return what is concluded where there is no run to judge."""
    why = ""
    if record.past.unreadable:
        why = f" ({first_few(record.past.unreadable, 1)})"
    words = f"there is no past run with findings{why}: {NO_RUN}"
    return _undecided(of, record, Reason.N, words)


# ---------------------------------------------------------------- FLAGs and FAILs


def justified(record: OversightRecord) -> Finding:
    """Return whether each FLAG of the judged run has a justification in force."""
    run = record.judged
    if run is None:
        return _no_run("justifications", record)
    steps = []
    for finding, nodeid, number in named_findings(run):
        if is_flag(finding):
            steps.append(Step(words_of(finding, number), *_justification(finding, nodeid, record)))
    flags = count(len(steps), "FLAG")
    has = f"run {id_of(run)} has {count(len(named_findings(run)), 'finding')}"
    passes = f"{has} and no FLAG"
    if steps:
        passes = f"{has}, and {flags}, each justified"
    for left in record.left_out(is_flag):
        steps.append(Step(left, "not tested again", RecordState.NOT_TESTED))
    phrases = Phrases(
        fails=f"of {flags} of run {id_of(run)} without a justification in force",
        unknown=(
            f"not settled: run {id_of(run)} leaves out what was flagged before and nobody has "
            "justified"
        ),
        passes=passes,
    )
    return _concluded("justifications", steps, record, phrases)


def _justification(
    finding: Finding, nodeid: str, record: OversightRecord
) -> tuple[str, RecordState]:
    """Return what became of the FLAG *finding*, in words and as its state."""
    if record.in_force(finding, nodeid):
        return "justified", RecordState.JUSTIFIED
    if record.was_justified(finding, nodeid):
        return "its justification has expired", RecordState.UNJUSTIFIED
    return "nobody has justified it", RecordState.UNJUSTIFIED


def mitigated(record: OversightRecord) -> Finding:
    """Return whether each FAIL of the judged run has a mitigation, none is overdue, and what is
    done was tested again.
    """
    run = record.judged
    if run is None:
        return _no_run("mitigations", record)
    unanswered = f"no entry of {mitigations.NAME} is about it"
    steps = []
    fails = 0
    for finding, nodeid, number in named_findings(run):
        if is_fail(finding):
            fails += 1
            if not record.answered(finding, nodeid, number):
                steps.append(Step(words_of(finding, number), unanswered, RecordState.UNANSWERED))
    for entry in record.mitigations:
        about = f"{entry.action} ({entry.owner}, {entry.date}, {entry.finding or entry.test})"
        steps.append(Step(about, *_follow_up(entry, record)))
    for left in record.left_out(is_fail):
        remark = "not tested again, and no mitigation is about it"
        steps.append(Step(left, remark, RecordState.NOT_TESTED))
    failed = count(fails, "FAIL")
    entries = count(len(record.mitigations), "mitigation")
    phrases = Phrases(
        fails=f"not followed up, of {failed} of run {id_of(run)} and {entries}",
        unknown="of which nobody knows whether it is mended",
        passes=(
            f"run {id_of(run)} has no FAIL without a mitigation ({failed}); of {entries} none is "
            "overdue, and each that is done was tested again and passed"
        ),
    )
    return _concluded("mitigations", steps, record, phrases)


def _follow_up(entry: Mitigation, record: OversightRecord) -> tuple[str, RecordState]:
    """Return what became of *entry*, in words and as its state."""
    tested = record.newest_test(entry)
    if tested is not None and tested[1] is Verdict.PASS:
        return f"passes in run {tested[0]}", RecordState.MENDED
    days = datetime.timedelta(days=record.options.overdue_days)
    if entry.done is None:
        due = entry.due or entry.date + days
        if due < record.today:
            return f"overdue since {due}", RecordState.OVERDUE
        return f"open until {due}", RecordState.OPEN
    if tested is not None:
        remark = f"done {entry.done}, and the re-test in run {tested[0]} is {tested[1]}"
        return remark, RecordState.NOT_MENDED
    remark = f"done {entry.done}, not tested since"
    if record.today - entry.done > days:
        return remark, RecordState.OVERDUE
    return remark, RecordState.NOT_TESTED


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
    paths = sorted(record.baselines.glob("*.json"))
    if not paths:
        words = (
            f"{record.baselines.name}/ holds no approved baseline, so that nobody has approved "
            "anything: approve one (assert_baseline with --fairness-approve)"
        )
        return _undecided("approvals", record, Reason.UNRECORDED, words)
    steps = [Step(path.name, *_approval(path, record)) for path in paths]
    baselines = count(len(steps), "baseline")
    somebody = "approved by somebody else than the author of the change"
    phrases = Phrases(
        fails=f"of {baselines} not {somebody}",
        unknown=f"of {baselines} of which nothing shows who approved whose change",
        passes=f"{baselines}, each {somebody}",
    )
    note = (
        "names are as git has them: everybody can set their own, and only a protected branch or a "
        "signature proves one"
    )
    return _concluded("approvals", steps, record, phrases, [note])


def _approval(path: Path, record: OversightRecord) -> tuple[str, RecordState]:
    """Return what the files and git show of the approval of the baseline at *path*, in words and as
    its state.
    """
    history, why = versions(path, record.root)
    if not history:
        return f"cannot be read: {why}", RecordState.UNREADABLE
    newest = history[0]
    approval = _approval_of(newest)
    if approval is None:
        return f"cannot be read: {newest.why}", RecordState.UNREADABLE
    if not why and not newest.commit:
        why = "as it is now it is not committed"
    if why:
        return f"approved by {approval.approved_by}; {why}", RecordState.UNPROVEN
    return _proven(newest, approval, history[1:], record)


def _proven(
    newest: Version, approval: Approval, older: Sequence[Version], record: OversightRecord
) -> tuple[str, RecordState]:
    """Return whether git bears out that somebody else than the author gave *approval*, the
    *newest*, in words and as its state.
    """
    by = approval.approved_by
    authors = _authors(newest, older, record)
    if not authors:
        remark = f"approved by {by}; git does not show who changed what was approved"
        return remark, RecordState.UNPROVEN
    approver = GitPerson.of(by)
    if any(map(approver.is_, authors)):
        return f"{by} approved a change of their own", RecordState.OWN_CHANGE
    if approval.dirty and not _in_commit(newest, record):
        remark = f"approved by {by} with changes that were never committed"
        return remark, RecordState.UNPROVEN
    named = ", ".join(sorted({author.name or author.address for author in authors}))
    source = approval.approved_by_source
    if source == "git" or any(map(approver.is_, _witnesses(newest, record))):
        return f"approved by {by}, changed by {named}", RecordState.APPROVED
    witness = "the login"
    if source == APPROVER_VARIABLE:
        witness = f"the variable {APPROVER_VARIABLE}"
    remark = (
        f"{witness} alone says that {by} approved the change of {named}, and no commit bears it out"
    )
    return remark, RecordState.UNPROVEN


def _approval_of(version: Version) -> Approval | None:
    if version.document is None:
        return None
    return version.document.approval


def _paths(version: Version, record: OversightRecord) -> list[str]:
    """Return what the scores of a baseline depend on, as patterns of git: the folder of its test,
    prompts, who is asked.
    """
    if record.options.change:
        return list(record.options.change)
    test_id = ""
    if version.document:
        test_id = version.document.test_id
    module = Path(test_id.partition("::")[0])
    if len(module.parts) > 1:
        paths = [f"{module.parent.as_posix()}/"]
    else:
        paths = [module.as_posix(), "conftest.py"]
    if not (record.root / module).exists():
        paths = []
    endpoints = record.endpoints
    if endpoints.is_relative_to(record.root):
        paths.append(endpoints.relative_to(record.root).as_posix())
    # What was decided of the scores, which do not come from it.
    decided = ("justifications", "mitigations", "accepted", "governance")
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
    approval = _approval_of(version)
    if approval is None:
        return []
    last = approval.git_commit
    if approval.dirty:
        last = version.commit
    if not last:
        return []
    earlier = filter(None, map(_approval_of, older))
    before = next((approval.git_commit for approval in earlier), None)
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
    text = git(record.root, "log", "--no-merges", *more, form, commits, "--", *paths)
    return _people_in(text)


def _people_in(text: str | None) -> list[GitPerson]:
    """Return who stands in *text*, which git wrote, a line each."""
    lines = map(str.strip, (text or "").splitlines())
    return list(map(GitPerson.of, filter(None, lines)))


def _witnesses(version: Version, record: OversightRecord) -> list[GitPerson]:
    """Return who stands in the commit of the baseline: author, committer, and who reviewed it."""
    trailers = "".join(f"%n%(trailers:key={key},valueonly)" for key in _REVIEWED)
    form = f"--format=%aN <%aE>%n%cN <%cE>{trailers}"
    return _people_in(git(record.root, "log", "-1", form, version.commit))


# ---------------------------------------------------------------- expiries


def unexpired(record: OversightRecord) -> Finding:
    """Return whether what excuses a finding or a warning has an end, and has not passed it."""
    excuses = list(_excuses(record))
    if not excuses and record.judged is None:
        return _no_run("expiries", record)
    soon_days = record.options.soon_days
    steps = []
    soon = []
    for excuse in excuses:
        steps.append(Step(excuse.what, *_expiry(excuse, record)))
        days = (excuse.until - record.today).days
        if steps[-1].state is RecordState.IN_FORCE and days <= soon_days:
            soon.append(f"{excuse.what} expires on {excuse.until}, in {days} days")
    passes = "nothing is justified or accepted, so that nothing can expire"
    if steps:
        passes = f"none of {len(steps)} justifications and accepted warnings has expired"
    if soon:
        passes += f"; {len(soon)} expire within {soon_days} days"
    phrases = Phrases(
        fails=(
            f"of {len(steps)} justifications and accepted warnings that expired, or have no end"
        ),
        unknown="",
        passes=passes,
    )
    return _concluded("expiries", steps, record, phrases, soon[:MOST_LISTED])


@dataclass(frozen=True, slots=True)
class Excuse:
    """An excuse for a finding or a warning: since when, where that is said, and until when."""

    what: str
    since: datetime.date | None
    until: datetime.date


def _expiry(excuse: Excuse, record: OversightRecord) -> tuple[str, RecordState]:
    """Return whether *excuse* holds today, in words and as its state."""
    longest = record.options.longest_days
    if excuse.until < record.today:
        return f"expired on {excuse.until}", RecordState.EXPIRED
    if excuse.since is not None and (excuse.until - excuse.since).days > longest:
        remark = (
            f"ends on {excuse.until}, over {longest} days after {excuse.since}, which is no end"
        )
        return remark, RecordState.ENDLESS
    return f"until {excuse.until}", RecordState.IN_FORCE


def _excuses(record: OversightRecord) -> Iterator[Excuse]:
    """Yield what excuses anything: of the files, and of the markers that the judged run recorded."""
    for justification in record.justifications:
        what = f"justification of {justification.test} ({justification.approver})"
        yield Excuse(what, justification.date, justification.expiry)
    for entry in record.accepted:
        since = record.today  # it says only how long it holds
        what = f"accepted warning {entry.term or entry.phrase} ({entry.who})"
        yield Excuse(what, since, entry.until)
    if record.judged is not None:
        yield from _of_markers(record.judged, record.justifications)


def _of_markers(run: RunResults, of_file: Sequence[Justification]) -> Iterator[Excuse]:
    """Yield the justifications that *run* recorded and that do not stand in the file."""
    listed = {(entry.reason, entry.approver, entry.expiry) for entry in of_file}
    for finding, nodeid, _ in named_findings(run):
        given: Mapping[str, Any] = finding.justification or {}
        expiry = str(given.get("expiry", ""))[:10]
        if not expiry:
            continue
        until = datetime.date.fromisoformat(expiry)
        if (given.get("reason"), given.get("approver"), until) not in listed:
            since = datetime.date.fromisoformat(str(given["date"])[:10])
            yield Excuse(f"marker of {nodeid} ({given.get('approver')})", since, until)


# ---------------------------------------------------------------- as the report shows it


def oversight_section(finding: Finding) -> Section:
    """Return what was followed up, a row each, the worst first."""
    rows: list[Any] = [*finding.details["followed_up"]]  # type: ignore[misc]
    columns: Columns = {
        "what": lambda row: row["what"],
        "what became of it": lambda row: row["state"],
        "verdict": lambda row: Entry(verdict=Verdict(row["verdict"])),
    }
    ordered = sorted(rows, key=lambda row: -Verdict(row["verdict"]).severity)
    caption = f"Each of {len(rows)}, the worst first"
    parts: tuple[Part, ...] = ()
    if rows:
        parts = (table(caption, ordered, columns, words=("what became of it",)),)
    return Section(
        id=f"oversight-{finding.outcome}", heading=f"Oversight: {finding.outcome}", parts=parts
    )
