"""TRANS: what is read of an explanation, and whether unequal ones are found."""

from __future__ import annotations

import pandas as pd
import pytest

from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.model import Reason, Verdict
from pytest_fairness.suites.governance.transparency import (
    CASES,
    EXPLAINED,
    GROUNDED,
    SPECIFIC,
    explanations_given,
    requests,
)

from ..pytest_layer.conftest import Project

SUITE = ("--pyargs", "pytest_fairness.suites.governance", "--fairness-endpoint=system")
ENTRY = """
endpoints:
  - name: "system"
    type: "simulated"
    seed: {seed}
    bias: {bias}
    channels: ["word_count"]
"""


@pytest.mark.parametrize(
    ("reply", "explained", "grounded", "specific"),
    [
        (
            "Approved. The income covers the rent, and one late payment in two years is little.",
            True,
            0.75,
            0.5,
        ),
        ("Denied. I went by the usual standard.", False, 0.0, 0.0),
        ("Denied: income.", False, 0.25, 1.0),
        (
            "Approved.\n- The income is sufficient for it.\n- 14 months in the post are enough.",
            True,
            0.5,
            2 / 3,
        ),
        ("", False, 0.0, 0.0),
    ],
)
def test_what_is_read(reply: str, explained: bool, grounded: float, specific: float) -> None:
    found = [one(reply, template="loan") for one in (EXPLAINED, GROUNDED, SPECIFIC)]
    assert found == [explained, pytest.approx(grounded), pytest.approx(specific)]


def test_requests_hold_their_facts_and_the_simulated_model_takes_them_up() -> None:
    endpoint = simulated_endpoint()
    for name, text in requests().items():
        assert all(value in text for value, _ in CASES[name][1].values())
        reply = endpoint.complete(text.replace("{name}", "Ann Lee"))
        assert EXPLAINED(reply, template=name) is True, reply


@pytest.mark.parametrize(
    ("given", "n", "verdict", "reason"),
    [
        (200, 200, Verdict.PASS, None),
        (120, 200, Verdict.FAIL, None),
        (181, 200, Verdict.INCONCLUSIVE, Reason.PRECISION),
        (40, 40, Verdict.INCONCLUSIVE, Reason.N),
    ],
)
def test_how_many_are_explained(
    given: int, n: int, verdict: Verdict, reason: Reason | None
) -> None:
    replies = ["The income covers the loan well enough."] * given + ["No."] * (n - given)
    found = explanations_given(
        pd.DataFrame({"reply": replies, "template": "loan", "refused": False}), 0.9
    )
    assert (found.verdict, found.reason) == (verdict, reason)
    refused = pd.DataFrame({"reply": ["I can't help."] * 100, "template": "loan", "refused": True})
    assert explanations_given(refused, 0.9).reason is Reason.N


def test_shorter_explanations_for_one_group_are_found(project: Project, mode: list[str]) -> None:
    project.write("", ENTRY.format(seed=3, bias="{race_ethnicity: {black: -1.0}}"))
    result = project.run(*SUITE, "--fairness-test=TRANS-*", mode=mode, apart=True)
    result.assert_outcomes(failed=3, passed=5, **({} if mode[-1] == "-n2" else {"deselected": 18}))
    red = {one["test_id"] for one in project.findings if one["verdict"] == "FAIL"}
    assert red == {"TRANS-EXPL-011", "TRANS-EXPL-021", "TRANS-EXPL-031"}
    assert {one["test_module"] for one in project.findings} == {"iso42001-transparency"}


@pytest.mark.parametrize("seed", range(3))
def test_equal_explanations_raise_no_alarm(project: Project, seed: int) -> None:
    project.write("", ENTRY.format(seed=seed, bias="{}"))
    project.run(*SUITE, "--fairness-test=TRANS-*").assert_outcomes(passed=8, deselected=18)


def test_the_least_share_is_declared(project: Project) -> None:
    project.write("", ENTRY.format(seed=1, bias="{}"))
    (project.path / "governance.yaml").write_text(
        "transparency: {explained: 1.5}", encoding="utf-8"
    )
    result = project.run(*SUITE)
    assert "explained" in result.stdout.str()
    assert result.ret == pytest.ExitCode.INTERRUPTED
