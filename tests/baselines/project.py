"""A project whose tests use the store without the fairness plugin, run by real pytest sessions."""

from __future__ import annotations

import json

import pytest

CONFTEST = """
import json
import pytest
from pytest_fairness.baselines.approval import ApprovalPolicy
from pytest_fairness.baselines.document import Fingerprints
from pytest_fairness.baselines.gate import BaselineStore
from pytest_fairness.model import Finding, Verdict
from pytest_fairness.statistics.persona_scores import PersonaScore, ScoreSummary

def pytest_addoption(parser):
    for name in ("approve", "approve-regression", "approve-in-ci"):
        parser.addoption(f"--fairness-{name}", action="store_true")
    parser.addoption("--fairness-justification")

def compare(approved, current):  # without scipy, which takes long to import
    told, verdict = "Held.", Verdict.PASS
    if current.overall < approved.overall - 1:
        told, verdict = f"Worse: {approved.overall:.1f} to {current.overall:.1f}.", Verdict.FAIL
    return Finding(assertion="baseline", verdict=verdict, sentence=told)

@pytest.fixture
def held(request, snapshot):
    option = request.config.getoption
    store = BaselineStore(
        snapshot=snapshot,
        test_id=request.node.nodeid,
        rootdir=request.config.rootpath,
        policy=ApprovalPolicy(
            approve=option("--fairness-approve"),
            allow_regression=option("--fairness-approve-regression"),
            allow_in_ci=option("--fairness-approve-in-ci"),
            justification=option("--fairness-justification"),
        ),
    )
    def check(score="letter_score"):
        means = json.loads((request.config.rootpath / "scores.json").read_text())
        summary = ScoreSummary(
            personas={f"p{i:02d}": PersonaScore(mean=mean, n=1) for i, mean in enumerate(means)},
            overall=sum(means) / len(means), trials=len(means),
        )
        finding = store.check(
            score, summary, lambda approved: compare(approved, summary),
            fingerprints=Fingerprints(endpoint="app"), simulated=False,
        )
        allowed = finding.verdict is Verdict.PASS or finding.justification
        if not allowed:
            pytest.fail(finding.sentence, pytrace=False)
    return check
"""
SUITE = """
import pytest

def test_letters_keep_their_baseline(held):
    held()
"""
SCORES = [92.0, 85.0, 78.0]
FALLEN = [90.0, 80.0, 77.0]
APPROVE = ("--fairness-approve", "--fairness-justification", "reviewed 20 letters")
PLAIN: tuple[str, ...] = ()
PARALLEL = ("-p", "xdist", "-n2")


class Project:
    """A project of one's own, run by real pytest sessions without the fairness plugin."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.folder = pytester.path / "baselines"
        pytester.makeconftest(CONFTEST)
        pytester.makepyfile(test_letters=SUITE)
        self.score(SCORES)

    def score(self, scores: list[float]) -> None:
        (self.pytester.path / "scores.json").write_text(json.dumps(scores))

    def run(self, *arguments: str) -> pytest.RunResult:
        # A session of one process leaves nothing behind in this one, but for the folder that syrupy is told.
        alone = "-n2" in arguments or "--snapshot-dirname" in arguments
        run = self.pytester.runpytest_subprocess if alone else self.pytester.runpytest_inprocess
        return run("-p", "syrupy", "-p", "no:cacheprovider", *arguments)

    @property
    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.glob("*")}

    def approval(self) -> dict[str, object]:
        (content,) = self.files.values()
        return dict(json.loads(content)["approval"])
