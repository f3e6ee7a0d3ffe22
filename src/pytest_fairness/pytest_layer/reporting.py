"""Records that a session writes: its manifest, at its end findings.json and report.html, a few
lines in the terminal.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import itertools
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import msgspec
import pytest

from pytest_fairness.baselines.approval import git_commit, person
from pytest_fairness.baselines.mitigations import Mitigation
from pytest_fairness.baselines.snapshot_files import BaselineFolder, find_orphans
from pytest_fairness.context import RunContext
from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.engine.batches import still_open
from pytest_fairness.engine.conversation import AGAIN
from pytest_fairness.engine.progress import Progress
from pytest_fairness.errors import StoreError
from pytest_fairness.model import JSON, Elicitation, to_json
from pytest_fairness.pytest_layer.command_line import recorded_path, recorded_text
from pytest_fairness.pytest_layer.ledger import Ledger
from pytest_fairness.reports.sections import SECTIONS_SUFFIX, SUFFIX
from pytest_fairness.runs.conclusions import (
    ENDED,
    ENDPOINT,
    ITEM,
    LOOKS,
    OUTCOME,
    SESSION,
    Conclusions,
    StandingJudgement,
    sha256_of_json,
    with_standing,
)
from pytest_fairness.runs.files import shown
from pytest_fairness.runs.manifest import FINISHED, GOES_ON_FROM, read_manifest, versions
from pytest_fairness.runs.reader import RunRecords, reading
from pytest_fairness.words import count

if TYPE_CHECKING:
    from pytest_fairness.runs.store import RunStore


#: Lines that a session with fairness tests starts with; -v shows all.
_MOST_ANNOUNCED = 12


class PastCapture:
    """A stream to the terminal past pytest's capture, for progress while a test waits for its
    replies.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._terminal = config.pluginmanager.getplugin("terminalreporter")
        self._capture = config.pluginmanager.getplugin("capturemanager")

    def isatty(self) -> bool:
        return self._terminal is not None and bool(self._terminal.isatty)

    def write(self, text: str) -> int:
        """Write *text* to the terminal, if there is one, whatever pytest captures."""
        suspended = contextlib.nullcontext()
        if self._capture:
            suspended = self._capture.global_and_fixture_disabled()
        if self._terminal is not None:
            with suspended:
                self._terminal.write(text, flush=True)
        return len(text)

    def flush(self) -> None:
        """Every write is flushed."""


def progress(config: pytest.Config, mode: str) -> Progress | None:
    """Return where the engine shows how far it is; nowhere under ``-q``, in a worker, or when it is
    off.
    """
    if mode == "off" or config.option.verbose < 0 or hasattr(config, "workerinput"):
        return None
    return Progress(cast("TextIO", PastCapture(config)))


def first_announced(lines: list[str], config: pytest.Config) -> list[str]:
    """Return the first of the *lines* that a session starts with, and how many more there are; all
    of them with -v.
    """
    more = len(lines) - _MOST_ANNOUNCED
    if more <= 0 or config.option.verbose > 0:
        return lines
    rest = f"fairness: … and {count(more, 'more remark')} on designs, which -v shows"
    return [*lines[:_MOST_ANNOUNCED], rest]


def now() -> str:
    """Return the time in UTC, to the second, as the manifest has it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


# ---------------------------------------------------------------- the manifest


def start_manifest(store: RunStore, context: RunContext) -> None:
    """Write what is known at the start into log and manifest: who asks, with what, since when.

    Once a session, whichever process is first; a session that resumes a run is added to what is
    there.
    """
    settings = context.settings
    session = context.session
    root = context.root
    before = store.manifest().get("sessions", ())
    if session in before:
        return
    facts = {
        "session": session,
        "started": now(),
        "command": list(context.command),
        "settings": {  # no secret, and paths from the project on
            **settings.to_dict(),
            **{name: recorded_path(path, root) for name, path in settings.paths().items()},
            "justification": recorded_text(settings.justification, root),
        },
        "versions": versions(),
        "git_commit": git_commit(root),
        # In CI, git's identity is the machine's.
        "run_by": os.environ.get("GITHUB_ACTOR")
        or os.environ.get("GITLAB_USER_LOGIN")
        or person(root)[0],
    }
    origin: dict[str, Any] = {"id": store.directory.name, "seed": settings.seed}
    if settings.replay is not None:
        origin["replay_of"] = settings.replay.name
        recorded = read_manifest(settings.replay)
        origin["replay_of_finished"] = FINISHED in recorded
        origin["replay_of_shards"] = "merged_from" in recorded
    if settings.shard:
        origin["shard"] = settings.shard
    if settings.merged is not None:
        origin[GOES_ON_FROM] = settings.merged.name
    store.append({"type": SESSION, "number": len(before) + 1, **origin, **facts})

    def add(manifest: dict[str, Any]) -> None:
        sessions = manifest.setdefault("sessions", [])
        if session in sessions:
            return
        sessions.append(session)
        manifest.pop(FINISHED, None)
        manifest.pop("unasked", None)
        if "started" in manifest:
            manifest.setdefault("resumed", []).append(facts)
            return
        manifest |= {**origin, **facts}

    store.amend_manifest(add)


def start_looks(context: RunContext, tests: int, planned: Mapping[str, JSON]) -> None:
    """Write into log and manifest what is fixed of the looks of so many *tests* that ask for
    trials, and what is *planned* for each, before the first call: whichever process is first. A
    resumed run adds the tests that it did not have, and keeps all else. A replay, and a shard that
    goes on, repeat what the recording says; a replay has no looks where that has none.
    """
    store = context.store
    settings = context.settings
    recording = settings.replay or settings.merged
    fixed = store.manifest().get("looks")
    if fixed is not None:
        new = planned.keys() - fixed["planned"].keys()
        if recording is not None or not new:
            return
        added = {test: stages for test, stages in planned.items() if test in new}
        looks: dict[str, Any] | None = {**fixed, "planned": {**fixed["planned"], **added}}
    elif recording is not None:
        looks = read_manifest(recording).get("looks")
    else:
        looks = {
            "session_alpha": settings.session_alpha,
            "tests": settings.session_tests or tests,
            "declared": settings.looks,
            "planned": dict(planned),
        }
    if looks is None:
        return
    store.append({"type": LOOKS, "looks": looks})
    store.update_manifest(looks=looks)


def number_of_session(store: RunStore, context: RunContext) -> int:
    """The place of this session among those of the run, from 1."""
    return int(store.manifest()["sessions"].index(context.session)) + 1


def note_replaced_endpoint(context: RunContext) -> None:
    """Take the endpoint out of the recorded settings of this session: no test of it asks that one."""

    def change(manifest: dict[str, Any]) -> None:
        for facts in (manifest, *(manifest.get("resumed") or ())):
            if facts.get("session") == context.session:
                facts["settings"]["endpoint"] = None

    context.store.amend_manifest(change)


def note_unasked(store: RunStore, why: str) -> None:
    """Let the manifest say that trials were not asked for want of *why*: time, cost or an endpoint
    that answers.
    """

    def add(manifest: dict[str, Any]) -> None:
        unasked = manifest.setdefault("unasked", [])
        if why not in unasked:
            unasked.append(why)

    store.amend_manifest(add)


def elicitation_of(run: RunRecords, identity: str) -> Elicitation | None:
    """Return the way by which the endpoint of that *identity* is asked for answers, as the first
    trial that was asked by a form has shown; None where none was.
    """
    for record in run.of_type(ELICITATION):
        if record["identity"] == identity:
            return Elicitation(record["elicitation"])
    return None


def note_elicitation(store: RunStore, endpoint: Endpoint, identity: str, why: str) -> Elicitation:
    """Record, and return, the way by which *endpoint* is asked for answers: by a form, or by a line
    for the reason *why*. What another process has recorded stands.
    """
    elicitation = Elicitation.FORM
    if why:
        elicitation = Elicitation.LINE
    store.append(
        {
            "type": ELICITATION,
            "identity": identity,
            "endpoint": endpoint.name,
            "elicitation": elicitation.value,
            "why": why,
        }
    )
    return elicitation_of(store, identity) or elicitation


def answer_notes(run: RunRecords) -> list[tuple[str, str]]:
    """Return the endpoints of *run* that do not take a form, each with a sentence that says so."""
    notes: dict[str, str] = {}
    for record in run.of_type(ELICITATION):
        if record["why"]:
            notes[record["endpoint"]] = (
                f"endpoint {record['endpoint']!r} is asked for an answer line in the place of a "
                f"JSON schema, for the whole run: {record['why']}"
            )
    return list(notes.items())


def note_endpoint(store: RunStore, endpoint: Endpoint) -> None:
    """Add *endpoint* to log and manifest, once."""
    entry = {
        "name": endpoint.name,
        "simulated": endpoint.simulated,
        "identity": to_json(endpoint.identity()),
    }
    if entry in store.manifest().get("endpoints", ()):
        return
    store.append({"type": ENDPOINT, "endpoint": entry})

    def add(manifest: dict[str, Any]) -> None:
        endpoints = manifest.setdefault("endpoints", [])
        if entry not in endpoints:
            endpoints.append(entry)

    store.amend_manifest(add)


# ---------------------------------------------------------------- the end


def write_reports(
    store: RunStore,
    ledger: Ledger,
    context: RunContext,
    mitigations: Sequence[Mitigation] = (),
    *,
    whole: bool,
    facts: Mapping[str, JSON],
) -> dict[str, Path]:
    """findings.json of the run, from the ledger, then every report, from the files alone; where
    each is. Messages of tests are written without secrets and without the way to the project's
    folder. *mitigations* are followed up.
    *whole*: nobody writes to the run any more, so that its logs can be sealed. *facts* of the
    session's end go into the manifest.
    """
    from pytest_fairness.reports.findings_json import conclude, save_results
    from pytest_fairness.reports.outputs import write_outputs

    run = store.directory
    end = now()
    root = context.root
    settings = context.settings
    store.check_written()  # what is judged from must not have been lost meanwhile
    notes: list[JSON] = [*run_notes(run, store.manifest()), *still_open(store.of_type("batch"))]
    store.update_manifest(notes=notes)
    if (findings := run / "findings.json").exists():  # of a session before this one: none are lost
        number = next(n for n in itertools.count(1) if not (run / f"findings-{n}.json").exists())
        findings.rename(run / f"findings-{number}.json")
    for item in ledger.items.values():
        item.message = recorded_text(item.message, root)
    left = left_standing(store, ledger, context)
    log_conclusions(
        store,
        ledger,
        context,
        left,
        **facts,
        **{FINISHED: end},
        notes=notes,
        mitigations=mitigations,
    )
    concluded = with_standing(ledger.to_dict(), left)
    results = conclude(run, {**store.manifest(), **facts, FINISHED: end}, concluded, mitigations)
    save_results(results, run)
    facts = {
        **facts,
        **{
            key: results.run[key]
            for key in ("models", "cost", "costs", "unpriced", "charged_at_worst_case")
        },
    }
    if whole:  # after the results: who is killed before leaves a run that has not come to its end
        store.finish(**facts, **{FINISHED: end})
    else:
        store.update_manifest(**facts)
    return write_outputs(
        run, markdown=settings.markdown, against=compared_with(context, run), root=root
    )


def left_standing(store: RunStore, ledger: Ledger, context: RunContext) -> list[StandingJudgement]:
    """The judgements of earlier sessions, and of the run that is replayed, that this session did
    not answer. Raises StoreError.
    """
    counts = {nodeid: len(item.encoded) for nodeid, item in ledger.items.items()}
    recording = context.recording
    replayed = []
    if recording is not None:
        replayed = Conclusions(recording).concluded()
    return Conclusions(store).left(number_of_session(store, context), counts, replayed)


def log_conclusions(
    store: RunStore,
    ledger: Ledger,
    context: RunContext,
    left: Sequence[StandingJudgement],
    *,
    mitigations: Sequence[Mitigation],
    **facts: JSON,
) -> None:
    """Log how each test ended, what else stands, and the *facts* of the session's end.

    Raises StoreError.
    """
    number = number_of_session(store, context)
    manifest = store.manifest()
    about = manifest
    if number != 1:
        about = (manifest.get("resumed") or [manifest])[-1]
    for item in ledger.items.values():
        ended = {name: getattr(item, name) for name in ("nodeid", *ITEM)}
        store.append({"type": OUTCOME, "session": number, **ended, "findings": len(item.encoded)})
    for standing in left:
        if standing.replayed:
            store.append(standing.to_record())
    pages = sorted(
        path for suffix in (SUFFIX, SECTIONS_SUFFIX) for path in store.directory.glob(f"*{suffix}")
    )
    store.append(
        {
            "type": ENDED,
            "session": number,
            **facts,
            "missing": ledger.missing,
            "planned": sha256_of_json(manifest.get("planned", [])),
            "endpoint": about["settings"]["endpoint"],
            "mitigations": list(map(msgspec.to_builtins, mitigations)),
            "pages": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in pages},
        }
    )


def stands_by_class(run: Path) -> bool:
    """Return whether the end of the session of *run* shows its verdicts by class and test."""
    from pytest_fairness.reports.findings_json import read_results
    from pytest_fairness.reports.heat_maps import verdict_words_by_class

    return verdict_words_by_class(read_results(run)) is not None


def compared_with(context: RunContext, run: Path) -> Path | None:
    """Return where the findings lie that those of *run* are compared with; None where that is the
    run itself, resumed.
    """
    against = context.settings.against
    if against == run:
        return None
    return against


def summary(
    outputs: Mapping[str, Path], context: RunContext, *, verbose: bool = False
) -> list[str]:
    """Return what the terminal shows at the end: counts, each finding's sentence, what has changed,
    where the reports lie; *verbose* under ``-v``.
    """
    from pytest_fairness.reports.changes import counted
    from pytest_fairness.reports.findings_json import read_results
    from pytest_fairness.reports.outputs import compared_runs
    from pytest_fairness.reports.plain_text import summary_lines
    from pytest_fairness.reports.sections import page_stems, printed_lines, read_sections

    run = outputs["report"].parent
    root = context.root
    against = compared_with(context, run)
    lines = summary_lines(
        read_results(run),
        shown(outputs["report"], root),
        printed_lines(read_sections(run)),
        verbose=verbose,
    )
    places = {**{stem: run / f"{stem}.html" for stem in page_stems(run)}, **outputs}
    lines += [f"{name}: {shown(path, root)}" for name, path in places.items() if name != "report"]
    with reading(run, check=False) as records:
        lines += [f"note: {note}" for _, note in answer_notes(records)]
    if os.environ.get("CI") and only_simulated(run):
        lines.append(f"note: {_ONLY_SIMULATED}")
    since = []
    if against is not None:
        since = [f"since {against.stem}: {counted(compared_runs(run, against))}"]
    return [*lines, *since]


#: Type of the record of how an endpoint is asked for answers, found out by its first trial.
ELICITATION = "elicitation"
_ONLY_SIMULATED = (
    "nothing but the simulated endpoint answered: no model was tested; "
    "name one of endpoints.yaml with --fairness-endpoint"
)


def only_simulated(run: Path) -> bool:
    """Return whether the run in that folder asked somebody, and nobody but simulated endpoints."""
    endpoints = read_manifest(run).get("endpoints", ())
    return bool(endpoints) and all(endpoint.get("simulated") for endpoint in endpoints)


def report_to_github(run: Path, context: RunContext, environment: Mapping[str, str]) -> list[str]:
    """In a job of GitHub's: append the report to the job's summary; the commands that annotate the
    tests.
    """
    from pytest_fairness.reports.ci_formats import workflow_commands
    from pytest_fairness.reports.findings_json import read_results
    from pytest_fairness.reports.outputs import append_summary, markdown_text, repository_folder

    if environment.get("GITHUB_ACTIONS") != "true" or context.settings.github == "off":
        return []
    lines = workflow_commands(read_results(run), repository_folder(context.root, environment))
    if only_simulated(run):
        lines.append(f"::notice title=fairness::{_ONLY_SIMULATED}")
    if place := environment.get("GITHUB_STEP_SUMMARY"):
        text = markdown_text(
            run, against=compared_with(context, run), root=context.root, environment=environment
        )
        try:
            if not append_summary(Path(place), text):
                lines.append("fairness: the summary of this step is full: the report is not in it")
        except StoreError as error:  # a copy: what it says is in the run's folder
            lines.append(f"fairness: {error}")
    return lines


def orphans(folder: Path, root: Path, ledger: Ledger) -> list[str]:
    """A line for each approved baseline that no test of a whole session claims; nothing is ever
    deleted.
    """
    used = set()
    for finding in ledger.findings:
        baseline = finding.details.get("baseline")
        if isinstance(baseline, dict):
            used.add(str(baseline["file"]).rpartition("/")[2])
    # A test that failed may have done so before it asked for its baseline: it keeps what it has.
    finished = [item.nodeid for item in ledger.items.values() if item.outcome == "passed"]
    orphans_ = find_orphans(
        BaselineFolder(folder, anchor=root),
        collected=ledger.collected,
        finished=finished,
        used=used,
    )
    return [
        f"  unclaimed baseline {name}: {why}; if it is of no use, git rm it"
        for name, why in orphans_.items()
    ]


# ---------------------------------------------------------------- what is unusual about a run


def run_notes(run: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Sentences for the terminal and the report: whether this is a replay, a shard, salvaged or
    resumed, and how.
    """
    notes = []
    if manifest.get("replay_of"):
        notes += _of_replay(manifest)
    if manifest.get("shard"):
        shards = "the shards"
        if GOES_ON_FROM in manifest:
            shards = f"run {manifest[GOES_ON_FROM]} and the shards that go on from it"
        notes.append(
            f"shard {manifest['shard']}: its trials are asked and nothing is judged; put "
            f"{shards} together with pytest-fairness merge, and judge the merged run with "
            "--fairness-replay"
        )
    if salvaged := manifest.get("salvaged_from"):
        notes.append(_salvaged(salvaged))
    if resumed := manifest.get("resumed"):
        notes += _of_resuming(run, resumed)
    return notes


def _of_replay(manifest: Mapping[str, Any]) -> list[str]:
    """Return what is unusual about a run that replays another."""
    notes = [
        f"replayed from run {manifest['replay_of']}: nothing was asked; costs are those of the "
        "recording"
    ]
    if manifest.get("replay_of_finished") is False:
        notes.append(
            "the recorded run never came to its end: nothing shows whether the end of its log is "
            "there"
        )
    return notes


def _of_resuming(run: Path, resumed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is unusual about a run that these sessions *resumed*."""
    times = "once"
    if len(resumed) > 1:
        times = f"{len(resumed)} times"
    notes = [f"resumed, {times}: not all of it was asked in one session"]
    for session in resumed:
        settings = session.get("settings", {})
        if settings.get("retry_unknown") or settings.get("retry_errors"):
            return [*notes, *_repeated_requests(run)]
    return notes


def _salvaged(salvaged: Mapping[str, Any]) -> str:
    """From which run a run was salvaged, and what was lost."""
    lost = list(map(str, salvaged.get("lost") or ()))
    losses = "nothing was lost"
    if lost:
        losses = f"lost: {'; '.join(lost[:3])}"
    if len(lost) > 3:
        losses += f"; and {len(lost) - 3} more places, in manifest.json"
    return f"salvaged from the damaged run {salvaged.get('run')}; {losses}"


def _repeated_requests(run: Path) -> list[str]:
    """Return how many trials were asked again, in each group: to replace failures alone shifts the
    sample that is left.
    """
    trials = Counter[tuple[str, str]]()
    again = Counter[tuple[str, str]]()
    total = 0
    with reading(run) as reader:
        for record in reader.all_records():
            groups = record["cell"]["groups"].items()
            trials.update(groups)
            if any(flag.startswith(AGAIN) for flag in record["flags"]):
                total += 1
                again.update(groups)
    if not total:
        return []
    shares: dict[str, list[str]] = {}
    for (protected, group), asked in sorted(trials.items()):
        shares.setdefault(protected, []).append(f"{group} {again[protected, group]}/{asked}")
    by_group = "; ".join(
        f"{protected}: {', '.join(groups)}" for protected, groups in shares.items()
    )
    which = "one trial had come to nothing and was"
    if total > 1:
        which = f"{total} trials had come to nothing and were"
    return [f"{which} asked again ({by_group})"]
