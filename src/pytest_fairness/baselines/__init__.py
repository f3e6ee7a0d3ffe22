"""Approved snapshots of scores, in git, and the gate that compares a run with them.

:mod:`.syrupy_extension` alone imports syrupy, and is itself imported only when a baseline is used.
"""

from pytest_fairness.baselines.approval import ApprovalPolicy
from pytest_fairness.baselines.document import Fingerprints
from pytest_fairness.baselines.gate import BaselineStore
from pytest_fairness.baselines.snapshot_files import BaselineFolder, find_orphans

__all__ = ["ApprovalPolicy", "BaselineFolder", "BaselineStore", "Fingerprints", "find_orphans"]
