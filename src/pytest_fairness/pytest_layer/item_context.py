"""The context of the assertions of an item while it runs: its policy, its baselines, the reasons
for a FLAG, and the log of what they judge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_fairness.analysis.pilots import note_of
from pytest_fairness.baselines import justifications
from pytest_fairness.baselines.justifications import Justification
from pytest_fairness.context import RunContext
from pytest_fairness.documents import project_folder
from pytest_fairness.model import JSON, Finding, fields_of
from pytest_fairness.pytest_layer import collection, preflight
from pytest_fairness.pytest_layer.project_labels import ProjectLabels
from pytest_fairness.pytest_layer.reading_turns import Ask, ReadingTurns
from pytest_fairness.pytest_layer.staged_trials import STAGED
from pytest_fairness.pytest_layer.trials import CHOSEN_BY_PILOT
from pytest_fairness.running_test import TestContext, TestLabels
from pytest_fairness.runs import labels as person_labels
from pytest_fairness.runs.judgements import Judgement
from pytest_fairness.runs.records import utc_now


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemContexts:
    """Makes the context of an item from the *run*.

    ``in_file``: the justifications of the project's file. ``session_number``: the place of this
    session among those of the run. ``red``: what the assertion in a place of a test may spend on
    red about a fair system. ``ask`` gives what asks the system of a name for the reading turns of
    an item, ``end_reading`` is called once they are asked.
    """

    run: RunContext
    in_file: Sequence[Justification]
    session_number: Callable[[], int]
    red: Callable[[int, float], float]
    ask: Callable[[pytest.Item], Ask]
    end_reading: Callable[[], None]

    def of(self, item: pytest.Item, findings: list[Finding]) -> TestContext:
        """Return the context of *item*, whose assertions add to *findings*."""
        labels = collection.labels_of(item)
        nodeid = collection.nodeid_of(item)
        documented = (*labels.justifications, *self.in_file)
        judgements = _Judgements(self, nodeid, labels, findings)
        scored_by: set[str] = set()

        of_pilot = []
        if CHOSEN_BY_PILOT in item.stash:
            of_pilot = [note_of(item.stash[CHOSEN_BY_PILOT])]

        def notes(finding: Finding) -> list[str]:
            of_session = preflight.notes_on(self.run, item, finding, scored_by)
            expired = justifications.expired_notes(documented, finding, nodeid)
            return [*of_session, *of_pilot, *expired]

        def log_look(record: Mapping[str, JSON]) -> None:
            session = self.session_number()
            self.run.store.append({**record, "test": nodeid, "session": session})

        of_trials: dict[str, Any] = {}
        staged = item.stash.get(STAGED, None)
        if staged is not None:
            of_trials = {
                "staged": staged,
                "changed": staged.changed,
                "red": self.red,
                "log_look": log_look,
            }
        return TestContext(
            **fields_of(TestLabels, labels),
            emit=judgements.log,
            keep=judgements.keep,
            policy=self.run.settings,
            justification=lambda finding: justifications.find(documented, finding, nodeid),
            baseline=lambda: self._baselines(item, nodeid),
            scorers=self.run.scorers,
            scored_by=scored_by,
            notes=notes,
            seed=self.run.settings.seed,
            reading_turns=ReadingTurns(
                ask=self.ask(item),
                ends=self.end_reading,
                reader=self.run.settings.reader,
                seed=self.run.settings.seed,
                personas=project_folder(self.run.root),
            ),
            labels=ProjectLabels(self.run.root / person_labels.FOLDER),
            **of_trials,
        )

    def _baselines(self, item: pytest.Item, nodeid: str) -> Any:
        """Return the approved baselines that assertions of *item* compare with."""
        from pytest_fairness.analysis import approvals
        from pytest_fairness.baselines.syrupy_extension import BaselineStore

        return BaselineStore(
            # The one way to a fixture from inside a test's call; pytest offers no public one.
            snapshot=item._request.getfixturevalue("snapshot"),  # type: ignore[attr-defined]
            test_id=nodeid,
            rootdir=self.run.root,
            root=self.run.settings.baseline_dir,
            rules=approvals,
            policy=self.run.settings,
            run_id=self.run.store.directory.name,
        )


class _Judgements:
    """Logs each finding of an item together with what it was judged from."""

    def __init__(
        self,
        contexts: ItemContexts,
        nodeid: str,
        labels: collection.Labels,
        findings: list[Finding],
    ) -> None:
        self._contexts = contexts
        self._nodeid = nodeid
        self._labels = labels
        self._findings = findings
        self._next = Judgement()

    def keep(self, judgement: Judgement) -> None:
        """Keep what the next finding was judged from."""
        self._next = judgement

    def log(self, finding: Finding) -> None:
        """Write the judgement of *finding* into the log of the run."""
        record = self._next.to_record(
            self._nodeid,
            len(self._findings),
            session=self._contexts.session_number(),
            time=utc_now(),
            controls=self._labels.controls,
            finding=finding.to_dict(),
            justified_by=self._justified_by(finding),
        )
        self._next = Judgement()
        self._contexts.run.store.append(record)
        self._findings.append(finding)

    def _justified_by(self, finding: Finding) -> dict[str, str]:
        """Return the place of the reason for a FLAG: the test whose marker gives it, the file with
        its SHA-256, or the option by which it was approved.
        """
        if finding.justification is None:
            return {}
        if justifications.find(self._labels.justifications, finding, self._nodeid) is not None:
            return {"marker": self._nodeid}
        if justifications.find(self._contexts.in_file, finding, self._nodeid) is None:
            return {"option": "--fairness-justification"}
        path = self._contexts.run.root / justifications.NAME
        return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
