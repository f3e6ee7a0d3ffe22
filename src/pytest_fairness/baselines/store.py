"""The store of approved baselines that a running test is given."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness.baselines.approval import (
    APPROVE,
    JUSTIFICATION,
    ApprovalPolicy,
    check_allowed,
    new_approval,
)
from pytest_fairness.baselines.document import BaselineDocument
from pytest_fairness.baselines.errors import ApprovalRefusedError, MissingBaselineError
from pytest_fairness.baselines.fingerprints import Fingerprints
from pytest_fairness.baselines.folder import BaselineFolder
from pytest_fairness.baselines.gate import Compare, Gate
from pytest_fairness.baselines.slugs import baseline_name
from pytest_fairness.baselines.telling import approved_finding, compared_finding, refused_finding
from pytest_fairness.model import Finding, Verdict

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from pytest_fairness.statistics.persona_scores import ScoreSummary

FOLDER = "baselines"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineStore:
    """The approved baselines, as one running test sees them.

    ``snapshot`` is syrupy's fixture of that name in the same test. ``root`` is the folder of the baselines,
    by default ``baselines/`` in *rootdir*. ``used`` collects the names of the files asked for, for the orphan
    report.
    """

    snapshot: SnapshotAssertion
    test_id: str
    rootdir: Path
    root: Path | None = None
    policy: ApprovalPolicy = field(default_factory=ApprovalPolicy)
    run_id: str | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    used: set[str] = field(default_factory=set)

    @property
    def folder(self) -> BaselineFolder:
        """Where the baselines lie."""
        return BaselineFolder(self.root or self.rootdir / FOLDER, anchor=self.rootdir)

    def check(
        self,
        score: str,
        summary: ScoreSummary,
        compare: Compare,
        *,
        fingerprints: Fingerprints,
        simulated: bool,
        replayed: bool = False,
        unfinished: int = 0,
        threshold: float | None = None,
        lower_is_worse: bool = True,
    ) -> Finding:
        """Compare *summary* with the approved baseline of *score* in this test; under approve, write it.

        *compare* turns the approved summary into the finding about this run. *unfinished* counts the planned
        trials that came to no conclusion. *threshold* is the score from which a persona passes;
        *lower_is_worse* is the direction of the score, as *compare* was told.

        The finding returned is the comparison, with what changed since the approval in its notes and the
        baseline's provenance in ``details["baseline"]``. FAIL is a regression, its approval refused or not
        asked for; a first approval is PASS; an approved regression is FLAG with its justification filled.

        Raises MissingBaselineError without a baseline, ApprovalRefusedError where nothing may be approved,
        BaselineError for a baseline that cannot be trusted or is of the other kind (simulated or live),
        StoreError for the disk.
        """
        __tracebackhide__ = True  # the error says it all; our own lines would stand between it and the test
        from pytest_fairness.baselines.extension import baseline_extension

        folder, name = self.folder, baseline_name(self.test_id, score)
        path = folder.root / name
        self.used.add(name)
        proposed = BaselineDocument(
            test_id=self.test_id,
            score=score,
            summary=summary,
            fingerprints=fingerprints,
            threshold=threshold,
            lower_is_worse=lower_is_worse,
        )
        if self.policy.approve:
            justification = check_allowed(self.policy, environ=self.environ, unfinished=unfinished)
            approval = new_approval(
                justification,
                rootdir=self.rootdir,
                folder=folder.root,
                run_id=self.run_id,
                simulated=simulated,
                replayed=replayed,
                environ=self.environ,
            )
            proposed = replace(proposed, approval=approval)
        gate = Gate(
            file=self._named(path),
            proposed=proposed,
            compare=compare,
            policy=self.policy,
            simulated=simulated,
        )
        assertion = replace(
            self.snapshot,
            extension_class=baseline_extension(folder, name, gate),
            update_snapshots=self.policy.approve,
            update_new_snapshots_only=False,  # --snapshot-update-new-only approves nothing either
        )
        assertion(name=score).__eq__(proposed)
        result = assertion.executions[assertion.num_executions - 1]
        if isinstance(result.exception, ApprovalRefusedError) and gate.finding and gate.finding.verdict is Verdict.FAIL:
            return refused_finding(gate, str(result.exception))
        if result.exception is not None:
            raise result.exception
        if result.created or result.updated:
            return approved_finding(gate)
        if gate.finding is None:
            raise self._missing(score, gate.file)
        return compared_finding(gate)

    def _named(self, path: Path) -> str:
        inside = path.is_relative_to(self.rootdir)
        return (path.relative_to(self.rootdir) if inside else path).as_posix()

    def _missing(self, score: str, file: str) -> MissingBaselineError:
        return MissingBaselineError(
            f"No baseline is approved for the score {score!r} of {self.test_id} ({file} does "
            f"not exist). "
            "Review this run's scores; if they are what you want to be held to, approve them with\n"
            f'    pytest {shlex.quote(self.test_id)} {APPROVE} {JUSTIFICATION} "…"\nand commit the file.'
        )
