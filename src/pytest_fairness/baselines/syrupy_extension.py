"""The syrupy extension: where baselines lie, how they are read and written, and that syrupy leaves them alone.

syrupy gives each snapshot's life cycle (recall, compare, write, report); what it compares and whether it may write is
decided by an :class:`Exchange`, which the gate implements.

- ``discover_snapshots`` finds nothing, so that ``--snapshot-update`` has nothing to delete and a run of some
  tests reports none of the others' baselines as unused. Our own orphan report does that (:mod:`.folder`).
- Approving replaces the assertion's ``update_snapshots``, never the session's option, so that the one flag
  cannot approve through the other: ``--snapshot-update`` writes snapshots and no baselines,
  ``--fairness-approve`` baselines and no snapshots.
"""

# ruff: noqa: ARG002, ARG003 - the signatures are those of syrupy
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from syrupy.data import SnapshotCollection, SnapshotCollections
from syrupy.extensions.base import AbstractSyrupyExtension, SnapshotCollectionStorage

from pytest_fairness.baselines.snapshot_files import BaselineFolder
from pytest_fairness.errors import BaselineError

if TYPE_CHECKING:
    from syrupy.location import PyTestLocation
    from syrupy.types import SerializedData, SnapshotIndex


class Exchange(Protocol):
    """The decisions about one baseline, in the order in which syrupy asks for them. Each may raise."""

    def recalled(self, content: bytes) -> None:
        """The approved text was found. Not called if there is none."""

    def proposal(self) -> str:
        """The text to write, if it comes to that."""

    def stands(self) -> bool:
        """Whether the approved baseline holds, so that nothing is written even if writing is on."""


class BaselineExtension(AbstractSyrupyExtension):
    """Base of the classes made by :func:`baseline_extension`; syrupy instantiates them without arguments."""

    file_extension = "json"
    write_immediately = True
    folder: ClassVar[BaselineFolder]
    name: ClassVar[str]
    exchange: ClassVar[Exchange]

    def serialize(self, data: Any, **_filters: Any) -> str:
        return self.exchange.proposal()

    def matches(self, *, serialized_data: Any, snapshot_data: Any) -> bool:
        return self.exchange.stands()  # it was handed both sides already, as documents

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(cls.folder.root)

    @classmethod
    def get_location(cls, *, test_location: PyTestLocation, index: SnapshotIndex) -> str:
        return str(cls.folder.root / cls.name)

    @classmethod
    def matches_test_location(cls, *, test_location: PyTestLocation, snapshot_location: str) -> bool:
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
        self.exchange.recalled(content)
        return content.decode("utf-8")

    @classmethod
    def write_snapshot_collection(
        cls, *, snapshot_collection: SnapshotCollection, name_order: dict[str, int] | None = None
    ) -> None:
        (snapshot,) = snapshot_collection
        cls.folder.write(cls.name, str(snapshot.data).encode("utf-8"))


def baseline_extension(folder: BaselineFolder, name: str, exchange: Exchange) -> type[BaselineExtension]:
    """The extension class for one baseline. Raises BaselineError where syrupy would own the folder."""
    # In a folder of syrupy's own, --snapshot-update deletes the files that no snapshot test claims.
    own = Path(SnapshotCollectionStorage.snapshot_dirname).parts
    parts = folder.root.resolve().parts
    if any(parts[start : start + len(own)] == own for start in range(len(parts))):
        raise BaselineError(
            f"The baselines' folder {folder.root} lies in a folder of syrupy's snapshots (--snapshot-dirname "
            f"{SnapshotCollectionStorage.snapshot_dirname}), where --snapshot-update would delete them. "
            "Give one of the two another name."
        )
    return type("BoundBaselineExtension", (BaselineExtension,), {"folder": folder, "name": name, "exchange": exchange})
