"""A run judged again from its files alone, without the project's tests: is what it concludes what
its logs say?

Each link is checked by itself: the chain of records; each trial's content key, which is made of
what was asked; each reply, against the attempt that brought it; the table of each judgement,
against its trials; its scores, read again where the scorer is ours; and the finding, by the
analysis that made it. What is not kept in the files, as a project's own scorer, is taken as
recorded, and said. See ``docs/decisions/0128-what-verify-derives.md``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections import ChainMap, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from pytest_fairness.analysis import analysis_called
from pytest_fairness.analysis.choice_columns import choice_in, group_chosen, ranks_in
from pytest_fairness.analysis.controls import controls_of
from pytest_fairness.analysis.looks import (
    DROPPING,
    TABLE_OF_A_LOOK,
    Look,
    Looking,
    LookPlan,
    budget_in_run,
    cost_of,
    look_record,
    looks_of,
    plan_from,
    rows_at,
    trials_in,
)
from pytest_fairness.analysis.pilots import texts_not_chosen
from pytest_fairness.baselines.document import BaselineDocument
from pytest_fairness.baselines.mitigations import Mitigation
from pytest_fairness.design.series import PILOT
from pytest_fairness.design.slugs import slug
from pytest_fairness.documents import is_number
from pytest_fairness.errors import FairnessError, StoreError
from pytest_fairness.model import JSON, Finding, Verdict, to_json
from pytest_fairness.reports.findings_json import NAME, RunResults, conclude, read_results
from pytest_fairness.reports.pilots_again import unlike_log
from pytest_fairness.reports.sections import SECTIONS_SUFFIX, SUFFIX
from pytest_fairness.runs.conclusions import ITEM, LOOKS, Conclusions, sha256_of_json
from pytest_fairness.runs.database import AT_ONCE
from pytest_fairness.runs.judgements import READ_BY, Judgement
from pytest_fairness.runs.keys import content_key, identity_hash
from pytest_fairness.runs.manifest import FINISHED, GOES_ON_FROM, read_manifest
from pytest_fairness.runs.reader import RunReader, RunRecords, Watch, unwatched
from pytest_fairness.runs.records import SIMULATED, cell_of, trial_of
from pytest_fairness.scorers import BUILT_IN, Scorer, outcome_of
from pytest_fairness.scorers.given_choices import AskedChoice
from pytest_fairness.scorers.letter import LETTER_SCORE
from pytest_fairness.scorers.outcome import ReadBy, is_left_for_a_model, score_by_model
from pytest_fairness.scorers.reading_turn import (
    ORDERS,
    READING,
    ReadingTask,
    Unread,
    digest_of,
)
from pytest_fairness.trials_frame import any_text, design_of
from pytest_fairness.words import count, listed

if TYPE_CHECKING:
    import pandas as pd

#: An approved baseline by its digest, as the finding gives it; None where it is not to be had.
Baselines = Callable[[Mapping[str, Any], str], BaselineDocument | None]

#: Systems whose response holds the reply as it is; an application's may be put together of it.
_VERBATIM = frozenset(("openai", "anthropic", "azure", "ollama"))
#: Of a finding what a session adds to it, or says of the test: not what the analysis makes of its
#: table.
_BESIDE = frozenset(
    ("test_id", "test_module", "description", "justification", "notes", "explanation", "scenario")
)
#: Columns of the trials that scores and choices are read off, or into.
_READ_OFF = frozenset(
    ("reply", "choice", "chosen", "rank", "first", "second", "first_name", "second_name")
)
#: As far as two machines may be apart in the last digits.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-9
_MOST = 10


@dataclass(frozen=True, kw_only=True)
class Derivation:
    """The result of deriving a finding: ``same``, or not, or None where it cannot be derived;
    ``about`` says more.
    """

    number: str
    test: str
    verdict: Verdict
    outcome: str
    same: bool | None
    about: str


@dataclass
class Verification:
    """``checked``: what holds, a line each; ``problems``: what does not; ``derived``: each finding;
    ``left_out``: files that were not compared, as was asked for.
    """

    checked: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    derived: list[Derivation] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def settle(self, wrong: Sequence[str], holds: str) -> None:
        """Note what is *wrong*, or, where nothing is, what *holds*."""
        if wrong:
            self.problems += wrong
        else:
            self.checked.append(holds)


def verify_run(run_dir: Path, baselines: Baselines, watch: Watch = unwatched) -> Verification:
    """Check the run in *run_dir* from end to end, and derive each of its findings again; *watch*
    shows how far.
    """
    verification = Verification()
    try:
        results = read_results(run_dir)
        manifest = read_manifest(run_dir)
        if FINISHED not in manifest:
            verification.problems.append(
                "the run did not come to its end: nothing shows whether the end of its logs is "
                "there"
            )
        reader = _VerifiedRun.open(run_dir, watch=watch)
        with contextlib.closing(reader):
            records = sum(anchor.records for anchor in reader.logs.values())
            verification.checked.append(
                f"{count(records, 'record')} in {count(len(reader.logs), 'log')}, chained and whole"
            )
            _check_trials(reader, verification, watch)
            _check_pilots(reader, verification)
            run = _RecordedRun(run_dir, results, manifest, Conclusions(reader))
            _check_sessions(run, verification)
            judged = _check_judged(run, verification)
            _check_conclusions(run, verification)
            for at in watch(
                "findings derived", len(results.findings), range(len(results.findings))
            ):
                derived = _derived(results, at, judged.get(at), reader, baselines)
                verification.derived.append(derived)
                if derived.same is False:
                    verification.problems.append(
                        f"{derived.number} {derived.verdict} ({derived.test}, {derived.outcome}): {derived.about}"
                    )
    except FairnessError as error:
        verification.problems.append(str(error))
    except (
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
    ) as error:  # somebody else's files may be anything
        verification.problems.append(
            f"its files have another shape than those of a run: {error!r:.200}"
        )
    return verification


# ---------------------------------------------------------------- the log

#: Records of trials that are kept, some 60 MB: a run may hold a million.
_KEPT = 5_000


class _VerifiedRun(RunReader):
    """A run whose findings share their trials: the records are read once for all of them; of a run
    with more trials than are kept, those that were read first.
    """

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._kept: dict[str, dict[str, Any]] = {}

    def close(self) -> None:
        """Close the database, and let go of what was kept."""
        self.connection.close()
        self._kept.clear()

    def trial_records(self) -> Iterator[dict[str, Any]]:
        for record in super().trial_records():
            if len(self._kept) < _KEPT:
                self._kept[record["key"]] = record
            yield record

    def records(self, keys: Iterable[str]) -> Iterator[dict[str, Any] | None]:
        wanted = list(keys)
        for start in range(0, len(wanted), AT_ONCE):
            some = wanted[start : start + AT_ONCE]
            absent = sorted(set(some) - self._kept.keys())
            read = dict(zip(absent, super().records(absent), strict=True))
            yield from map(ChainMap[str, Any](self._kept, read).get, some)


def _check_trials(reader: RunReader, verification: Verification, watch: Watch) -> None:
    """Check that each trial asked what its key was made of, and that its replies are those that the
    attempts brought.
    """
    attempts = _Attempts(reader)
    engines = {digest: record["endpoint"]["identity"] for digest, record in reader.engines.items()}
    for digest, identity in engines.items():
        if identity_hash(identity) != digest:
            verification.problems.append(
                f"the identity of an endpoint was changed: {digest[:12]}… is not its hash"
            )
    wrong: dict[str, None] = {}
    trials = 0
    for record in watch(
        "trials checked", len(reader) + len(reader.shared_cells), reader.all_records()
    ):
        trials += 1
        about = f"trial {record['key'][:12]}… ({record['cell']['id']})"
        identity = engines.get(record["endpoint"]["identity"])
        for why in (*_unlike_key(record, identity, attempts), *attempts.unlike_replies(record)):
            wrong[f"{about}: {why}"] = None
    verification.settle(
        _few(wrong), f"{count(trials, 'trial')}: what was asked and answered fits keys and attempts"
    )


def _check_pilots(reader: RunReader, verification: Verification) -> None:
    """Check that each pilot chose by what was answered about neutral names."""
    wrong: dict[str, None] = {}
    tests = set()
    for record in reader.of_type(PILOT):
        tests.add(record["test"])
        for why in unlike_log(record, reader):
            wrong[f"the pilot of {record['test']}: {why}"] = None
    if tests:
        about = count(len(tests), "test")
        verification.settle(
            _few(wrong), f"{about}: the texts that a pilot chose follow from its answers"
        )


class _Attempts:
    """The texts that each attempt of a run brought: of each its hash, since a run may hold a
    million.
    """

    def __init__(self, reader: RunReader) -> None:
        self._brought: dict[str, set[tuple[int, int]]] = defaultdict(set)
        #: Keys of trials with a reply that is not in the response that was logged.
        self.unlike_wire: set[str] = set()
        for record in reader.each("attempt"):
            self._brought[record["key"]].add((record["turn"], hash(record["text"])))
            if not is_on_wire(record["text"], record["wire"]):
                self.unlike_wire.add(record["key"])

    def unlike_replies(self, record: Mapping[str, Any]) -> Iterator[str]:
        """Yield which replies of a trial no attempt has brought."""
        texts = self._brought.get(record["key"])
        if texts is None:
            if record["replies"] and "replay_of" not in record:
                yield "it has a reply, and the log no attempt that brought it"
            return
        for turn, reply in enumerate(record["replies"]):
            if (turn, hash(reply)) not in texts:
                yield f"reply {turn + 1} is not what the attempt brought"


def _unlike_key(
    record: Mapping[str, Any], identity: Mapping[str, Any] | None, attempts: _Attempts
) -> Iterator[str]:
    """Yield why a trial is not what its key was made of."""
    if identity is None:
        yield "the log says of no endpoint that it was the one asked"
        return
    key = content_key(
        identity,
        record["parameters"]["sent"],
        cell_of(record["cell"]),
        record["repetition"],
        _script(record),
    )
    if key != record["key"]:
        yield "what was asked is not what its key was made of"
    elif identity.get("type") in _VERBATIM and key in attempts.unlike_wire:
        yield "a reply is not what the provider's response says"


def is_on_wire(text: str | None, wire: Mapping[str, Any] | None) -> bool:
    """Return whether *text* stands in the response that was logged, as one text or as blocks one
    after the other.
    """
    if text is None or wire is None or wire["truncated"]:
        return True
    try:
        body = json.loads(wire["response_body"])
    except (ValueError, RecursionError):
        return text in str(wire["response_body"])
    blocks: list[str] = []
    left = [body]
    while left:
        value = left.pop()
        if value == text:
            return True
        if isinstance(value, dict):
            if isinstance(value.get("text"), str):
                blocks += [value["text"]]
            left += reversed(value.values())
        elif isinstance(value, list):
            left += reversed(value)
    return "".join(blocks) == text


def _script(record: Mapping[str, Any]) -> Any:
    """Return what decided between the turns, as it went into the trial's key: the steps of a
    pipeline that is the system under test are in the system's identity already.
    """
    script = record.get("script")
    if isinstance(script, Mapping) and "relay" in script:
        return None
    return script


# ---------------------------------------------------------------- what sessions concluded

#: Keys of the manifest that the log has: of a session, of the first one, of the last one's end.
_OF_A_SESSION = ("session", "started", "command", "settings", "versions", "git_commit", "run_by")
_OF_THE_FIRST = (
    "seed",
    "replay_of",
    "replay_of_finished",
    "replay_of_shards",
    "shard",
    GOES_ON_FROM,
)
_OF_THE_END = (FINISHED, "exit_status", "notes")
#: Keys that repeat ``findings.json``.
_OF_THE_TRIALS = ("models", "cost", "costs", "unpriced", "charged_at_worst_case")
_LISTS = ("sessions", "resumed", "endpoints", "logs", "planned", "looks")
_CHECKED = frozenset(("id", *_LISTS, *_OF_A_SESSION, *_OF_THE_FIRST, *_OF_THE_END, *_OF_THE_TRIALS))
#: Keys that are taken as recorded: a session that resumes the run reads them.
AS_RECORDED = ("announced", "asked", "looking", "unasked", "salvaged_from")


class _RecordedRun(NamedTuple):
    """A run's folder, what its files say, and what its log says that its sessions concluded."""

    folder: Path
    results: RunResults
    manifest: Mapping[str, Any]
    conclusions: Conclusions


def _check_sessions(run: _RecordedRun, verification: Verification) -> None:
    """Compare manifest, outcomes and pages with what the sessions have logged of themselves."""
    folder, results, manifest, conclusions = run
    ended = conclusions.ended.get(conclusions.last)
    if ended is None:
        verification.problems.append(
            "the log does not say how its last session began and ended: it was cut off, or is of "
            "an earlier version"
        )
        return
    wrong = [
        *_unlike_manifest(manifest, conclusions, ended),
        *_unlike_outcomes(results, conclusions, ended),
    ]
    for name in _OF_THE_TRIALS:
        unlike = _differences(manifest.get(name), to_json(results.run.get(name)), name)
        wrong += _within("manifest.json", unlike)
    pages: dict[str, str] = {}
    for path in (*folder.glob(f"*{SUFFIX}"), *folder.glob(f"*{SECTIONS_SUFFIX}")):
        pages[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    for name in sorted({*pages, *ended["pages"]}):
        if pages.get(name) != ended["pages"].get(name):
            wrong.append(f"{name} is not the one that a suite had handed in when the session ended")
    sessions = count(len(conclusions.sessions), "session")
    as_logged = "command, settings, versions, times and outcomes are as the log has them"
    verification.settle(_few(wrong), f"{sessions}: {as_logged}")


def _unlike_manifest(
    manifest: Mapping[str, Any], conclusions: Conclusions, ended: Mapping[str, Any]
) -> Iterator[str]:
    """Differences between the *manifest* and what the log says of its sessions."""
    manifests = [manifest, *(manifest.get("resumed") or ())]
    if len(manifests) != conclusions.last:
        yield (
            f"manifest.json tells of {count(len(manifests), 'session')}, and the log of "
            f"{conclusions.last}"
        )
    expected: dict[str, Any] = {name: ended[name] for name in _OF_THE_END}
    expected |= {
        "id": conclusions.name,
        "sessions": [],
        "endpoints": _unordered(conclusions.endpoints),
    }
    expected["looks"] = conclusions.looks or None
    for number, facts in enumerate(manifests, 1):
        record = _begun(conclusions, number, facts)
        if record is not None:
            expected["sessions"].append(record["session"])
            yield from _unlike_session(number, facts, record, conclusions)
    given = {**manifest, "endpoints": _unordered(manifest.get("endpoints") or [])}
    for name, value in expected.items():
        yield from _within("manifest.json", _differences(given.get(name), value, name))
    if sha256_of_json(manifest.get("planned", [])) != ended["planned"]:
        yield "manifest.json: planned are not the tests that were to run"
    for name in sorted(manifest.keys() - _CHECKED - {*AS_RECORDED}):
        yield f"manifest.json has {name!r}, which no session writes"


def _begun(
    conclusions: Conclusions, number: int, facts: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return what a session logged when it began; None where the log has nothing of it."""
    records = conclusions.sessions.get(number, [])
    for record in records:
        if record["started"] == facts.get("started"):
            return record
    return next(iter(records), None)


def _unlike_session(
    number: int, facts: Mapping[str, Any], record: Mapping[str, Any], conclusions: Conclusions
) -> Iterator[str]:
    """Differences between what the manifest says of a session, and what that has logged."""
    logged = {name: record[name] for name in _OF_A_SESSION}
    asked = _endpoint_asked(record, facts, conclusions.ended.get(number))
    logged["settings"] = {**record["settings"], "endpoint": asked}
    if number == 1:
        logged |= {name: record.get(name) for name in _OF_THE_FIRST}
    for name, value in logged.items():
        yield from _within("manifest.json", _differences(facts.get(name), value, name))


def _endpoint_asked(
    record: Mapping[str, Any], facts: Mapping[str, Any], ended: Mapping[str, Any] | None
) -> Any:
    """The endpoint in the settings of a session: None where its tests turned out to ask others."""
    if ended is not None:
        return ended["endpoint"]
    if facts.get("settings", {}).get("endpoint") is None:
        return None
    return record["settings"]["endpoint"]


def _unordered(entries: Sequence[Any]) -> list[Any]:
    """*entries* once each, in an order of their own."""
    texts = {json.dumps(to_json(entry), sort_keys=True) for entry in entries}
    return list(map(json.loads, sorted(texts)))


def _unlike_outcomes(
    results: RunResults, conclusions: Conclusions, ended: Mapping[str, Any]
) -> Iterator[str]:
    """Differences between ``findings.json`` and the log in how the tests of the last session ended."""
    logged = conclusions.outcomes.get(conclusions.last, {})
    items = {item.nodeid: item for item in results.items if not item.judged_in}
    for test, record in logged.items():
        item = items.pop(test, None)
        if item is None:
            yield (
                f"findings.json does not say how {test} ended, which is {record['outcome']} in the "
                "log"
            )
            continue
        for name in ITEM:
            yield from _within(test, _differences(getattr(item, name), record[name], name))
    yield from (f"findings.json says how {test} ended, and the log does not" for test in items)
    missing = _differences(list(results.missing), ended["missing"], "missing")
    yield from _within("findings.json", missing)


def _check_judged(run: _RecordedRun, verification: Verification) -> dict[int, Judgement]:
    """Find the judgement of each finding, by its place; one that stands and has no finding is
    named.
    """
    conclusions = run.conclusions
    last = conclusions.last
    counts = conclusions.counts(conclusions.last)
    makers = {(item.judged_in, item.nodeid): item for item in run.results.items}
    standing: dict[tuple[str, str], list[Judgement]] = defaultdict(list)
    for (test, _), judgement in sorted(conclusions.kept(last, counts).items()):
        standing["", test].append(judgement)
    judged: dict[int, Judgement] = {}
    wrong = []
    for left in conclusions.left(last, counts):
        test = left.judgement.test
        standing[left.judged_in, test].append(left.judgement)
        item = makers.get((left.judged_in, test))
        if item is not None:
            given = {name: getattr(item, name) for name in ITEM}
            unlike = _differences(given, dict(left.item), "")
            wrong += _within(f"{test}, judged in {left.judged_in}", unlike)
    for (judged_in, test), judgements in standing.items():
        item = makers.get((judged_in, test))
        places: Sequence[int] = ()
        if item is not None:
            places = item.findings
        judged |= dict(zip(places, judgements, strict=False))
        if len(places) < len(judgements):
            wrong.append(_without_finding(judged_in, test, judgements, len(places)))
    verification.problems += _few(wrong)
    return judged


def _without_finding(
    judged_in: str, test: str, judgements: Sequence[Judgement], findings: int
) -> str:
    """Say that the log has more *judgements* of a test than there are findings."""
    where = ""
    if judged_in:
        where = f" (in {judged_in}; nothing judged since answers it)"
    logged = (judgement.finding for judgement in judgements)
    verdicts = ", ".join(f"{each.get('verdict')} on {each.get('outcome')}" for each in logged)
    of_test = f"{count(len(judgements), 'judgement')} of {test}"
    return f"the log has {of_test}, and findings.json {findings}{where}: {verdicts}"


def _check_conclusions(run: _RecordedRun, verification: Verification) -> None:
    """Conclude again from manifest, logs and findings what ``findings.json`` says of the run."""
    folder, results, manifest, conclusions = run
    ledger = results.to_dict()
    ended = conclusions.ended.get(conclusions.last, {})
    entries = msgspec.convert(ended.get("mitigations", []), list[Mitigation])
    again = conclude(folder, manifest, ledger, entries)
    unlike = _differences(to_json(results.run), to_json(again.run), "run")
    wrong = _within("findings.json", unlike)
    written = json.loads((folder / NAME).read_bytes())
    # Else of an earlier version, which is read otherwise.
    if written.get("schema") == ledger["schema"]:
        for data in written["findings"]:
            data.setdefault("scenario", {})  # a run from before findings had it
        unlike = _differences(written, json.loads(json.dumps(ledger)), "")
        wrong += _within("findings.json", unlike)
    for number, finding, other in zip(results.ids, results.findings, again.findings, strict=True):
        mine = to_json(finding.details.get("session"))
        its = to_json(other.details.get("session"))
        wrong += _within(number, _differences(mine, its, "session"))
    verification.settle(
        _few(wrong),
        "trials, cost, models and what is adjusted across the session follow from the logs",
    )


# ---------------------------------------------------------------- a finding


def _derived(
    results: RunResults,
    at: int,
    judgement: Judgement | None,
    reader: RunReader,
    baselines: Baselines,
) -> Derivation:
    """Derive the finding at that place again, from what the log says that it was judged from."""
    finding = results.findings[at]
    maker = results.maker_of(at)
    same, about = _derived_again(finding, judgement, maker.judged_in, reader, baselines)
    return Derivation(
        number=results.ids[at],
        test=results.test_of(at),
        verdict=finding.verdict,
        outcome=finding.outcome,
        same=same,
        about=about,
    )


def _derived_again(
    finding: Finding,
    judgement: Judgement | None,
    judged_in: str,
    reader: RunReader,
    baselines: Baselines,
) -> tuple[bool | None, str]:
    """Return whether *finding* is what its *judgement* comes to, None where that cannot be told; and
    from what, or why not.
    """
    if judgement is None:
        return False, "the log does not say what it was judged from"
    unlike = _unlike_logged(finding, judgement.finding)
    if not judgement.columns:
        why = f"{finding.assertion} is a suite's own analysis: as the log has it"
        if judgement.analysis:
            why = f"judged in {judged_in}, whose log has its table: as this log has it"
        return _as_recorded(unlike, why)
    wrong: list[str] = []
    try:
        frame = judgement.frame()
        wrong, scored, replies = _check_table(judgement, frame, reader)
        wrong += _unlike_pilot(judgement, frame, reader)
        approved = None
        if judgement.analysis == "baseline":
            approved, why = _approved(finding, baselines)
            if not why and _of_letters(judgement):
                why = _of_own_lexicon(judgement)
                with any_text():
                    frame = frame.assign(reply=replies)
            if why:
                return _as_recorded([*wrong, *unlike], why, also=True)
        again = _again(judgement, frame, finding, approved, reader)
    except (FairnessError, KeyError, TypeError, ValueError, AttributeError) as error:
        wrong += [f"it cannot be derived from the log: {error}"]
        return False, "; ".join(_few(wrong))
    wrong += _compared(finding, again)
    wrong += [place for place in unlike if place not in wrong]
    if wrong:
        return False, "; ".join(_few(wrong))
    return True, f"from {count(len(frame), 'row')}, {scored}"


def _as_recorded(wrong: Sequence[str], why: str, *, also: bool = False) -> tuple[bool | None, str]:
    """Return what is known of a finding that is taken as recorded, and why it is: false where
    something is *wrong*, and then *also* why.
    """
    if not wrong:
        return None, why
    reasons = _few(wrong)
    if also:
        reasons = [*reasons, why]
    return False, "; ".join(reasons)


def _of_letters(judgement: Judgement) -> bool:
    return judgement.outcome is not None and judgement.outcome.name == LETTER_SCORE


def _of_own_lexicon(judgement: Judgement) -> str:
    """Return why warnings of letters are taken as recorded; empty where they are read again."""
    if _scorer_of(judgement):
        return ""
    return "its warnings are by the project's own lexicon: as recorded"


def _unlike_logged(finding: Finding, logged: Mapping[str, Any]) -> list[str]:
    """Differences between *finding* and what was written when it was judged: also of what no
    analysis derives, as its justification.
    """
    mine: dict[str, Any] = finding.to_dict()
    for key in ("session", "judged_in"):
        mine["details"].pop(key, None)
    return _differences(mine, {**mine, **logged}, "")


def _again(
    judgement: Judgement, frame: pd.DataFrame, finding: Finding, approved: Any, run: RunRecords
) -> Finding:
    """The finding that the judgement's table comes to, with the controls that its test declares."""
    again = _analysed(judgement, frame, finding, approved, run)
    return replace(again, controls=controls_of(again, judgement.controls))


def _analysed(
    judgement: Judgement, frame: pd.DataFrame, finding: Finding, approved: Any, run: RunRecords
) -> Finding:
    arguments = dict(judgement.arguments)
    if isinstance(arguments.get("cluster"), list):
        arguments["cluster"] = tuple(arguments["cluster"])
    if judgement.analysis == "baseline":
        return _against_baseline(judgement, arguments, frame, finding, approved)
    analyze = analysis_called(judgement.analysis)

    def judged(rows: pd.DataFrame, **changed: Any) -> Finding:
        outcome = {}
        if judgement.analysis != "preference":
            outcome = {"outcome": judgement.outcome_in(rows)}
        made: Finding = analyze(rows, **outcome, **{**arguments, **changed})
        return made

    if not judgement.looks:
        return judged(frame)
    written = looks_of(finding) or {}
    plan = plan_from(judgement.looks)
    _check_budget(plan, judgement, run)
    looking = Looking(plan, drops_groups=judgement.analysis in DROPPING)
    for _ in written.get("made", ()):
        if looking.ended:
            raise StoreError("it looks on after it was decided")
        look = looking.next_look()
        rows = _table_at(look, judgement, run, rows_at(look, frame, looking.fewer))
        at_look = judged(rows, _look=look)
        looking.take(look, at_look, trials_in(rows))
        record = look_record(
            look, at_look, rows, place=judgement.place, following=looking.following
        )
        _check_record(record, judgement, run)
    if not looking.made or not (looking.ended or written.get("stopped")):
        raise StoreError("it says of no look that decided it")
    return looking.conclusion(str(written.get("stopped", "")), _logged_cost(frame, run))


def _logged_cost(frame: pd.DataFrame, run: RunRecords) -> float:
    """Return what the trials of *frame* cost in dollars by the log, which alone has that."""
    import pandas as pd

    if "key" not in frame.columns:
        return 0.0
    costs: list[float | None] = []
    for record in run.records(frame["key"].tolist()):
        cost = None
        if record is not None:
            cost = record["cost"]
        costs.append(cost)
    return cost_of(frame.assign(cost=pd.Series(costs, index=frame.index, dtype=float)))


def _table_at(
    look: Look, judgement: Judgement, run: RunRecords, rows: pd.DataFrame
) -> pd.DataFrame:
    """Return the table that *look* read: that of the log, where the last look's is another on its
    *rows*, else these.
    """
    place = judgement.session, judgement.test, judgement.place, look.number
    for record in _logged_looks(run).tables.get(place, ()):
        logged = msgspec.structs.replace(judgement, columns=record["table"], rows=record["rows"])
        return logged.frame()
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _LoggedLooks:
    """The looks in the log of a run: what was ``fixed`` before the first call, None of a run
    without; and the records of each that was ``made``, by session, test, place and number: several
    of a test that ran again. ``tables`` are those that the log has of a look's own.
    """

    fixed: Mapping[str, Any] | None
    made: Mapping[tuple[Any, ...], Sequence[Mapping[str, Any]]]
    tables: Mapping[tuple[Any, ...], Sequence[Mapping[str, Any]]]


@lru_cache(maxsize=1)
def _logged_looks(run: RunRecords) -> _LoggedLooks:
    """Return the looks in the log of *run*, read once for all its findings."""
    fixed = None
    for record in run.of_type(LOOKS):
        fixed = record["looks"]
    return _LoggedLooks(
        fixed=fixed,
        made=_by_look(run.of_type("look")),
        tables=_by_look(run.of_type(TABLE_OF_A_LOOK)),
    )


def _by_look(
    records: Iterable[Mapping[str, Any]],
) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    """Return *records* by the session, test, place and number of the look that they are of."""
    by_look: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        place = record["session"], record["test"], record["place"], record["number"]
        by_look[place].append(record)
    return by_look


def _check_budget(plan: LookPlan, judgement: Judgement, run: RunRecords) -> None:
    """Raise StoreError where the *plan* may spend more on red than what was fixed of the run's
    looks leaves any assertion.
    """
    alpha = judgement.arguments.get("alpha", 1.0)
    fixed = _logged_looks(run).fixed
    if fixed is not None:
        most = budget_in_run(fixed, 0, alpha)
        if plan.red > most and not math.isclose(plan.red, most, rel_tol=_RELATIVE):
            raise StoreError(f"its looks spend {plan.red:.4g} on red, and may {most:.4g}")


def _check_record(made: Mapping[str, JSON], judgement: Judgement, run: RunRecords) -> None:
    """Raise StoreError where the log does not have the look that was *made* for *judgement*, as it
    came out.
    """
    look = f"look {made['number']}"
    wrong = [f"{look} is not in the log"]
    place = judgement.session, judgement.test, judgement.place, made["number"]
    for record in _logged_looks(run).made.get(place, ()):
        wrong = _differences(dict(made), {name: record.get(name) for name in made}, look)
        if not wrong:
            return
    raise StoreError("; ".join(wrong[:3]))


def _against_baseline(
    judgement: Judgement,
    arguments: dict[str, Any],
    frame: pd.DataFrame,
    finding: Finding,
    approved: Any,
) -> Finding:
    from pytest_fairness.analysis.approvals import approved_all_the_same
    from pytest_fairness.analysis.baseline import comparison, first_approval, scores_of

    outcome = judgement.outcome_in(frame)
    warnings = arguments["warnings"]
    if outcome is None:
        raise StoreError("the judgement has no score")
    outcome = replace(outcome, scorer=_scorer_of(judgement))
    if warnings in frame:  # kept as text
        frame[warnings] = list(map(_warning, frame[warnings]))
    summary = scores_of(frame, outcome, arguments)
    before, document = approved
    if document is not None and to_json(document.summary.to_dict()) != _rounded(summary, document):
        raise StoreError("what was approved are not the scores of this run")
    if before is None:
        return first_approval(finding, summary, frame)
    comparison_ = comparison(before.summary, summary, frame, outcome, arguments)
    if document is not None:
        return approved_all_the_same(comparison_, document.approval)
    return comparison_


def _warning(kept: Any) -> Any:
    """Return a warning as its scorer gave it: a list or a mapping is *kept* as JSON."""
    if isinstance(kept, str) and kept[:1] in "[{":
        return json.loads(kept)
    return kept


def _rounded(summary: Any, document: BaselineDocument) -> Any:
    """*summary* as it would stand in the *document*."""
    text = replace(document, summary=summary).to_text().encode("utf-8")
    return to_json(
        BaselineDocument.from_bytes(text, where="the scores of this run").summary.to_dict()
    )


def _approved(finding: Finding, baselines: Baselines) -> tuple[Any, str]:
    """The document that *finding* was compared with, and the one that was approved by it, if one
    was; or why not.
    """
    baseline = finding.details.get("baseline")
    if not isinstance(baseline, Mapping):
        return None, "it does not say which baseline it was compared with"
    file = str(baseline.get("file"))
    digest = str(baseline.get("digest"))
    document = baselines(baseline, digest)
    if document is None:
        return None, f"{file} is not to be had as it was then ({digest[:19]}…): taken as recorded"
    if not baseline.get("written"):
        return (document, None), ""
    if not finding.pairs:
        return (None, document), ""
    before = None
    if document.approval and document.approval.previous_digest:
        before = baselines(baseline, document.approval.previous_digest)
    if before is None:
        return (
            None,
            f"the version of {file} before that approval is not to be had: taken as recorded",
        )
    return (before, document), ""


def _compared(finding: Finding, again: Finding) -> list[str]:
    """Return where *finding* and the one derived differ, in words."""
    wrong = _differences(_essence(finding), _essence(again), "")
    for note in again.notes:
        if note not in finding.notes:
            wrong.append(f"it leaves out the note {note!r}")
    return wrong


def _essence(finding: Finding) -> dict[str, Any]:
    """Return what an analysis derives of *finding*."""
    data: dict[str, Any] = finding.to_dict()
    for key in _BESIDE:
        data.pop(key, None)
    data["family"].pop("false_alarm", None)
    for key in ("session", "sensitivity", "baseline", "reader", "persons", "read_by", "judged_in"):
        data["details"].pop(key, None)
    return data


def _within(where: str, differences: Iterable[str]) -> list[str]:
    """Return *differences*, each with where it is."""
    return [f"{where}: {difference}" for difference in differences]


def _differences(mine: Any, its: Any, place: str) -> list[str]:
    """``verdict is 'PASS', and the log gives 'FAIL'`` for each value that differs by more than the
    last digits.
    """
    if mine == its:
        return []
    wrong: list[str] = []
    if isinstance(mine, dict) and isinstance(its, dict):
        for key in {**mine, **its}:
            inner = f"{place}.{key}".strip(".")
            wrong += _differences(mine.get(key), its.get(key), inner)
        return wrong
    if isinstance(mine, list) and isinstance(its, list) and len(mine) == len(its):
        for at, pair in enumerate(zip(mine, its, strict=True)):
            wrong += _differences(*pair, f"{place}[{at}]")
        return wrong
    if _are_alike(mine, its):
        return []
    return [f"{place} is {mine!r:.200}, and the log gives {its!r:.200}"]


def _are_alike(mine: Any, its: Any) -> bool:
    """Return whether two values are the same; of numbers, but for the last digits."""
    if is_number(mine) and is_number(its):
        return math.isclose(mine, its, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
    return bool(mine == its)


# ---------------------------------------------------------------- the table of a judgement


def _check_table(
    judgement: Judgement, frame: pd.DataFrame, reader: RunReader
) -> tuple[list[str], str, list[Any]]:
    """Differences between the rows of *frame* and the log; in words how its scores were had; the
    replies.
    """
    if "key" not in frame:
        return [], "as the test gave them", [None] * len(frame)
    wrong: list[str] = []
    replies: list[Any] = []
    prompts: list[str] = []
    asked = _of_cells(frame, reader)
    columns = {str(name): frame[name].tolist() for name in frame.columns}
    for at, record in enumerate(asked):
        row = {name: values[at] for name, values in columns.items()}
        if record is None:
            replies.append(None)
            prompts.append("")
            if row.get("status") not in ("not_run", None):
                wrong.append(f"row {at + 1} is of a trial that the log does not have")
            continue
        trial = trial_of(record)
        replies.append(trial.reply)
        prompts.append(record["cell"]["turns"][-1])
        expected = _expected(record, trial, row)
        unlike = _unlike_row(row, expected, judgement.changed)
        wrong += _within(f"row {at + 1}", unlike)
    turns = _ReadingTurns.of(judgement, reader)
    texts = list(zip(replies, prompts, strict=True))
    scored, differing = _read_again(judgement, frame, replies, turns, texts)
    if judgement.changed:
        scored += f"; {listed(judgement.changed)} as the test changed it before it judged"
    return [*wrong, *differing], scored, replies


def _unlike_pilot(judgement: Judgement, frame: pd.DataFrame, reader: RunReader) -> list[str]:
    """Return which texts of *frame* the pilot of its test did not choose."""
    record = _logged_pilots(reader).get(judgement.test)
    if record is None or "template" not in frame:
        return []
    texts = set(frame["template"].dropna())
    if "signal" in frame:  # of a class with several signals each text is one of its own
        for text, signal in frame[["template", "signal"]].drop_duplicates().dropna().to_numpy():
            texts.add(text.removeprefix(f"{slug(signal)}-"))
    left_out = texts_not_chosen(record, texts)
    return [f"its pilot did not choose {text}" for text in left_out]


@lru_cache(maxsize=1)
def _logged_pilots(run: RunRecords) -> dict[str, Mapping[str, Any]]:
    """Return what the pilot of each test of *run* chose, by the test; of several the first."""
    return {record["test"]: record for record in reversed(run.of_type(PILOT))}


def _unlike_row(
    row: Mapping[str, Any], expected: Mapping[str, Any], changed: Container[str]
) -> Iterator[str]:
    """Yield where a row of a table is not as *expected*, but for columns that the test *changed*."""
    for name, value in expected.items():
        if name in row and name not in changed and not _same(row[name], value):
            yield (
                f"{name} is {row[name]!r:.80}, and the log has {value!r:.80} (or the test changed "
                "it)"
            )


def _of_cells(frame: pd.DataFrame, reader: RunReader) -> Iterator[dict[str, Any] | None]:
    """The record of each row's trial: with the row's own cell, where several share a reply."""
    shared = reader.shared_cells
    if "cell" in frame:
        cells = frame["cell"].tolist()
    else:
        cells = [None] * len(frame)
    for cell, asked in zip(cells, reader.records(frame["key"].tolist()), strict=True):
        if asked is None:
            yield None
        else:
            yield {**asked, "cell": shared.get((asked["key"], cell), asked["cell"])}


def _expected(record: Mapping[str, Any], trial: Any, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the log says of a row, by column; of a choice, who was listed where."""
    cell = record["cell"]
    groups = record["cell"]["groups"]
    attributes = record["cell"]["attributes"]
    expected: dict[str, Any] = {
        "cell": cell["id"],
        "repetition": trial.repetition,
        "status": trial.status.value,
        "model": trial.model,
    }
    expected |= {name: cell[name] for name in ("template", "arm", "tier", "signal")}
    expected |= {"refused": trial.status.value == "refused", "endpoint": record["endpoint"]["name"]}
    if trial.source == SIMULATED:
        expected["simulated"] = True
    if "replay_of" in record:
        expected["replayed"] = True
    if "group_1" not in attributes:
        return expected | {"name": cell["name"], "persona": cell["persona"], **groups}
    seat = row.get("position", 1)
    seats = {
        "first": ("group", 1),
        "second": ("group", 2),
        "first_name": ("name", 1),
        "second_name": ("name", 2),
    }
    seats |= {"group": ("group", seat), "candidate": ("name", seat)}
    return expected | {
        column: attributes.get(f"{what}_{place}") for column, (what, place) in seats.items()
    }


def _read_again(
    judgement: Judgement,
    frame: pd.DataFrame,
    replies: Sequence[Any],
    turns: _ReadingTurns | None,
    texts: Sequence[tuple[Any, str]],
) -> tuple[str, list[str]]:
    """Return how the scores of *frame* were had, and which differ from what the scorer makes of
    *replies*.
    """
    outcome = judgement.outcome
    columns = {*map(str, frame.columns)}
    if not _READ_OFF.isdisjoint(judgement.changed):
        return "scores as recorded", []
    if {"choice", "chosen"} <= columns:
        again = _choices(frame, replies)
        wrong: list[str] = []
        for name, values in again.items():
            wrong += _unlike(frame[name].tolist(), values, name)
        beside = ""
        if outcome is not None and outcome.name not in again:
            beside = f", {outcome.name} as recorded"
        return f"choices read again{beside}", wrong
    if outcome is None:
        return "taken as recorded", []
    scorer = _scorer_of(judgement)
    if turns is not None and outcome.scorer:
        values = turns.scores(_by_rules(frame, outcome.name, scorer, replies), outcome.kind, texts)
        how = f"{outcome.name} read again, with what {turns.endpoint} answered"
        return how, _unlike_scores(frame, outcome.name, values)
    if not outcome.scorer:
        return f"the column {outcome.name} as recorded", []
    if scorer is None:
        other = "the project's own scorer"
        if outcome.name in BUILT_IN:
            other = "another version of the scorer"
        return f"scores of {other} {outcome.name} as recorded", []
    values = _by_rules(frame, outcome.name, scorer, replies)
    return f"{outcome.name} read again", _unlike_scores(frame, outcome.name, values)


def _unlike_scores(frame: pd.DataFrame, name: str, again: Sequence[Any]) -> list[str]:
    """Return where the outcome *name* of *frame* differs from what is read *again*, but for replies
    that a person alone could read.
    """
    recorded = frame[name].tolist()
    if READ_BY not in frame:
        return _unlike(recorded, again, name)
    expected = []
    for score, other, read_by in zip(recorded, again, frame[READ_BY], strict=True):
        if read_by == ReadBy.PERSON:
            expected.append(score)
        else:
            expected.append(other)
    return _unlike(recorded, expected, name)


def _by_rules(
    frame: pd.DataFrame, name: str, scorer: Scorer | None, replies: Sequence[Any]
) -> list[Any]:
    """Return the outcome *name* of each row of *frame* as *scorer* reads it off *replies*; None of
    each without a scorer.
    """
    if scorer is None:
        return [None] * len(frame)
    with any_text():
        read = frame.drop(columns=[name]).assign(reply=list(replies))
    return outcome_of(read, scorer).values.tolist()


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadingTurns:
    """Answers of the model *endpoint* about replies, by *task*: by the digest of a reply, the
    option that it named in each order.
    """

    endpoint: str
    task: ReadingTask
    options: Mapping[str, Sequence[str | Unread]]

    @classmethod
    def of(cls, judgement: Judgement, reader: RunReader) -> Self | None:
        """Return those that *judgement* rests on; None where no model read. Raises UsageError where
        another version would ask otherwise.
        """
        facts = judgement.finding.get("details", {}).get("reader")
        if not facts:
            return None
        task = ReadingTask.from_dict(facts["task"])
        options: dict[str, list[str | Unread]] = defaultdict(list)
        # A leak test and a second reader have answered, too.
        for endpoint, cell, reply in _logged_turns(reader):
            about = cell["attributes"]
            if endpoint == facts["endpoint"] and about["task"] == task.digest:
                options[about["reply"]].append(task.read(reply, about["options"]))
        return cls(endpoint=facts["endpoint"], task=task, options=options)

    def scores(
        self, by_rules: Sequence[Any], kind: str | None, texts: Sequence[tuple[Any, str]]
    ) -> list[Any]:
        """Return the score of each of *texts*, a reply and its prompt: that *by_rules*, else by
        what the model answered.
        """
        values = []
        for score, (reply, prompt) in zip(by_rules, texts, strict=True):
            by_model = self._score(reply, prompt)
            by_rule = score
            if _is_missing(score):
                by_rule = None
            if by_model is None or not is_left_for_a_model(kind, by_rule):
                values.append(by_rule)
            else:
                values.append(score_by_model(kind, by_model))
        return values

    def _score(self, reply: Any, prompt: str) -> Any:
        """Return what the model's answers about *reply* come to; None where it was not asked."""
        if not isinstance(reply, str):
            return None
        shown = None
        if self.task.shows_prompt:
            shown = prompt
        options = self.options.get(digest_of(reply, shown), ())
        if len(options) < len(ORDERS):
            return None
        return self.task.score(options)


@lru_cache(maxsize=1)
def _logged_turns(run: RunReader) -> list[tuple[str, Mapping[str, Any], Any]]:
    """Return the reading turns of *run*: who was asked, the cell, and the answer."""
    turns = []
    for record in run.all_records():
        if record["cell"]["template"] == READING:
            turns.append((record["endpoint"]["name"], record["cell"], trial_of(record).reply))
    return turns


def _scorer_of(judgement: Judgement) -> Scorer | None:
    """The built-in scorer by which *judgement* read the replies; None where it was another, or
    none.
    """
    outcome = judgement.outcome
    if outcome is None:
        return None
    scorer = BUILT_IN.get(outcome.name)
    if scorer is None or scorer.fingerprint != outcome.scorer:
        return None
    return scorer


def _choices(frame: pd.DataFrame, replies: Sequence[Any]) -> dict[str, list[Any]]:
    """Return what stands in the columns ``chosen`` (of two: a group or ``neither``; of more: yes or
    no for each) and, of a ranking, ``rank``, read from *replies*.
    """
    texts = _without_refusals(frame, replies)
    asked = AskedChoice.of(design_of(frame).answer)
    if "position" not in frame:
        return {"chosen": _chosen_of_two(frame, texts, asked)}
    trials = frame["trial"].tolist()
    positions = list(map(int, frame["position"]))
    seats = list(zip(trials, positions, strict=True))
    slates = _slates(frame, seats)
    # Every row of a trial has its reply.
    by_trial = dict(zip(reversed(trials), reversed(texts), strict=True))
    if "rank" in frame:
        ranks: list[float | None] = []
        rankings = {
            trial: ranks_in(by_trial[trial], names, asked) for trial, names in slates.items()
        }
        for trial, position in seats:
            ranking = rankings[trial]
            if ranking is None:
                ranks.append(None)
            else:
                ranks.append(ranking[position - 1])
        return {"rank": ranks, "chosen": [rank == 1.0 for rank in ranks]}
    numbers = {
        trial: choice_in(by_trial[trial], names, asked).number for trial, names in slates.items()
    }
    return {"chosen": [numbers[trial] == position for trial, position in seats]}


def _without_refusals(frame: pd.DataFrame, replies: Sequence[Any]) -> list[Any]:
    """Return the *replies*, None for each that was refused."""
    if "refused" not in frame:
        return list(replies)
    texts = list(replies)
    for place, refused in enumerate(frame["refused"].tolist()):
        if refused:
            texts[place] = None
    return texts


def _slates(frame: pd.DataFrame, seats: Sequence[tuple[Any, int]]) -> dict[Any, list[Any]]:
    """Return the names that each trial listed, in the order of their *seats*."""
    shown: dict[Any, dict[int, Any]] = defaultdict(dict)
    for (trial, position), name in zip(seats, frame["candidate"], strict=True):
        shown[trial][position] = name
    return {trial: list(map(names.get, range(1, max(names) + 1))) for trial, names in shown.items()}


def _chosen_of_two(
    frame: pd.DataFrame, texts: Sequence[Any], asked: AskedChoice | None
) -> list[str | None]:
    """Return the group that each of *texts* chooses, or ``neither``."""
    groups = zip(frame["first"].tolist(), frame["second"].tolist(), strict=True)
    names = zip(frame["first_name"].tolist(), frame["second_name"].tolist(), strict=True)
    return list(map(group_chosen, map(choice_in, texts, names, repeat(asked)), groups))


def _unlike(recorded: Sequence[Any], again: Sequence[Any], what: str) -> list[str]:
    unlike = []
    for number, (value, other) in enumerate(zip(recorded, again, strict=True), 1):
        if not _same(value, other):
            unlike.append(
                f"row {number}: {what} is {value!r:.60}, and the reply gives {other!r:.60}"
            )
    return unlike


def _same(first: Any, other: Any) -> bool:
    """Return whether two values of a table agree: numbers but for the last digits, and both may be
    missing.
    """
    if first == other:  # as nearly all of a table are
        return True
    missing = [_is_missing(first), _is_missing(other)]
    if any(missing):
        return all(missing)
    return _are_alike(first, other)


def _is_missing(value: Any) -> bool:
    """Return whether *value* is None or NaN."""
    return value is None or bool(value != value)  # noqa: PLR0124 - NaN alone differs from itself


# ---------------------------------------------------------------- words


def _few(problems: Iterable[str]) -> list[str]:
    """The first of *problems*, and how many more there are."""
    all_ = list(problems)
    if len(all_) > _MOST:
        return [*all_[:_MOST], f"and {len(all_) - _MOST:,} more like it"]
    return all_
