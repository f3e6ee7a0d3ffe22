"""The running test as assertions see it: what is made of the session and the pytest item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fairness.context import TestContext
from pytest_fairness.pytest_layer import collection, second_sample

if TYPE_CHECKING:
    import pytest

    from pytest_fairness.baselines import BaselineStore
    from pytest_fairness.model import Finding
    from pytest_fairness.pytest_layer.session import FairnessSession


def context_of(session: FairnessSession, item: pytest.Item, findings: list[Finding]) -> TestContext:
    """The context of *item*, whose assertions add to *findings*."""
    from pytest_fairness.baselines.justifications import find
    from pytest_fairness.pytest_layer.replacements import notes_on

    labels, settings = collection.labels_of(item), session.settings
    documented = (*labels.justifications, *session.justifications)
    scored_by: set[str] = set()
    offered = second_sample.of(item)
    return TestContext(
        test_id=labels.id,
        test_module=getattr(getattr(item, "module", None), "__name__", ""),
        description=labels.description,
        emit=findings.append,
        policy=settings,
        justification=lambda finding: find(documented, finding, collection.nodeid_of(item)),
        baseline=lambda: _baselines(session, item),
        fresh_sample=None if offered is None else offered.like,
        confirmable=lambda: offered is not None and offered.possible(),
        scorers=session.scorers,
        scored_by=scored_by,
        notes=lambda finding: notes_on(session, item, finding, scored_by),
        seed=settings.seed,
    )


def _baselines(session: FairnessSession, item: pytest.Item) -> BaselineStore:
    from pytest_fairness.baselines import ApprovalPolicy, BaselineStore

    # The one way to a fixture from inside a test's call; pytest offers no public one.
    snapshot = item._request.getfixturevalue("snapshot")  # type: ignore[attr-defined]
    settings = session.settings
    return BaselineStore(
        snapshot=snapshot,
        test_id=collection.nodeid_of(item),
        rootdir=session.config.rootpath,
        root=settings.baseline_dir,
        policy=ApprovalPolicy(
            approve=settings.approve,
            allow_regression=settings.approve_regression,
            allow_in_ci=settings.approve_in_ci,
            justification=settings.justification,
        ),
        run_id=session.store.directory.name,
    )
