"""``findings.json``: what a run asked and concluded, in one file that every report is made from."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

import msgspec

from pytest_fairness.analysis import false_alarms
from pytest_fairness.analysis.looks import looks_of
from pytest_fairness.baselines.mitigations import Mitigation, followed_up
from pytest_fairness.errors import FairnessError
from pytest_fairness.model import (
    JSON,
    NOT_COMPUTED,
    Finding,
    Verdict,
    deciding_pair,
    to_json,
)
from pytest_fairness.runs.files import write_atomically
from pytest_fairness.runs.manifest import NAME as MANIFEST
from pytest_fairness.runs.manifest import retain_until
from pytest_fairness.runs.totals import RunTotals, counted_trials, money
from pytest_fairness.scorers.reading_turn import READING

NAME = "findings.json"
#: The version of ``findings.schema.json``; what each reads is in docs/decisions/0126.
SCHEMA = 2
_READ = (1, SCHEMA)
#: The id of an item of a test that asks about several classes: the test, and the number of the item
#: (``BIAS-HIRE-005``) or the class (``BIAS-HIRE-gender``, ``BIAS-HIRE-gender-graded``).
OF_SEVERAL = re.compile(r"([A-Z][A-Z0-9_-]*)-(\d+|[a-z][a-z_]*(?:-[a-z0-9]+)?)")
#: What the summary counts findings by: fields of a finding.
BREAKDOWN = ("test_module", "protected_class", "tier", "model_endpoint")
#: What stands there for a finding that has none.
NONE = "none"

#: What may be asked again on request.
_RUN = (
    "id",
    "started",
    "finished",
    "command",
    "seed",
    "versions",
    "git_commit",
    "run_by",
    "replay_of",
    "shard",
    "notes",
    "exit_status",
)


class Unjudged(msgspec.Struct, frozen=True, kw_only=True):
    """Trials of a test that concluded nothing: so many ``trials`` for so many US dollars, and
    ``unpriced`` ones beside; ``dropped`` are comparisons that it made and did nothing with.
    """

    trials: int
    cost: float = 0.0
    unpriced: int = 0
    dropped: tuple[str, ...] = ()


class ItemResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one test: pytest's own word, its message, and the places of its findings in
    ``findings``.

    ``file``, from the project's root on, and ``line``, from 1, are where the test is written, as
    far as that is known. ``judged_in`` names the run, and its session, in which the findings were
    judged, where that is not this one. ``unjudged``: it asked for a table of trials, passed, and
    drew no finding.
    """

    nodeid: str
    outcome: str
    message: str = ""
    file: str = ""
    line: int | None = None
    findings: tuple[int, ...] = ()
    judged_in: str = ""
    unjudged: Unjudged | None = None


@dataclass(frozen=True, kw_only=True)
class RunResults:
    """A run's findings with the tests that made them.

    ``run`` describes the run (id, started, finished, command, seed, endpoints, models, simulated,
    replayed, versions, git_commit, parameters, trials, cost, unpriced, charged_at_worst_case,
    session); ``missing`` names collected tests that never finished. A run is ``simulated`` or
    ``replayed`` where anything in it is.
    """

    run: Mapping[str, Any]
    items: tuple[ItemResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[Verdict, int]:
        """Findings by verdict, worst first."""
        counted = Counter(finding.verdict for finding in self.findings)
        return {
            verdict: counted[verdict]
            for verdict in sorted(Verdict, key=lambda verdict: -verdict.severity)
        }

    @property
    def failed(self) -> tuple[ItemResult, ...]:
        """The tests that failed or could not run."""
        return tuple(item for item in self.items if item.outcome in ("failed", "error"))

    @property
    def simulated(self) -> bool:
        of_findings = [finding.simulated for finding in self.findings]
        return any((self.run.get("simulated"), *of_findings))

    @property
    def replayed(self) -> bool:
        of_findings = [finding.replayed for finding in self.findings]
        return any((self.run.get("replayed"), *of_findings))

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The names of the systems that were asked."""
        return tuple(map(str, self._listed("endpoints")))

    @property
    def models(self) -> Sequence[Mapping[str, Any]]:
        """Each endpoint with the model that was asked for and those that answered."""
        return self._listed("models")

    @property
    def notes(self) -> Sequence[Any]:
        """Remarks that a reader of the run has to know besides its findings."""
        return self._listed("notes")

    @property
    def trials(self) -> int:
        """The number of trials of the run, however they ended."""
        return (self.run.get("trials") or {}).get("total") or 0

    def _listed(self, key: str) -> Sequence[Any]:
        """Return a list that the description of the run holds, or may lack."""
        return self.run.get(key) or ()

    @property
    def session(self) -> Mapping[str, Any]:
        """Return what holds across the session: how many findings on tables were adjusted, by which
        method; how many look; and the chance that alarms turn it red about fair systems.
        """
        session_ = self.run.get("session")
        if isinstance(session_, Mapping):
            return session_
        return {}

    @cached_property
    def summary(self) -> dict[str, JSON]:
        """Return how many findings there are of each verdict: all, of INCONCLUSIVE each reason, and
        by test module, protected class, tier and endpoint; and how many tests ended how.
        """
        by: dict[str, JSON] = {}
        for name in BREAKDOWN:
            counted: dict[str, Counter[Verdict]] = {}
            for finding in self.findings:
                counted.setdefault(str(getattr(finding, name) or NONE), Counter())[
                    finding.verdict
                ] += 1
            by[name] = {
                key: {str(count): counted[key][count] for count in self.counts}
                for key in sorted(counted)
            }
        reasons: Counter[str] = Counter()
        for finding in self.findings:
            if finding.reason is not None:
                reasons[str(finding.reason)] += 1
        return {
            "findings": len(self.findings),
            "verdicts": {str(verdict): count for verdict, count in self.counts.items()},
            "inconclusive": dict(sorted(reasons.items())),
            "by": by,
            "tests": dict(sorted(Counter(item.outcome for item in self.items).items())),
            "never_finished": len(self.missing),
        }

    @property
    def mitigations(self) -> Sequence[Mapping[str, Any]]:
        """The entries of ``mitigations.yaml``, each with what this run says of it."""
        entries = self.run.get("mitigations")
        if isinstance(entries, list):
            return entries
        return ()

    @property
    def named(self) -> list[tuple[Finding, str, str]]:
        """Each finding with the test that made it and its id."""
        return [
            (finding, self.maker_of(at).nodeid, self.ids[at])
            for at, finding in enumerate(self.findings)
        ]

    def maker_of(self, index: int) -> ItemResult:
        """The test that made the finding at *index*; one without a name where no test claims it."""
        return self._makers.get(index, ItemResult(nodeid="", outcome=""))

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Return what each finding is called in every report, link and file: the same as in an
        earlier run, where the same test makes the same comparison.
        """
        ids_: list[str] = []
        seen: set[str] = set()
        for at, finding in enumerate(self.findings):
            about = [
                self.test_of(at),
                finding.assertion,
                finding.outcome,
            ]
            about += [
                finding.protected_class,
                finding.model_endpoint or "",
                str(finding.tier or ""),
            ]
            text = "\0".join(about)
            identity = _identity(text)
            again = 0
            while identity in seen:
                again += 1
                identity = _identity(f"{text}{again}")
            seen.add(identity)
            ids_.append(identity)
        return tuple(ids_)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each finding by its id."""
        return {identity: at for at, identity in enumerate(self.ids)}

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The places of the findings, the worst first: by verdict, corrected p-value and effect."""

        def badness(at: int) -> tuple[float, ...]:
            finding = self.findings[at]
            p = 1.0
            if finding.corrected_p_value is not None:
                p = finding.corrected_p_value
            size = 0.0
            deciding = deciding_pair(finding.pairs)
            if deciding is not None:
                size = abs(deciding.effect)
            return -finding.verdict.severity, p, -size

        return tuple(sorted(range(len(self.findings)), key=badness))

    def test_of(self, at: int) -> str:
        """The test that made the finding at a place: by its item, or else by the finding's own
        account.
        """
        return self.maker_of(at).nodeid or self.findings[at].test_id

    def label_of(self, at: int) -> str:
        """The test that made the finding at a place, behind the id that it has of its own:
        ``BIAS-HIRE-005 · test_hiring.py::test_invitation``.
        """
        test = self.test_of(at)
        identity = self.item_of(at)
        if identity:
            return f"{identity} · {test}"
        return test

    def item_of(self, at: int) -> str:
        """The id, as ``BIAS-HIRE-005``, of the item that made the finding at a place; empty where
        it has none of its own.
        """
        identity = self.findings[at].test_id
        if OF_SEVERAL.fullmatch(identity):
            return identity
        return ""

    def place_of(self, at: int) -> tuple[str, int]:
        """The test that made the finding at a place, and the how-manieth of its findings it is: as
        in the run's judgements; −1 where they were judged in another session or run.
        """
        maker = self.maker_of(at)
        if maker.judged_in:
            return maker.nodeid, -1
        if at in maker.findings:
            return maker.nodeid, maker.findings.index(at)
        return maker.nodeid, 0

    @cached_property
    def _makers(self) -> dict[int, ItemResult]:
        return {index: item for item in reversed(self.items) for index in item.findings}

    def to_dict(self) -> dict[str, JSON]:
        """``findings.json`` as plain JSON."""
        return {
            "schema": SCHEMA,
            "run": to_json(self.run),
            "summary": self.summary,
            "items": list(map(msgspec.to_builtins, self.items)),
            "findings": [
                {"id": self.ids[index], **finding.to_dict(), "nodeid": self.maker_of(index).nodeid}
                for index, finding in enumerate(self.findings)
            ],
            "missing": list(self.missing),
        }

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """The inverse of :meth:`to_dict`; of a file of schema 1 too. Raises FairnessError for
        another schema or shape.

        Ids and the summary follow from the findings and are not read.
        """
        if not isinstance(data, dict):
            raise FairnessError("findings are a JSON object with a schema; this is none")
        if data.get("schema") not in _READ:
            raise FairnessError(
                f"findings of schema {data.get('schema')!r} cannot be read by this version, which "
                "reads "
                f"{' and '.join(map(str, _READ))}: read them with the version that wrote them"
            )
        try:
            return cls(
                run=dict(data["run"]),
                items=msgspec.convert(data["items"], tuple[ItemResult, ...]),
                findings=tuple(map(_finding, data["findings"])),
                missing=msgspec.convert(data.get("missing", ()), tuple[str, ...]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FairnessError(
                f"findings have another shape than schema {SCHEMA} ({error!r})"
            ) from error


def sources_of(results: RunResults) -> list[str]:
    """Return where replies come from, if not from a system: ``simulated``, ``replayed``."""
    marks = {"simulated": results.simulated, "replayed": results.replayed}
    return [mark for mark, applies in marks.items() if applies]


def end_of(results: RunResults) -> str:
    """Return when the run ended, in ISO 8601; empty where it did not."""
    return str(results.run.get("finished") or "")


def end_or_start_of(results: RunResults) -> str:
    """Return when the run ended, or else when it began; empty where neither is known."""
    return end_of(results) or str(results.run.get("started") or "")


def _identity(text: str) -> str:
    """Return what a finding is called that *text* tells apart from others."""
    return f"f-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def _finding(data: Mapping[str, Any]) -> Finding:
    """A finding of the file; those of schema 1 have nothing where nothing was computed."""
    finding = Finding.from_dict(
        {key: value for key, value in data.items() if key not in ("id", "nodeid")}
    )
    statistic = finding.test_statistic or NOT_COMPUTED
    effect = finding.effect_size or NOT_COMPUTED
    return replace(finding, test_statistic=statistic, effect_size=effect)


def read_results(run_dir: Path) -> RunResults:
    """The results of the run in the folder *run_dir*, or in a copy of its ``findings.json`` at that
    path.

    Raises FairnessError if there are none or they cannot be read.
    """
    path = run_dir
    if not run_dir.is_file():
        path = run_dir / NAME
    try:
        status = path.stat()
        return _read(path, (status.st_ino, status.st_mtime_ns, status.st_size))
    except FileNotFoundError:
        if not (run_dir / MANIFEST).exists():
            raise FairnessError(f"{run_dir} holds no {NAME}: it is no run's folder") from None
        raise FairnessError(
            f"{run_dir} holds no {NAME}: its session ended before it had judged. What was asked is "
            "kept: finish it "
            f"with --fairness-resume={run_dir.name}, judge what is there with pytest "
            f"--fairness-replay={run_dir}, or "
            f"write its records out with pytest-fairness export {run_dir}"
        ) from None
    except FairnessError as error:
        raise FairnessError(f"{path}: {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise FairnessError(f"{path} cannot be read: {error}") from error


@lru_cache(maxsize=2)  # every report reads them, and perhaps those of an earlier run
def _read(path: Path, _state: tuple[int, ...]) -> RunResults:
    return RunResults.from_dict(json.loads(path.read_bytes()))


def conclude(
    run_dir: Path,
    manifest: Mapping[str, Any],
    ledger: Mapping[str, Any],
    mitigations: Sequence[Mitigation] = (),
) -> RunResults:
    """The results of a run from its *manifest*, the *ledger* (items, findings, missing) and
    what is done about findings (*mitigations*).

    Trials are counted from the run's own logs. Findings are adjusted across the session: each
    p-value, what the session's alpha makes of it, and how likely a fair system would have turned
    the session red.
    """
    results = RunResults.from_dict({**ledger, "schema": SCHEMA, "run": _run(run_dir, manifest)})
    able: list[Finding] = []
    tables: list[Finding] = []
    looking: list[Finding] = []
    for at, finding in enumerate(results.findings):
        # A test that is expected to fail cannot turn the session red by its alarm.
        if results.maker_of(at).outcome in ("xfailed", "xpassed", "skipped"):
            continue
        able.append(finding)
        if looks_of(finding) is None:
            tables.append(finding)
        else:
            looking.append(finding)
    session = {
        "method": "holm",
        "findings": len(tables),
        "judged_once": sum(false_alarms.of_finding(finding) is not None for finding in tables),
        "alpha": results.run["parameters"].get("session_alpha"),
        "looks": len(looking),
        "false_alarm_of_looks": _false_alarm(looking),
        "false_alarm": _false_alarm(able),
    }
    run = {**results.run, "session": session}
    if mitigations:
        day = datetime.datetime.now(datetime.UTC).date()
        last_known = end_or_start_of(results)
        if last_known:
            day = datetime.date.fromisoformat(last_known[:10])
        run["mitigations"] = followed_up(mitigations, results.named, day)
    return replace(results, run=run, findings=false_alarms.adjusted(results.findings))


def _false_alarm(findings: Sequence[Finding]) -> float | None:
    """Return how often one of *findings* is red about fair systems; None where nothing is known."""
    chances = [share for share in map(false_alarms.of_finding, findings) if share is not None]
    if not chances:
        return None
    return false_alarms.of_session(chances)


def save_results(results: RunResults, run_dir: Path) -> None:
    """Replace ``findings.json`` in *run_dir*. ASCII, so that lone surrogates survive; raises
    StoreError.
    """
    text = json.dumps(results.to_dict(), indent=1, allow_nan=False) + "\n"
    write_atomically(run_dir / NAME, text.encode("ascii"))


def _run(run_dir: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of the run: from its manifest, and what the trials in its log add up to."""
    endpoints = [entry for entry in manifest.get("endpoints", []) if isinstance(entry, Mapping)]
    models = {}
    for entry in endpoints:
        models[str(entry.get("name", ""))] = (entry.get("identity") or {}).get("model")
    totals = RunTotals(models)
    for trial in counted_trials(run_dir):
        totals.add(trial, reading=trial.cell.template == READING)
    facts = {key: manifest.get(key) for key in _RUN}
    notes = [*(manifest.get("notes") or ()), *totals.notes()]
    if notes:
        facts["notes"] = notes
    kept = retain_until(manifest)
    if kept is not None:
        facts["retain_until"] = kept.isoformat()
    simulated = any(entry.get("simulated") for entry in endpoints)
    return {
        **facts,
        "id": manifest.get("id") or run_dir.name,
        "endpoints": list(models),
        "models": totals.models(),
        "simulated": simulated or "simulated" in totals.sources,
        "replayed": "replay" in totals.sources or bool(manifest.get("replay_of")),
        "parameters": manifest.get("settings") or manifest.get("parameters") or {},
        "trials": totals.by_status(),
        **money(totals.sums),
        "costs": totals.costs(),
    }
