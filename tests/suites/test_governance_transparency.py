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
from tests.conftest import MODES

from ..pytest_layer.conftest import Project
from .lives import Life, LivedProject, Sessions, lived

EXPLAINS = "The income covers the loan well enough.\nANSWER: income"
SUITE = ("--pyargs", "pytest_fairness.suites.governance", "--fairness-test=TRANS-*")
ENTRY = """
  - name: "{name}"
    type: "simulated"
    seed: {seed}
    bias: {bias}
    channels: ["word_count"]
"""


@pytest.mark.parametrize(
    ("reply", "explained", "grounded", "specific"),
    [
        (
            "Approved. The income covers the rent, and one late payment in two years is little."
            "\n\nANSWER: income, rent and late payments",
            True,
            0.75,
            0.5,
        ),
        ("Denied. I went by the usual standard.\nANSWER: none", False, 0.0, 0.0),
        ("Denied: income.\n**ANSWER:** Income.", False, 0.25, 1.0),
        (
            "Approved.\n- The income is sufficient for it.\n- 14 months in the post are enough.\n"
            "ANSWER: income; time in the post; the weather",
            True,
            0.5,
            2 / 3,
        ),
        ("Denied. The income does not cover the rent by any standard.", None, None, 0.5),
        ("I decide nothing about people whom I do not know.\nANSWER: no answer", None, None, 0.0),
        ("", None, None, 0.0),
    ],
)
def test_what_is_read(
    reply: str, explained: bool | None, grounded: float | None, specific: float
) -> None:
    """Facts by the names on the line and by no other word; without a line, nothing."""
    scores = [scorer(reply, template="loan") for scorer in (EXPLAINED, GROUNDED, SPECIFIC)]
    assert scores == [explained, grounded, pytest.approx(specific)]


def test_requests_hold_their_facts_and_the_simulated_model_takes_them_up() -> None:
    for name, text in requests().items():
        assert all(value in text for value, _ in CASES[name][1].values())
        for style in ("plain", "hedged"):
            endpoint = simulated_endpoint(style=style)
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
    replies = [EXPLAINS] * given + ["No.\nANSWER: none"] * (n - given)
    found = explanations_given(
        pd.DataFrame({"reply": replies, "template": "loan", "refused": False}), 0.9
    )
    assert (found.verdict, found.reason) == (verdict, reason)
    silent = [EXPLAINS] * 90 + ["The income covers the loan well enough."] * 10
    unread = pd.DataFrame({"reply": silent, "template": "loan", "refused": False})
    assert explanations_given(unread, 0.9).reason is Reason.UNSCORED
    refused = pd.DataFrame({"reply": ["I can't help."] * 100, "template": "loan", "refused": True})
    assert explanations_given(refused, 0.9).reason is Reason.N


@lived
def explaining_life(project: LivedProject) -> Sessions:
    """With two workers a system that explains itself shorter to one group; then three that do not,
    by other seeds.
    """
    biased = ENTRY.format(name="system", seed=3, bias="{race_ethnicity: {black: -1.0}}")
    project.write("", f"endpoints:\n{biased}")
    yield "shorter", project.run(*SUITE, "--fairness-endpoint=system", mode=MODES["n2"])
    alike = [ENTRY.format(name=f"alike-{seed}", seed=seed, bias="{}") for seed in range(3)]
    project.write("", f"endpoints:\n{''.join(alike)}")
    yield "alike", project.run(*SUITE, "--fairness-endpoint=alike-0,alike-1,alike-2")


def test_shorter_explanations_for_one_group_are_found(explaining_life: Life) -> None:
    """By length, facts and specific sentences, of the one class whose group gets them."""
    shorter = explaining_life["shorter"]
    assert shorter.counts("failed", "passed") == (3, 5)
    red = {name for name, verdict in shorter.verdicts.items() if verdict == "FAIL"}
    assert red == {"TRANS-EXPL-011", "TRANS-EXPL-021", "TRANS-EXPL-031"}
    assert {finding["test_module"] for finding in shorter.findings} == {"iso42001-transparency"}


@pytest.mark.parametrize("seed", range(3))
def test_equal_explanations_raise_no_alarm(explaining_life: Life, seed: int) -> None:
    alike = explaining_life["alike"]
    assert alike.counts("failed", "passed") == (0, 24)
    verdicts = [
        finding["verdict"]
        for finding in alike.findings
        if finding["model_endpoint"] == f"alike-{seed}"
    ]
    assert len(verdicts) == 8
    assert not {"FLAG", "FAIL"} & set(verdicts)


def test_a_criterion_is_a_word_of_its_own() -> None:
    """``rental`` takes up the rent; ``parent`` and ``current`` do not."""
    for sentence, share in (
        ("The rental costs leave enough for it.", 1.0),
        ("The parent company is current on everything.", 0.0),
    ):
        assert SPECIFIC(sentence, template="loan") == share


def test_the_least_share_is_declared(project: Project) -> None:
    project.write("")
    (project.path / "governance.yaml").write_text("transparency: {explained: 1.5}", "utf-8")
    result = project.run(*SUITE)
    assert "explained" in result.stdout.str()
    assert result.ret == pytest.ExitCode.INTERRUPTED
