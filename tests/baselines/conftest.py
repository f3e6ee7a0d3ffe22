"""Baselines without a plugin around them: real syrupy sessions, scores from a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions import DEFAULT_EXTENSION
from syrupy.location import PyTestLocation
from syrupy.session import SnapshotSession

from pytest_fairness.analysis import approvals
from pytest_fairness.analysis.baseline import compare_baseline
from pytest_fairness.baselines.approval import AnsweredRun, ApprovalPolicy
from pytest_fairness.baselines.document import Fingerprints, MeasuredScore
from pytest_fairness.baselines.syrupy_extension import BaselineStore
from pytest_fairness.model import Finding
from pytest_fairness.statistics.persona_scores import PersonaScore, ScoreSummary

TEST_ID = "tests/test_letters.py::test_letters_keep_their_baseline"
SCORE = "letter_score"
LIVE = Fingerprints(
    endpoint="app", models=("gpt-4",), identity="i1", template="t1", scorer="s1", design="d1"
)
SCORES = [
    92.0,
    85.0,
    78.0,
    88.0,
    95.0,
    70.0,
    81.0,
    90.0,
    66.0,
    84.0,
]  # worked number R13 of the gate
FALLEN = [90.0, 80.0, 77.0, 85.0, 95.0, 66.0, 80.0, 84.0, 66.0, 79.0]


def summary(scores: list[float] = SCORES, *, unscored: int = 0, refused: int = 0) -> ScoreSummary:
    """Ten personas, p00 to p09, half of them in each of two categories."""
    ids = [f"p{number:02d}" for number in range(len(scores))]
    return ScoreSummary(
        personas={
            key: PersonaScore(mean=score, n=3, sd=1.5, df=2)
            for key, score in zip(ids, scores, strict=True)
        },
        categories={"gender=female": tuple(ids[::2]), "gender=male": tuple(ids[1::2])},
        overall=sum(scores) / len(scores) if scores else 0.0,
        repetitions=3,
        run_sd=1.5,
        trials=3 * len(scores) + unscored + refused,
        refused=refused,
        unscored=unscored,
    )


class Desk:
    """One test's store in a project folder of its own, with a syrupy session that nobody else sees."""

    def __init__(self, rootdir: Path, request: pytest.FixtureRequest) -> None:
        self.rootdir = rootdir
        self.environ = {"FAIRNESS_APPROVER": "Jane Smith"}
        self._request = request

    def store(self, policy: ApprovalPolicy | None = None, **options: object) -> BaselineStore:
        session = SnapshotSession(pytest_session=self._request.session)
        session.start()
        snapshot = SnapshotAssertion(
            session=session,
            extension_class=DEFAULT_EXTENSION,
            test_location=PyTestLocation(self._request.node),
            update_snapshots=False,
        )
        return BaselineStore(
            snapshot=snapshot,
            policy=policy or ApprovalPolicy(),
            run_id="2026-02-28-001",
            **{
                "test_id": TEST_ID,
                "rootdir": self.rootdir,
                "root": self.rootdir / "baselines",
                "rules": approvals,
                "environ": self.environ,
                **options,
            },
        )

    def check(
        self,
        scores: list[float] | ScoreSummary = SCORES,
        *,
        policy: ApprovalPolicy | None = None,
        store: BaselineStore | None = None,
        score: str = SCORE,
        fingerprints: Fingerprints = LIVE,
        simulated: bool = False,
        replayed: bool = False,
        unfinished: int = 0,
        **options: object,
    ) -> Finding:
        current = scores if isinstance(scores, ScoreSummary) else summary(scores)
        return (store or self.store(policy)).check(
            MeasuredScore(score=score, summary=current, fingerprints=fingerprints, **options),
            AnsweredRun(simulated=simulated, replayed=replayed, unfinished=unfinished),
            lambda approved: compare_baseline(approved, current, outcome=score),
        )

    def approve(self, scores: list[float] | ScoreSummary = SCORES, **options: object) -> Finding:
        """Approve with a justification and nothing else allowed, unless *policy* says otherwise."""
        return self.check(scores, **{"policy": APPROVE, **options})

    @property
    def files(self) -> list[Path]:
        return (
            sorted((self.rootdir / "baselines").glob("*.json"))
            if (self.rootdir / "baselines").exists()
            else []
        )

    @property
    def file(self) -> Path:
        (file,) = self.files
        return file


APPROVE = ApprovalPolicy(approve=True, justification="reviewed 20 letters")


@pytest.fixture
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Desk:
    """See :class:`Desk`; it finds no git repository and no CI variable."""
    return Desk(tmp_path, request)


@pytest.fixture
def unchanged() -> Iterator[Callable[[Path], None]]:
    """Watch files: at the end of the test, each has the bytes that it had when it was given here."""
    watched: dict[Path, bytes] = {}
    yield lambda path: watched.update({path: path.read_bytes()})
    assert watched, "nothing was watched"
    assert {path: path.read_bytes() for path in watched} == watched
