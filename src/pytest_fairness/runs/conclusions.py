"""The conclusions of a run's sessions, as records of its log: who asked, what was judged, how tests
ended.

A judgement stands until a later one answers it: the same question, on the same rows and those that
were asked since. So a test that is left out, or edited, when a run is resumed or replayed takes no
finding with it. See ``docs/decisions/0160-a-finding-stands.md``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import msgspec

from pytest_fairness.errors import StoreError
from pytest_fairness.model import JSON
from pytest_fairness.runs.judgements import Judgement, all_judgements
from pytest_fairness.runs.reader import RunRecords

#: Types of records: a session begins, an endpoint is first asked, a test has ended, a session has
#: ended, and a judgement of the run that is replayed which the replay did not answer.
SESSION, ENDPOINT, OUTCOME, ENDED, CARRIED = "session", "endpoint", "outcome", "ended", "carried"
#: Type of the record of what is fixed of the looks before the first call.
LOOKS = "looks"
#: Facts of how a test ended, beside its findings.
ITEM = ("outcome", "message", "file", "line")
_FAILING = ("failed", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingJudgement:
    """A judgement that the last session did not answer.

    ``judged_in`` names the run, and its session where there were several; ``item`` says how its
    test ended there; ``replayed``: it is of the run that is replayed.
    """

    judged_in: str
    judgement: Judgement
    item: Mapping[str, JSON]
    replayed: bool = False

    @property
    def fails(self) -> bool:
        """It fails the session, as its test failed."""
        return self.item["outcome"] in _FAILING

    def to_record(self) -> dict[str, Any]:
        """The record of type ``carried``, without the table, which stays in the log of its run."""
        judgement = msgspec.structs.replace(self.judgement, columns="")
        of_run = {"judged_in": self.judged_in, "item": dict(self.item)}
        return {"type": CARRIED, **of_run, "judgement": msgspec.to_builtins(judgement)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_record`. Raises StoreError."""
        try:
            judgement = msgspec.convert(record["judgement"], Judgement)
            place = str(record["judged_in"])
            item = dict(record["item"])
            return cls(judged_in=place, judgement=judgement, item=item, replayed=True)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"a judgement of another run cannot be read ({error})") from error


class Conclusions:
    """The records of type session, endpoint, looks, outcome, ended, judgement and carried of a
    *run*.

    ``name`` is that of the run when its last session began. Raises StoreError where a record cannot
    be read.
    """

    def __init__(self, run: RunRecords) -> None:
        self.endpoints: list[dict[str, Any]] = [
            record["endpoint"] for record in run.of_type(ENDPOINT)
        ]
        #: By the number of the session: several where its processes began at once.
        self.sessions: dict[int, list[dict[str, Any]]] = {}
        for record in run.of_type(SESSION):
            self.sessions.setdefault(record["number"], []).append(record)
        self.last = max(self.sessions, default=0)
        self.name = "an earlier run"
        if self.sessions:
            self.name = str(self.sessions[self.last][-1]["id"])
        #: By the number of the session, and of each test.
        self.outcomes: dict[int, dict[str, dict[str, Any]]] = {}
        for record in run.of_type(OUTCOME):
            self.outcomes.setdefault(record["session"], {})[record["nodeid"]] = record
        self.ended: dict[int, dict[str, Any]] = {
            record["session"]: record for record in run.of_type(ENDED)
        }
        #: What was fixed of the looks before the first call; empty of a run without looks.
        self.looks: dict[str, Any] = {}
        for record in run.of_type(LOOKS):
            self.looks = record["looks"]
        self.judged = all_judgements(run)
        self.carried = [StandingJudgement.from_record(record) for record in run.of_type(CARRIED)]

    @cached_property
    def _by_test(self) -> dict[str, list[int]]:
        """Return the places of the judgements of each test."""
        places: dict[str, list[int]] = {}
        for place, judgement in enumerate(self.judged):
            places.setdefault(judgement.test, []).append(place)
        return places

    def kept(self, session: int, counts: Mapping[str, int]) -> dict[tuple[str, int], Judgement]:
        """The judgements of the findings of a *session*, by test and number: so many a test
        (*counts*).
        """
        judgements = {}
        for judgement in self.judged:
            is_final = judgement.place < counts.get(judgement.test, 0)
            if is_final and judgement.session == session:
                judgements[judgement.test, judgement.place] = judgement
        return judgements

    def counts(self, session: int) -> dict[str, int]:
        """The number of findings with which each test of a *session* ended."""
        return {test: record["findings"] for test, record in self.outcomes.get(session, {}).items()}

    def left(
        self, session: int, counts: Mapping[str, int], replayed: Iterable[StandingJudgement] = ()
    ) -> list[StandingJudgement]:
        """Judgements that stand and are no finding of *session*, the last one, in which each test
        has so many (*counts*): of earlier sessions, of a test's earlier tries, of the run
        *replayed*.

        Raises StoreError where a record cannot be read.
        """
        final = {id(judgement) for judgement in self.kept(session, counts).values()}
        # What was carried over stood when this run ended; no session resumes a replay.
        unanswered = (other for other in replayed if not self._is_answered(other.judgement))
        standing = [*self.carried, *unanswered]
        for place, judgement in enumerate(self.judged):
            if id(judgement) not in final and not self._is_answered(judgement, place):
                standing.append(self._standing(judgement, session))
        return standing

    def concluded(self) -> list[StandingJudgement]:
        """Every judgement that stands: what a replay of this run has to answer. Raises StoreError."""
        return [replace(standing, replayed=True) for standing in self.left(0, {})]

    def _is_answered(self, judgement: Judgement, place: int = -1) -> bool:
        """Look for an answer to *judgement* behind *place*."""
        for later in self._by_test.get(judgement.test, ()):
            if later > place and self.judged[later].answers(judgement):
                return True
        return False

    def _standing(self, judgement: Judgement, last: int) -> StandingJudgement:
        """Return *judgement* with where it was judged, and how its test ended there."""
        judged_in = self.name
        item = self.outcomes.get(judgement.session, {}).get(judgement.test)
        if judgement.session == last:
            judged_in = f"an earlier try in {self.name}"
            item = None
        elif len(self.sessions) > 1:
            judged_in = f"{self.name}, session {judgement.session}"
        if item is None:
            outcome = "passed"
            if _fails_a_test(judgement.finding):
                outcome = "failed"
            item = {"outcome": outcome, "message": "", "file": "", "line": None}
        return StandingJudgement(
            judged_in=judged_in, judgement=judgement, item={name: item[name] for name in ITEM}
        )


def _fails_a_test(finding: Mapping[str, Any]) -> bool:
    """Return whether *finding* fails its test: a FAIL, or a FLAG without a justification."""
    verdict = finding.get("verdict")
    return verdict == "FAIL" or (verdict == "FLAG" and not finding.get("justification"))


def with_standing(ledger: Mapping[str, Any], left: Sequence[StandingJudgement]) -> dict[str, Any]:
    """The *ledger* of a session (items, findings, missing) with the judgements *left* behind its
    own, marked with where they were judged.
    """
    items = list(ledger["items"])
    findings = list(ledger["findings"])
    entries: dict[tuple[str, str], dict[str, Any]] = {}
    for standing in left:
        judged_in = standing.judged_in
        test = standing.judgement.test
        blank = {"nodeid": test, **standing.item, "judged_in": judged_in, "findings": []}
        entries.setdefault((judged_in, test), blank)["findings"].append(len(findings))
        finding = dict(standing.judgement.finding)
        details = {**finding.get("details", {}), "judged_in": judged_in}
        findings.append({**finding, "details": details, "nodeid": test})
    return {**ledger, "items": [*items, *entries.values()], "findings": findings}


def sha256_of_json(value: JSON) -> str:
    """The SHA-256 of *value* as JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("ascii")).hexdigest()
