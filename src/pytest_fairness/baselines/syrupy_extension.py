"""The approved baselines as one test sees them, and the syrupy extension by which they are read and
written.

syrupy gives each snapshot's life cycle (recall, compare, write, report); what it compares and
whether it may write is decided by the :class:`~pytest_fairness.baselines.gate.Gate`.

- ``discover_snapshots`` finds nothing, so that ``--snapshot-update`` has nothing to delete and a
  run of some tests reports none of the others' baselines as unused. Our own orphan report does
  that.
- Approving replaces the assertion's ``update_snapshots``, never the session's option, so that the
  one flag cannot approve through the other: ``--snapshot-update`` writes snapshots and no
  baselines, ``--fairness-approve`` baselines and no snapshots.
"""

# ruff: noqa: ARG002, ARG003 - the signatures are those of syrupy
from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from syrupy.data import SnapshotCollection, SnapshotCollections
from syrupy.extensions.base import AbstractSyrupyExtension, SnapshotCollectionStorage

from pytest_fairness.baselines.approval import (
    APPROVE,
    JUSTIFICATION,
    AnsweredRun,
    ApprovalPolicy,
    new_approval,
)
from pytest_fairness.baselines.changelog import NAME as CHANGELOG
from pytest_fairness.baselines.changelog import changelog_entry
from pytest_fairness.baselines.document import BaselineDocument, MeasuredScore
from pytest_fairness.baselines.gate import ApprovalRules, Compare, Gate
from pytest_fairness.baselines.snapshot_files import BaselineFolder, baseline_name
from pytest_fairness.errors import ApprovalRefusedError, BaselineError, MissingBaselineError
from pytest_fairness.model import Finding, Verdict

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion
    from syrupy.location import PyTestLocation
    from syrupy.types import SerializedData, SnapshotIndex


class BaselineExtension(AbstractSyrupyExtension):
    """Base of the classes made by :func:`_extension`; syrupy instantiates them without arguments."""

    file_extension = "json"
    write_immediately = True
    folder: ClassVar[BaselineFolder]
    name: ClassVar[str]
    gate: ClassVar[Gate]

    def serialize(self, data: Any, **_filters: Any) -> str:
        return self.gate.proposal()

    def matches(self, *, serialized_data: Any, snapshot_data: Any) -> bool:
        return self.gate.stands()  # it was handed both sides already, as documents

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(cls.folder.root)

    @classmethod
    def get_location(cls, *, test_location: PyTestLocation, index: SnapshotIndex) -> str:
        return str(cls.folder.root / cls.name)

    @classmethod
    def matches_test_location(
        cls, *, test_location: PyTestLocation, snapshot_location: str
    ) -> bool:
        return snapshot_location == str(cls.folder.root / cls.name)

    def discover_snapshots(self, **_where: Any) -> SnapshotCollections:
        return SnapshotCollections()

    def delete_snapshots(self, **_which: Any) -> None:
        """Nothing: a baseline is removed by a person."""

    def read_snapshot_collection(self, *, snapshot_location: str) -> SnapshotCollection:
        return SnapshotCollection(location=snapshot_location)

    def read_snapshot_data_from_location(
        self, *, snapshot_location: str, snapshot_name: str, session_id: str
    ) -> SerializedData | None:
        content = self.folder.read(self.name)
        if content is None:
            return None
        self.gate.recalled(content)
        return content.decode("utf-8")

    @classmethod
    def write_snapshot_collection(
        cls, *, snapshot_collection: SnapshotCollection, name_order: dict[str, int] | None = None
    ) -> None:
        (snapshot,) = snapshot_collection
        cls.folder.write(cls.name, str(snapshot.data).encode("utf-8"))
        cls.folder.append(CHANGELOG, changelog_entry(cls.gate.proposed, cls.gate.approved) + "\n")


def _extension(folder: BaselineFolder, name: str, gate: Gate) -> type[BaselineExtension]:
    """The extension class for one baseline. Raises BaselineError where syrupy would own the folder."""
    # In a folder of syrupy's own, --snapshot-update deletes the files that no snapshot test claims.
    folder_parts = Path(SnapshotCollectionStorage.snapshot_dirname).parts
    parts = folder.root.resolve().parts
    if any(parts[start : start + len(folder_parts)] == folder_parts for start in range(len(parts))):
        raise BaselineError(
            f"The baselines' folder {folder.root} lies in a folder of syrupy's snapshots "
            "(--snapshot-dirname "
            f"{SnapshotCollectionStorage.snapshot_dirname}), where --snapshot-update would delete "
            "them. "
            "Give one of the two another name."
        )
    return type(
        "BoundBaselineExtension",
        (BaselineExtension,),
        {"folder": folder, "name": name, "gate": gate},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineStore:
    """The approved baselines in the folder *root*, as one test sees them; ``snapshot`` is its
    syrupy fixture, ``rules`` say what an approval makes of a comparison.
    """

    snapshot: SnapshotAssertion
    test_id: str
    rootdir: Path
    root: Path
    rules: ApprovalRules
    policy: ApprovalPolicy = field(default_factory=ApprovalPolicy)
    run_id: str | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def check(self, measured: MeasuredScore, answered: AnsweredRun, compare: Compare) -> Finding:
        """Compare what was *measured* in a run that was *answered* so with the approved baseline of
        that score in this test; under approve, write it.

        *compare* turns the approved summary into the finding about this run.

        The finding returned is the comparison, with what changed since the approval in its notes
        and the baseline's provenance in ``details["baseline"]``. FAIL is a regression, its approval
        refused or not requested; a first approval is PASS; an approved regression is FLAG with its
        justification filled.

        Raises MissingBaselineError without a baseline, ApprovalRefusedError where nothing may be
        approved, BaselineError for a baseline that cannot be trusted or is of the other kind
        (simulated or live), StoreError for the disk.
        """
        __tracebackhide__ = (
            True  # the error says it all; our own lines would stand between it and the test
        )
        name = baseline_name(self.test_id, measured.score)
        approval = None
        path = self.root / name
        if self.policy.approve:
            approval = new_approval(
                self.policy,
                answered,
                rootdir=self.rootdir,
                folder=self.root,
                run_id=self.run_id,
                environ=self.environ,
            )
        proposed = BaselineDocument.proposed(measured, self.test_id, approval)
        file = path.as_posix()
        if path.is_relative_to(self.rootdir):
            file = path.relative_to(self.rootdir).as_posix()
        gate = Gate(
            file=file,
            proposed=proposed,
            compare=compare,
            rules=self.rules,
            policy=self.policy,
            simulated=answered.simulated,
        )
        assertion = replace(
            self.snapshot,
            extension_class=_extension(BaselineFolder(self.root, anchor=self.rootdir), name, gate),
            update_snapshots=self.policy.approve,
            update_new_snapshots_only=False,  # --snapshot-update-new-only approves nothing either
        )
        assertion(name=measured.score).__eq__(proposed)
        result = assertion.executions[assertion.num_executions - 1]
        failed = gate.finding is not None and gate.finding.verdict is Verdict.FAIL
        if isinstance(result.exception, ApprovalRefusedError) and failed:
            return gate.refused(str(result.exception))
        if result.exception is not None:
            raise result.exception
        if result.created or result.updated:
            return gate.written()
        if gate.finding is None:
            module, _, test = self.test_id.partition("::")
            # A test of an installed suite is not found by the path that it is listed with.
            how = f"with\n    pytest {shlex.quote(self.test_id)}"
            if not (self.rootdir / module).exists():
                how = f"with the same command and\n    -k {shlex.quote(test)}"
            raise MissingBaselineError(
                f"No baseline is approved for the score {measured.score!r} of {self.test_id} ({file} does "
                "not exist). "
                "Review this run's scores; if they are what you want to be held to, approve them "
                f'{how} {APPROVE} {JUSTIFICATION} "…"\n'
                "and commit the file."
            )
        return gate.compared()
