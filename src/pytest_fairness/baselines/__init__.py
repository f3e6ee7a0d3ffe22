"""Remembering: approved snapshots of scores, in git, and the gate that compares a run with them.

:mod:`.extension` alone imports syrupy, and is itself imported only when a baseline is used.
"""

from pytest_fairness.baselines.approval import ApprovalPolicy
from pytest_fairness.baselines.errors import ApprovalRefusedError, BaselineError, MissingBaselineError
from pytest_fairness.baselines.fingerprints import Fingerprints
from pytest_fairness.baselines.folder import BaselineFolder
from pytest_fairness.baselines.orphans import Orphan, find_orphans
from pytest_fairness.baselines.slugs import baseline_name
from pytest_fairness.baselines.store import BaselineStore

__all__ = [
    "ApprovalPolicy",
    "ApprovalRefusedError",
    "BaselineError",
    "BaselineFolder",
    "BaselineStore",
    "Fingerprints",
    "MissingBaselineError",
    "Orphan",
    "baseline_name",
    "find_orphans",
]
